/** What a peer sends as a block is not read before validators are known to have signed it. */
import { describe, expect, it } from "@jest/globals";
import { type Commit, encodeCommit } from "../../../chain/consensus/commit.js";
import { encodeConsensusBlock, MAX_BLOCK_BYTES } from "../../../chain/consensus/consensus-block.js";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import { BlockQueue } from "../../../node/p2p/blocks/block-queue.js";
import { blockSource } from "../../../node/p2p/blocks/block-protocol.js";
import { LagWatch } from "../../../node/p2p/blocks/lag-watch.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import type { PeerLink } from "../../../node/p2p/peers/peer-link.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { countedBytes } from "../../helpers/effort/counted-bytes.js";
import { trueBlock } from "../../integration/p2p/fakes.js";
import { TestClock } from "./clock.js";

/** Far ahead of a node that has nothing. */
const CLAIMED = 17;

/** More than any honest block has, in few bytes. */
const TRANSACTIONS = 100_000;

/** An answer whose block is dear to read, with a commit of nobody's. */
function dearAnswer(height: number) {
  const { block, commit } = trueBlock(height);
  const transactions = Array.from({ length: TRANSACTIONS }, () => Buffer.alloc(1));
  const blockBytes = encodeConsensusBlock({ ...block, transactions });
  return countedBytes(
    new ProtoWriter().message(1, blockBytes).message(2, encodeCommit(commit)).finish(),
  );
}

/** A peer that answers every request with the same bytes. */
function linkOf(answer: Uint8Array): PeerLink {
  const answers = [answer];
  const channel = {
    send: () => undefined,
    onBytes: () => undefined,
    abort: () => undefined,
    read: async () => answers.shift(),
  };
  const link = { meter: { expect: () => undefined }, open: async () => channel };
  return link as unknown as PeerLink;
}

describe("a block that a peer gives", () => {
  it("is not read where it comes as the proof of a height", async () => {
    const { bytes, pieces } = dearAnswer(CLAIMED - 1);
    const clock = new TestClock();
    const source = blockSource(linkOf(bytes));
    const stopping = new AbortController();
    const watch = new LagWatch({
      height: () => 0,
      claims: () => {
        clock.timeMs += 1_000;
        return [{ nodeId: "liar" as NodeId, height: CLAIMED, source }];
      },
      report: () => undefined,
      clock,
      log: createLogger({ component: "test", level: "silent" }),
      limits: { lookMs: 1, patienceMs: 1_000 },
    });
    const judged: Commit[] = [];
    const isProof = (commit: Commit) => {
      judged.push(commit);
      stopping.abort(new Error("judged"));
      return false;
    };
    await expect(watch.proved({ isProof }, stopping.signal)).rejects.toThrow("judged");
    expect(judged).toEqual([trueBlock(CLAIMED - 1).commit]);
    expect(pieces()).toBeLessThan(100);
  });

  it("is not read while it waits for its turn", async () => {
    const { bytes, pieces } = dearAnswer(3);
    let sizeBytes = 0;
    const { signal } = new AbortController();
    const onBlock = (_received: object, size: number) => (sizeBytes = size);
    await blockSource(linkOf(bytes)).blocks({ from: 3, count: 1 }, { signal, onBlock });
    expect(sizeBytes).toBe(bytes.length);
    expect(pieces()).toBeLessThan(100);
  });

  it("is let go where too much waits, unless it is the next one, and asked for again", () => {
    const queue = new BlockQueue(1);
    const range = { base: 1, height: 64 };
    const liar = "liar" as NodeId;
    const request = queue.take(range, liar) ?? { from: 1, count: 0 };
    expect(request).toEqual({ from: 1, count: 32 });
    const put = (height: number) =>
      queue.put(trueBlock(height), { from: liar, sizeBytes: MAX_BLOCK_BYTES, cameMs: 0 });
    for (let height = 32; height > 1; height--) put(height);
    const kept = () => {
      return Array.from({ length: 32 }, (_, index) => index + 1).filter((height) => {
        return !queue.isWanted({ from: height, count: 1 });
      });
    };
    // Those that came first; a quarter of a gigabyte.
    expect(kept()).toEqual(Array.from({ length: 12 }, (_, index) => 21 + index));
    put(1);
    expect(queue.next()?.received).toEqual(trueBlock(1));
    queue.release(request, liar);
    queue.advance();
    expect(queue.take(range, "other" as NodeId)).toEqual({ from: 2, count: 1 });
  });
});
