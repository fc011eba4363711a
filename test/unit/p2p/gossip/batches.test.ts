/** Batches of transactions: when they go out, what is relayed, who is greeted. */
import { describe, expect, it } from "@jest/globals";
import { ProtoWriter } from "../../../../chain/protobuf/wire.js";
import {
  balanceFault,
  feeFault,
  memoFault,
  sequenceFault,
  timeoutFault,
  timestampFault,
} from "../../../../chain/cosmos/ante.js";
import { present } from "../../../../chain/errors.js";
import { sdkRefusal } from "../../../../node/mempool/admission/cosmos-admission.js";
import { PoolError } from "../../../../node/mempool/pool-error.js";
import type { NodeId } from "../../../../node/p2p/node-key.js";
import { encodeTransactions } from "../../../../node/p2p/peers/peer-codec.js";
import { TransactionGossip } from "../../../../node/p2p/gossip/transaction-gossip.js";
import { until } from "../../../helpers/until.js";
import { FakePool } from "../../../integration/p2p/fakes.js";
import { TestClock } from "../clock.js";
import { type GossipBench, gossipForEachTest, peer, raw } from "./gossip-bench.js";

let bench: GossipBench;
let published: (readonly Uint8Array[])[];
let reports: string[];
let pool: FakePool;
let gossip: TransactionGossip;
let clock: TestClock;
let greetings: readonly number[];

gossipForEachTest((opened) => {
  bench = opened;
  ({ published, reports, pool, gossip, clock, greetings } = opened);
});

describe("gossip of transactions", () => {
  it("collects what comes within a moment", async () => {
    await pool.submit([raw("a")]);
    await pool.submit([raw("b")]);
    expect(published).toEqual([]);
    await until(() => published.length > 0, { timeoutMs: 5_000 });
    expect(published).toEqual([[raw("a"), raw("b")]]);
  });

  it("sends out what is large enough at once", async () => {
    await pool.submit([raw("a", 40_000), raw("b", 40_000), raw("c", 100_000), raw("d")]);
    expect(published.map((batch) => batch.length)).toEqual([1, 1, 1]);
    await until(() => published.length === 4, { timeoutMs: 5_000 });
    for (const batch of published.filter(({ length }) => length > 1)) {
      expect(encodeTransactions(batch).length).toBeLessThan(66_000);
    }
  });

  it("relays what the pool took something of, and does not publish it again", async () => {
    await pool.submit([raw("known")]);
    await until(() => published.length === 1, { timeoutMs: 5_000 });
    const known = encodeTransactions([raw("known")]);
    expect(await gossip.onGossip(known, peer)).toBe("drop");
    expect(await gossip.onGossip(encodeTransactions([raw("known"), raw("new")]), peer)).toBe(
      "relay",
    );
    await pool.submit([raw("own")]);
    await until(() => published.length === 2, { timeoutMs: 5_000 });
    expect(published[1]).toEqual([raw("own")]);
  });

  it("publishes a transaction that was refused before and is sent here again", async () => {
    const refused = raw("later");
    const submit = pool.submit.bind(pool);
    pool.submit = async (raws) => raws.map(() => new Error("full"));
    expect(await gossip.onGossip(encodeTransactions([refused]), peer)).toBe("drop");
    pool.submit = submit;
    await pool.submit([refused]);
    await until(() => published.length === 1, { timeoutMs: 5_000 });
  });

  it("calls a batch invalid for what no state can explain", async () => {
    expect(await gossip.onGossip(encodeTransactions([raw("fine"), Buffer.from([0])]), peer)).toBe(
      "invalid",
    );
    expect(await gossip.onGossip(Buffer.from("junk"), peer)).toBe("invalid");
    await gossip.onDirect([Buffer.from([0])], peer);
    expect(reports).toEqual(["invalidMessage"]);
  });

  it("passes on what is true of a batch that is invalid", async () => {
    const batch = [raw("fine"), Buffer.from([0]), raw("as well")];
    expect(await gossip.onGossip(encodeTransactions(batch), peer)).toBe("invalid");
    expect(published).toEqual([[raw("fine"), raw("as well")]]);
  });

  it("holds nothing against a peer whose head, state or settings are others", async () => {
    const seconds = new ProtoWriter().integer(1, 1_800_000_000).finish();
    const price = { numerator: 1n, denominator: 1n };
    const faults = {
      "a fee below this node's floor": feeFault({ fee: [], feeAtoken: 0n, gasLimit: 2n }, price),
      "a balance that was spent": balanceFault(1n, 2n),
      "a sequence that was used": sequenceFault(2n, 1n),
      "a height that has passed": timeoutFault({ timeoutHeight: 5n }, 6),
      "a memo of many bytes": memoFault({ memo: "é".repeat(200) }),
      "a time that has passed": timestampFault({ timeoutTimestamp: seconds }, 1_800_000_000_001),
    };
    for (const [what, fault] of Object.entries(faults)) {
      const refusal = sdkRefusal(present(fault, what));
      pool.submit = async (raws) => raws.map(() => refusal);
      expect([what, await gossip.onGossip(encodeTransactions([raw(what)]), peer)]).toEqual([
        what,
        "drop",
      ]);
      await gossip.onDirect([raw(what)], peer);
    }
    expect(reports).toEqual([]);
    // What is no time at all was relayed by nobody who looked at it, whatever its head.
    const timeoutTimestamp = Buffer.from("ffff", "hex");
    const refusal = sdkRefusal(present(timestampFault({ timeoutTimestamp }, 0), "no time"));
    pool.submit = async (raws) => raws.map(() => refusal);
    expect(await gossip.onGossip(encodeTransactions([raw("junk")]), peer)).toBe("invalid");
  });

  it("does not look at what comes from a peer that sent too much that is useless", async () => {
    const submit = pool.submit.bind(pool);
    const unfunded = new PoolError("INSUFFICIENT_FUNDS", "no funds");
    let seen = 0;
    pool.submit = async (raws) => {
      seen += raws.length;
      return raws.map(() => unfunded);
    };
    const batch = Array.from({ length: 1_000 }, (_, index) => raw(`useless ${index}`));
    const isHeard = (nodeId: NodeId) => gossip.isHeard(nodeId, encodeTransactions(batch));
    expect(isHeard(peer)).toBe(true);
    for (let count = 0; count < 40; count++) await gossip.onDirect(batch, peer);
    // Nor does the router: it would take the same from nobody else.
    expect(isHeard(peer)).toBe(false);
    expect(await gossip.onGossip(encodeTransactions(batch), peer)).toBe("drop");
    expect(seen).toBe(30_000);
    // Others are heard, and the peer itself again after a while; nobody is banned for it.
    const other = "bb".repeat(20) as NodeId;
    expect(isHeard(other)).toBe(true);
    await gossip.onDirect(batch, other);
    expect(seen).toBe(31_000);
    clock.timeMs += 3_000;
    expect(isHeard(peer)).toBe(true);
    await gossip.onDirect(batch, peer);
    await gossip.onDirect(batch, peer);
    expect(seen).toBe(32_000);
    expect(reports).toEqual([]);
    // What the pool takes, knows or has no room for costs nothing.
    clock.timeMs += 2_000;
    pool.submit = submit;
    for (let count = 0; count < 3; count++) await gossip.onDirect(batch, peer);
    const full = new PoolError("POOL_FULL", "full");
    pool.submit = async (raws) => raws.map(() => full);
    for (let count = 0; count < 3; count++) await gossip.onDirect(batch, peer);
    pool.submit = submit;
    expect(await gossip.onGossip(encodeTransactions([raw("new")]), peer)).toBe("relay");
  });

  it("passes on what a peer sent to this node alone", async () => {
    await gossip.onDirect([raw("missed")], peer);
    await until(() => published.length === 1, { timeoutMs: 5_000 });
    expect(published).toEqual([[raw("missed")]]);
  });

  it("tells again what no block has taken a part at a time, all of it in turn", async () => {
    pool.promises = Array.from({ length: 1_200 }, (_, index) => raw(`${index} `, 1_000));
    const told = () => published.flat().filter(({ length }) => length === 1_000);
    const round = async (count: number) => {
      published.length = 0;
      clock.timeMs += 90_000;
      await pool.submit([raw(`wake ${clock.timeMs}`)]);
      await until(() => told().length >= count, { timeoutMs: 5_000 });
      expect(pool.promisedBeforeMs).toBe(clock.monotonicMs() - 90_000);
      return told().map((one) => Number(one.toString().split(" ", 1)[0]));
    };
    // Half a mebibyte, half a mebibyte, what is left, and from the beginning.
    const counts = [525, 525, 150, 525];
    const rounds: number[][] = [];
    // Whatever the clock of the day is put to meanwhile.
    clock.setByMs = -3_600_000;
    for (const count of counts) rounds.push(await round(count));
    expect(rounds.map(({ length }) => length)).toEqual(counts);
    const all = Array.from({ length: 1_200 }, (_, index) => index);
    expect(rounds.slice(0, 3).flat()).toEqual(all);
    for (const batch of published) expect(encodeTransactions(batch).length).toBeLessThan(70_000);
  });

  it("sends what comes in while it looks through what is to be told again", async () => {
    pool.promises = [Buffer.from([0x0a])];
    const again = [...pool.promised(0)];
    // In a batch of another kind, and so slowly that it would take minutes.
    pool.promised = function* endless() {
      while (!bench.stopping.signal.aborted) {
        const endMs = performance.now() + 1;
        while (performance.now() < endMs);
        yield* again;
      }
    };
    clock.timeMs += 90_000;
    await pool.submit([raw("wake")]);
    await until(() => published.flat().length === 1, { timeoutMs: 5_000 });
    await pool.submit([raw("fresh")]);
    await until(() => published.flat().some((one) => raw("fresh").equals(one)), {
      timeoutMs: 5_000,
    });
  });

  it("ends with the fault of what is told again", async () => {
    const fault = new Error("the pool cannot be read");
    pool.promised = () => {
      throw fault;
    };
    clock.timeMs += 90_000;
    await pool.submit([raw("wake")]);
    await expect(bench.running).rejects.toBe(fault);
  });

  it("greets as many newcomers as there is time for, and looks no further than it has to", async () => {
    await pool.submit(Array.from({ length: 9_000 }, (_, index) => raw(`${index} `, 1_000)));
    const heard: string[] = [];
    bench.most = 2;
    for (const name of ["a", "b", "c", "d"]) {
      gossip.add({ nodeId: name as NodeId, unsentBytes: 0, send: () => heard.push(name) });
    }
    clock.timeMs += 2_000;
    await until(() => greetings.length === 2, { timeoutMs: 5_000 });
    expect(new Set(heard)).toEqual(new Set(["a", "b"]));
    // Four mebibytes each, of nine, and what they cost beside the work itself.
    expect(pool.lookedCount).toBeLessThan(2 * 4_300);
    for (const spentMs of greetings) expect(spentMs).toBeGreaterThan(20);
    bench.most = 4;
    await until(() => greetings.length === 4, { timeoutMs: 5_000 });
    expect(new Set(heard)).toEqual(new Set(["a", "b", "c", "d"]));
  });

  it("greets a newcomer with what is pending, once gossip reaches it", async () => {
    const batches: (readonly Uint8Array[])[] = [];
    const newcomer = {
      nodeId: peer,
      unsentBytes: 0,
      send: ({ raws }: { readonly raws: readonly Uint8Array[] }) => batches.push(raws),
    };
    gossip.add(newcomer);
    clock.timeMs += 1_900;
    await pool.submit(Array.from({ length: 5_000 }, (_, index) => raw(`${index} `, 1_000)));
    await until(() => published.flat().length === 5_000, { timeoutMs: 5_000 });
    expect(batches).toEqual([]);
    clock.timeMs += 200;
    await until(() => batches.length > 0, { timeoutMs: 5_000 });
    const sizeBytes = batches.flat().reduce((sum, { length }) => sum + length, 0);
    expect(sizeBytes).toBeGreaterThan(4_000_000);
    expect(sizeBytes).toBeLessThanOrEqual(4 * 1024 * 1024);
    expect(Math.max(...batches.map((batch) => encodeTransactions(batch).length))).toBeLessThan(
      70_000,
    );
    // One that comes back at once waits longer.
    batches.length = 0;
    gossip.add(newcomer);
    clock.timeMs += 2_100;
    await pool.submit([raw("more")]);
    await until(() => published.flat().length === 5_001, { timeoutMs: 5_000 });
    expect(batches).toEqual([]);
    clock.timeMs += 3_000;
    await until(() => batches.length > 0, { timeoutMs: 5_000 });
  });
});
