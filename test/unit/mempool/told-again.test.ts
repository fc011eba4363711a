/** What clients sent and no block holds is told to peers again: they may have refused it the first time. */
import { afterEach, describe, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../chain/hex.js";
import { decodeTransaction } from "../../../chain/transaction.js";
import { TransactionGossip } from "../../../node/p2p/gossip/transaction-gossip.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { decodeTransactions } from "../../../node/p2p/peers/peer-codec.js";
import { until } from "../../helpers/until.js";
import { freeOfCharge } from "../../integration/p2p/fakes.js";
import { TestClock } from "../p2p/clock.js";
import { account, createFixture, submit, transfer } from "./support.js";

const [alice, bob] = [account(1), account(2)];
const nodeId = "aa".repeat(20) as NodeId;
const stopping: AbortController[] = [];

afterEach(() => {
  for (const one of stopping.splice(0)) one.abort(new Error("test over"));
});

/** A node whose clock stands until the test moves it, and what it published. */
async function open() {
  const made = await createFixture();
  const clock = new TestClock(made.clock.atMs);
  const published: Uint8Array[] = [];
  const gossip = new TransactionGossip({
    pool: made.pool,
    publish: (bytes) => published.push(bytes),
    report: () => undefined,
    load: { ...freeOfCharge, mayServe: () => true, served: () => undefined },
    clock,
  });
  made.bus.on("pendingTransactions", (list) => gossip.onAdmitted(list));
  const ending = new AbortController();
  stopping.push(ending);
  gossip.run(ending.signal).catch(() => undefined);
  const pass = (durationMs: number) => {
    clock.timeMs += durationMs;
    made.clock.atMs += durationMs;
  };
  const told = (): Hash32[] => {
    return published.flatMap((bytes) => {
      return decodeTransactions(bytes).map((raw) => decodeTransaction(raw).hash);
    });
  };
  const toldOf = (hash: Hash32) => told().filter((one) => one === hash).length;
  return { ...made, pool: made.pool, gossip, published, pass, toldOf };
}

describe("a transaction that a client sent", () => {
  it("reaches a peer that refused it the first time, because it was a block behind", async () => {
    const [node, peer] = [await open(), await open()];
    const payment = transfer(alice, 0);
    peer.state.balances.set(alice.address, 0n);
    await submit(node.pool, payment);
    await until(() => node.published.length === 1, { timeoutMs: 5_000 });
    for (const bytes of node.published) await peer.gossip.onGossip(bytes, nodeId);
    expect(peer.pool.status(payment.hash)).toEqual({ status: "unknown" });
    // The block with the coins comes there, too; whoever sends the payment again is told that it is known.
    peer.state.balances.set(alice.address, 10n ** 18n);
    node.pass(90_001);
    await submit(node.pool, transfer(bob, 0));
    await until(() => node.toldOf(payment.hash) === 2, { timeoutMs: 5_000 });
    for (const bytes of node.published.slice(1)) await peer.gossip.onGossip(bytes, nodeId);
    expect(peer.pool.status(payment.hash)).toEqual({ status: "pending" });
  });

  it("is told again for as long as it is pending, and nothing else is", async () => {
    const node = await open();
    const [own, gapped, foreign] = [transfer(alice, 0), transfer(alice, 2), transfer(bob, 0)];
    await submit(node.pool, own, gapped);
    await node.pool.submit([foreign.raw], "peer");
    await until(() => node.toldOf(own.hash) === 1, { timeoutMs: 5_000 });
    for (const count of [2, 3]) {
      node.pass(90_001);
      const later = transfer(account(10 + count), 0);
      await submit(node.pool, later);
      // The round that is due may begin before the newcomer is there, which goes out behind it then.
      const areOut = () => node.toldOf(own.hash) === count && node.toldOf(later.hash) > 0;
      await until(areOut, { timeoutMs: 5_000 });
      expect(node.toldOf(later.hash)).toBe(1);
    }
    expect(node.toldOf(gapped.hash)).toBe(0);
    expect(node.toldOf(foreign.hash)).toBe(1);
    node.mine([{ tx: own, from: alice.address }]);
    node.pass(90_001);
    const last = transfer(account(20), 0);
    await submit(node.pool, last);
    await until(() => node.toldOf(transfer(account(12), 0).hash) === 3, { timeoutMs: 5_000 });
    expect(node.toldOf(own.hash)).toBe(3);
  });
});
