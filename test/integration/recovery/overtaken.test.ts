/** A ledger that lost its last commits, and in which others wrote on before the watcher looked. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import { createDepositRoutes } from "../../../deposit-watcher/api/routes.js";
import type { StoredEvent } from "../../../ledger/events.js";
import { listEvents } from "../../helpers/events.js";
import { LedgerGuard } from "../../../ledger/guard/ledger-guard.js";
import { openIncident } from "../../../ledger/incidents.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { fillDeliveries, redeliver } from "../../../ledger/webhooks/deliveries.js";
import { addWebhook, findWebhook } from "../../../ledger/webhooks/subscriptions.js";
import { createDataApiClient } from "../../../rpc-client/data-api/data-api-client.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { registerAddress } from "../../helpers/services/watcher.js";
import { derivation, Desk, destination, TOKEN } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const request = (number: number) =>
  desk.request({
    key: `k${number}`,
    customer: "alice",
    to: destination(number),
    amountAtoken: TOKEN,
  });

it("is closed although its numbers have reached what was told, and tells again what has these numbers", async () => {
  const replica = await desk.backup();
  await request(1);
  const told = await listEvents(desk.database, { afterSeq: 0, limit: 100 });
  const { seq: last = 0 } = told.at(-1) ?? {};
  // All of it was told, as a client or a webhook had it.
  await desk.watch();

  await desk.useDatabase(replica);
  const [other, further] = [await request(2), await request(3)];
  expect((await listEvents(desk.database, { afterSeq: last - 1, limit: 9 }))[0]).toMatchObject({
    seq: last,
    data: { withdrawalId: other.id },
  });
  await desk.watch();
  expect((await openIncident(desk.database))?.kind).toBe("RECOVERY");
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  const since = await listEvents(desk.database, { afterSeq: last, limit: 100 });
  const accepted = since.filter(({ type }) => type === "withdrawal.accepted");
  expect(accepted.map(({ epoch, data }) => [epoch, data["withdrawalId"]])).toEqual([
    [1, further.id],
    [2, other.id],
  ]);
});

/** `GET /v1/events`, as the watcher's process answers it. */
async function hear(after: number, limit: number): Promise<readonly StoredEvent[]> {
  // Asked by endpoints that this test does not call.
  const url = "http://127.0.0.1:1";
  const node = createEvmClient(createJsonRpcClient({ url }));
  const source = createDataApiClient({ url, network: { blockchain: "token", network: "x" } });
  const routes = createDepositRoutes({
    database: desk.watcherDatabase,
    derivation,
    guard: await desk.guard(),
    tokens: [],
    chain: { node, source, watched: new AddressBook() },
    headHeight: () => desk.chain.head,
    onRegistered: () => undefined,
  });
  const [path, method] = ["/v1/events", "get"];
  const reply = await routes
    .find((route) => route.path === path)
    ?.handler({
      method,
      path,
      params: {},
      query: { after: String(after), limit },
      headers: {},
      body: undefined,
      rawBody: new Uint8Array(0),
      signal: desk.signal,
    });
  return JSON.parse(String(reply?.bytes)).events;
}

/** Identifiers of the withdrawals that these events are about, each as often as it is accepted. */
const accepted = (events: readonly StoredEvent[]) =>
  events
    .filter(({ type }) => type === "withdrawal.accepted")
    .map(({ data }) => data["withdrawalId"]);

it("tells whoever is behind, and whoever begins, each event once", async () => {
  const { webhook } = await addWebhook(desk.database, {
    url: "https://hooks.example.com/",
    events: ["withdrawal.*"],
    description: undefined,
  });
  const replica = await desk.backup();
  await request(1);
  await desk.watch();

  await desk.useDatabase(replica);
  const [other, further] = [await request(2), await request(3)];
  // Before anybody has met the loss.
  await fillDeliveries(desk.watcherDatabase, webhook.id);
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  expect(accepted(await hear(0, 100))).toEqual([further.id, other.id]);

  const sent = async () => {
    while (await fillDeliveries(desk.watcherDatabase, webhook.id));
    return desk.database.query<{ id: string }>(
      `SELECT event.data ->> 'withdrawalId' AS id FROM webhook_delivery d JOIN event USING (seq)
        WHERE d.status = 'pending' AND event.type = 'withdrawal.accepted' ORDER BY seq`,
    );
  };
  expect(await sent()).toEqual([{ id: further.id }, { id: other.id }]);
  expect(await findWebhook(desk.database, webhook.id)).toMatchObject({ status: "active" });
  await redeliver(desk.database, webhook.id, 1);
  expect(await sent()).toEqual([{ id: further.id }, { id: other.id }]);
});

/** The guard of a worker with a home of its own, on the database of now. */
const workersGuard = (home: string) =>
  LedgerGuard.open({ database: desk.workerDatabase, home, reporter: "withdrawal-worker" });

it("tells again whatever has numbers that any home had told, whichever of them closes it", async () => {
  const replica = await desk.backup();
  const home = mkdtempSync(join(tmpdir(), "causeway-worker-"));
  try {
    await request(1);
    await (await workersGuard(home)).keep();
    for (const number of [2, 3, 4]) await request(number);
    await desk.watch();
    const last = (await listEvents(desk.database, { afterSeq: 0, limit: 100 })).at(-1)?.seq ?? 0;

    await desk.useDatabase(replica);
    const ids: string[] = [];
    for (const number of [11, 12, 13, 14, 15]) ids.push((await request(number)).id);
    // It knows less than the watcher has told, and looks first.
    expect(await (await workersGuard(home)).check()).toBeDefined();
    for (let look = 0; look < 2; look += 1) await desk.watch();
    const { details } = (await openIncident(desk.database)) ?? {};
    expect(details?.["reportedBy"]).toBe("withdrawal-worker");
    expect(details?.["alsoTold"]).toMatchObject([{ eventSeq: last }]);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);

    const events = await listEvents(desk.database, { afterSeq: 0, limit: 100 });
    const under = (epoch: number) => accepted(events.filter((event) => event.epoch === epoch));
    expect(under(2)).toEqual(ids.slice(0, 4));
    expect(under(1)).toEqual(ids.slice(4));
    // Neither home has anything to say behind it.
    await desk.watch();
    expect(await (await workersGuard(home)).check()).toBeUndefined();
    expect(await openIncident(desk.database)).toBeUndefined();
  } finally {
    rmSync(home, { recursive: true });
  }
});

it("tells again what a standby of before the last recovery has written", async () => {
  const replica = await desk.backup();
  const backup = await desk.backup();
  await request(1);
  await desk.watch();
  await desk.useDatabase(backup);
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await request(2);
  await desk.watch();

  await desk.useDatabase(replica);
  const other = await request(3);
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  const events = await listEvents(desk.database, { afterSeq: 0, limit: 100 });
  const ofOther = events.filter(({ data }) => data["withdrawalId"] === other.id);
  expect(ofOther.map(({ epoch }) => epoch)).toContain(3);
  expect(ofOther.map(({ epoch }) => epoch)).not.toContain(1);
});

it("tells nothing under a number that was told, also before the watcher has looked", async () => {
  const replica = await desk.backup();
  const lost = await request(1);
  await desk.watch();
  const last = (await listEvents(desk.database, { afterSeq: 0, limit: 100 })).at(-1)?.seq ?? 0;
  expect(accepted(await hear(last - 1, 1))).toEqual([lost.id]);

  await desk.useDatabase(replica);
  const other = await request(2);
  // Who was behind the lost ledger would hear this one, and once more when it is recovered.
  expect(accepted(await hear(last - 1, 1))).toEqual([]);
  expect((await openIncident(desk.database))?.kind).toBe("RECOVERY");
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  expect(accepted(await hear(last - 1, 100))).toEqual([other.id]);
});

it("tells nothing again that was told, also of what was written while the last event's commit was under way", async () => {
  const kept = await request(1);
  const replica = await desk.backup();
  await request(2);
  const last = (await listEvents(desk.database, { afterSeq: 0, limit: 100 })).at(-1)?.seq ?? 0;
  // As of a commit that began before the first request did.
  await desk.database.query(`ALTER TABLE event DISABLE TRIGGER USER`);
  await desk.database.query(`UPDATE event SET at = at - interval '1 minute' WHERE seq = $1`, [
    last,
  ]);
  await desk.database.query(`ALTER TABLE event ENABLE TRIGGER USER`);
  await desk.watch();

  await desk.useDatabase(replica);
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  expect(accepted(await hear(last, 100))).toEqual([]);
  expect(accepted(await hear(0, 100))).toEqual([kept.id]);
});

it("is closed although its addresses have reached what was given out, and credits nobody by what was lost", async () => {
  const replica = await desk.backup();
  const book = new AddressBook();
  const alices = await desk.register("alice");
  await desk.watch(book);
  desk.chain.mine();
  await desk.watch(book);

  await desk.useDatabase(replica);
  // By a watcher of another home, which had not met the address before it was lost.
  const bobs = await registerAddress(desk.watcherDatabase, parseCustomerId("bob"), {
    deriveAddress: (index) => derivation.addressAt(index),
    issuedBelow: 0,
  });
  expect(bobs.address).toBe(alices.address);
  desk.pay([bobs.address, TOKEN]);
  desk.chain.mine();
  await desk.watch(book);
  const incident = await openIncident(desk.database);
  expect(incident?.kind).toBe("RECOVERY");
  expect(incident?.message).toContain(`address ${alices.index} is not the one that was given out`);

  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch(book);
  expect(await openIncident(desk.database)).toBeUndefined();
  const rows = await desk.database.query<{ customer: string }>(
    `SELECT customer_id AS customer FROM deposit WHERE address = $1`,
    [bobs.address],
  );
  expect(rows).toEqual([{ customer: "bob" }]);
  expect(await desk.breaks()).toBe("");
});
