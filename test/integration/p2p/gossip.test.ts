/** Consensus messages and transactions between real hosts with fake drivers and pools. */
import { isDeepStrictEqual } from "node:util";
import { afterEach, describe, expect, it } from "@jest/globals";
import { keccak256Hex } from "../../../chain/hashes.js";
import { until } from "../../helpers/until.js";
import { FakePool, hashOf, part, statusAt, vote } from "./fakes.js";
import { connected, startNode, stopNode, stopNodes, type TestNode } from "./support.js";

afterEach(stopNodes);

const heardOf = ({ driver }: TestNode, type: string) =>
  driver.heard.filter(({ message }) => message.type === type);

/** Three in a line: the ends know each other only through the middle. */
async function line(newPool = () => new FakePool()): Promise<[TestNode, TestNode, TestNode]> {
  const middle = await startNode({ pool: newPool() });
  const [left, right] = await Promise.all([
    startNode({ persistentPeers: [middle.address], pool: newPool() }),
    startNode({ persistentPeers: [middle.address], pool: newPool() }),
  ]);
  await connected([middle, 2], [left, 1], [right, 1]);
  return [left, middle, right];
}

/** Publishes until somebody hears it: the routers learn of each other a moment after the hello. */
async function warmUp(from: TestNode, to: TestNode): Promise<void> {
  let height = 1_000;
  await until(
    () => {
      from.network.broadcast.broadcast({ type: "vote", vote: vote({ height: height++ }) });
      return heardOf(to, "vote").length > 0;
    },
    { timeoutMs: 10_000, what: "gossip" },
  );
}

describe("gossip", () => {
  it("carries votes and parts over two hops, each once", async () => {
    const [left, middle, right] = await line();
    await warmUp(left, right);
    left.network.broadcast.broadcast({ type: "vote", vote: vote({ height: 7 }) });
    left.network.broadcast.broadcast(part(7));
    const votes = () =>
      heardOf(right, "vote").filter(
        ({ message }) => message.type === "vote" && message.vote.height === 7,
      );
    await until(() => heardOf(right, "part").length > 0 && votes().length > 0, {
      timeoutMs: 5_000,
    });
    expect(votes()).toEqual([
      { message: { type: "vote", vote: vote({ height: 7 }) }, peer: middle.key.nodeId },
    ]);
    expect(heardOf(right, "part")[0]?.message).toEqual(part(7));
  });

  it("stops at an invalid message, and whoever sends three is banned", async () => {
    const [left, middle, right] = await line();
    await warmUp(left, right);
    for (let height = 20; height < 23; height++) {
      left.network.broadcast.broadcast({ type: "vote", vote: vote({ height, mark: 0 }) });
    }
    await until(() => middle.network.peers().length === 1, { timeoutMs: 5_000 });
    expect(middle.network.peers()[0]?.nodeId).toBe(right.key.nodeId);
    // What it has waiting there is not worked off.
    expect(middle.driver.forgotten).toEqual([left.key.nodeId]);
    const invalid = heardOf(right, "vote").filter(
      ({ message }) => message.type === "vote" && message.vote.signature[0] === 0,
    );
    expect(invalid).toEqual([]);
    // The liar goes on dialling, and is not let in.
    await until(() => left.network.peers().length === 0, { timeoutMs: 5_000 });
  });

  it("sends transactions in batches to everybody, once", async () => {
    const known = Buffer.from("what all have");
    const [left, middle, right] = await line(() => {
      const pool = new FakePool();
      pool.admitted.set(keccak256Hex(known), known);
      return pool;
    });
    const counts = () => [left, middle, right].map(({ pool }) => pool.submitCount);
    // Each greets its neighbours with that one, and with nothing that comes later.
    await until(() => isDeepStrictEqual(counts(), [1, 2, 1]), {
      timeoutMs: 15_000,
      what: "all greetings",
    });
    await warmUp(left, right);
    const raws = Array.from({ length: 300 }, (_, index) => Buffer.alloc(150, `tx ${index} `));
    await left.pool.submit(raws);
    await until(() => right.pool.admitted.size === 301, { timeoutMs: 5_000 });
    expect(middle.pool.admitted.size).toBe(301);
    // 45 kB are one batch, relayed as it is and echoed by nobody; the left's own is that of this test.
    expect(counts()).toEqual([2, 3, 2]);
  });

  it("does not relay what the pool refuses, and bans who sends it", async () => {
    const [left, middle, right] = await line();
    await warmUp(left, right);
    for (let index = 0; index < 3; index++) {
      const transaction = { hash: hashOf(`bad ${index}`), raw: Buffer.from([0, index]) };
      // Its own pool takes what others refuse.
      left.pool.admitted.set(transaction.hash, transaction.raw);
      left.network.onAdmitted([{ tx: transaction, from: "0x" }] as never);
      const count = index + 1;
      await until(() => middle.pool.submitCount === count, { timeoutMs: 5_000 });
    }
    await until(() => middle.network.peers().length === 1, { timeoutMs: 5_000 });
    expect(right.pool.submitCount).toBe(0);
  });

  it("brings a peer that was away what is pending", async () => {
    const first = await startNode();
    await first.pool.submit([Buffer.from("one"), Buffer.from("two")]);
    const second = await startNode({ persistentPeers: [first.address] });
    await until(() => second.pool.admitted.size === 2, { timeoutMs: 5_000 });
    await stopNode(second);
    await connected([first, 0]);
    await first.pool.submit([Buffer.from("three")]);
    const again = await startNode({ key: second.key, persistentPeers: [first.address] });
    await until(() => again.pool.admitted.size === 3, { timeoutMs: 15_000 });
  });
});

describe("peers", () => {
  it("repair what the other lacks", async () => {
    const [left, right] = await pair();
    left.driver.current = statusAt(5, 4);
    right.driver.current = statusAt(5, 1);
    left.driver.repairs = ({ height, prevotes }) =>
      prevotes.flatMap((has, index) =>
        has || height !== 5 ? [] : [{ type: "vote" as const, vote: vote({ height, index }) }],
      );
    await until(() => heardOf(right, "vote").length >= 3, { timeoutMs: 5_000 });
    const indexes = heardOf(right, "vote").map(({ message }) => {
      return message.type === "vote" ? message.vote.validatorIndex : -1;
    });
    expect(indexes.slice(0, 3)).toEqual([1, 2, 3]);
    expect(heardOf(right, "vote")[0]?.peer).toBe(left.key.nodeId);
  });

  it("tell each other how far they are", async () => {
    const [left, right] = await pair();
    let told = 0;
    left.driver.repairs = ({ height }) => {
      told = height;
      return [];
    };
    right.driver.current = statusAt(42);
    await until(() => told === 42, { timeoutMs: 5_000 });
    const [peer] = left.network.peers();
    expect(peer).toMatchObject({
      nodeId: right.key.nodeId,
      moniker: "test",
      network: "test-1",
      version: "1.2.3",
      listenAddress: `tcp://127.0.0.1:${right.address.port}`,
      rpcAddress: "tcp://127.0.0.1:26657",
      isOutbound: true,
      remoteIp: "127.0.0.1",
    });
    expect(left.network.stats().peers).toBe(1);
    expect(left.network.stats().sentBytes).toBeGreaterThan(100);
  });

  it("of another chain are let go", async () => {
    const hub = await startNode();
    await startNode({ persistentPeers: [hub.address], genesisHash: hashOf("other") });
    await startNode({ persistentPeers: [hub.address], chainId: "other-1" });
    const friend = await startNode({ persistentPeers: [hub.address] });
    await connected([hub, 1], [friend, 1]);
    expect(hub.network.peers()[0]?.nodeId).toBe(friend.key.nodeId);
  });

  it("are found again after they were away, on both sides' initiative", async () => {
    const [left, right] = await pair();
    await stopNode(right);
    await connected([left, 0]);
    const again = await startNode({ key: right.key, listen: right.address });
    await connected([left, 1], [again, 1]);
  });
});

async function pair(): Promise<[TestNode, TestNode]> {
  const right = await startNode();
  const left = await startNode({ persistentPeers: [right.address] });
  await connected([left, 1], [right, 1]);
  return [left, right];
}
