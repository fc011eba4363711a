/**
 * Transactions of peers that are not judged yet: whose turn it is, how many there may be, and which go
 * no further.
 */
import { beforeEach, describe, expect, it } from "@jest/globals";
import { present } from "../../../../chain/errors.js";
import { PoolError } from "../../../../node/mempool/pool-error.js";
import type { NodeId } from "../../../../node/p2p/node-key.js";
import { encodeTransactions } from "../../../../node/p2p/peers/peer-codec.js";
import { PeerSubmissions } from "../../../../node/p2p/gossip/peer-submissions.js";
import { TransactionGossip } from "../../../../node/p2p/gossip/transaction-gossip.js";
import { until } from "../../../helpers/until.js";
import { FakePool } from "../../../integration/p2p/fakes.js";
import { TestClock } from "../clock.js";
import { gossipForEachTest, peer, raw } from "./gossip-bench.js";

let published: (readonly Uint8Array[])[];
let reports: string[];
let pool: FakePool;
let gossip: TransactionGossip;
let clock: TestClock;

gossipForEachTest((opened) => {
  ({ published, reports, pool, gossip, clock } = opened);
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
