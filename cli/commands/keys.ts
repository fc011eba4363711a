/** `causeway keys create|list|revoke|calls`: who may use the exchange's APIs, and what they did. */
import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { isAnybodysKey } from "../../chain/consensus/ed25519.js";
import { momentMsOf } from "../../chain/encoding/calendar.js";
import {
  type ApiKey,
  createApiKey,
  listApiKeys,
  newSigningSecret,
  revokeApiKey,
} from "../../ledger/access/api-keys.js";
import { listCalls } from "../../ledger/access/api-calls.js";
import { KEY_LIFE_MS } from "../../ledger/access/key-ring.js";
import { parseScopes } from "../../ledger/access/scopes.js";
import type { RequestVerifier } from "../../runtime/http/signed-request.js";
import { CliError } from "../errors.js";
import { createNamedFile, SECRET_MODE } from "../home/home-file.js";
import { lastIfFull, type PageOptions, readPage } from "../list-page.js";
import { causewayCommand } from "../where-next.js";
import { readWholeNumber } from "../whole-number.js";
import { withLedgerAlone } from "../ledger/ledger-alone.js";
import { toJson } from "../command-context.js";
import type { LedgerCommand } from "../ledger/ledger-tools.js";

/** Flags of `keys create`, as typed. */
export interface CreateKeyOptions {
  readonly scope: string;
  readonly name?: string;
  /** A duration ("90d", "12h") or a date of RFC 3339. */
  readonly expires?: string;
  /** Calls per second to each API. */
  readonly rate?: string;
  /** File that takes the key instead of the terminal. */
  readonly out?: string;
  /** "hmac" or "ed25519": changing requests of the key are signed. */
  readonly sign?: string;
  /** PEM file of an Ed25519 public key. */
  readonly publicKey?: string;
}

/** Flags of `keys calls`, as typed. */
export interface ListCallsOptions extends PageOptions {
  readonly key?: string;
}

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** More than any API answers. */
const MOST_CALLS_PER_SECOND = 1_000_000;

/** The line that begins a private key, locked with a passphrase or not. */
const PRIVATE_PEM = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;

/**
 * `keys create`: a new key, shown once: this command exists to hand it out, and nothing can show it
 * again. With `--out` it goes into a file of mode 600 and is not shown at all.
 */
export async function runCreateKey(
  command: LedgerCommand,
  options: CreateKeyOptions,
  nowMs: number,
): Promise<number> {
  const wanted = {
    name: readName(options.name ?? "unnamed"),
    scopes: parseScopes(options.scope),
    callsPerSecond: options.rate === undefined ? undefined : readRate(options.rate),
    expiresAt: options.expires === undefined ? undefined : readExpiry(options.expires, nowMs),
    verifier: readVerifier(options),
  };
  const { verifier } = wanted;
  const signingSecret = verifier?.kind === "hmac" ? verifier.secret : undefined;
  return withLedgerAlone(command, async ({ database }) => {
    const { key, stored } = await createApiKey(database, wanted);
    // In full: npm runs a command in the clone, wherever it is typed.
    const out = options.out === undefined ? undefined : resolve(options.out);
    const secrets = signingSecret === undefined ? [key] : [key, signingSecret];
    if (out !== undefined) {
      try {
        await writeKeyFile(out, secrets);
      } catch (error) {
        // Nobody has it: it must not stay good for anything.
        await revokeApiKey(database, stored.id);
        throw error;
      }
    }
    if (command.json) {
      const shown = { key, signingSecret };
      command.print(toJson({ ...stored, ...(out === undefined ? shown : { file: out }) }));
      return 0;
    }
    for (const line of out === undefined ? secrets : [`The key is in ${out}.`]) command.print(line);
    if (stored.signing !== undefined) {
      const lines = signingSecret === undefined ? "" : "; the second line is its secret";
      command.print(`Its changing requests are signed by ${stored.signing}${lines}.`);
    }
    command.print(
      `Good for ${stored.scopes.join(", ")}${expiryText(stored)}; at once, everywhere.`,
    );
    command.print("It is kept nowhere: only its digest is. Take it back with:");
    const revoke = causewayCommand(`keys revoke ${stored.id}`, command.home, command.portOffset);
    command.print(`  ${revoke}`);
    return 0;
  });
}

async function writeKeyFile(out: string, secrets: readonly string[]): Promise<void> {
  if (await createNamedFile(out, `${secrets.join("\n")}\n`, SECRET_MODE)) return;
  throw new CliError("USAGE", `${out} is there already: choose another file for --out.`);
}

/** `keys list`: all keys, without their secrets, which nobody has. */
export async function runListKeys(command: LedgerCommand): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    const keys = await listApiKeys(database);
    if (command.json) command.print(toJson({ keys }));
    else if (keys.length === 0) {
      command.print("No keys but the home's own, config/api.key, which may do everything.");
    } else for (const key of keys) command.print(rowOf(key));
    return 0;
  });
}

/** `keys revoke ID`: the key opens nothing any more. */
export async function runRevokeKey(command: LedgerCommand, id: string): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    const revokedAt = await revokeApiKey(database, id);
    if (command.json) command.print(toJson({ id, revokedAt }));
    else {
      command.print(
        `${id} was revoked at ${revokedAt.toISOString()}; running APIs refuse it within ` +
          `${KEY_LIFE_MS / 1_000} s of that.`,
      );
    }
    return 0;
  });
}

/** `keys calls`: what was called that may have changed something, oldest first. */
export async function runListCalls(
  command: LedgerCommand,
  options: ListCallsOptions,
): Promise<number> {
  const { limit, after: afterSeq } = readPage(options);
  return withLedgerAlone(command, async ({ database }) => {
    const calls = await listCalls(database, { keyId: options.key, afterSeq, limit });
    const next = lastIfFull(calls, limit)?.seq;
    if (command.json) command.print(toJson({ calls, next: next ?? null }));
    else {
      for (const call of calls) {
        const words = [call.at.toISOString(), call.keyId.padEnd(12), call.service, call.method];
        const key = call.idempotencyKey === undefined ? "" : `  key ${call.idempotencyKey}`;
        const actor = call.actor === undefined ? "" : `  by ${call.actor}`;
        const reason = call.reason === undefined ? "" : `: ${call.reason}`;
        command.print(`${words.join("  ")} ${call.path}${key}${actor}${reason}`);
      }
      if (next !== undefined) command.print(`more: --after ${next}`);
    }
    return 0;
  });
}

function rowOf(key: ApiKey): string {
  const state =
    key.revokedAt === undefined ? expiryText(key) : `, revoked ${key.revokedAt.toISOString()}`;
  const rate = key.callsPerSecond === undefined ? "" : `, ${key.callsPerSecond} calls/s`;
  const signed = key.signing === undefined ? "" : `, signed by ${key.signing}`;
  return `${key.id}  ${key.name}  ${key.scopes.join(",")}${rate}${signed}${state}`;
}

function expiryText({ expiresAt }: Pick<ApiKey, "expiresAt">): string {
  return expiresAt === undefined ? "" : `, until ${expiresAt.toISOString()}`;
}

function readVerifier({ sign, publicKey }: CreateKeyOptions): RequestVerifier | undefined {
  if (sign === undefined && publicKey === undefined) return undefined;
  if (sign === "hmac" && publicKey === undefined) {
    return { kind: "hmac", secret: newSigningSecret() };
  }
  if (sign !== "ed25519" || publicKey === undefined) {
    throw new CliError("USAGE", "--sign takes hmac, or ed25519 with --public-key FILE.");
  }
  return { kind: "ed25519", publicKey: readPublicKey(publicKey) };
}

/** The 32 bytes of a PEM file, as `openssl pkey -pubout` writes it. */
function readPublicKey(file: string): Uint8Array {
  try {
    const pem = readFileSync(file, "utf8");
    if (PRIVATE_PEM.test(pem)) throw privateKeyGiven(file);
    const key = createPublicKey(pem);
    const { crv, x } = key.export({ format: "jwk" });
    if (crv !== "Ed25519" || x === undefined) throw new TypeError("another kind of key");
    const bytes = Uint8Array.from(Buffer.from(x, "base64url"));
    if (isAnybodysKey(bytes)) throw new TypeError("a key that everybody can sign for");
    return bytes;
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    const message = `--public-key needs an Ed25519 public key in PEM, which ${file} does not hold.`;
    throw new CliError("USAGE", message, { cause });
  }
}

/** Node would take the public half of one; its owner should not hand it to whoever makes keys. */
function privateKeyGiven(file: string): CliError {
  return new CliError(
    "USAGE",
    `${file} holds a private key, which stays with who signs. Nothing of it was kept. Make the ` +
      `public one of it there: openssl pkey -in KEY.pem -pubout -out PUBLIC.pem`,
  );
}

function readName(text: string): string {
  if (/^[\x20-\x7e]{1,64}$/.test(text)) return text;
  throw new CliError("USAGE", "--name takes 1 to 64 printable characters.");
}

function readRate(text: string): number {
  const rate = readWholeNumber("--rate", text, { least: 1 });
  if (rate <= MOST_CALLS_PER_SECOND) return rate;
  throw new CliError(
    "USAGE",
    `--rate is at most ${MOST_CALLS_PER_SECOND}; leave it out for no bound.`,
  );
}

function readExpiry(text: string, nowMs: number): Date {
  const [, count, unit] = /^([1-9][0-9]{0,4})([smhd])$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit ?? ""];
  const expiryMs = unitMs === undefined ? momentMsOf(text) : nowMs + Number(count) * unitMs;
  if (expiryMs > nowMs) return new Date(expiryMs);
  throw new CliError(
    "USAGE",
    `--expires takes a duration (90d, 12h, 30m, 45s) or a date to come (2027-01-31), not "${text}".`,
  );
}
