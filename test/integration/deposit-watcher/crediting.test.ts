import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { listEvents } from "../../helpers/events.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { SqlError } from "../../../runtime/sql/sql-errors.js";
import { change, testAddress } from "../../helpers/chains/fake-chain.js";
import { until } from "../../helpers/until.js";
import { derivation, HOT, STRANGER, WatcherBench } from "../../helpers/services/watcher.js";

let bench: WatcherBench;
beforeEach(async () => {
  bench = await WatcherBench.open();
});
afterEach(() => bench.close());

function connectionLost(): SqlError {
  return new SqlError("DATABASE_UNAVAILABLE", "connection terminated");
}

async function events(): Promise<string[]> {
  const rows = await listEvents(bench.ledger.database, { afterSeq: 0, limit: 1_000 });
  return rows.map(({ seq, type, data }) => `${seq} ${type} ${String(data["depositId"])}`);
}

describe("crediting", () => {
  it("detects in the block and credits at the second confirmation, once, with its events", async () => {
    const alice = await bench.register("alice");
    bench.start();
    bench.pay([alice.address, 500n]);
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["1-0-3 alice detected 500"]);
    expect(await bench.accountAtoken("liability:customer:alice")).toBe(0n);
    bench.chain.mine();
    await bench.caughtUp();
    bench.chain.mine();
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 500"]);
    expect(await bench.accountAtoken("liability:customer:alice")).toBe(-500n);
    expect(await bench.accountAtoken("asset:deposit_addresses")).toBe(500n);
    expect(await events()).toEqual(["1 deposit.detected 1-0-3", "2 deposit.credited 1-0-3"]);
  });

  it("leaves to persons what our own wallet paid and nobody asked for: it may be lost gas", async () => {
    const alice = await bench.register("alice");
    bench.start();
    bench.chain.mine([bench.chain.payment(HOT, alice.address, 7n)]);
    bench.pay([alice.address, 8n]);
    for (let block = 0; block < 2; block += 1) bench.chain.mine();
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["1-0-3 alice suspense 7", "2-0-3 alice credited 8"]);
    expect(await bench.accountAtoken("liability:customer:alice")).toBe(-8n);
    expect(await bench.accountAtoken("asset:deposit_addresses")).toBe(15n);
  });

  it("credits several payments of one transaction apart, and none of a reverted frame", async () => {
    const alice = await bench.register("alice");
    const bob = await bench.register("bob");
    const contract = testAddress(0xc0de);
    bench.start();
    const pays = (to: typeof alice, amountAtoken: bigint, effective = true) =>
      change({ from: contract, to: to.address, amountAtoken, effective, tracePath: "0" });
    bench.chain.mine([
      bench.chain.transaction(
        change({ from: STRANGER, to: contract, amountAtoken: 100n }),
        pays(alice, 10n),
        pays(bob, 20n),
        pays(alice, 30n),
        pays(bob, 40n, false),
      ),
    ]);
    bench.chain.mine();
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual([
      "1-0-3 alice credited 10",
      "1-0-5 bob credited 20",
      "1-0-7 alice credited 30",
    ]);
    expect(await bench.accountAtoken("asset:deposit_addresses")).toBe(60n);
  });

  it("books the same whether it watched live, caught up, restarted or ran twice at once", async () => {
    const alice = await bench.register("alice");
    const first = bench.start();
    for (let round = 0; round < 5; round += 1) bench.pay([alice.address, 1n]);
    await bench.caughtUp();
    await first.stop();
    for (let round = 0; round < 60; round += 1) bench.pay([alice.address, 1n]);
    bench.start();
    bench.start();
    await bench.caughtUp();
    for (let round = 0; round < 10; round += 1) {
      bench.pay([alice.address, 1n]);
      await bench.caughtUp();
    }
    bench.chain.mine();
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(
      Array.from({ length: 75 }, (_, index) => `${index + 1}-0-3 alice credited 1`),
    );
    expect(await bench.accountAtoken("liability:customer:alice")).toBe(-75n);
    const credited = (await events()).filter((each) => each.includes("credited"));
    expect(new Set(credited.map((each) => each.split(" ")[2])).size).toBe(75);
    expect(credited).toHaveLength(75);
  });

  it.each([
    ["before the commit", false],
    ["after the commit, its answer lost", true],
  ])("books once when the connection dies %s", async (_what, isCommitted) => {
    const alice = await bench.register("alice");
    const real = bench.ledger.database;
    let remaining = 3;
    const flaky: SqlDatabase = {
      url: real.url,
      close: () => real.close(),
      snapshot: (work, options) => real.snapshot(work, options),
      query: (text, parameters) => real.query(text, parameters),
      async transaction(work) {
        if (remaining === 0) return real.transaction(work);
        remaining -= 1;
        if (isCommitted) {
          await real.transaction(work);
        } else {
          const undone = real.transaction(async (tx) => {
            await work(tx);
            throw connectionLost();
          });
          await expect(undone).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
        }
        throw connectionLost();
      },
    };
    bench.pay([alice.address, 7n]);
    bench.chain.mine();
    const { faults } = bench.start(flaky);
    await bench.caughtUp();
    bench.pay([alice.address, 8n]);
    bench.chain.mine();
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 7", "3-0-3 alice credited 8"]);
    expect(await bench.accountAtoken("liability:customer:alice")).toBe(-15n);
    expect(faults).toEqual([]);
  });
});

describe("addresses registered while blocks pass", () => {
  it("credits every payment mined after the registration and books every earlier one to suspense", async () => {
    bench.start();
    const registered: Address[] = [];
    const done = new AbortController();
    const miner = (async () => {
      while (!done.signal.aborted) {
        // No more than the watcher catches up with, however long a busy machine takes to register.
        const isDue = bench.chain.head < 20 * (registered.length + 1);
        if (isDue) bench.pay(...registered.map((address) => [address, 1n] as const));
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    })();
    for (let index = 0; index < 30; index += 1) {
      registered.push((await bench.register(`customer-${index % 7}`)).address);
    }
    done.abort();
    await miner;
    bench.chain.mine();
    bench.chain.mine();
    await bench.caughtUp();
    await bench.backfilled();
    for (const address of registered) {
      const rows = await bench.ledger.database.query<{ status: string; height: string }>(
        `SELECT status, height FROM deposit WHERE address = $1`,
        [address],
      );
      const credited = rows.filter(({ status }) => status === "credited");
      expect(BigInt(rows.length)).toBe(bench.chain.balanceAt(address, bench.chain.head));
      expect([address, credited.length]).toEqual([address, rows.length]);
    }
  });

  it("never passes over an unreadable block, also when a run is matched again", async () => {
    const alice = await bench.register("alice");
    const next = derivation.addressAt(alice.index + 1);
    bench.pay([alice.address, 5n], [next, 1n]);
    bench.pay([alice.address, 6n]);
    const paid = bench.chain.payment(STRANGER, alice.address, 7n);
    const block = bench.chain.mine([paid]);
    for (let height = 4; height <= 40; height += 1) bench.pay([next, 2n]);
    const changes = paid.changes.map((each) => ({ ...each, reason: "no name" as "CALL" }));
    bench.chain.dataApiBlocks.set(3, { ...block, transactions: [{ ...paid, changes }] });
    const real = bench.ledger.database;
    let isRegistered = false;
    const { watcher, faults } = bench.start({
      url: real.url,
      close: () => real.close(),
      snapshot: (work, options) => real.snapshot(work, options),
      query: (text, parameters) => real.query(text, parameters),
      async transaction(work) {
        if (!isRegistered) {
          isRegistered = true;
          await bench.register("bob");
        }
        return real.transaction(work);
      },
    });
    await until(() => watcher.status.problem?.includes("operation type") === true, {
      timeoutMs: 5_000,
      what: "the block is refused",
    });
    await until(() => watcher.status.cursorHeight === 2, {
      timeoutMs: 5_000,
      what: "the blocks before it are booked",
    });
    bench.chain.dataApiBlocks.clear();
    await bench.caughtUp();
    const ids = (await bench.deposits()).map((each) => each.split(" ").slice(0, 2).join(" "));
    const later = bench.chain.blocks.slice(4).map(({ height }) => `${height}-0-3 bob`);
    const first = ["1-0-3 alice", "1-1-3 bob", "2-0-3 alice", "3-0-3 alice"];
    expect(ids).toEqual([...first, ...later]);
    expect(faults).toEqual([]);
  });

  it("lists coins from before the registration, one row per operation, and outflows net of them", async () => {
    const early = await bench.register("scout");
    const address = derivation.addressAt(early.index + 1);
    bench.pay([address, 5n], [address, 6n]);
    const spent = bench.chain.payment(address, STRANGER, 3n, 1n);
    const self = bench.chain.payment(address, address, 2n, 1n);
    bench.chain.mine([spent, self]);
    bench.start();
    await bench.caughtUp();
    const bob = await bench.register("bob");
    expect([bob.address, bob.fromHeight]).toEqual([address, 3]);
    bench.pay([bob.address, 9n]);
    bench.chain.mine();
    await bench.caughtUp();
    await bench.backfilled();
    expect((await bench.deposits()).toSorted()).toEqual([
      "1-0-3 bob suspense 5",
      "1-1-3 bob suspense 6",
      "3-0-3 bob credited 9",
    ]);
    expect(await bench.accountAtoken("liability:suspense")).toBe(-6n);
    expect(await bench.accountAtoken("asset:deposit_addresses")).toBe(15n);
    expect(bench.chain.balanceAt(bob.address, bench.chain.head)).toBe(15n);
  });
});

describe("the hot wallet", () => {
  it("starts with opening capital, and what nobody announced goes to suspense", async () => {
    bench.start();
    bench.pay([HOT, 77n]);
    await bench.caughtUp();
    expect(await bench.accountAtoken("equity:opening_capital")).toBe(-1_000_000n);
    expect(await bench.accountAtoken("liability:suspense")).toBe(-77n);
    expect(await bench.accountAtoken(`asset:wallet:${HOT}`)).toBe(1_000_077n);
  });

  it("freezes signing at an outflow nobody asked for, and keeps crediting", async () => {
    const alice = await bench.register("alice");
    bench.start();
    const theft = bench.chain.payment(HOT, STRANGER, 1_000n, 21n);
    bench.chain.mine([theft, bench.chain.payment(STRANGER, alice.address, 4n)]);
    bench.chain.mine();
    await bench.caughtUp();
    const [freeze] = await bench.ledger.database.query<{ frozen: boolean; reason: string }>(
      `SELECT frozen, reason FROM signing_freeze WHERE wallet = $1`,
      [HOT],
    );
    expect(freeze?.frozen).toBe(true);
    expect(freeze?.reason).toContain(theft.hash);
    const foreign = await bench.ledger.database.query(
      `SELECT wallet, tx_hash, amount_units, fee_atoken, height FROM foreign_outflow`,
    );
    expect(foreign).toEqual([
      { wallet: HOT, tx_hash: theft.hash, amount_units: "1000", fee_atoken: "21", height: "1" },
    ]);
    expect(await bench.deposits()).toEqual(["1-1-3 alice credited 4"]);
    expect(await bench.accountAtoken(`asset:wallet:${HOT}`)).toBe(1_000_000n);
  });
});

describe("a node or Data API that does not answer as it should", () => {
  it("treats a Data API behind the head as lag", async () => {
    const alice = await bench.register("alice");
    bench.chain.dataApiHead = 1;
    const { watcher } = bench.start();
    bench.pay([alice.address, 5n]);
    bench.chain.mine();
    bench.chain.mine();
    await until(() => watcher.status.cursorHeight === 1, { timeoutMs: 5_000 });
    expect(watcher.status).toMatchObject({ headHeight: 3, incident: undefined });
    expect(await bench.deposits()).toEqual(["1-0-3 alice detected 5"]);
    bench.chain.dataApiHead = undefined;
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 5"]);
  });

  it("waits while the node is down or catching up, without an incident", async () => {
    bench.chain.isSyncing = true;
    const { watcher } = bench.start();
    await until(() => watcher.status.problem?.includes("catching up") === true, {
      timeoutMs: 5_000,
    });
    expect(watcher.status.cursorHeight).toBe(-1);
    bench.chain.isSyncing = false;
    await bench.caughtUp();
    bench.chain.isDown = true;
    bench.chain.mine();
    await until(() => watcher.status.problem !== undefined, { timeoutMs: 5_000 });
    bench.chain.isDown = false;
    await bench.caughtUp();
    await until(() => watcher.status.problem === undefined, { timeoutMs: 5_000 });
    expect(watcher.status.incident).toBeUndefined();
  });
});
