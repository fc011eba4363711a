/** Epochs of events: each is given once, whoever recovers a ledger, and however often. */
import { cpSync, rmSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { StoredEvent } from "../../../ledger/events.js";
import { listEvents } from "../../helpers/events.js";
import { readLedgerState } from "../../../ledger/guard/ledger-state.js";
import { applyRecovery } from "../../../ledger/recovery/recovery.js";
import { planRecovery, type RecoveryChain } from "../../../ledger/recovery/recovery-plan.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { listWallets } from "../../../ledger/wallets/wallet.js";
import { derivation, Desk, destination, TOKEN } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  told.clear();
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

/** Numbers that were told, each with what it stood for. */
const told = new Map<string, string>();

/** Somebody reads all events, as the API tells them. */
async function tell(): Promise<void> {
  const events = await listEvents(desk.database, { afterSeq: 0, limit: 1_000 });
  await (await desk.guard()).beforeTelling({ eventSeq: events.at(-1)?.seq ?? 0 });
  for (const { epoch, seq, type, data } of events) {
    const [number, text] = [`${epoch}:${seq}`, `${type} ${JSON.stringify(data)}`];
    expect(told.get(number) ?? text).toBe(text);
    told.set(number, text);
  }
}

it("is not given again where a person declares a ledger lost that the home remembers better", async () => {
  const backups = [await desk.backup(), await desk.backup()];
  const { address } = await desk.register("bob");
  desk.pay([address, TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await tell();
  await desk.useDatabase(backups[0] ?? "");
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  await tell();
  expect((await readLedgerState(desk.database)).epoch).toBe(2);

  // Before any service has met it.
  await desk.useDatabase(backups[1] ?? "");
  const declared = await desk.causeway("recover", "--declare", "the disk is lost", "--apply");
  expect(declared.code).toBe(0);
  await desk.watch();
  await tell();
  const { epoch, nextAddressIndex } = await readLedgerState(desk.database);
  expect(epoch).toBeGreaterThan(2);
  expect(nextAddressIndex).toBeGreaterThanOrEqual(2);
});

/** The chain as a command asks it; nothing is lost on it here. */
function chainOf(): RecoveryChain {
  return {
    headHeight: async () => desk.chain.head,
    nonceAt: async () => 0n,
    queuedNonces: async () => [],
    transactions: async () => [],
    areActive: async (addresses) => addresses.map(() => false),
    addressAt: (index) => derivation.addressAt(index),
  };
}

it("ends with the recovery that it was planned for: a plan is carried out once", async () => {
  const backup = await desk.backup();
  const wish = { key: "w", customer: "alice", to: destination(1), amountAtoken: TOKEN };
  await desk.request(wish);
  await tell();
  await desk.useDatabase(backup);
  await (await desk.guard()).check();
  const wallets = await listWallets(desk.database);
  const context = { database: desk.database, chain: chainOf(), wallets, tokens: [] };
  const plan = await planRecovery(context);
  if (plan === undefined) throw new Error("the ledger is not in recovery");
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  const waiting = await desk.request(wish);
  const late = applyRecovery(desk.database, plan, "ben");
  await expect(late).rejects.toMatchObject({ code: "RECOVERY" });
  // It was asked for behind the recovery: nothing of it is lost.
  expect((await desk.read(waiting.id)).status).toBe("accepted");
});

it("is another one with each loss that no home remembers, and its numbers are behind all that were told", async () => {
  const backups = [await desk.backup(), await desk.backup()];
  let lastSeq = 0;
  for (const customer of ["bob", "carol", "dave"]) {
    const { address } = await desk.register(customer);
    desk.pay([address, TOKEN]);
    desk.chain.mine();
    await desk.watch();
    await tell();
    // Whoever follows by numbers alone misses nothing of this life either.
    const heard = await listEvents(desk.database, { afterSeq: lastSeq, limit: 1_000 });
    expect(heard.map(({ data }) => data)).toContainEqual(
      expect.objectContaining({ customerId: customer }),
    );
    lastSeq = heard.at(-1)?.seq ?? lastSeq;
    const backup = backups.pop();
    if (backup === undefined) break;
    await desk.useDatabase(backup);
    rmSync(`${desk.home}/data`, { recursive: true });
    const declared = await desk.causeway("recover", "--declare", "all is lost", "--apply");
    expect(declared.code).toBe(0);
  }
});

/** Somebody who counts alice's balance by events, by the rule of `receiver.ts` (docs/guide/webhooks.md). */
class Follower {
  readonly #handled = new Map<string, StoredEvent>();
  #epoch = 1;

  /** Hears of all that the stream has; what was handled comes again and is dropped. */
  async hear(): Promise<void> {
    const events = await listEvents(desk.database, { afterSeq: 0, limit: 1_000 });
    const standing = new Set(events.map(idOf));
    for (const event of events) {
      if (event.epoch > this.#epoch) this.#takeBack(standing, event.epoch);
      this.#epoch = Math.max(this.#epoch, event.epoch);
      if (!this.#handled.has(idOf(event))) this.#handled.set(idOf(event), event);
    }
  }

  #takeBack(standing: ReadonlySet<string>, newest: number): void {
    for (const [id, { epoch }] of this.#handled) {
      if (epoch < newest && !standing.has(id)) this.#handled.delete(id);
    }
  }

  get balanceAtoken(): bigint {
    const units = [...this.#handled.values()].map(({ type, data }) => {
      if (type === "deposit.credited") return BigInt(String(data["creditedUnits"]));
      if (type === "deposit.reversed") return -BigInt(String(data["debitedUnits"]));
      return type === "withdrawal.settled" ? -BigInt(String(data["amountUnits"])) : 0n;
    });
    return units.reduce((sum, each) => sum + each, 0n);
  }
}

const idOf = ({ epoch, seq }: StoredEvent) => `evt_${epoch}_${seq}`;

/** Alice is paid out and pays in again behind a backup that comes back, and the home is lost as well. */
async function loseHome(follower: Follower): Promise<string> {
  await follower.hear();
  const [now] = await desk.database.query<{ at: string }>(`SELECT clock_timestamp()::text AS at`);
  const backup = await desk.backup();
  const wish = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  await desk.request({ key: "w", ...wish });
  await desk.work();
  desk.pay([derivation.addressAt(0), 2n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await follower.hear();
  expect(follower.balanceAtoken).toBe(8n * TOKEN);
  await desk.useDatabase(backup);
  rmSync(`${desk.home}/data`, { recursive: true });
  // The kit is started, as the command needs its database and its node.
  await desk.watch();
  await follower.hear();
  return new Date(now?.at ?? "").toISOString();
}

/** A person says whose the payment was that the recovery found. */
async function linkPayment(): Promise<void> {
  const [payment = ""] = desk.ownHashes();
  const claim = ["--customer", "alice", "--idempotency-key", "w", "--reason", "her own records"];
  expect((await desk.causeway("ledger", "link-payment", payment, ...claim)).code).toBe(0);
}

it("voids what was written before a person declared the loss, and tells it again", async () => {
  const follower = new Follower();
  const backupAt = await loseHome(follower);
  const declare = ["recover", "--declare", "all is lost", "--backup-of", backupAt];
  const plan = await desk.causeway(...declare);
  expect(plan.text).toMatch(/to do: tell [1-9][0-9]* events again/);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  await linkPayment();
  await follower.hear();
  expect(await desk.availableAtoken("alice")).toBe(8n * TOKEN);
  expect(follower.balanceAtoken).toBe(8n * TOKEN);
  expect(await desk.breaks()).toBe("");
});

it("voids it also where the loss was declared before anybody said of when the backup is", async () => {
  const follower = new Follower();
  const backupAt = await loseHome(follower);
  const first = await desk.causeway("recover", "--declare", "all is lost");
  expect(first.text).toContain("--backup-of");
  const dated = ["recover", "--declare", "all is lost", "--backup-of", backupAt, "--apply"];
  expect((await desk.causeway(...dated)).code).toBe(0);
  await linkPayment();
  await follower.hear();
  expect(follower.balanceAtoken).toBe(8n * TOKEN);
});

/** The data folder of one home takes the place of another's. */
function changeHome({ from, to }: { readonly from: string; readonly to: string }): void {
  const [current, folder] = [`${desk.home}/data`, (name: string) => `${desk.home}/data-of-${name}`];
  cpSync(current, folder(from), { recursive: true });
  rmSync(current, { recursive: true });
  cpSync(folder(to), current, { recursive: true });
}

it("tells a credit again that a chain has lost since, and leaves the deposit lost", async () => {
  const [first, second] = [new Follower(), new Follower()];
  const request = (name: string) =>
    desk.request({ key: name, customer: "alice", to: destination(1), amountAtoken: 1n });
  await tell();
  cpSync(`${desk.home}/data`, `${desk.home}/data-of-b`, { recursive: true });
  const replica = await desk.backup();
  for (let count = 0; count < 4; count += 1) await request(`a${count}`);
  await first.hear();
  await desk.watch();

  // A standby that lacks these, and a watcher of another home, which was told less.
  changeHome({ from: "a", to: "b" });
  await desk.useDatabase(replica);
  const kept = desk.chain.head;
  desk.pay([derivation.addressAt(0), 2n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  for (let count = 0; count < 4; count += 1) await request(`b${count}`);
  await second.hear();
  expect(second.balanceAtoken).toBe(12n * TOKEN);
  await desk.loseAbove(kept);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  await Promise.all([first, second].map((follower) => follower.hear()));
  expect(second.balanceAtoken).toBe(10n * TOKEN);

  changeHome({ from: "b", to: "a" });
  await desk.watch();
  const plan = await desk.causeway("recover");
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  // Also by who begins now.
  const third = new Follower();
  for (const follower of [first, second, third]) {
    await follower.hear();
    expect(follower.balanceAtoken).toBe(10n * TOKEN);
  }
  expect(plan.text).toContain("to do: tell 4 events again");
  const rows = await listEvents(desk.database, { afterSeq: 0, limit: 1_000 });
  const [lost] = await desk.database.query<{ id: string }>(
    `SELECT id FROM deposit WHERE status = 'reversed'`,
  );
  const ofDeposit = rows.filter(({ data }) => data["depositId"] === lost?.id);
  const amount = { amountUnits: `${2n * TOKEN}`, amountAtoken: `${2n * TOKEN}` };
  expect(ofDeposit).toMatchObject([
    { epoch: 1, type: "deposit.reversed", data: { debitedUnits: `${2n * TOKEN}` } },
    { epoch: 2, type: "deposit.credited", data: { ...amount, creditedUnits: `${2n * TOKEN}` } },
    {
      epoch: 2,
      type: "deposit.reversed",
      data: { ...amount, debitedUnits: "0", debitedAtoken: "0" },
    },
  ]);
});

/** Most values of one array, and rows of one answer, that a database takes here. */
const MOST_ROWS = 5_000;

/** The desk's database, which refuses what is more. */
function boundedDatabase(): SqlDatabase {
  const bounded: SqlDatabase = Object.create(desk.database);
  bounded.transaction = (work) =>
    desk.database.transaction((tx) =>
      work({
        async query<Row>(text: string, parameters: readonly unknown[] = []) {
          const rows = await tx.query<Row>(text, parameters);
          const counts = [rows, ...parameters].map((all) => (Array.isArray(all) ? all.length : 1));
          const most = Math.max(...counts);
          if (most > MOST_ROWS) throw new Error(`${most} rows in one statement: ${text}`);
          return rows;
        },
      }),
    );
  return bounded;
}

it("is begun in pages, however much was written since the backup", async () => {
  const [{ at } = { at: "" }] = await desk.database.query<{ at: string }>(
    `SELECT clock_timestamp()::text AS at`,
  );
  const last = (await listEvents(desk.database, { afterSeq: 0, limit: 1_000 })).at(-1)?.seq ?? 0;
  const count = 2 * MOST_ROWS + 1;
  await desk.database.transaction(async (tx) => {
    await tx.query(`UPDATE event_counter SET seq = seq + $1`, [count]);
    await tx.query(
      `INSERT INTO event (seq, epoch, type, data)
       SELECT $1::bigint + n, 1, 'withdrawal.accepted', jsonb_build_object('number', n)
         FROM generate_series(1, $2::integer) AS n`,
      [last, count],
    );
  });
  const declare = ["recover", "--declare", "all is lost", "--backup-of"];
  await desk.causeway(...declare, new Date(at).toISOString());
  const wallets = await listWallets(desk.database);
  const context = { database: desk.database, chain: chainOf(), wallets, tokens: [] };
  const plan = await planRecovery(context);
  if (plan === undefined) throw new Error("the ledger is not in recovery");
  expect(plan.toldAgain).toBe(count);
  await applyRecovery(boundedDatabase(), plan, "ben");
  const rows = await desk.database.query<{ seq: string; number: string }>(
    `SELECT seq::text, data ->> 'number' AS number FROM event
      WHERE epoch = $1 AND type = 'withdrawal.accepted' ORDER BY event.seq`,
    [plan.epoch],
  );
  expect(rows.map(({ number }) => Number(number))).toEqual(
    Array.from({ length: count }, (_, index) => index + 1),
  );
  expect(Number(rows[0]?.seq)).toBe(plan.eventSeq + 1);
  expect(Number(rows.at(-1)?.seq)).toBe(plan.eventSeq + count);
});

it("is of no backup of a time that is to come, or that cannot be read", async () => {
  const declare = (time: string) =>
    desk.causeway("recover", "--declare", "all is lost", "--backup-of", time);
  await expect(declare("yesterday")).rejects.toMatchObject({ code: "USAGE" });
  await expect(declare("2999-01-01")).rejects.toMatchObject({ code: "RECOVERY" });
  const alone = desk.causeway("recover", "--backup-of", "2026-01-01");
  await expect(alone).rejects.toMatchObject({ code: "USAGE" });
});
