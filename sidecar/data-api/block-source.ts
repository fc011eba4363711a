/** Which block a request means, and its finished reply: from the index, as new as the node. */
import type { Hash32, Height } from "../../chain/hex.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import { SidecarError } from "../rosetta/errors.js";
import type { BlockIdentifier, BlockReference } from "../rosetta/identifiers.js";
import type { IndexFollower } from "../index/follower.js";
import type { IndexedBlocks } from "../index/indexed-blocks.js";
import type { EncodedBlock } from "../rosetta/encoded-block.js";

/**
 * An answer with parts of many blocks ends early where these have this much together, of which it may need
 * little: a full block has some 30 MB, and reading them all would take the process from everybody else.
 */
export const MAX_READ_BYTES = 128 * 1024 * 1024;

/** What a source reads. */
export interface BlockSourceOptions {
  readonly client: Pick<EvmClient, "getBlockHeaderByHash">;
  readonly blocks: Pick<
    IndexedBlocks,
    "tip" | "identifierAt" | "heightOf" | "block" | "kept" | "accountsOf" | "keptAccounts"
  >;
  readonly follower: Pick<
    IndexFollower,
    "serves" | "whenServing" | "whenIndexed" | "assertNotHalted" | "assertCurrent" | "freshHead"
  >;
  /** The process's signal. */
  readonly signal: AbortSignal;
}

/** Reads of blocks; all throw SidecarError, RpcError and NodeFault. */
export interface BlockSource {
  /**
   * The block that is meant. One that the node has and the index not yet is waited for, so that
   * whoever has seen a receipt finds its block.
   * @throws BLOCK_NOT_FOUND, BLOCK_ABOVE_TIP, BLOCK_IDENTIFIER_MISMATCH, INDEX_BEHIND, NODE_SYNCING
   */
  resolve(reference: BlockReference): Promise<BlockIdentifier>;
  /** The block of an identifier that `resolve` gave. */
  block(identifier: BlockIdentifier): Promise<EncodedBlock>;
  /** Which accounts the block's transactions name, as JSON of `BlockAccounts`. */
  accountsOf(identifier: BlockIdentifier): Promise<Buffer>;
  /** The same where it is at hand; undefined for a block that is not indexed, too. */
  keptAccounts(index: Height): Buffer | undefined;
  /** The block if it is at hand and may be served; the node is not asked. */
  kept(identifier: BlockIdentifier): EncodedBlock | undefined;
  /** The newest block, not older than the node's at the time of the call. */
  tip(): Promise<BlockIdentifier>;
  /** The newest block of the index, however far the node is ahead. @throws INDEX_BEHIND, NODE_FAULT */
  newestIndexed(): Promise<BlockIdentifier>;
  /** Block 0. */
  genesis(): Promise<BlockIdentifier>;
}

/** A source over an index. */
export function createBlockSource(options: BlockSourceOptions): BlockSource {
  const { client, blocks, follower, signal } = options;

  /** For a height that the node has. */
  const indexed = async (index: Height): Promise<BlockIdentifier> => {
    await follower.whenIndexed(index);
    const identifier = blocks.identifierAt(index);
    if (identifier === undefined) throw new SidecarError("INDEX_BEHIND", { index });
    return identifier;
  };

  const byIndex = async (index: Height): Promise<BlockIdentifier> => {
    const known = blocks.identifierAt(index);
    if (known !== undefined) return known;
    const head = await follower.freshHead();
    if (index > head) throw new SidecarError("BLOCK_ABOVE_TIP", { index });
    return indexed(index);
  };

  const byHash = async (hash: Hash32): Promise<BlockIdentifier> => {
    const known = blocks.heightOf(hash);
    if (known !== undefined) return indexed(known);
    const header = await client.getBlockHeaderByHash(hash, { signal });
    if (header === undefined) {
      // Who lacks blocks, or is of another chain, cannot say that there is none.
      await follower.assertCurrent();
      throw new SidecarError("BLOCK_NOT_FOUND", { hash });
    }
    const identifier = await indexed(header.height);
    if (identifier.hash === hash) return identifier;
    throw new SidecarError("NODE_FAULT", { reason: "a block changed", index: header.height });
  };

  const tip = async (): Promise<BlockIdentifier> => {
    follower.assertNotHalted();
    const head = await follower.freshHead();
    await follower.whenIndexed(head);
    const newest = blocks.tip();
    if (newest === undefined) throw new SidecarError("INDEX_BEHIND", { index: head });
    return newest;
  };

  return {
    tip,
    async newestIndexed() {
      await follower.whenServing();
      const newest = blocks.tip();
      if (newest === undefined) throw new SidecarError("INDEX_BEHIND", { reason: "no block yet" });
      return newest;
    },
    genesis: () => indexed(0),
    async resolve({ index, hash }) {
      await follower.whenServing();
      if (hash === undefined) return index === undefined ? tip() : byIndex(index);
      // Whether there is such a block is known once its height is there: above the tip it may still come.
      if (index !== undefined && blocks.heightOf(hash) === undefined) await byIndex(index);
      const found = await byHash(hash);
      if (index === undefined || index === found.index) return found;
      throw new SidecarError("BLOCK_IDENTIFIER_MISMATCH", { index, hash });
    },
    block: ({ index }) => blocks.block(index),
    accountsOf: ({ index }) => blocks.accountsOf(index),
    keptAccounts: (index) => blocks.keptAccounts(index),
    kept: ({ index }) => (follower.serves() ? blocks.kept(index) : undefined),
  };
}
