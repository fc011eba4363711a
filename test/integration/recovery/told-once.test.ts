/** What is told, and typed, around the moment at which an older database is put back. */
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { WebhookDispatcher } from "../../../deposit-watcher/webhooks/dispatcher.js";
import { createWebhookMetrics } from "../../../deposit-watcher/webhooks/webhook-metrics.js";
import { listEvents } from "../../helpers/events.js";
import { fillDeliveries, redeliver } from "../../../ledger/webhooks/deliveries.js";
import { addWebhook, findWebhook, listWebhooks } from "../../../ledger/webhooks/subscriptions.js";
import { systemClock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { Receiver } from "../../helpers/services/receiver.js";
import { until } from "../../helpers/until.js";
import { Desk, destination, TOKEN } from "./desk.js";

let desk: Desk;
let receiver: Receiver;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  receiver = await Receiver.open();
});
afterEach(async () => {
  receiver.close();
  await desk.close();
});

const events = () => listEvents(desk.database, { afterSeq: 0, limit: 1_000 });

/** Sends until a condition holds; its process ends then. */
async function sendUntil(condition: (warnings: readonly unknown[]) => Promise<boolean>) {
  const warnings: unknown[] = [];
  const log: Logger = Object.assign(Object.create(silentLog), {
    warn: (...about: unknown[]) => void warnings.push(about),
  });
  const database = desk.watcherDatabase;
  const dispatcher = new WebhookDispatcher({
    database,
    guard: await desk.guard(),
    owner: randomUUID(),
    settings: { allowLocal: true, pollIntervalMs: 10, timeoutMs: 30_000 },
    metrics: createWebhookMetrics(createMetrics({ processMetrics: false }), database),
    clock: systemClock,
    log,
  });
  const stop = new AbortController();
  const running = dispatcher.run(stop.signal);
  await until(() => condition(warnings), { timeoutMs: 10_000, what: "webhooks came so far" });
  stop.abort();
  await running;
  return warnings;
}

/** Everything that is behind the webhook's cursor, or was to be sent, has been sent. */
async function isAllSent(): Promise<boolean> {
  const hooks = await listWebhooks(desk.database);
  return hooks.every(({ behindEvents, pending }) => behindEvents === 0 && pending === 0);
}

it("webhooks say nothing of an older ledger before it is recovered, and no identifier twice", async () => {
  const { webhook } = await addWebhook(desk.database, {
    url: receiver.url("/all"),
    events: ["*"],
    description: undefined,
  });
  await redeliver(desk.database, webhook.id, 1);
  const backup = await desk.backup();
  const bob = await desk.register("bob");
  desk.pay([bob.address, TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await sendUntil(isAllSent);
  const told = new Map(receiver.received.map(({ id, body }) => [id, body]));
  expect(told.size).toBeGreaterThan(2);

  await desk.useDatabase(backup);
  receiver.received.length = 0;
  // Whoever looks first: nothing goes out, though the backup has not sent what was told behind it.
  const isRefusedOrSent = async (warnings: readonly unknown[]) =>
    warnings.length + receiver.received.length > 0;
  await sendUntil(isRefusedOrSent);
  expect(receiver.ids("/all")).toEqual([]);
  // Closed by now: it stays so for whoever looks next.
  await sendUntil(isRefusedOrSent);
  expect(receiver.ids("/all")).toEqual([]);

  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  // Numbers that were skipped are nothing that anybody waits for.
  await sendUntil(isAllSent);
  await desk.watch();
  await sendUntil(isAllSent);
  const stored = await events();
  expect(new Set(stored.map(({ epoch }) => epoch))).toEqual(new Set([1, 2]));
  expect([...new Set(receiver.ids("/all"))].toSorted()).toEqual(
    stored.map(({ epoch, seq }) => `evt_${epoch}_${seq}`).toSorted(),
  );
  for (const { id, body } of receiver.received) {
    const { epoch, seq } = JSON.parse(body) as { epoch: number; seq: number };
    expect(id).toBe(`evt_${epoch}_${seq}`);
    expect(told.get(id) ?? body).toBe(body);
    told.set(id, body);
  }
});

it("counts the events that a webhook waits for, and not the numbers that losses skipped", async () => {
  const { webhook } = await addWebhook(desk.database, {
    url: receiver.url("/all"),
    events: ["*"],
    description: undefined,
  });
  const { id, cursorSeq } = webhook;
  const waiting = async (from: number) => (await events()).filter(({ seq }) => seq > from).length;
  const behind = async () => (await findWebhook(desk.watcherDatabase, id)).behindEvents;
  for (const [number, isHomeLost] of [false, true, true].entries()) {
    const fields = { customer: "alice", to: destination(number), amountAtoken: TOKEN };
    await desk.request({ key: `k${number}`, ...fields });
    const backup = await desk.backup();
    const { address } = await desk.register(`customer-${number}`);
    desk.pay([address, TOKEN]);
    desk.chain.mine();
    await desk.watch();
    await (await desk.guard()).beforeTelling({ eventSeq: (await events()).at(-1)?.seq ?? 0 });
    await desk.useDatabase(backup);
    if (isHomeLost) rmSync(`${desk.home}/data`, { recursive: true });
    const words = isHomeLost ? ["--declare", "all is lost", "--apply"] : ["--apply"];
    expect((await desk.causeway("recover", ...words)).code).toBe(0);
    expect(await behind()).toBe(await waiting(cursorSeq));
  }
  while (await fillDeliveries(desk.watcherDatabase, id));
  const { newestSeq } = await findWebhook(desk.watcherDatabase, id);
  expect(newestSeq).toBeGreaterThan(10 ** 12);
  // Also from among the numbers that were skipped.
  for (const from of [newestSeq - 1_000, 2]) {
    const again = await desk.causeway("webhooks", "redeliver", id, "--from", `${from}`);
    const count = await waiting(from - 1);
    expect(again.text).toBe(`${id} sends on behind event ${from - 1}: ${count} wait.`);
  }
  while (await fillDeliveries(desk.watcherDatabase, id));
  expect(await behind()).toBe(0);
  await desk.request({ key: "last", customer: "alice", to: destination(9), amountAtoken: TOKEN });
  expect(await behind()).toBe(await waiting(newestSeq));
});

it("a command meets an older ledger as the services do: it closes it, and changes nothing", async () => {
  const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  const waiting = await desk.request({ key: "w", ...fields });
  const backup = await desk.backup();
  await desk.work();
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  const rows = await events();
  await (await desk.guard()).beforeTelling({ eventSeq: rows.at(-1)?.seq ?? 0 });

  await desk.useDatabase(backup);
  // No service has started yet.
  const typed = ["withdrawals", "cancel", waiting.id, "--reason", "it took too long"];
  await expect(desk.causeway(...typed)).rejects.toMatchObject({ code: "RECOVERY" });
  expect((await desk.read(waiting.id)).status).toBe("accepted");
  const plan = await desk.causeway("recover");
  expect([plan.code, plan.text]).toEqual([1, expect.stringContaining("book 1 payments")]);
  await desk.causeway("recover", "--apply");
  await desk.watch();
  expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
});
