/** Double signing from before a snapshot's height, judged by a node that began with the snapshot. */
import fs from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { ConsensusParams } from "../../../chain/consensus/consensus-params.js";
import { hashEvidence } from "../../../chain/consensus/evidence.js";
import { type Height, ZERO_HASH } from "../../../chain/hex.js";
import { isEvidenceExpired } from "../../../node/consensus/evidence-pool.js";
import { restoreSnapshot } from "../../../node/statesync/snapshot/snapshot-restore.js";
import { ConsensusStore } from "../../../node/store/consensus-store.js";
import { Pruner } from "../../../node/store/pruning/pruner.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { quietLog, SnapshotChain, temporaryFolder } from "../../helpers/chains/snapshot-chain.js";
import { ValidatorNode } from "../../helpers/chains/validator-node.js";

/** Height of the snapshot. */
const RESTORED = 6;

let chain: SnapshotChain;
let home: string;
let node: ValidatorNode;

afterEach(async () => {
  await node.stop();
  await chain.close();
});

/** A node restored at `RESTORED`, of a chain that has gone on. */
async function restored(before: () => Promise<void> = () => Promise.resolve()): Promise<void> {
  chain = await SnapshotChain.open();
  await before();
  while (chain.node.height < RESTORED) await chain.take();
  const files = await chain.snapshot();
  await chain.take();
  await chain.take();
  home = temporaryFolder("restored");
  const folder = path.join(home, "data", "chain.restoring");
  await restoreSnapshot({
    ...chain.restoreBase(folder),
    manifest: files.manifest,
    trusted: chain.trusted(RESTORED),
    readChunk: async (index) => files.chunks[index] ?? new Uint8Array(0),
  });
  fs.renameSync(folder, path.join(home, "data", "chain"));
  node = await ValidatorNode.open({ genesis: chain.genesis, seed: undefined, home });
}

/** What pruning does when a node comes up, with settings that keep all blocks. */
async function prune(isPastEvidence = (at: Height) => node.consensus.isPastEvidence(at)) {
  const pruner = new Pruner({
    ...node.stores,
    consensus: new ConsensusStore(node.stores.database),
    head: () => node.height,
    states: undefined,
    retainedFrom: () => 0,
    isPastEvidence,
    roundMs: 600_000,
    clock: systemClock,
    log: quietLog,
  });
  expect(await pruner.round(new AbortController().signal)).toBe(true);
  return pruner;
}

async function follow(): Promise<void> {
  while (node.height < chain.node.height) {
    const decided = chain.node.consensus.load(node.height + 1);
    if (decided === undefined) throw new Error("no block");
    await node.consensus.apply(decided);
  }
}

describe("a restored node", () => {
  it("takes blocks with evidence from before its first block, also after pruning", async () => {
    await restored();
    await prune();
    await follow();
    const evidence = chain.chain.doubleVote(3, RESTORED - 2);
    await chain.take([], [evidence]);
    await follow();
    expect(node.view.head().hash).toBe(chain.node.view.head().hash);
    expect(node.consensus.validators(node.height + 2)?.size).toBe(3);
  });

  it("refuses evidence that a block before its first one holds", async () => {
    let hash = ZERO_HASH;
    await restored(async () => {
      for (let height = 0; height < 3; height += 1) await chain.take();
      const evidence = chain.chain.doubleVote(3, 2);
      hash = hashEvidence(evidence);
      await chain.take([], [evidence]);
    });
    expect(new ConsensusStore(chain.node.stores.database).isCommitted(hash)).toBe(true);
    expect(new ConsensusStore(node.stores.database).isCommitted(hash)).toBe(true);
  });

  it("keeps headers and validators of the past for as long as evidence counts", async () => {
    await restored();
    await follow();
    const now = { height: 0, timeNs: 0n };
    const params: ConsensusParams = {
      ...node.consensus.params(0),
      evidenceMaxAgeBlocks: 3,
      evidenceMaxAgeNs: 0n,
    };
    const store = () => new ConsensusStore(node.stores.database);
    const known = () => {
      const heights = Array.from({ length: node.height }, (_, index) => index + 1);
      return heights.filter((at) => {
        return store().header(at) !== undefined && store().validators(at) !== undefined;
      });
    };
    const isPast = (height: Height) => isEvidenceExpired({ height, timeNs: -1n }, now, params);
    now.height = 5;
    const pruner = await prune(isPast);
    expect(known()).toEqual([2, 3, 4, 5, 6, 7, 8]);
    now.height = 7;
    await pruner.round(new AbortController().signal);
    expect(known()).toEqual([4, 5, 6, 7, 8]);
    now.height = 100;
    await prune(isPast);
    // The node's own blocks stay.
    expect(known()).toEqual([6, 7, 8]);
    expect(node.consensus.validators(node.height + 2)).toEqual(
      chain.chain.validators(node.height + 2),
    );
  });
});
