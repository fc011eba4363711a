/** Gossip of transactions over a pool that a test fills, by a clock that it moves. */
import { afterEach, beforeEach } from "@jest/globals";
import type { NodeId } from "../../../../node/p2p/node-key.js";
import { decodeTransactions } from "../../../../node/p2p/peers/peer-codec.js";
import { TransactionGossip } from "../../../../node/p2p/gossip/transaction-gossip.js";
import { FakePool, freeOfCharge } from "../../../integration/p2p/fakes.js";
import { TestClock } from "../clock.js";

/** A peer. */
export const peer = "aa".repeat(20) as NodeId;

/** The gossip of one test, and what came of it. */
export class GossipBench {
  readonly published: (readonly Uint8Array[])[] = [];
  readonly reports: string[] = [];
  /** Peers that were greeted, with what it cost; so many may be. */
  readonly greetings: number[] = [];
  most = Number.POSITIVE_INFINITY;
  readonly pool = new FakePool();
  readonly clock = new TestClock();
  readonly gossip: TransactionGossip;
  readonly stopping = new AbortController();
  readonly running: Promise<void>;

  constructor() {
    const { pool, clock, published, reports, greetings } = this;
    const spend = (_nodeId: NodeId, spentMs: number) => void greetings.push(spentMs);
    const mayServe = () => greetings.length < this.most;
    this.gossip = new TransactionGossip({
      pool,
      publish: (bytes) => published.push(decodeTransactions(bytes)),
      report: (_nodeId, offence) => reports.push(offence),
      load: { ...freeOfCharge, mayServe, served: spend },
      clock,
    });
    pool.onAdmitted = (transactions) => this.gossip.onAdmitted(transactions);
    this.running = this.gossip.run(this.stopping.signal);
    this.running.catch(() => undefined);
  }
}

/** One for each test of a file. */
export function gossipForEachTest(take: (bench: GossipBench) => void): void {
  let bench: GossipBench | undefined;
  beforeEach(() => {
    bench = new GossipBench();
    take(bench);
  });
  afterEach(() => bench?.stopping.abort(new Error("test over")));
}

/** A transaction by its text, of so many bytes. */
export const raw = (text: string, size = text.length) => Buffer.alloc(size, text);
