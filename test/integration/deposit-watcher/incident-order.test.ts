/**
 * An incident and the commits of blocks: each commit stands before it or is refused, none is beside it. The
 * lease that both are made from.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { BookingLease } from "../../../deposit-watcher/booking-lease.js";
import { type BlockStep, commitBlockStep } from "../../../ledger/blocks/block-step.js";
import { readCursor, type WatchCursor } from "../../../ledger/watch/watch-cursor.js";
import { proveWatchLease, WatchLeaseLostError } from "../../../ledger/watch/watch-lease.js";
import { openIncident } from "../../../ledger/incidents.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import {
  openTestLedger,
  silentLog,
  standing,
  type TestLedger,
} from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";

let ledger: TestLedger;

beforeEach(async () => {
  ledger = await openTestLedger();
});
afterEach(() => ledger.drop());

const hashOf = (height: number) => keccak256Hex(Buffer.from(`block ${height}`));

/** Who waits for a lock of another one, in the order in which they came. */
async function waiting(count: number): Promise<void> {
  await until(
    async () => {
      const rows = await ledger.owner.query(
        `SELECT 1 FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rows.length === count;
    },
    { timeoutMs: 10_000, what: `${count} wait for a lock` },
  );
}

it("waits for the block that is being booked, and lets none be booked behind it", async () => {
  const { database, owner } = ledger;
  const booking = new BookingLease({ database, log: silentLog, owner: "test", leaseMs: 60_000 });
  const lease = await booking.take();
  if (lease === undefined) throw new Error("no lease");
  const book = (from: WatchCursor, height: number) => {
    const nothing = {
      assertStands: async () => undefined,
      walletCount: 0,
      tokenCount: 0,
      lastAssignment: 0,
      deposits: [],
      walletInflows: [],
      outflows: [],
    };
    const step: BlockStep = { ...nothing, lease, from, height, blockHash: hashOf(height) };
    return commitBlockStep(database, step, () => false);
  };
  const start = await readCursor(database);
  const order: string[] = [];
  const said = (what: string) => () => void order.push(what);
  let first: Promise<void> | undefined;
  let incident: Promise<void> | undefined;
  let second: Promise<void> | undefined;
  await standing(owner, async (tx) => {
    // The first block waits for it in the middle of its commit.
    await tx.query(`LOCK TABLE token_state IN ACCESS EXCLUSIVE MODE`);
    first = book(start, 0).then(said("first block"));
    await waiting(1);
    incident = booking
      .record({ kind: "NODES_DISAGREE", height: 0, message: "found elsewhere", details: {} })
      .then(said("incident"));
    await waiting(2);
    const behind = { ...start, height: 0, blockHash: hashOf(0) };
    second = book(behind, 1).then(said("second block"), ({ code }) => said(String(code))());
    await waiting(3);
    expect([await openIncident(owner), order]).toEqual([undefined, []]);
  });
  await Promise.all([first, incident, second]);
  expect(order.indexOf("first block")).toBeLessThan(order.indexOf("INCIDENT_OPEN"));
  expect(order.toSorted()).toEqual(["INCIDENT_OPEN", "first block", "incident"]);
  expect((await openIncident(database))?.kind).toBe("NODES_DISAGREE");
  expect(await readCursor(database)).toMatchObject({ height: 0, blockHash: hashOf(0) });
});

it("keeps the lease that it took since, where work under a former one finds that lost", async () => {
  const { database } = ledger;
  const booking = new BookingLease({ database, log: silentLog, owner: "test", leaseMs: 60_000 });
  const former = await booking.take();
  if (former === undefined) throw new Error("no lease");
  await booking.giveBack();
  const lease = await booking.take();
  const lost = await database
    .transaction((tx) => proveWatchLease(tx, former))
    .catch((error) => error);
  if (!(lost instanceof WatchLeaseLostError)) throw lost;
  booking.forget(lost);
  expect(booking.lease).toBe(lease);
  expect(await booking.renew()).toBe(lease);
  booking.forget({ epoch: former.epoch + 1n });
  expect(booking.lease).toBeUndefined();
});
