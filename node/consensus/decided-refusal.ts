/** Blocks that two thirds have decided and this node cannot take: what is wrong, and what to do. */
import {
  type ConsensusBlock,
  decodeConsensusBlock,
} from "../../chain/consensus/consensus-block.js";
import { hashConsensusHeader } from "../../chain/consensus/consensus-header.js";
import { ChainError, errorMessage } from "../../chain/errors.js";
import type { Hash32, Height } from "../../chain/hex.js";
import { BlockError } from "../blocks/block-error.js";
import type { ChainTip } from "../blocks/chain-tip.js";
import type { BlockStore } from "../store/blocks/block-store.js";

/**
 * A block whose bytes two thirds have signed; it is this node's version that cannot read them.
 * @throws DECIDED_BLOCK_REFUSED
 */
export function readDecided(
  blockBytes: Uint8Array,
  { height, hash }: { readonly height: Height; readonly hash: Hash32 },
): ConsensusBlock {
  let reason = "its header has another hash";
  try {
    const block = decodeConsensusBlock(blockBytes);
    if (hashConsensusHeader(block.header) === hash) return block;
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    reason = error.message;
  }
  throw new BlockError(
    "DECIDED_BLOCK_REFUSED",
    `two thirds of the validators decided block ${height}, and this node cannot read it ` +
      `(${reason}): it is of a later version. Run the version that the network runs`,
    { details: { height } },
  );
}

/** What the block came behind. */
interface Own {
  readonly tip: Pick<ChainTip, "height">;
  readonly blocks: Pick<BlockStore, "blockChanges" | "oldest">;
}

/**
 * The fault of a node that cannot take a decided block, by what is wrong with that here.
 * @param height as the block has it
 */
export function cannotTake(height: Height, cause: unknown, own: Own): BlockError {
  return new BlockError(
    "DECIDED_BLOCK_REFUSED",
    `two thirds of the validators decided block ${height}, and this node cannot take it ` +
      `(${errorMessage(cause)}): its state or its version is not the network's. ` +
      `${upgradeWords(own)}Run the version that the network runs; if it does already, see to ` +
      "it that a peer has the blocks from 1 on (earliest_block_height of its /status), move " +
      "data/chain away and sync again; throw nothing away before this node has caught up",
    { cause, details: { height } },
  );
}

/**
 * The state after an upgrade's block shows in the next one's `app_hash`. Nothing in the chain says at that
 * block whether the validators made the upgrade or gave it up: that is in the nodes' settings.
 */
function upgradeWords({ tip: { height }, blocks }: Own): string {
  if (height < Math.max(1, blocks.oldest())) return "";
  const events = blocks.blockChanges(height).moduleEvents ?? [];
  const told = events.find(({ type }) => type === "upgrade" || type === "skip_upgrade");
  if (told === undefined) return "";
  const name = told.attributes.find(({ key }) => key === "name")?.value ?? "";
  return told.type === "upgrade"
    ? `Block ${height} made the upgrade "${name}" here: if the validators gave it up, write ` +
        `skip-upgrades = ["${height}"] into app.toml first. `
    : `Block ${height} gave the upgrade "${name}" up here: if the validators made it, take ${height} ` +
        "out of skip-upgrades first. ";
}
