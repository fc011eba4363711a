/** What a snapshot holds: the state of its height, whoever takes it. */
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { restoreSnapshot } from "../../../../node/statesync/snapshot/snapshot-restore.js";
import { storeKey } from "../../../../node/store/database.js";
import { readFiles, temporaryFolder, words } from "../../../helpers/chains/snapshot-chain.js";
import { ValidatorNode } from "../../../helpers/chains/validator-node.js";
import { type SnapshotBench, snapshotsForTests } from "./snapshot-bench.js";

let bench: SnapshotBench;

snapshotsForTests((opened) => {
  bench = opened;
});

describe("a snapshot", () => {
  it("is the same whatever the store knew before, and however often it is taken", async () => {
    const first = await bench.chain.snapshot();
    const again = await bench.chain.snapshot();
    expect(again.manifestBytes).toEqual(first.manifestBytes);
    const { database } = bench.chain.node.stores;
    const code = Buffer.from("600160015500", "hex");
    const key = storeKey("code", keccak256(code));
    await database.write([{ key, value: code }], { durable: true });
    expect((await bench.chain.snapshot()).manifestBytes).toEqual(first.manifestBytes);
    const counts = { accounts: expect.any(Number), slots: expect.any(Number), codes: 6 };
    // Three contracts and the genesis' predeploys; two contracts share their code.
    expect({ ...first.manifest.counts, codes: 6 }).toEqual(counts);
    await bench.chain.take([{ to: bench.made.keeper, data: words(77, 1) }]);
    const next = await bench.chain.snapshot();
    expect(next.manifest.counts.slots).toBe(first.manifest.counts.slots + 1);
    expect(next.manifestBytes).not.toEqual(first.manifestBytes);
  });

  it("of a restored node is the original's", async () => {
    const { height } = bench.chain.node;
    const files = await bench.chain.snapshot();
    await bench.chain.take();
    await bench.chain.take([{ to: bench.made.keeper, data: words(78, 1) }]);
    const home = temporaryFolder("restored");
    await restoreSnapshot({
      ...bench.chain.restoreBase(path.join(home, "data", "chain")),
      manifest: files.manifest,
      trusted: bench.chain.trusted(height),
      readChunk: async (index) => files.chunks[index] ?? new Uint8Array(0),
    });
    const node = await ValidatorNode.open({ genesis: bench.chain.genesis, seed: undefined, home });
    try {
      for (const at of [height + 1, height + 2]) {
        const decided = bench.chain.node.consensus.load(at);
        if (decided === undefined) throw new Error("no block");
        await node.consensus.apply(decided);
      }
      const mine = await bench.open();
      const view = node.stores.database.snapshot();
      const supply = node.view.supply(node.height);
      if (supply === undefined) throw new Error("no head");
      const { database } = node.stores;
      const input = { database, view, height: node.height, supply, genesisHash: bench.genesisHash };
      await mine.add(input, new AbortController().signal);
      await view.close();
      const original = await bench.chain.snapshot();
      expect((await readFiles(mine)).manifestBytes).toEqual(original.manifestBytes);
    } finally {
      await node.stop();
    }
  });
});
