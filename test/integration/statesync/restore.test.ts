/** A node that begins with a restored snapshot is the node that followed every block. */
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { bigintToWord, bytesToHash32, ZERO_HASH } from "../../../chain/hex.js";
import {
  restoredHeight,
  restoreSnapshot,
} from "../../../node/statesync/snapshot/snapshot-restore.js";
import { ConsensusStore } from "../../../node/store/consensus-store.js";
import {
  makeHistory,
  SnapshotChain,
  type SnapshotFiles,
  temporaryFolder,
  words,
} from "../../helpers/chains/snapshot-chain.js";
import { ValidatorNode } from "../../helpers/chains/validator-node.js";

/** Beyond what BLOCKHASH reads, and beyond the height at which a whole set is stored again. */
const QUIET_BLOCKS = 270;

/** Several batches of every trie. */
const CROWD = 4_500;

let chain: SnapshotChain;
let made: Awaited<ReturnType<typeof makeHistory>>;
let files: SnapshotFiles;
let height: number;
let home: string;
let node: ValidatorNode;

beforeAll(async () => {
  chain = await SnapshotChain.open(CROWD);
  await chain.take();
  made = await makeHistory(chain);
  for (let index = 0; index < QUIET_BLOCKS; index++) await chain.take();
  await chain.take([
    { to: made.keeper, data: words(900, 3) },
    { to: `0x${"88".repeat(20)}`, value: 1n },
  ]);
  height = chain.node.height;
  files = await chain.snapshot();
  expect(files.manifest.counts.accounts).toBeGreaterThan(CROWD);
  expect(files.manifest.counts.slots).toBeGreaterThan(CROWD / 2);
  await chain.take([{ to: made.witness, data: words(height - 255) }]);
  await chain.take([
    { to: made.witness, data: words(height - 253) },
    { to: made.keeper, data: words(1, 0) },
    { to: made.keeper, data: words(901, 5) },
    { to: made.quitter, value: 4n },
  ]);
  await chain.take([{ to: made.witness, data: words(height) }]);
  await chain.take();
  home = temporaryFolder("restored");
  const folder = path.join(home, "data", "chain.restoring");
  await restoreSnapshot({
    ...chain.restoreBase(folder),
    manifest: files.manifest,
    trusted: chain.trusted(height),
    readChunk: async (index) => files.chunks[index] ?? new Uint8Array(0),
  });
  expect(await restoredHeight(folder)).toBe(height);
  fs.renameSync(folder, path.join(home, "data", "chain"));
  node = await ValidatorNode.open({ genesis: chain.genesis, seed: undefined, home });
});

afterAll(async () => {
  await node.stop();
  await chain.close();
});

const witnessed = (at: number) => bytesToHash32(bigintToWord(BigInt(at)));

/** Everything that is in the original's state at a height, read from both nodes. */
async function expectSameState(at: number): Promise<void> {
  const addresses = [
    ...Object.values(made),
    ...[...chain.genesis.alloc.keys()].filter((_, index) => index < 20 || index % 500 === 0),
    parseAddress(`0x${"7".repeat(36)}1003`),
    parseAddress(`0x${"88".repeat(20)}`),
    parseAddress(`0x${"99".repeat(20)}`),
  ];
  const slots = [0, 1, 3, 5, 39, 900, 901].map((slot) => bytesToHash32(bigintToWord(BigInt(slot))));
  for (const address of addresses) {
    const [mine, original] = [node.view, chain.node.view];
    expect(await mine.account(address, at)).toEqual(await original.account(address, at));
    expect(await mine.code(address, at)).toEqual(await original.code(address, at));
    const all = [...slots, witnessed(at)];
    const { signal } = new AbortController();
    expect(await mine.proof(address, all, at, signal)).toEqual(
      await original.proof(address, all, at, signal),
    );
  }
}

describe("a restored node", () => {
  it("stands at the snapshot's height with block, receipts, supply and state of it", async () => {
    expect(node.height).toBe(height);
    const [mine, original] = [node.view.block(height), chain.node.view.block(height)];
    expect(mine?.block).toEqual(original?.block);
    expect(mine?.receipts).toEqual(original?.receipts);
    expect(node.view.supply(height)).toEqual(chain.node.view.supply(height));
    expect(node.view.genesis().block).toEqual(chain.node.view.genesis().block);
    const [tx] = original?.block.transactions ?? [];
    expect(node.view.locate(tx?.tx.hash ?? ZERO_HASH)).toMatchObject({ height, index: 0 });
    expect(await node.view.account(made.mayfly, height)).toBeUndefined();
    expect((await node.view.account(made.keeper, height))?.codeHash).toMatch(/^0x/);
    await expectSameState(height);
  });

  it("says where it begins", async () => {
    expect(node.stores.base.get()).toEqual({
      base: height,
      journalBase: height + 1,
      historyBase: height,
      proofBase: height,
    });
    expect(() => node.view.block(height - 1)).toThrow(
      expect.objectContaining({ code: "HISTORY_PRUNED" }),
    );
    await expect(node.view.account(made.keeper, height - 1)).rejects.toMatchObject({
      code: "HISTORY_PRUNED",
    });
    await expect(
      node.view.proof(made.keeper, [], height - 1, new AbortController().signal),
    ).rejects.toMatchObject({
      code: "HISTORY_PRUNED",
    });
  });

  it("knows headers and validators from before, for evidence", () => {
    const [mine, original] = [node, chain.node].map(
      ({ stores }) => new ConsensusStore(stores.database),
    );
    for (let at = 1; at < height; at++) {
      expect(mine?.header(at)).toEqual(original?.header(at));
      const validators = mine?.validators(at);
      expect(validators?.hash()).toBe(chain.chain.validators(at).hash());
      expect(validators?.totalPower).toBe(chain.chain.validators(at).totalPower);
    }
    expect(mine?.header(0)).toBeUndefined();
    // One validator was punished in the history, so the sets differ.
    expect(chain.chain.validators(1).size).toBe(4);
    expect(chain.chain.validators(height).size).toBe(3);
    for (const at of [height, height + 1, height + 2]) {
      expect(mine?.validators(at)).toEqual(chain.chain.validators(at));
    }
  });

  it("follows the next blocks to the same hashes, BLOCKHASH included, and over restarts", async () => {
    for (let at = height + 1; at <= chain.node.height; at++) {
      const decided = chain.node.consensus.load(at);
      if (decided === undefined) throw new Error("no block");
      await node.consensus.apply(decided);
      expect(node.view.head().hash).toBe(chain.hash(at));
      await node.stop({ keep: true });
      node = await ValidatorNode.open({ genesis: chain.genesis, seed: undefined, home });
      expect(node.height).toBe(at);
    }
    expect(node.height).toBe(height + 4);
    const seen = await node.view.storageAt(made.witness, witnessed(height + 1), node.height);
    expect(bytesToHash32(bigintToWord(seen))).toBe(chain.hash(height - 255));
    for (let at = height; at <= node.height; at++) await expectSameState(at);
  });

  it("gives out the blocks that it has", () => {
    for (let at = height; at <= node.height; at++) {
      expect(node.consensus.load(at)).toEqual(chain.node.consensus.load(at));
    }
    expect(node.consensus.base()).toBe(height);
  });
});
