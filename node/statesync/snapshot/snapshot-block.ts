/** The block of a snapshot's height, held against what validators signed. */
import { nsToMs } from "../../../chain/consensus/block-id.js";
import type { Block } from "../../../chain/block.js";
import { hashTransactions, MAX_TRANSACTIONS } from "../../../chain/consensus/consensus-block.js";
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import { inDataOrder } from "../../../chain/cosmos/cosmos-result.js";
import type { Hash32 } from "../../../chain/hex.js";
import { encodeReceipt, mergeBlooms, type Receipt } from "../../../chain/receipt.js";
import { sdkTransactionHash } from "../../../chain/consensus/sdk-transaction.js";
import { effectiveGasPriceAtoken } from "../../../chain/transaction.js";
import { TRANSFER_GAS } from "../../../chain/networks.js";
import { encodeBlockTransactions } from "../../blocks/block-transactions.js";
import { resultsHashOf } from "../../blocks/chain-tip.js";
import { cosmosJournal, cosmosPart } from "../../store/blocks/block-store.js";
import type { CommittedBlock } from "../../view/event-bus.js";
import { orderedTrieRoot } from "../../state/ordered-trie.js";
import { decodeReceipts, encodeReceipts } from "../../../chain/records/block-items.js";
import {
  decodeCosmos,
  decodeTransactions,
  encodeBlock,
  type EncodedBlock,
  rawCosmos,
  rawTransactions,
  readBlockHead,
} from "../../store/blocks/whole-block-codec.js";
import { snapshotInvalid } from "./snapshot-error.js";
import type { TrustedState } from "../statesync-ports.js";

/** A block that is proven, without its journal, which nothing proves. */
export interface ProvenBlock {
  readonly committed: CommittedBlock;
  /** SHA-256 of the SDK Tx around each transaction, in order. */
  readonly sdkHashes: readonly Hash32[];
}

/** A log takes so much gas, and each topic of it again. */
const LOG_GAS = 375n;

/** Gas of a result is an int64 in what is hashed of it. */
const GAS_END = 2n ** 63n;

/**
 * Decodes block and receipts and proves them: the block hashes to `app_hash` of the next height,
 * its transactions, senders included, to `data_hash`, receipts to the block's root and to
 * `last_results_hash` of the next height; what no hash covers follows from the transactions.
 * Nothing is decoded before what bounds it is proven: decoded, a chunk of nothings fills the memory.
 * @throws SNAPSHOT_INVALID
 */
export function proveBlock(
  encoded: { readonly block: Uint8Array; readonly receipts: Uint8Array },
  trusted: Pick<TrustedState, "header" | "next">,
): ProvenBlock {
  const { header, next } = trusted;
  const head = decoded(() => readBlockHead(encoded.block));
  require(head.hash === next.appHash, "the block is not the one that was decided");
  require(head.timeMs === nsToMs(header.timeNs), "the block's time");
  const block = proveTransactions(head, header.dataHash);
  requireSame(encodeBlock(block), encoded.block);
  proveCosmos(block);
  const bounds = {
    receipts: block.transactions.length,
    logs: Number(block.header.gasUsed / LOG_GAS),
  };
  const receipts = decoded(() => decodeReceipts(encoded.receipts, bounds));
  requireSame(encodeReceipts(receipts), encoded.receipts);
  proveReceipts(block, receipts);
  const committed = { block, receipts, journal: noJournal(block) };
  require(resultsHashOf(committed) === next.lastResultsHash, "the results of transactions");
  const evm = block.transactions.map(({ tx, from }) => sdkTransactionHash(tx, from));
  const cosmos = (block.cosmos ?? []).map(({ tx, index }) => ({ index, hash: tx.hash }));
  const sdkHashes = inDataOrder(evm, cosmos).map((one) => {
    return typeof one === "string" ? one : one.hash;
  });
  return { committed, sdkHashes };
}

function decoded<T>(decode: () => T): T {
  try {
    return decode();
  } catch (cause) {
    throw snapshotInvalid("the block cannot be read", cause);
  }
}

function requireSame(again: Uint8Array, encoded: Uint8Array): void {
  const isCanonical = Buffer.compare(again, encoded) === 0;
  require(isCanonical, "the block is not in its canonical encoding");
}

/** Bytes are proven before they are decoded; what the head says is proven already. */
function proveTransactions(head: EncodedBlock, dataHash: Hash32): Block {
  const { header } = head;
  const raws = decoded(() => rawTransactions(head, Number(header.gasUsed / TRANSFER_GAS)));
  require(orderedTrieRoot(raws) === header.transactionsRoot, "the transactions");
  const transactions = decoded(() => decodeTransactions(head));
  const sent = { transactions, cosmos: decoded(() => rawCosmos(head, MAX_TRANSACTIONS)) };
  const isSent = hashTransactions(encodeBlockTransactions(sent)) === dataHash;
  require(isSent && head.dataHash === dataHash, "the transactions' senders");
  const cosmos = decoded(() => decodeCosmos(head));
  const { hash, timeMs } = head;
  return { header, hash, timeMs, dataHash, transactions, ...cosmosPart(cosmos) };
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

/**
 * Results follow from `last_results_hash`, bytes and their order from `data_hash`; the places of those
 * behind the last EVM transaction, and gas of more than 64 bits, would make the same hashes.
 */
function proveCosmos({ transactions, cosmos = [] }: Block): void {
  for (const { tx, from, result } of cosmos) {
    require(tx.signers[0] === from, "the signer of a Cosmos transaction");
    require(result.gasUsed < GAS_END, "the gas of a Cosmos transaction");
  }
  for (const [place, one] of inDataOrder(transactions, cosmos).entries()) {
    require(!("index" in one) || one.index === place, "the place of a Cosmos transaction");
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
