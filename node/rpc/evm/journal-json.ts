/** The balance journal as the node's own methods give it. */
import type { BalanceChange, BlockJournal } from "../../../chain/balance-change.js";
import type { BlockTransaction } from "../../../chain/block.js";
import type { PlacedClaimMove } from "../../../chain/staking/claims.js";
import type { MinedCosmosTransaction } from "../../../chain/cosmos/cosmos-result.js";
import { bytesToHex, toQuantity } from "../../../chain/hex.js";
import type { Log } from "../../../chain/receipt.js";
import type { BlockOutline, BlockPage } from "../../view/block-pages.js";
import type { JsonValue } from "./method.js";

/** One change: quantities as hex, missing sides as null. */
export function changeJson(change: BalanceChange): JsonValue {
  return {
    reason: change.reason,
    from: change.from ?? null,
    to: change.to ?? null,
    amount: toQuantity(change.amountAtoken),
    effective: change.effective,
    tracePath: change.tracePath ?? null,
    error: change.error ?? null,
  };
}

/** Longest data of a transaction and of its logs that are always given whole. */
interface DataBounds {
  readonly inputBytes: number;
  readonly logBytes: number;
}

/**
 * How much data an answer gives whole. A few transactions can hold and log more than any answer may, and
 * whoever follows the chain would never get past their block.
 */
export class DataRoom {
  /** @param spareBytes of data beyond the bounds, all together; none in the journal */
  constructor(
    readonly bounds: DataBounds,
    private spareBytes = 0,
  ) {}

  /** Whether data are given whole; what is beyond its bound takes of what is left. */
  take(sizeBytes: number, boundBytes: number): boolean {
    if (sizeBytes <= boundBytes) return true;
    if (sizeBytes > this.spareBytes) return false;
    this.spareBytes -= sizeBytes;
    return true;
  }
}

/** A token's transfer is logged with one word or two, and of longer input only the beginning is shown. */
const IN_JOURNAL: DataBounds = { inputBytes: 1_024, logBytes: 64 };

/**
 * One log without its place: the transaction that it stands in tells that. Data for which there is no
 * room is left out, and `dataBytes` says how much there is: the receipt has it.
 */
function logJson({ address, topics, data }: Log, room: DataRoom): JsonValue {
  const isWhole = room.take(data.length, room.bounds.logBytes);
  if (isWhole) return { address, topics, data: bytesToHex(data) };
  return { address, topics, data: "0x", dataBytes: data.length };
}

/** The transactions of a page with their changes, joined by commas. */
export function pageJournalJson(page: BlockPage): string {
  return journaledTransactions(page, page.transactions(), new DataRoom(IN_JOURNAL))
    .map((transaction) => JSON.stringify(transaction))
    .join(",");
}

/**
 * The transactions of a page with their changes and logs. Input for which there is no room ends at its
 * bound, and `inputBytes` says how much there is.
 * @param transactions those of the page: it decodes them anew whenever it is asked
 */
export function journaledTransactions(
  page: BlockPage,
  transactions: readonly BlockTransaction[],
  room: DataRoom,
): Record<string, JsonValue>[] {
  const { inputBytes } = room.bounds;
  const receipts = page.receipts();
  const journal = page.journal();
  return transactions.map(({ tx, from }, item) => {
    const receipt = receipts[item]?.receipt;
    const changes = journal[item];
    const index = page.first + item;
    const isWhole = room.take(tx.data.length, inputBytes);
    if (receipt === undefined || changes?.transactionHash !== tx.hash) {
      throw new Error(`receipt or journal of transaction ${index} does not match`);
    }
    const whole = {
      hash: tx.hash,
      index,
      status: toQuantity(receipt.status),
      from,
      to: tx.to ?? null,
      contractAddress: receipt.contractAddress ?? null,
      gasUsed: toQuantity(receipt.gasUsed),
      gasPrice: toQuantity(receipt.effectiveGasPriceAtoken),
      nonce: toQuantity(tx.nonce),
      input: bytesToHex(isWhole ? tx.data : tx.data.subarray(0, inputBytes)),
      changes: changes.changes.map(changeJson),
      logs: receipt.logs.map((log) => logJson(log, room)),
    };
    return isWhole ? whole : { ...whole, inputBytes: tx.data.length };
  });
}

/** The answer of causeway_getBlockJournal up to its transactions. */
export function journalStartJson({ header, hash, timeMs }: BlockOutline): string {
  const start = JSON.stringify({
    blockHash: hash,
    blockNumber: toQuantity(header.height),
    parentHash: header.parentHash,
    timestampMs: timeMs,
  });
  return `${start.slice(0, -1)},"transactions":[`;
}

/** A Cosmos transaction: what it has in common with EVM transactions, and its result. */
function cosmosJson(
  { tx, from, index: dataIndex, result, changes }: MinedCosmosTransaction,
  index: number,
): JsonValue {
  return {
    hash: tx.hash,
    index,
    dataIndex,
    status: toQuantity(result.code === 0 ? 1 : 0),
    from,
    gas: toQuantity(tx.gasLimit),
    gasUsed: toQuantity(result.gasUsed),
    fee: toQuantity(tx.feeAtoken),
    nonce: toQuantity(tx.nonce),
    memo: tx.memo,
    messages: tx.messages.map(({ typeUrl }) => typeUrl),
    changes: changes.map(changeJson),
  };
}

/** What a block did beside its transactions, and how all of it changed claims. */
export interface JournalEnd extends Omit<BlockJournal, "transactions"> {
  /** Undefined on a chain without stake; null where the state that tells them is pruned. */
  readonly claims?: readonly PlacedClaimMove[] | null | undefined;
}

/** A change of a claim; amounts are signed decimals. */
function claimJson(move: PlacedClaimMove): JsonValue {
  return {
    transactionIndex: move.transactionIndex ?? null,
    reason: move.reason,
    kind: move.claim.kind,
    account: move.claim.account,
    validator: move.claim.validator ?? null,
    delta: move.delta.toString(),
    relatedIndex: move.relatedIndex ?? null,
    details: move.details ?? null,
  };
}

/**
 * What follows the transactions in the answer of causeway_getBlockJournal. Cosmos transactions
 * count on behind those of the EVM.
 */
export function journalEndJson(
  journal: JournalEnd,
  cosmos: readonly MinedCosmosTransaction[],
  firstIndex: number,
): string {
  const end = JSON.stringify({
    ...(cosmos.length === 0
      ? {}
      : { cosmosTransactions: cosmos.map((one, item) => cosmosJson(one, firstIndex + item)) }),
    blockChanges: journal.blockChanges.map(changeJson),
    minted: toQuantity(journal.mintedAtoken),
    burned: toQuantity(journal.burnedAtoken),
    ...(journal.claims === undefined ? {} : { claims: journal.claims?.map(claimJson) ?? null }),
  });
  return `],${end.slice(1)}`;
}
