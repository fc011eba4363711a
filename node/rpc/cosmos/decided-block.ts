/** Decided blocks as messages of CometBFT, and heights that requests name. */
import { encodeBlockId } from "../../../chain/consensus/block-id.js";
import { encodeCommit } from "../../../chain/consensus/commit.js";
import { encodeConsensusHeader } from "../../../chain/consensus/consensus-header.js";
import { encodeDuplicateVote } from "../../../chain/consensus/evidence.js";
import type { Height } from "../../../chain/hex.js";
import { EncodedMessage } from "../../../chain/protobuf/values.js";
import type { DecidedOutline } from "../../consensus/consensus-ports.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { dataPages, latestHeight } from "../comet/chain-reads.js";
import { invalidArgument, notFound } from "./errors.js";
import type { QuerySources } from "./sources.js";

/**
 * A height that a request names.
 * @throws INVALID_ARGUMENT for one that is no height or not there yet
 */
export function needHeight({ chain }: QuerySources, wanted: bigint): Height {
  const latest = latestHeight(chain);
  if (wanted < 1n) throw invalidArgument("height must be greater than 0");
  if (wanted > BigInt(latest)) {
    throw invalidArgument("requested block height is bigger then the chain length");
  }
  return Number(wanted);
}

/** A block without its transactions. Throws NOT_FOUND where it was pruned. */
export function decidedOutline({ chain }: QuerySources, height: Height): DecidedOutline {
  const outline = chain.consensus.outline(height);
  if (outline === undefined) {
    const { block } = chain.view.oldest();
    throw notFound(`height ${height} is not available, lowest height is ${block}`);
  }
  return outline;
}

/**
 * `BlockID`, `tendermint.types.Block` and the transactions in it. What execution made of them is not read:
 * it takes ten times as long, and is not here where the block came without its journal.
 * @throws NOT_FOUND where it was pruned
 */
export async function decidedBlock(sources: QuerySources, height: Height, signal: AbortSignal) {
  const outline = decidedOutline(sources, height);
  const txs: Uint8Array[] = [];
  for (const page of dataPages(sources.chain.view, height)) {
    txs.push(...page);
    await breathe(signal);
  }
  const evidence = outline.evidence.map((one) => ({
    duplicate_vote_evidence: new EncodedMessage(encodeDuplicateVote(one)),
  }));
  return {
    outline,
    txs,
    block_id: new EncodedMessage(encodeBlockId(outline.blockId)),
    block: {
      header: new EncodedMessage(encodeConsensusHeader(outline.header)),
      data: { txs },
      evidence: { evidence },
      last_commit: new EncodedMessage(encodeCommit(outline.lastCommit)),
    },
  };
}
