/** The block of a snapshot's height, held against what validators signed. */
import { nsToMs } from "../../../chain/consensus/block-id.js";
import type { Block } from "../../../chain/block.js";
import { hashTransactions } from "../../../chain/consensus/consensus-block.js";
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import { inDataOrder } from "../../../chain/cosmos/cosmos-result.js";
import type { Hash32 } from "../../../chain/hex.js";
import { encodeReceipt, mergeBlooms, type Receipt } from "../../../chain/receipt.js";
import { sdkTransactionHash } from "../../../chain/consensus/sdk-transaction.js";
import { effectiveGasPriceAtoken } from "../../../chain/transaction.js";
import { encodeBlockTransactions } from "../../blocks/block-transactions.js";
import { resultsHashOf } from "../../blocks/chain-tip.js";
import { cosmosJournal } from "../../store/blocks/block-store.js";
import type { CommittedBlock } from "../../view/event-bus.js";
import { orderedTrieRoot } from "../../state/ordered-trie.js";
import { decodeReceipts, encodeReceipts } from "../../../chain/records/block-items.js";
import { decodeBlock, encodeBlock } from "../../store/blocks/whole-block-codec.js";
import { snapshotInvalid } from "./snapshot-error.js";
import type { TrustedState } from "../statesync-ports.js";

/** A block that is proven, without its journal, which nothing proves. */
export interface ProvenBlock {
  readonly committed: CommittedBlock;
  /** SHA-256 of the SDK Tx around each transaction, in order. */
  readonly sdkHashes: readonly Hash32[];
}

/**
 * Decodes block and receipts and proves them: the block hashes to `app_hash` of the next height,
 * its transactions, senders included, to `data_hash`, receipts to the block's root and to
 * `last_results_hash` of the next height; what no hash covers follows from the transactions.
 * @throws SNAPSHOT_INVALID
 */
export function proveBlock(
  encoded: { readonly block: Uint8Array; readonly receipts: Uint8Array },
  trusted: Pick<TrustedState, "header" | "next">,
): ProvenBlock {
  const { block, receipts } = decoded(encoded);
  const { header, next } = trusted;
  require(block.hash === next.appHash, "the block is not the one that was decided");
  require(block.timeMs === nsToMs(header.timeNs), "the block's time");
  const raws = block.transactions.map(({ tx }) => tx.raw);
  require(orderedTrieRoot(raws) === block.header.transactionsRoot, "the transactions");
  const isSent = hashTransactions(encodeBlockTransactions(block)) === header.dataHash;
  require(isSent && block.dataHash === header.dataHash, "the transactions' senders");
  proveReceipts(block, receipts);
  proveCosmos(block);
  const committed = { block, receipts, journal: noJournal(block) };
  require(resultsHashOf(committed) === next.lastResultsHash, "the results of transactions");
  const evm = block.transactions.map(({ tx, from }) => sdkTransactionHash(tx, from));
  const cosmos = (block.cosmos ?? []).map(({ tx, index }) => ({ index, hash: tx.hash }));
  const sdkHashes = inDataOrder(evm, cosmos).map((one) => {
    return typeof one === "string" ? one : one.hash;
  });
  return { committed, sdkHashes };
}

function decoded(encoded: { readonly block: Uint8Array; readonly receipts: Uint8Array }): {
  readonly block: Block;
  readonly receipts: readonly Receipt[];
} {
  try {
    const block = decodeBlock(encoded.block);
    const receipts = decodeReceipts(encoded.receipts);
    const isCanonical =
      Buffer.compare(encodeBlock(block), encoded.block) === 0 &&
      Buffer.compare(encodeReceipts(receipts), encoded.receipts) === 0;
    require(isCanonical, "the block is not in its canonical encoding");
    return { block, receipts };
  } catch (cause) {
    throw snapshotInvalid("the block cannot be read", cause);
  }
}

function proveReceipts(block: Block, receipts: readonly Receipt[]): void {
  const { header, transactions } = block;
  require(receipts.length === transactions.length, "the number of receipts");
  require(orderedTrieRoot(receipts.map(encodeReceipt)) === header.receiptsRoot, "the receipts");
  const bloom = mergeBlooms(receipts.map(({ logsBloom }) => logsBloom));
  require(Buffer.compare(bloom, header.logsBloom) === 0, "the bloom");
  let gasUsed = 0n;
  for (const [index, { tx, from }] of transactions.entries()) {
    const receipt = receipts[index];
    if (receipt === undefined) throw snapshotInvalid("the number of receipts");
    gasUsed += receipt.gasUsed;
    const created = tx.to === undefined ? contractAddressOf(from, tx.nonce) : undefined;
    const follows =
      receipt.type === tx.type &&
      receipt.cumulativeGasUsed === gasUsed &&
      receipt.effectiveGasPriceAtoken === effectiveGasPriceAtoken(tx) &&
      receipt.contractAddress === created;
    require(follows, "a receipt does not follow from its transaction");
  }
}

/** Results follow from `last_results_hash`, bytes and places from `data_hash`. */
function proveCosmos({ cosmos = [] }: Block): void {
  for (const { tx, from } of cosmos) {
    require(tx.signers[0] === from, "the signer of a Cosmos transaction");
  }
}

function noJournal({ header, transactions, cosmos = [] }: Block): CommittedBlock["journal"] {
  return {
    height: header.height,
    transactions: transactions.map(({ tx }) => ({ transactionHash: tx.hash, changes: [] })),
    ...cosmosJournal(cosmos),
    blockChanges: [],
    mintedAtoken: 0n,
    burnedAtoken: 0n,
  };
}

function require(isTrue: boolean, what: string): void {
  if (!isTrue) throw snapshotInvalid(what);
}
