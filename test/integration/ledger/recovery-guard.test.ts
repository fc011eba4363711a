/** A database that came back from an older backup, or empty, answers nothing that was answered. */
import { randomUUID } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type LedgerDatabase, openLedger } from "../../../ledger/database.js";
import { commitBackfill, commitEmptyPasts } from "../../../ledger/blocks/backfill.js";
import { commitBlockStep } from "../../../ledger/blocks/block-step.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { appendEvents } from "../../../ledger/events.js";
import { listEvents } from "../../helpers/events.js";
import { acquireWatchLease } from "../../../ledger/watch/watch-lease.js";
import { openIncident, resumeCrediting } from "../../../ledger/incidents.js";
import { markPath } from "../../../ledger/guard/home-mark.js";
import { LedgerGuard } from "../../../ledger/guard/ledger-guard.js";
import { writeLoss } from "../../../ledger/guard/recovery-incident.js";
import { applyRecovery } from "../../../ledger/recovery/recovery.js";
import { planRecovery } from "../../../ledger/recovery/recovery-plan.js";
import { freezeBehindChain, readFreeze } from "../../../ledger/requests/signing-freeze.js";
import { createHotWallet } from "../../../ledger/wallets/wallet-lease.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import {
  openTestLedger,
  registerTestWallets,
  silentLog,
  TEST_IDENTITY,
  type TestLedger,
  recordIncident,
  standing,
} from "../../helpers/services/ledger.js";
import { copyTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";
import { until } from "../../helpers/until.js";
import { derivation, registerAddress } from "../../helpers/services/watcher.js";

const { signal } = new AbortController();
let ledger: TestLedger;
let home: string;
let backups: { copy: TestDatabase; database: LedgerDatabase }[] = [];

beforeEach(async () => {
  ledger = await openTestLedger();
  home = mkdtempSync(join(tmpdir(), "causeway-mark-"));
});
afterEach(async () => {
  for (const { copy, database } of backups) {
    await database.close();
    await copy.drop();
  }
  backups = [];
  await ledger.drop();
  rmSync(home, { recursive: true, force: true });
});

const guardOf = (database: LedgerDatabase) =>
  LedgerGuard.open({ database, home, reporter: "test" });

/** Of a process with a home of its own. */
const guardIn = (name: string, database: LedgerDatabase) =>
  LedgerGuard.open({ database, home: join(home, name), reporter: name });

/** One address as the API gives it: told only when the home knows it. */
async function give(database: LedgerDatabase, guard: LedgerGuard): Promise<number> {
  const address = await register(database, guard, "alice");
  await guard.beforeTelling({ addresses: [address] });
  return address.index;
}

const register = (database: LedgerDatabase, guard: LedgerGuard, customer: string) =>
  registerAddress(database, parseCustomerId(customer), {
    deriveAddress: (at) => derivation.addressAt(at),
    issuedBelow: guard.nextAddressIndex,
  });

const say = (database: LedgerDatabase, name: string) =>
  database.transaction((tx) =>
    appendEvents(tx, [{ type: "deposit.detected", data: { depositId: name } }]),
  );

/** The database as it stands now, opened: what a backup holds. */
async function backup(from = ledger.url): Promise<LedgerDatabase> {
  const copy = await copyTestDatabase(from);
  const options = { url: copy.url, log: silentLog, signal, identity: TEST_IDENTITY };
  const database = await openLedger(options);
  backups.push({ copy, database });
  return database;
}

/**
 * What an operator does about a closed ledger, where the chain has no payments to show.
 * @param active addresses with activity on the chain
 */
async function recover(database: LedgerDatabase, active: readonly string[] = []): Promise<void> {
  const chain = {
    headHeight: async () => 0,
    nonceAt: async () => 0n,
    queuedNonces: async () => [],
    transactions: async () => [],
    areActive: async (all: readonly string[]) => all.map((each) => active.includes(each)),
    addressAt: (index: number) => derivation.addressAt(index),
  };
  const plan = await planRecovery({ database, chain, wallets: [], tokens: [] });
  if (plan === undefined) throw new Error("the ledger is not in recovery");
  await applyRecovery(database, plan, "test");
}

/** Which deposits the stream names, in its order. */
async function toldOf(database: LedgerDatabase): Promise<unknown[]> {
  const events = await listEvents(database, { afterSeq: 0, limit: 99 });
  return events.map(({ data }) => data["depositId"]);
}

describe("a ledger and what its home remembers", () => {
  it("goes on counting in its home over restarts", async () => {
    expect(await give(ledger.database, await guardOf(ledger.database))).toBe(0);
    const again = await guardOf(ledger.database);
    expect(await again.check()).toBeUndefined();
    expect(await give(ledger.database, again)).toBe(1);
    const mark = JSON.parse(readFileSync(markPath(home), "utf8")) as Record<string, unknown>;
    expect(mark).toMatchObject({ epoch: 1, nextAddressIndex: 2, eventSeq: 0 });
  });

  it("gives no address a second time from an older backup", async () => {
    const guard = await guardOf(ledger.database);
    await give(ledger.database, guard);
    const older = await backup();
    expect(await give(ledger.database, guard)).toBe(1);
    // Under a process that runs on, and in one that starts with it.
    await expect(give(older, guard)).rejects.toMatchObject({ code: "RECOVERY" });
    const restarted = await guardOf(older);
    expect(await restarted.check()).toContain("knows 1 addresses, and 2 were given out");
    await expect(give(older, restarted)).rejects.toThrow("causeway recover");
    expect((await openIncident(older))?.kind).toBe("RECOVERY");
  });

  it("tells nothing that a standby has not got which took over before the home knew of it", async () => {
    const standby = await backup();
    const lost = await register(ledger.database, await guardOf(ledger.database), "alice");
    await say(ledger.database, "lost");
    // Of the process that wrote it: its next question goes to the standby.
    const guard = await guardOf(standby);
    const isLost = { code: "COMMIT_LOST", retriable: true };
    await expect(guard.beforeTelling({ addresses: [lost] })).rejects.toMatchObject(isLost);
    await expect(guard.beforeTelling({ eventSeq: 1 })).rejects.toMatchObject(isLost);
    // By then the address may be somebody else's, whom it is told.
    const given = await register(standby, guard, "bob");
    expect(given.address).toBe(lost.address);
    await guard.beforeTelling({ addresses: [given] });
    await expect(guard.beforeTelling({ addresses: [lost] })).rejects.toMatchObject(isLost);
    expect(await guard.check()).toBeUndefined();
  });

  it("stays open when it is recovered while a process looks at it", async () => {
    const older = await backup();
    await say(ledger.database, "told");
    await (await guardOf(ledger.database)).beforeTelling({ eventSeq: 1 });
    let looks = 0;
    // What the process reads is of before the recovery, what it does with it comes after.
    const slow: LedgerDatabase = {
      url: older.url,
      close: () => older.close(),
      snapshot: (work, options) => older.snapshot(work, options),
      transaction: (work) => older.transaction(work),
      async query<Row>(text: string, parameters: readonly unknown[] = []) {
        const rows = await older.query<Row>(text, parameters);
        looks += 1;
        if (looks === 1) await older.query(`UPDATE event_counter SET epoch = 2, seq = 1`);
        return rows;
      },
    };
    expect(await (await guardOf(slow)).keep()).toBeUndefined();
    expect(await openIncident(older)).toBeUndefined();
  });

  it("signs on when its nonces were recovered while a worker looked at them", async () => {
    const wallet = testAddress(1);
    await registerTestWallets(ledger.owner, wallet);
    await createHotWallet(ledger.database, { wallet, firstNonce: 3n });
    const known = 1n;
    // The worker read the wallet before the recovery, which knows all of the chain's nonces.
    expect(await freezeBehindChain(ledger.database, { wallet, seen: 3n, known })).toBe(false);
    expect(await readFreeze(ledger.database, wallet)).toMatchObject({ frozen: false });
    expect(await freezeBehindChain(ledger.database, { wallet, seen: 4n, known })).toBe(true);
    expect(await readFreeze(ledger.database, wallet)).toMatchObject({
      frozen: true,
      reason: expect.stringContaining("knows nonces below 4"),
    });
  });

  it("closes an empty database, and one of another life, also for those without the home", async () => {
    const guard = await guardOf(ledger.database);
    await give(ledger.database, guard);
    const other = await openTestLedger();
    try {
      for (let n = 0; n < 3; n++) await say(other.database, `n${n}`);
      expect(await (await guardOf(other.database)).check()).toContain("another ledger");
      const freeze = await readFreeze(other.database, testAddress(1));
      expect(freeze).toMatchObject({ frozen: true });
      expect(freeze.reason).toContain("causeway recover");
      const strangers = registerAddress(other.database, parseCustomerId("bob"), {
        deriveAddress: (at) => derivation.addressAt(at),
        issuedBelow: 0,
      });
      await expect(strangers).rejects.toMatchObject({ code: "RECOVERY" });
    } finally {
      await other.drop();
    }
  });

  it("waits for events that are being written, and lets none be written after it", async () => {
    const other = await openTestLedger();
    const event = { type: "deposit.detected", data: {} } as const;
    try {
      const mark = { ledgerId: randomUUID(), epoch: 1, nextAddressIndex: 0, eventSeq: 9 };
      const waiting = `SELECT 1 FROM pg_stat_activity
                        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      let closing: Promise<void> | undefined;
      await standing(other.database, async (tx) => {
        await appendEvents(tx, [event]);
        closing = other.database.transaction((closer) =>
          writeLoss(closer, { reason: "behind", mark, reportedBy: "test" }),
        );
        await until(async () => (await other.database.query(waiting)).length > 0, {
          timeoutMs: 20_000,
          what: "the closing waits for the writer",
        });
        expect(await openIncident(other.database)).toBeUndefined();
      });
      await closing;
      const late = other.database.transaction((tx) => appendEvents(tx, [event]));
      await expect(late).rejects.toMatchObject({ code: "RECOVERY" });
      const told = await listEvents(other.database, { afterSeq: 0, limit: 10 });
      expect(told.map(({ seq }) => seq)).toEqual([1]);
    } finally {
      await other.drop();
    }
  });

  it("sees that events were told which the ledger has not", async () => {
    const guard = await guardOf(ledger.database);
    await say(ledger.database, "first");
    const older = await backup();
    const seq = await say(ledger.database, "second");
    await guard.beforeTelling({ eventSeq: seq ?? 0 });
    expect(await (await guardOf(older)).check()).toContain("event 2 was told");
    expect(await listEvents(older, { afterSeq: 0, limit: 9 })).toMatchObject([
      { seq: 1, epoch: 1 },
    ]);
  });

  it("sees that other events have the numbers that were told", async () => {
    const guard = await guardOf(ledger.database);
    await say(ledger.database, "first");
    const older = await backup();
    const seq = await say(ledger.database, "second");
    await guard.beforeTelling({ eventSeq: seq ?? 0 });
    // Other processes write on before the watcher looks: the count alone says nothing any more.
    await say(older, "other");
    await say(older, "third");
    expect(await (await guardOf(older)).check()).toContain("event 2 is not the one that was");
    expect((await openIncident(older))?.kind).toBe("RECOVERY");
    // A process that runs on meets it, too.
    expect(await guardOf(ledger.database).then((same) => same.check())).toBeUndefined();
  });

  it("sees that a recovery by another home's mark gave numbers that were told anew", async () => {
    const { database } = ledger;
    await say(database, "first");
    const older = await backup();
    await say(database, "second");
    await (await guardIn("behind", database)).keep();
    await say(database, "third");
    await (await guardIn("ahead", database)).keep();
    expect(await (await guardIn("behind", older)).check()).toContain("event 2 was told");
    await recover(older);
    await say(older, "other");
    const ahead = await guardIn("ahead", older);
    expect(await ahead.check()).toContain("event 3 was told in epoch 1");
    expect((await openIncident(older))?.kind).toBe("RECOVERY");
    // It is told again in the next epoch, and by no number that stood for another one.
    expect(await toldOf(older)).toEqual(["first"]);
    expect(await ahead.keep()).toContain("event 3 was told in epoch 1");
    await recover(older);
    expect(await toldOf(older)).toEqual(["first", "other"]);
    // Once: what this home knew is taken over.
    expect(await ahead.keep()).toBeUndefined();
  });

  it("sees that a recovery by another home's mark went on behind numbers that were told", async () => {
    const { database } = ledger;
    await say(database, "first");
    const older = await backup();
    await say(database, "second");
    await (await guardIn("behind", database)).keep();
    await say(database, "third");
    await (await guardIn("ahead", database)).keep();
    cpSync(join(home, "ahead"), join(home, "beside"), { recursive: true });
    // Others write on for long, and the home that knows least looks first.
    for (const name of ["b", "c", "d"]) await say(older, name);
    expect(await (await guardIn("behind", older)).check()).toContain("event 2 is not the one");
    await recover(older);
    await say(older, "e");
    const ahead = await guardIn("ahead", older);
    expect(await ahead.check()).toContain("event 3 is not the one");
    expect((await openIncident(older))?.kind).toBe("RECOVERY");
    await recover(older);
    // Whoever has read up to the third event hears of all that it stands for now, and of nothing twice.
    expect(await toldOf(older)).toEqual(["first", "d", "b", "e", "c"]);
    expect(await ahead.keep()).toBeUndefined();
    // Nor is it closed for whoever remembers no more than that.
    expect(await (await guardIn("beside", older)).check()).toBeUndefined();
    expect(await openIncident(older)).toBeUndefined();
  });

  it("sees behind a recovery by another home's mark that an address has two customers", async () => {
    const { database } = ledger;
    await give(database, await guardIn("behind", database));
    const older = await backup();
    await say(database, "told");
    await (await guardIn("behind", database)).keep();
    const before = await guardIn("ahead", database);
    const given = await give(database, before);
    cpSync(join(home, "ahead"), join(home, "beside"), { recursive: true });
    expect(await (await guardIn("behind", older)).check()).toContain("event 1 was told");
    await recover(older);
    const again = await register(older, await guardIn("behind", older), "bob");
    expect(again.index).toBe(given);
    const ahead = await guardIn("ahead", older);
    expect(await ahead.keep()).toContain(`address ${given} is not the one that was given out`);
    expect(await ahead.keep()).toContain("two customers");
    await recover(older);
    expect(await ahead.keep()).toBeUndefined();
    expect(await (await guardIn("beside", older)).check()).toBeUndefined();
  });

  it("sees that an address has two customers where a home knew only the second, and of no event since", async () => {
    const { database } = ledger;
    const empty = await backup();
    const given = await give(database, await guardIn("ahead", database));
    // Of another home it is the second customer's; what this one heard of last lies before it.
    await say(empty, "told");
    const behind = await guardIn("behind", empty);
    await behind.keep();
    expect(await give(empty, behind)).toBe(given);
    const older = await backup(empty.url);
    await give(empty, behind);
    expect(await (await guardIn("behind", older)).check()).toContain("knows 1 addresses");
    await recover(older);
    const ahead = await guardIn("ahead", older);
    expect(await ahead.keep()).toContain(`address ${given} is not the one that was given out`);
    await recover(older);
    expect(await ahead.keep()).toBeUndefined();
  });

  it("tells first that an address has two customers, whatever else the ledger has lost", async () => {
    const { database } = ledger;
    const older = await backup();
    await database.query(`UPDATE event_counter SET epoch = 2`);
    const given = await give(database, await guardIn("ahead", database));
    expect(await give(older, await guardIn("behind", older))).toBe(given);
    expect(await (await guardIn("ahead", older)).check()).toContain("two customers");
  });

  it("takes an address that a recovery found on the chain for nobody's", async () => {
    const { database } = ledger;
    await give(database, await guardIn("behind", database));
    const older = await backup();
    await say(database, "told");
    await (await guardIn("behind", database)).keep();
    const given = await give(database, await guardIn("ahead", database));
    expect(await (await guardIn("behind", older)).check()).toContain("event 1 was told");
    await recover(older, [derivation.addressAt(given)]);
    expect(await (await guardIn("ahead", older)).keep()).toBeUndefined();
  });

  it("tells what was written behind a loss once, however many homes have it recovered", async () => {
    const { database } = ledger;
    await say(database, "first");
    const older = await backup();
    for (const name of ["lost", "lost too"]) await say(database, name);
    await (await guardIn("behind", database)).keep();
    for (const name of ["lost as well", "lost at last"]) await say(database, name);
    await (await guardIn("ahead", database)).keep();
    for (const name of ["a", "b"]) await say(older, name);
    for (const name of ["behind", "ahead"]) {
      expect(await (await guardIn(name, older)).check()).toBeDefined();
      await recover(older);
    }
    expect(await toldOf(older)).toEqual(["first", "a", "b"]);
  });

  it("stays closed when an operator resumes, and beside an incident of the chain", async () => {
    const guard = await guardOf(ledger.database);
    await give(ledger.database, guard);
    const older = await backup();
    await give(ledger.database, guard);
    const incident = { kind: "HASH_CHANGED", height: 5, message: "a block", details: {} } as const;
    await recordIncident(older, incident);
    await (await guardOf(older)).check();
    expect((await openIncident(older))?.kind).toBe("RECOVERY");
    expect(await resumeCrediting(older, "somebody")).toBe(1);
    expect((await openIncident(older))?.kind).toBe("RECOVERY");
    // The same finding again, from another process, is the same recovery.
    await (await guardOf(older)).check();
    const open = `SELECT 1 FROM incident WHERE resolved_at IS NULL`;
    expect(await older.query(open)).toHaveLength(1);
  });

  it("books no block that was on its way when the ledger was closed", async () => {
    const guard = await guardOf(ledger.database);
    await give(ledger.database, guard);
    const older = await backup();
    await give(ledger.database, guard);
    const from = await readCursor(older);
    await (await guardOf(older)).check();
    const step = { from, height: 0, blockHash: TEST_IDENTITY.genesisHash };
    const lease = await acquireWatchLease(older, { owner: "test", leaseMs: 60_000 });
    if (lease === undefined) throw new Error("no lease");
    const nothing = {
      lease,
      assertStands: async () => undefined,
      walletCount: 0,
      tokenCount: 0,
      lastAssignment: 0,
      deposits: [],
      walletInflows: [],
      outflows: [],
    };
    const booked = commitBlockStep(older, { ...step, ...nothing }, () => false);
    await expect(booked).rejects.toMatchObject({ code: "RECOVERY" });
    expect(await readCursor(older)).toEqual(from);
  });

  it("marks no past as booked where an older one is put underneath", async () => {
    const { database } = ledger;
    const guard = await guardOf(database);
    const lease = await acquireWatchLease(database, { owner: "test", leaseMs: 60_000 });
    if (lease === undefined) throw new Error("no lease");
    const assertStands = (tx: Sql) => guard.assertStands(tx);
    const nothing = { deposits: [], walletInflows: [], outflows: [] };
    const followed = { walletCount: 0, tokenCount: 0, lastAssignment: 0 };
    const block = { height: 0, blockHash: TEST_IDENTITY.genesisHash };
    const from = await readCursor(database);
    const step = { lease, assertStands, from, ...block, ...nothing, ...followed };
    await commitBlockStep(database, step, () => false);
    const address = await register(database, guard, "alice");
    const older = await backup();
    await give(database, guard);
    const reader = { lease, assertStands, rewinds: 0 };
    const booked = commitEmptyPasts(older, reader, [address]);
    await expect(booked).rejects.toMatchObject({ code: "RECOVERY" });
    const past = { ...reader, address, inflows: [], outflows: [], tokens: [] };
    await expect(commitBackfill(older, past)).rejects.toMatchObject({ code: "RECOVERY" });
    expect(await commitEmptyPasts(database, reader, [address])).toBe(1);
  });

  it("takes no damaged file for a home without one", async () => {
    await give(ledger.database, await guardOf(ledger.database));
    writeFileSync(markPath(home), "{");
    await expect(guardOf(ledger.database)).rejects.toMatchObject({ code: "HOME_MARK_UNUSABLE" });
  });
});

describe("a deposit address", () => {
  it("cannot be given to another customer or moved by SQL", async () => {
    await give(ledger.database, await guardOf(ledger.database));
    await ledger.database.query(`INSERT INTO customer (id) VALUES ('mallory')`);
    for (const change of [
      `UPDATE deposit_address SET customer_id = 'mallory'`,
      `UPDATE deposit_address SET address = '0x${"1".repeat(40)}'`,
      `UPDATE deposit_address SET index = 7`,
      `UPDATE deposit_address SET from_height = 99`,
      `UPDATE deposit_address SET backfilled = false`,
      `DELETE FROM deposit_address`,
      `TRUNCATE deposit_address CASCADE`,
    ]) {
      const refused = ledger.database.query(change);
      await expect(refused).rejects.toMatchObject({ details: { sqlState: "23001" } });
    }
  });
});
