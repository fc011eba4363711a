/** `causeway webhooks ...`: who is told of events, and what became of each delivery. */
import { resolve } from "node:path";
import { watcherConfigFile } from "../../deposit-watcher/config.js";
import {
  DELIVERY_STATUSES,
  listDeliveries,
  nothingToRedeliver,
  redeliver,
  type StoredDelivery,
} from "../../ledger/webhooks/deliveries.js";
import {
  addSecret,
  addWebhook,
  findWebhook,
  listWebhooks,
  parseEventFilters,
  removeWebhook,
  retireSecret,
  type Webhook,
} from "../../ledger/webhooks/subscriptions.js";
import { loadConfig } from "../../runtime/config/config.js";
import { parseTarget } from "../../runtime/http/outgoing/guarded-post.js";
import { withLedgerAlone } from "../ledger/ledger-alone.js";
import { toJson } from "../command-context.js";
import type { LedgerCommand } from "../ledger/ledger-tools.js";
import { CliError } from "../errors.js";
import { createNamedFile, SECRET_MODE } from "../home/home-file.js";
import { lastIfFull, type PageOptions, readPage } from "../list-page.js";
import { causewayCommand } from "../where-next.js";
import { readWholeNumber } from "../whole-number.js";

/** Flags of `webhooks add`, as typed. */
export interface AddWebhookOptions {
  readonly events: string;
  readonly description?: string;
  /** File that takes the secret instead of the terminal. */
  readonly out?: string;
}

/** Flags of `webhooks deliveries`, as typed. */
export interface ListDeliveriesOptions extends PageOptions {
  readonly status?: string;
}

const MAX_DESCRIPTION_CHARACTERS = 200;

/** `webhooks add URL`: the secret is shown once, or written to a file of mode 600. */
export async function runAddWebhook(
  command: LedgerCommand,
  url: string,
  options: AddWebhookOptions,
): Promise<number> {
  const { home, env, portOffset } = command;
  const config = loadConfig({ home, env, portOffset }, watcherConfigFile);
  const target = parseTarget(url, { allowLoopback: config.webhooks["allow-local"] });
  const events = parseEventFilters(options.events.split(",").map((part) => part.trim()));
  const { description } = options;
  if (description !== undefined && !/^.{1,200}$/u.test(description)) {
    throw new CliError(
      "USAGE",
      `--description takes 1 to ${MAX_DESCRIPTION_CHARACTERS} characters.`,
    );
  }
  return withLedgerAlone(command, async ({ database }) => {
    const { webhook, secret } = await addWebhook(database, {
      url: target.href,
      events,
      description,
    });
    return showSecret(command, { id: webhook.id, secret: secret.secret }, options.out, () =>
      removeWebhook(database, webhook.id),
    );
  });
}

/** `webhooks list`: all of them, without their secrets. */
export async function runListWebhooks(command: LedgerCommand): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    const webhooks = await listWebhooks(database);
    if (command.json) command.print(toJson({ webhooks }));
    else if (webhooks.length === 0) command.print("No webhooks.");
    else
      for (const webhook of webhooks)
        for (const line of linesOf(webhook, command)) command.print(line);
    return 0;
  });
}

/** `webhooks remove ID`: nothing more is sent. */
export async function runRemoveWebhook(command: LedgerCommand, id: string): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    await removeWebhook(database, id);
    command.print(command.json ? toJson({ id, status: "removed" }) : `${id} is removed.`);
    return 0;
  });
}

/** `webhooks redeliver ID --from SEQ`: events are sent again from there on. */
export async function runRedeliver(
  command: LedgerCommand,
  id: string,
  from: string,
): Promise<number> {
  const fromSeq = readWholeNumber("--from", from, { least: 1 });
  return withLedgerAlone(command, async ({ database }) => {
    await redeliver(database, id, fromSeq);
    const webhook = await findWebhook(database, id);
    const note = nothingToRedeliver(webhook, fromSeq);
    if (command.json) command.print(toJson({ ...webhook, ...(note !== undefined && { note }) }));
    else {
      if (note !== undefined) command.print(`${note[0]?.toUpperCase()}${note.slice(1)}.`);
      const { cursorSeq, behindEvents } = webhook;
      command.print(`${id} sends on behind event ${cursorSeq}: ${behindEvents} wait.`);
    }
    return 0;
  });
}

/** `webhooks deliveries ID`: what became of each event. */
export async function runListDeliveries(
  command: LedgerCommand,
  id: string,
  options: ListDeliveriesOptions,
): Promise<number> {
  const { limit, after: afterSeq } = readPage(options);
  const status = DELIVERY_STATUSES.find((known) => known === options.status);
  if (options.status !== undefined && status === undefined) {
    throw new CliError("USAGE", `--status takes one of ${DELIVERY_STATUSES.join(", ")}.`);
  }
  return withLedgerAlone(command, async ({ database }) => {
    await findWebhook(database, id);
    const deliveries = await listDeliveries(database, id, { status, afterSeq, limit });
    const next = lastIfFull(deliveries, limit)?.seq;
    if (command.json) command.print(toJson({ deliveries, next: next ?? null }));
    else {
      for (const delivery of deliveries) command.print(rowOf(delivery));
      if (next !== undefined) command.print(`more: --after ${next}`);
    }
    return 0;
  });
}

/** `webhooks add-secret ID`: a second secret, shown once or written to a file. */
export async function runAddSecret(
  command: LedgerCommand,
  id: string,
  { out }: { readonly out?: string },
): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    const made = await addSecret(database, id);
    return showSecret(command, made, out, () => retireSecret(database, id, made.id));
  });
}

/** `webhooks retire-secret ID SECRET`: it signs nothing any more. */
export async function runRetireSecret(
  command: LedgerCommand,
  id: string,
  secretId: string,
): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    await retireSecret(database, id, secretId);
    command.print(command.json ? toJson({ id, secretId }) : `${secretId} signs nothing any more.`);
    return 0;
  });
}

/** Shows a secret once, or puts it where only its owner reads; `undo` where that cannot be done. */
async function showSecret(
  command: LedgerCommand,
  made: { readonly id: string; readonly secret: string },
  file: string | undefined,
  undo: () => Promise<void>,
): Promise<number> {
  const out = file === undefined ? undefined : resolve(file);
  if (out !== undefined) {
    try {
      await writeSecretFile(out, made.secret);
    } catch (error) {
      // Nobody has it: no delivery must be signed with it.
      await undo();
      throw error;
    }
  }
  if (command.json) {
    command.print(toJson(out === undefined ? made : { id: made.id, file: out }));
    return 0;
  }
  command.print(made.id);
  command.print(out === undefined ? made.secret : `The secret is in ${out}.`);
  command.print("It is shown this once; deliveries are signed with it (docs/guide/webhooks.md).");
  return 0;
}

async function writeSecretFile(out: string, secret: string): Promise<void> {
  if (await createNamedFile(out, `${secret}\n`, SECRET_MODE)) return;
  throw new CliError("USAGE", `${out} is there already: choose another file for --out.`);
}

function linesOf(webhook: Webhook, { home, portOffset }: LedgerCommand): string[] {
  const { id, status, url, events, behindEvents, pending, dead, reason, secrets } = webhook;
  const head = `${id}  ${status}  ${url}  ${events.join(",")}`;
  const work = `${behindEvents} behind, ${pending} pending, ${dead} given up`;
  return [
    `${head}  ${work}  secrets ${secrets.map((secret) => secret.id).join(",")}`,
    ...(reason === undefined
      ? []
      : [
          `  ${reason}`,
          `  to go on: ${causewayCommand(`webhooks redeliver ${id} --from SEQ`, home, portOffset)}`,
        ]),
  ];
}

function rowOf(delivery: StoredDelivery): string {
  const { seq, eventType, status, attempts, nextTryAt, lastError } = delivery;
  const next = nextTryAt === undefined ? "" : `  next ${nextTryAt.toISOString()}`;
  const fault = lastError === undefined ? "" : `  ${lastError}`;
  return `${seq}  ${eventType}  ${status}  ${attempts} tries${next}${fault}`;
}
