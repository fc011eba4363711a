/** Batches of transactions: when they go out, what is relayed, who is greeted. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import {
  balanceFault,
  feeFault,
  memoFault,
  sequenceFault,
  timeoutFault,
  timestampFault,
} from "../../../chain/cosmos/ante.js";
import { present } from "../../../chain/errors.js";
import { sdkRefusal } from "../../../node/mempool/admission/cosmos-admission.js";
import { PoolError } from "../../../node/mempool/pool-error.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { decodeTransactions, encodeTransactions } from "../../../node/p2p/peers/peer-codec.js";
import { PeerSubmissions } from "../../../node/p2p/gossip/peer-submissions.js";
import { TransactionGossip } from "../../../node/p2p/gossip/transaction-gossip.js";
import { until } from "../../helpers/until.js";
import { FakePool, freeOfCharge } from "../../integration/p2p/fakes.js";
import { TestClock } from "./clock.js";

const peer = "aa".repeat(20) as NodeId;

let published: (readonly Uint8Array[])[];
let reports: string[];
let pool: FakePool;
let gossip: TransactionGossip;
let running: Promise<void>;
let stopping: AbortController;
let clock: TestClock;

/** Peers that were greeted, with what it cost; so many may be. */
let greetings: number[];
let most: number;
const spend = (_nodeId: NodeId, spentMs: number) => void greetings.push(spentMs);

beforeEach(() => {
  greetings = [];
  most = Number.POSITIVE_INFINITY;
  published = [];
  reports = [];
  pool = new FakePool();
  clock = new TestClock();
  gossip = new TransactionGossip({
    pool,
    publish: (bytes) => published.push(decodeTransactions(bytes)),
    report: (_nodeId, offence) => reports.push(offence),
    load: { ...freeOfCharge, mayServe: () => greetings.length < most, served: spend },
    clock,
  });
  pool.onAdmitted = (transactions) => gossip.onAdmitted(transactions);
  stopping = new AbortController();
  running = gossip.run(stopping.signal);
  running.catch(() => undefined);
});

afterEach(() => stopping.abort(new Error("test over")));

const raw = (text: string, size = text.length) => Buffer.alloc(size, text);

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
      while (!stopping.signal.aborted) {
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
    await expect(running).rejects.toBe(fault);
  });

  it("greets as many newcomers as there is time for, and looks no further than it has to", async () => {
    await pool.submit(Array.from({ length: 9_000 }, (_, index) => raw(`${index} `, 1_000)));
    const heard: string[] = [];
    most = 2;
    for (const name of ["a", "b", "c", "d"]) {
      gossip.add({ nodeId: name as NodeId, unsentBytes: 0, send: () => heard.push(name) });
    }
    clock.timeMs += 2_000;
    await until(() => greetings.length === 2, { timeoutMs: 5_000 });
    expect(new Set(heard)).toEqual(new Set(["a", "b"]));
    // Four mebibytes each, of nine, and what they cost beside the work itself.
    expect(pool.lookedCount).toBeLessThan(2 * 4_300);
    for (const spentMs of greetings) expect(spentMs).toBeGreaterThan(20);
    most = 4;
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

describe("transactions of peers that are not judged yet", () => {
  const other = "bb".repeat(20) as NodeId;
  const kinds = { evm: "e", cosmos: "\n" } as const;
  type Kind = keyof typeof kinds;

  /** Calls of the pool that are under way: what each holds, and what answers it. */
  let calls: { readonly first: string; readonly answer: () => void }[];
  let submitted: string[];

  beforeEach(() => {
    calls = [];
    submitted = [];
    const submit = pool.submit.bind(pool);
    pool.submit = (raws) => {
      const first = present(raws[0], "a transaction").toString();
      submitted.push(first);
      return new Promise((resolve) => {
        calls.push({ first, answer: () => resolve(submit(raws)) });
      });
    };
  });

  const settled = () => new Promise((resolve) => setImmediate(resolve));

  /** Answers calls in the order in which they came until there is none. */
  async function answerAll(): Promise<void> {
    for (let call = calls.shift(); call !== undefined; call = calls.shift()) {
      call.answer();
      await settled();
    }
  }

  const batchOf = (kind: Kind, name: string, count: number) =>
    Array.from({ length: count }, (_, index) => raw(`${kinds[kind]}${name} ${index}`));

  it("wait for none of Cosmos' where they are of the EVM, whatever they came with", async () => {
    const mixed = [...batchOf("cosmos", "dear", 1), ...batchOf("evm", "payment", 1)];
    const verdict = gossip.onGossip(encodeTransactions(mixed), peer);
    await settled();
    expect(submitted.toSorted()).toEqual(["\ndear 0", "epayment 0"]);
    await answerAll();
    expect(await verdict).toBe("relay");
  });

  it("leave in one batch for each kind", async () => {
    const parts = [batchOf("evm", "payment", 2), batchOf("cosmos", "dear", 2)];
    const sent = gossip.onDirect(parts.flat().toReversed(), peer);
    await settled();
    await answerAll();
    await sent;
    await until(() => published.length === 2, { timeoutMs: 5_000 });
    expect(published).toEqual(parts.map((part) => part.toReversed()));
  });

  it("have their turns by peer where they are of Cosmos, whoever sent most", async () => {
    const flood = Array.from({ length: 9 }, (_, index) => {
      return gossip.onDirect(batchOf("cosmos", `flood ${index}`, 1), peer);
    });
    const honest = gossip.onDirect(batchOf("cosmos", "honest", 1), other);
    await settled();
    await answerAll();
    await Promise.all([...flood, honest]);
    expect(submitted).toHaveLength(10);
    // Behind those that were begun and one more.
    expect(submitted.indexOf("\nhonest 0")).toBeLessThan(6);
  });

  it("fill the room of their kind, where whoever has less takes it from who has most", async () => {
    for (const [kind, room] of [
      ["cosmos", 16],
      ["evm", 24],
    ] as const) {
      const batches = Array.from({ length: room + 4 }, (_, at) => batchOf(kind, `${at}`, 1_024));
      const ended: number[] = [];
      const flood = batches.map(async (batch, index) => {
        await gossip.onDirect(batch, peer);
        ended.push(index);
      });
      await settled();
      const refused = batches.map((_, index) => index).slice(room);
      expect([kind, ended]).toEqual([kind, refused]);
      const isHeard = (nodeId: NodeId, one: Kind) =>
        gossip.isHeard(nodeId, encodeTransactions(batchOf(one, "more", 1_000)));
      const another = kind === "evm" ? "cosmos" : "evm";
      // The router does not see it either, and takes the same from others.
      expect([isHeard(peer, kind), isHeard(peer, another)]).toEqual([false, true]);
      expect(isHeard(other, kind)).toBe(true);
      const honest = gossip.onGossip(encodeTransactions(batchOf(kind, "honest", 1_024)), other);
      await settled();
      expect([kind, ended]).toEqual([kind, [...refused, room - 1]]);
      await answerAll();
      expect(await honest).toBe("relay");
      await Promise.all(flood);
      expect(isHeard(peer, kind)).toBe(true);
    }
    expect(reports).toEqual([]);
  });

  it("have the room that the pool has for them", () => {
    const limits = { ...pool.limits, waitingCount: 1_000 };
    const ports = { limits, submit: pool.submit.bind(pool) };
    const submissions = new PeerSubmissions(ports, clock);
    const isHeard = (count: number) =>
      submissions.isHeard(peer, encodeTransactions(batchOf("evm", "one", count)));
    expect([750, 751].map(isHeard)).toEqual([true, false]);
  });

  it("are heard of who sends few, however many others have filled the room", async () => {
    for (const [kind, count] of [
      ["cosmos", 16],
      ["evm", 24],
    ] as const) {
      const strangers = Array.from({ length: count }, (_, index) => {
        const stranger = index.toString(16).padStart(40, "0") as NodeId;
        return gossip.onDirect(batchOf(kind, `${index}`, 1_024), stranger);
      });
      await settled();
      const few = encodeTransactions(batchOf(kind, "few", 1));
      const many = encodeTransactions(batchOf(kind, "many", 1_024));
      const isHeard = [few, many].map((batch) => gossip.isHeard(other, batch));
      // Who would have as much as each of them is one more of them.
      expect([kind, isHeard]).toEqual([kind, [true, false]]);
      const honest = gossip.onGossip(few, other);
      await settled();
      await answerAll();
      expect(await honest).toBe("relay");
      await Promise.all(strangers);
    }
  });

  it("are heard where they are no batch, and held against who sent them", async () => {
    const room = Array.from({ length: 16 }, (_, index) => {
      return gossip.onDirect(batchOf("cosmos", `${index}`, 1_024), peer);
    });
    const tooMany = encodeTransactions(batchOf("cosmos", "many", 1_025));
    for (const bytes of [tooMany, tooMany.subarray(0, 99)]) {
      expect(gossip.isHeard(peer, bytes)).toBe(true);
      expect(await gossip.onGossip(bytes, peer)).toBe("invalid");
    }
    await settled();
    await answerAll();
    await Promise.all(room);
  });

  describe("go no further, whatever came with them,", () => {
    const payment = batchOf("evm", "payment", 1);
    const send = (cosmosCount: number) => {
      const mixed = [...payment, ...batchOf("cosmos", "dear", cosmosCount)];
      return gossip.onGossip(encodeTransactions(mixed), peer);
    };
    const flood = (from: NodeId, batchCount: number) => {
      for (let count = 0; count < batchCount; count++) {
        void gossip.onDirect(batchOf("cosmos", `flood ${count}`, 1_024), from);
      }
    };

    /** The payment alone: neighbours would hold a false one against this node. */
    async function expectPaymentOnly(verdict: Promise<string>): Promise<void> {
      await settled();
      calls.find(({ first }) => first === String(payment[0]))?.answer();
      expect(await verdict).toBe("used");
      expect(published).toEqual([payment]);
    }

    it("where there is no room for them", async () => {
      flood(peer, 16);
      await expectPaymentOnly(send(1));
    });

    it("where too much before them was useless", async () => {
      const held = pool.submit.bind(pool);
      const unfunded = new PoolError("INSUFFICIENT_FUNDS", "no funds");
      pool.submit = async (raws) => raws.map(() => unfunded);
      const useless = batchOf("cosmos", "useless", 1_000);
      for (let count = 0; count < 29; count++) await gossip.onDirect(useless, peer);
      pool.submit = held;
      await expectPaymentOnly(send(1_000));
    });

    it("where another took their place", async () => {
      flood(peer, 15);
      const verdict = send(1_023);
      flood(other, 1);
      await expectPaymentOnly(verdict);
    });

    it("where their peer was banned", async () => {
      flood(peer, 4);
      const verdict = send(1);
      await settled();
      gossip.forget(peer);
      await expectPaymentOnly(verdict);
    });

    it.each(["NODE_HALTED", "POOL_FULL"] as const)("where the pool says %s", async (code) => {
      const held = pool.submit.bind(pool);
      const refusal = new PoolError(code, "not now");
      pool.submit = async (raws) => (raws.length > 1 ? raws.map(() => refusal) : held(raws));
      await expectPaymentOnly(send(2));
    });
  });

  it("are not looked at any more once their peer is banned", async () => {
    const flood = Array.from({ length: 9 }, (_, index) => {
      return gossip.onDirect(batchOf("cosmos", `flood ${index}`, 1), peer);
    });
    const honest = gossip.onDirect(batchOf("cosmos", "honest", 1), other);
    await settled();
    gossip.forget(peer);
    await settled();
    await answerAll();
    await Promise.all([...flood, honest]);
    const begun = [0, 1, 2, 3].map((index) => `\nflood ${index} 0`);
    expect(submitted).toEqual([...begun, "\nhonest 0"]);
    // Nothing of it is held against who comes back.
    const back = gossip.onDirect(batchOf("cosmos", "back", 1), peer);
    await settled();
    await answerAll();
    await back;
    expect(submitted.at(-1)).toBe("\nback 0");
  });
});
