/** Blocks that this node refused, in the shape of debug_getBadBlocks. */
import { nsToMs } from "../../../../chain/consensus/block-id.js";
import { hashConsensusHeader } from "../../../../chain/consensus/consensus-header.js";
import { type Block, type BlockHeader, type BlockTransaction } from "../../../../chain/block.js";
import { ChainError } from "../../../../chain/errors.js";
import { bytesToHex, EMPTY_TRIE_ROOT, ZERO_HASH } from "../../../../chain/hex.js";
import { EMPTY_BLOOM } from "../../../../chain/receipt.js";
import { decodeSdkTransaction } from "../../../../chain/consensus/sdk-transaction-decode.js";
import type { RefusedBlock } from "../../../consensus/consensus-ports.js";
import { blockJson, encodeRawBlock } from "../../../view/evm-json.js";

/**
 * A refused block. Execution makes the EVM header, and this block was not executed to its end:
 * the hash is that of consensus, what nobody has worked out is zero.
 */
export function refusedBlockJson(refused: RefusedBlock): string {
  const block = asEvmBlock(refused);
  return (
    `{"hash":"${block.hash}","block":${blockJson(block, true)},` +
    `"rlp":"${bytesToHex(encodeRawBlock(block))}","reason":${JSON.stringify(refused.reason)}}`
  );
}

function asEvmBlock({ block }: RefusedBlock): Block {
  const { height, timeNs, appHash, proposerAddress, dataHash } = block.header;
  const timeMs = nsToMs(timeNs);
  const header: BlockHeader = {
    // The consensus header's app_hash is the EVM hash of the block before (D8).
    parentHash: appHash,
    coinbase: proposerAddress,
    stateRoot: ZERO_HASH,
    transactionsRoot: ZERO_HASH,
    receiptsRoot: EMPTY_TRIE_ROOT,
    logsBloom: EMPTY_BLOOM,
    height,
    gasLimit: 0n,
    gasUsed: 0n,
    // A time before 1970, which a header of the EVM cannot say, may be why it was refused.
    timestampSeconds: Math.max(0, Math.floor(timeMs / 1_000)),
    moduleRoot: ZERO_HASH,
    mixHash: appHash,
  };
  const transactions = block.transactions.flatMap(readable);
  return { header, hash: hashConsensusHeader(block.header), timeMs, transactions, dataHash };
}

/** The transaction; none where the bytes are not one, which may be why the block was refused. */
function readable(bytes: Uint8Array): readonly BlockTransaction[] {
  try {
    return [decodeSdkTransaction(bytes)];
  } catch (error) {
    if (error instanceof ChainError) return [];
    throw error;
  }
}
