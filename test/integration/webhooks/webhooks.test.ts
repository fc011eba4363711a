/**
 * Webhooks over a real database and real receivers, in the watcher's role: every event arrives at
 * least once under one id, whatever receivers and processes do, and nobody waits for another.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { LedgerError } from "../../../ledger/errors.js";
import { listEvents } from "../../helpers/events.js";
import { holdLease } from "../../../ledger/task-lease.js";
import {
  claimDeliveries,
  DEAD_UNTIL_DISABLED,
  fillDeliveries,
  pruneDeliveries,
  recordOutcome,
} from "../../../ledger/webhooks/deliveries.js";
import { openDatabase } from "../../../runtime/sql/sql.js";
import { roleUrl, silentLog, standing } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import {
  ledger,
  database,
  receiver,
  metrics,
  start,
  call,
  type Made,
  add,
  emit,
  show,
  makeDue,
  settled,
  deliveriesOf,
  verify,
  openHooks,
  closeHooks,
  endTest,
  told,
} from "./hooks.js";

beforeAll(openHooks);
afterEach(endTest);
afterAll(closeHooks);

describe("a webhook", () => {
  it("is told of what it asked for, from its beginning on, each event signed", async () => {
    await emit("deposit.detected");
    const all = await add("/all");
    const some = await add("/some", ["deposit.credited", "withdrawal.*"]);
    const ids = await emit("deposit.detected", "deposit.credited", "withdrawal.settled");
    start();
    await Promise.all([settled(all.id), settled(some.id)]);
    expect(receiver.ids("/all").toSorted()).toEqual(ids);
    expect(receiver.ids("/some").toSorted()).toEqual(ids.slice(1));
    for (const one of receiver.received.filter(({ path }) => path === "/all")) {
      expect(one.headers["causeway-signature"]).toBe(`v1=${verify(all.secret, one)}`);
      expect(one.headers["causeway-timestamp"]).toMatch(/^[0-9]{10}$/);
      const { id, ...event } = JSON.parse(one.body);
      expect(id).toBe(one.id);
      const [stored] = await listEvents(database, { afterSeq: event.seq - 1, limit: 1 });
      expect(event).toEqual(stored);
    }
    // What is told is remembered in the home before.
    const [last] = ids.slice(-1);
    expect(`evt_1_${Math.max(...told)}`).toBe(last);
    expect(await metrics.page()).toContain('causeway_webhook_tries_total{outcome="delivered"} 5');
  });

  it("is told by another watcher while the home of the one that began cannot be written", async () => {
    const { id } = await add("/own-home");
    let tries = 0;
    start({
      beforeSending: () => {
        tries += 1;
        return Promise.reject(new LedgerError("HOME_MARK_UNUSABLE", "no space left"));
      },
    });
    const [event] = await emit("deposit.credited");
    await until(() => tries > 0, { timeoutMs: 10_000, what: "the first one tries" });
    start();
    const isTold = () => receiver.ids("/own-home").length > 0;
    await until(() => isTold() || tries >= 6, { timeoutMs: 30_000 });
    expect(receiver.ids("/own-home")).toEqual([event]);
    await settled(id);
    // Whoever works keeps the work.
    const before = tries;
    await emit("deposit.credited");
    await settled(id);
    expect([receiver.ids("/own-home").length, tries]).toEqual([2, before]);
  });

  it("keeps its newest deliveries, and older ones only until they are over for a day", async () => {
    const [hook, other] = [await add("/pruned"), await add("/removed")];
    await emit("deposit.detected", "deposit.detected", "deposit.credited", "deposit.credited");
    for (const { id } of [hook, other]) await fillDeliveries(database, id);
    const age = (days: number, id: string, status: string, count: number) =>
      ledger.owner.query(
        `UPDATE webhook_delivery SET status = $2, changed_at = now() - $4 * interval '1 day'
          WHERE webhook_id = $1 AND seq IN (SELECT seq FROM webhook_delivery
                 WHERE webhook_id = $1 ORDER BY seq LIMIT $3)`,
        [id, status, count, days],
      );
    const left = async (id: string) =>
      (await ledger.owner.query(`SELECT 1 FROM webhook_delivery WHERE webhook_id = $1`, [id]))
        .length;
    await age(2, hook.id, "pending", 4);
    expect(await pruneDeliveries(database, 1)).toBe(false);
    expect(await left(hook.id)).toBe(4);
    await age(0, hook.id, "delivered", 4);
    await pruneDeliveries(database, 1);
    expect(await left(hook.id)).toBe(4);
    await age(2, hook.id, "delivered", 4);
    await age(2, hook.id, "dead", 2);
    await pruneDeliveries(database, 1);
    expect(await left(hook.id)).toBe(1);
    await call("delete", `/${other.id}`).expect(200);
    await age(2, other.id, "pending", 4);
    await pruneDeliveries(database, 1);
    expect(await left(other.id)).toBe(0);
    // Nobody cuts more: not the service's role, and not by another statement.
    await expect(database.query(`DELETE FROM webhook_delivery`)).rejects.toThrow();
    await age(2, hook.id, "pending", 4);
    await expect(ledger.owner.query(`DELETE FROM webhook_delivery`)).rejects.toThrow(/not over/);
    await age(2, hook.id, "delivered", 4);
    // What is asked for again is sent again.
    await call("post", `/${hook.id}/redeliver`).send({ fromSeq: 1 }).expect(200);
    await fillDeliveries(database, hook.id);
    expect(await left(hook.id)).toBeGreaterThanOrEqual(4);
  });

  it("is tried again under the same id, in time that the receiver may choose", async () => {
    const hook = await add("/again");
    const refusals = [500, 429, 408];
    const answers = [...refusals, 204];
    receiver.manners.set("/again", (response) => {
      response.writeHead(answers.shift() ?? 500, { "retry-after": "60" }).end("not now");
    });
    const [id] = await emit("deposit.credited");
    start();
    for (const [index, status] of refusals.entries()) {
      // Attempts are counted before the receiver is asked: its answer says that one is over.
      await until(async () => (await deliveriesOf(hook.id))[0]?.["lastStatus"] === status, {
        timeoutMs: 10_000,
      });
      expect(receiver.ids("/again")).toHaveLength(index + 1);
      expect(await deliveriesOf(hook.id)).toMatchObject([{ attempts: index + 1 }]);
      const [row] = await ledger.owner.query<{ wait: number; error: string }>(
        `SELECT extract(epoch FROM next_try_at - changed_at)::float AS wait, last_error AS error
           FROM webhook_delivery WHERE webhook_id = $1`,
        [hook.id],
      );
      expect(row?.error).toBe(`HTTP ${status}: not now`);
      expect(Math.round(row?.wait ?? 0)).toBe(60);
      await makeDue();
    }
    await settled(hook.id);
    expect(receiver.ids("/again")).toEqual([id, id, id, id]);
    expect(await deliveriesOf(hook.id)).toMatchObject([{ status: "delivered", attempts: 4 }]);
  });

  it("that refuses for good, or points elsewhere, is not asked again", async () => {
    const refusing = await add("/refusing");
    const pointing = await add("/pointing");
    receiver.manners.set("/refusing", (response) => response.writeHead(404).end("who\u0007?"));
    receiver.manners.set("/pointing", (response) => {
      response.writeHead(302, { location: "http://169.254.169.254/latest/meta-data/" }).end();
    });
    await emit("deposit.credited");
    start();
    await Promise.all([settled(refusing.id), settled(pointing.id)]);
    expect(await deliveriesOf(refusing.id)).toMatchObject([
      { status: "dead", attempts: 1, lastStatus: 404, lastError: "HTTP 404: who\ufffd?" },
    ]);
    expect(await deliveriesOf(pointing.id)).toMatchObject([
      { status: "dead", lastStatus: 302, lastError: "HTTP 302: redirects are not followed" },
    ]);
  });

  it("that hangs delays nobody else, and holds few connections", async () => {
    const hanging = await add("/hanging");
    const quick = await add("/quick");
    receiver.manners.set("/hanging", () => undefined);
    await emit(...Array.from({ length: 40 }, () => "deposit.credited" as const));
    const stop = start();
    await settled(quick.id);
    expect(new Set(receiver.ids("/quick")).size).toBe(40);
    await until(() => receiver.ids("/hanging").length >= 4, { timeoutMs: 10_000 });
    expect(receiver.ids("/hanging")).toHaveLength(4);
    await stop();
    expect(await show(hanging.id)).toMatchObject({ pending: 40, dead: 0 });
  });

  it("gets what a process that died was sending, from the next one", async () => {
    const hook = await add("/died");
    let isHung = false;
    receiver.manners.set("/died", () => (isHung = true));
    const [id] = await emit("deposit.credited");
    const stop = start();
    await until(() => isHung, { timeoutMs: 10_000, what: "the first process sends" });
    await stop();
    receiver.manners.clear();
    await makeDue();
    start();
    await settled(hook.id);
    expect(receiver.ids("/died")).toEqual([id, id]);
  });

  it("that loses many deliveries in a row is switched off, says so, and can be switched on", async () => {
    const failing = await add("/failing");
    const other = await add("/other", ["webhook.disabled"]);
    receiver.manners.set("/failing", (response) => response.writeHead(401).end("no"));
    await emit(...Array.from({ length: DEAD_UNTIL_DISABLED }, () => "deposit.credited" as const));
    const [first] = (await listEvents(database, { afterSeq: 0, limit: 1_000 })).slice(
      -DEAD_UNTIL_DISABLED,
    );
    const firstSeq = first?.seq ?? 0;
    start();
    await until(async () => (await show(failing.id))["status"] === "disabled", {
      timeoutMs: 10_000,
    });
    const shown = await show(failing.id);
    expect(shown["reason"]).toMatch(/10 deliveries in a row .* HTTP 401: no/);
    const page = await metrics.page();
    expect(page).toContain(`causeway_webhook_disabled{webhook="${failing.id}"} 1`);
    expect(page).toContain(`causeway_webhook_dead_deliveries{webhook="${failing.id}"} 10`);
    expect(page).toContain(`causeway_webhook_disabled{webhook="${other.id}"} 0`);
    await until(() => receiver.ids("/other").length === 1, { timeoutMs: 10_000 });
    const [event] = receiver.received.filter(({ path }) => path === "/other");
    expect(JSON.parse(event?.body ?? "")).toMatchObject({
      type: "webhook.disabled",
      data: { webhookId: failing.id, reason: shown["reason"] },
    });
    await settled(other.id);
    receiver.manners.clear();
    const before = receiver.ids("/failing").length;
    const reply = await call("post", `/${failing.id}/redeliver`).send({ fromSeq: firstSeq + 3 });
    expect(reply.body).toMatchObject({ status: "active", reason: null });
    await settled(failing.id);
    const again = receiver.ids("/failing").slice(before).toSorted();
    // Those that were given up from there on, and the event that it was switched off.
    expect(again).toHaveLength(DEAD_UNTIL_DISABLED - 3 + 1);
    expect(again).toContain(`evt_1_${firstSeq + 3}`);
    expect(await show(failing.id)).toMatchObject({ dead: 3, pending: 0, behindEvents: 0 });
  });

  it("is sent again at once when it is asked for, also where its next try is hours away", async () => {
    const hook = await add("/later");
    const answers = [503, 503];
    receiver.manners.set("/later", (response) => {
      response.writeHead(answers.shift() ?? 204, { "retry-after": "14400" }).end();
    });
    await emit("deposit.credited");
    const [id] = await emit("deposit.credited");
    start();
    const statuses = async () =>
      (await deliveriesOf(hook.id)).map(
        ({ status, lastStatus }) => `${String(status)} ${String(lastStatus)}`,
      );
    const waiting = ["pending 503", "pending 503"];
    const both = async () => (await statuses()).join() === waiting.join();
    await until(both, { timeoutMs: 10_000, what: "both wait" });
    const fromSeq = Number(id?.split("_").at(-1));
    await call("post", `/${hook.id}/redeliver`).send({ fromSeq }).expect(200);
    const second = async () => (await statuses())[1] === "delivered 204";
    await until(second, { timeoutMs: 10_000, what: "the second one arrives" });
    // What stands before it was not asked for.
    expect(await statuses()).toEqual(["pending 503", "delivered 204"]);
  });

  it("is told of what waits by a clock of the database that has gone back, and hurried by none", async () => {
    const hook = await add("/back");
    const answers = [503, 503];
    receiver.manners.set("/back", (response) => {
      response.writeHead(answers.shift() ?? 204, { "retry-after": "14400" }).end();
    });
    await emit("deposit.credited", "deposit.credited");
    const stop = start();
    const statuses = async () => (await deliveriesOf(hook.id)).map(({ lastStatus }) => lastStatus);
    const both = async () => (await statuses()).join() === "503,503";
    await until(both, { timeoutMs: 10_000, what: "both wait" });
    await stop();
    await ledger.owner.query(
      `UPDATE webhook_delivery SET next_try_at = next_try_at + interval '2 hours',
              changed_at = changed_at + interval '2 hours'
        WHERE webhook_id = $1 AND seq = (SELECT min(seq) FROM webhook_delivery
                                          WHERE webhook_id = $1)`,
      [hook.id],
    );
    start();
    const first = async () => (await statuses())[0] === 204;
    await until(first, { timeoutMs: 10_000, what: "the first one arrives" });
    expect(await deliveriesOf(hook.id)).toMatchObject([
      { status: "delivered", attempts: 2 },
      { status: "pending", attempts: 1 },
    ]);
  });

  it("says that there is nothing to send again from above the newest event on, and goes on", async () => {
    const hook = await add("/nothing");
    const [id] = await emit("deposit.credited");
    const newestSeq = Number(id?.split("_").at(-1));
    const redeliver = async (fromSeq: number) =>
      (await call("post", `/${hook.id}/redeliver`).send({ fromSeq }).expect(200)).body;
    const nothing = await redeliver(newestSeq + 2);
    const note = `there is no event ${newestSeq + 2}: the newest is ${newestSeq}; nothing is sent again`;
    expect(nothing).toMatchObject({ newestSeq, note, status: "active" });
    const something = await redeliver(newestSeq);
    expect(something).toMatchObject({ newestSeq, cursorSeq: newestSeq - 1 });
    expect(something.note).toBeUndefined();
  });

  it("has two live secrets at most and one at least, and shows none again", async () => {
    const hook = await add("/secrets");
    const second = (await call("post", `/${hook.id}/secrets`).expect(201)).body as Made;
    const third = await call("post", `/${hook.id}/secrets`);
    expect([third.status, third.body.code]).toEqual([409, "SECRETS_FULL"]);
    await emit("deposit.credited");
    start();
    await settled(hook.id);
    const [both] = receiver.received.filter(({ path }) => path === "/secrets");
    const signatures = String(both?.headers["causeway-signature"]).split(",");
    for (const { secret } of [hook, second]) {
      expect(signatures).toContain(`v1=${both === undefined ? "" : verify(secret, both)}`);
    }
    const { secrets } = (await show(hook.id)) as { secrets: { id: string }[] };
    const old = secrets.find(({ id }) => id !== second.id);
    expect((await call("delete", `/${hook.id}/secrets/${old?.id}`)).status).toBe(200);
    const last = await call("delete", `/${hook.id}/secrets/${second.id}`);
    expect([last.status, last.body.code]).toEqual([409, "LAST_SECRET"]);
    expect((await call("delete", `/${hook.id}/secrets/${old?.id}`)).status).toBe(404);
    const listed = JSON.stringify((await call("get", "").expect(200)).body);
    expect(listed).not.toContain("whsec_");
    const rows = await ledger.owner.query(`SELECT id FROM webhook_secret WHERE secret = $1`, [
      hook.secret,
    ]);
    expect(rows).toEqual([]);
  });

  it("in a private network gets nothing, though it was registered once", async () => {
    const hook = await add("/private");
    const before = receiver.received.length;
    await emit("deposit.credited");
    start({ allowLocal: false });
    await settled(hook.id);
    expect(receiver.received).toHaveLength(before);
    // http is not even a URL that is posted to then, so that this is final.
    expect((await deliveriesOf(hook.id))[0]).toMatchObject({ status: "dead", lastStatus: null });
  });

  it("is told nothing that the home could not remember", async () => {
    const hook = await add("/recovery");
    await emit("deposit.credited");
    let refusals = 0;
    const stop = start({
      beforeSending: async () => {
        refusals += 1;
        throw new LedgerError("RECOVERY", "the ledger is in recovery");
      },
    });
    await until(() => refusals > 0, { timeoutMs: 10_000 });
    await stop();
    expect(receiver.ids("/recovery")).toEqual([]);
    expect(await deliveriesOf(hook.id)).toMatchObject([{ status: "pending", attempts: 0 }]);
  });
});

describe("the tables of webhooks", () => {
  it("are sent from by one process at a time", async () => {
    const lease = { task: "webhooks" as const, leaseMs: 60_000 };
    const holders = ["one", "two", "one"];
    const held: boolean[] = [];
    for (const owner of holders) held.push(await holdLease(database, { ...lease, owner }));
    expect(held).toEqual([true, false, true]);
    await ledger.owner.query(`UPDATE task_lease SET expires_at = now() - interval '1 second'`);
    expect(await holdLease(database, { ...lease, owner: "two" })).toBe(true);
    await ledger.owner.query(`UPDATE task_lease SET expires_at = now() - interval '1 second'`);
  });

  it("count an answer to the last claim only", async () => {
    const { id } = await add("/late");
    await emit("deposit.credited");
    await fillDeliveries(database, id);
    const asked = { rooms: new Map([[id, 1]]), upToSeq: Number.MAX_SAFE_INTEGER, claimMs: 0 };
    const [early] = await claimDeliveries(database, asked);
    const [last] = await claimDeliveries(database, asked);
    if (early === undefined || last === undefined) throw new Error("the delivery is due");
    expect([early.attempts, last.attempts]).toEqual([1, 2]);
    const lost = { kind: "dead", status: undefined, error: "late", delayMs: 0 } as const;
    expect(await recordOutcome(database, early, lost)).toBe(false);
    expect(await recordOutcome(database, last, { kind: "delivered", status: 204 })).toBe(true);
    expect(await recordOutcome(database, last, lost)).toBe(false);
    expect(await deliveriesOf(id)).toMatchObject([{ status: "delivered", lastError: null }]);
  });

  it("count no answer to a try from before a person had it sent again", async () => {
    const { id } = await add("/again");
    await emit("deposit.credited");
    await fillDeliveries(database, id);
    const asked = { rooms: new Map([[id, 1]]), upToSeq: Number.MAX_SAFE_INTEGER, claimMs: 60_000 };
    const [early] = await claimDeliveries(database, asked);
    if (early === undefined) throw new Error("the delivery is due");
    await call("post", `/${id}/redeliver`).send({ fromSeq: early.seq }).expect(200);
    await fillDeliveries(database, id);
    const error = "answered 500";
    for (const outcome of [
      { kind: "retry", status: 500, error, delayMs: 14_400_000 },
      { kind: "dead", status: 500, error, delayMs: 0 },
    ] as const) {
      expect(await recordOutcome(database, early, outcome)).toBe(false);
    }
    expect(await deliveriesOf(id)).toMatchObject([{ status: "pending", attempts: 1 }]);
    const [again] = await claimDeliveries(database, asked);
    expect(again).toMatchObject({ seq: early.seq, attempts: 2, tries: 1 });
  });

  it("are held in one order by whoever fills and whoever writes down", async () => {
    const hook = await add("/order");
    await emit("deposit.detected", "deposit.detected");
    await fillDeliveries(database, hook.id);
    const rooms = new Map([[hook.id, 2]]);
    const upToSeq = Number.MAX_SAFE_INTEGER;
    const [first, second] = await claimDeliveries(database, { rooms, upToSeq, claimMs: 60_000 });
    if (first === undefined || second === undefined) throw new Error("nothing was claimed");
    const dead = { kind: "dead", status: 410, error: "gone", delayMs: 0 } as const;
    expect(await recordOutcome(database, first, dead)).toBe(true);
    for (const outcome of [dead, { kind: "delivered", status: 200 } as const]) {
      let recorded: Promise<boolean> | undefined;
      await standing(ledger.owner, async (tx) => {
        // As whoever fills, which goes on to the deliveries.
        await tx.query(`SELECT 1 FROM webhook WHERE id = $1 FOR UPDATE`, [hook.id]);
        recorded = recordOutcome(database, second, outcome);
        const waiting = `SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
                          WHERE NOT l.granted AND a.datname = current_database()`;
        await until(async () => (await ledger.owner.query(waiting)).length > 0, {
          timeoutMs: 20_000,
          what: "who writes down waits",
        });
        const free = await tx.query(
          `SELECT 1 FROM webhook_delivery WHERE webhook_id = $1 AND seq = $2
              FOR UPDATE SKIP LOCKED`,
          [hook.id, second.seq],
        );
        expect([outcome.kind, free.length]).toEqual([outcome.kind, 1]);
      });
      expect(await recorded).toBe(true);
      await ledger.owner.query(`UPDATE webhook_delivery SET status = 'pending' WHERE seq = $1`, [
        second.seq,
      ]);
    }
    expect(await show(hook.id)).toMatchObject({ status: "active" });
  });

  it("keep what they must keep, and their secrets from the worker", async () => {
    const hook = await add("/tables");
    const worker = await openDatabase({
      url: roleUrl(ledger.url, "worker"),
      migrations: [],
      applicationName: "test",
      poolSize: 2,
      log: silentLog,
      signal: new AbortController().signal,
    });
    await expect(worker.query("SELECT * FROM webhook_secret")).rejects.toThrow(/permission denied/);
    await worker.close();
    for (const change of [
      `UPDATE webhook SET url = 'https://other.example' WHERE id = '${hook.id}'`,
      `DELETE FROM webhook`,
      `UPDATE webhook_secret SET secret = repeat('x', 40) WHERE webhook_id = '${hook.id}'`,
      `INSERT INTO webhook_secret (id, webhook_id, secret)
       SELECT 'aaaaaaaaaaa' || n, '${hook.id}', repeat('x', 40) FROM generate_series(1, 2) n`,
      `DELETE FROM webhook_secret`,
      `UPDATE webhook_delivery SET attempts = attempts - 1`,
      `DELETE FROM webhook_delivery`,
    ]) {
      await expect(ledger.owner.query(change)).rejects.toThrow();
    }
  });
});
