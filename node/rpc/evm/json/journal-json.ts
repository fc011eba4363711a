/** The balance journal as the node's own methods give it, as text for the reason that `encode.ts` names. */
import type { BalanceChange, BlockJournal } from "../../../../chain/balance-change.js";
import type { BlockOutline, BlockTransaction } from "../../../../chain/block.js";
import type { PlacedClaimMove } from "../../../../chain/staking/claims.js";
import type { MinedCosmosTransaction } from "../../../../chain/cosmos/cosmos-result.js";
import { bytesToHex, type Hash32, toQuantity } from "../../../../chain/hex.js";
import type { Log, Receipt } from "../../../../chain/receipt.js";
import type { BlockPage } from "../../../view/block-pages.js";
import { addressOrNull } from "../../../view/evm-json.js";
import type { JsonValue } from "../method.js";

/** One change: quantities as hex, missing sides as null. */
export function changeJson(change: BalanceChange): string {
  const { reason, tracePath, error } = change;
  return (
    `{"reason":"${reason}","from":${addressOrNull(change.from)},"to":${addressOrNull(change.to)},` +
    `"amount":"${toQuantity(change.amountAtoken)}","effective":${change.effective},` +
    `"tracePath":${textOrNull(tracePath)},"error":${textOrNull(error)}}`
  );
}

/** A list of texts: most have one to three, and a page has hundreds of lists. */
function listJson<T>(items: readonly T[], textOf: (item: T) => string): string {
  let texts = "";
  for (const item of items) texts += texts === "" ? textOf(item) : `,${textOf(item)}`;
  return `[${texts}]`;
}

/** A text of the machine's own, which may have anything in it. */
function textOrNull(text: string | undefined): string {
  if (text === undefined) return "null";
  return text === "" ? '""' : JSON.stringify(text);
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
function logJson({ address, topics, data }: Log, room: DataRoom): string {
  const isWhole = room.take(data.length, room.bounds.logBytes);
  const claim = `{"address":"${address}","topics":${listJson(topics, (topic) => `"${topic}"`)}`;
  return isWhole
    ? `${claim},"data":"${bytesToHex(data)}"}`
    : `${claim},"data":"0x","dataBytes":${data.length}}`;
}

/** The transactions of a page with their changes, as `journaledTransactions` gives them. */
export function pageJournalJson(page: BlockPage): Iterable<string | undefined> {
  return journaledTransactions(page, new DataRoom(IN_JOURNAL), () => "");
}

/** Logs whose texts are made at a stretch: a millisecond. */
const LOGS_AT_ONCE = 256;

/**
 * The transactions of a page with their changes and logs, joined by commas, in pieces; undefined where
 * others may have their turn. Input for which there is no room ends at its bound, and `inputBytes` says
 * how much there is.
 * @param extra further members of a transaction, each with a comma before it
 */
export function* journaledTransactions(
  page: BlockPage,
  room: DataRoom,
  extra: (mined: BlockTransaction) => string,
): Generator<string | undefined, void> {
  // All of a page is read before the first pause, in which its block may be pruned.
  const journal = page.journal();
  const transactions = page.transactions();
  const receipts = yield* page.receiptSteps();
  for (const [item, mined] of transactions.entries()) {
    const receipt = receipts[item]?.receipt;
    const changed = journal[item];
    const index = page.first + item;
    if (receipt === undefined || changed?.transactionHash !== mined.tx.hash) {
      throw new Error(`receipt or journal of transaction ${index} does not match`);
    }
    if (item > 0) yield ",";
    const { changes } = changed;
    yield* transactionTexts({ mined, index, receipt, changes, extra: extra(mined) }, room);
  }
}

/** A transaction with what came of it. */
interface JournaledTransaction {
  readonly mined: BlockTransaction;
  readonly index: number;
  readonly receipt: Receipt;
  readonly changes: readonly BalanceChange[];
  /** Further members, each with a comma before it. */
  readonly extra: string;
}

function* transactionTexts(
  { mined: { tx, from }, index, receipt, changes, extra }: JournaledTransaction,
  room: DataRoom,
): Generator<string, void> {
  const { inputBytes } = room.bounds;
  const isWhole = room.take(tx.data.length, inputBytes);
  const input = bytesToHex(isWhole ? tx.data : tx.data.subarray(0, inputBytes));
  const { logs } = receipt;
  yield `{"hash":"${tx.hash}","index":${index},"status":"0x${receipt.status}","from":"${from}",` +
    `"to":${addressOrNull(tx.to)},"contractAddress":${addressOrNull(receipt.contractAddress)},` +
    `"gasUsed":"${toQuantity(receipt.gasUsed)}",` +
    `"gasPrice":"${toQuantity(receipt.effectiveGasPriceAtoken)}",` +
    `"nonce":"${toQuantity(tx.nonce)}","input":"${input}",` +
    `"changes":${listJson(changes, changeJson)},"logs":[`;
  for (let start = 0; start < logs.length; start += LOGS_AT_ONCE) {
    const texts = logs.slice(start, start + LOGS_AT_ONCE).map((log) => logJson(log, room));
    yield `${start === 0 ? "" : ","}${texts.join(",")}`;
  }
  yield `]${isWhole ? "" : `,"inputBytes":${tx.data.length}`}${extra}}`;
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

/**
 * A Cosmos transaction: what it has in common with EVM transactions, and its result.
 * @param index in the journal, where they count on behind those of the EVM
 */
export function cosmosJson(
  { tx, from, index: dataIndex, result, changes }: MinedCosmosTransaction,
  index: number,
): string {
  const own = JSON.stringify({
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
  });
  return `${own.slice(0, -1)},"changes":${listJson(changes, changeJson)}}`;
}

/** What a block did beside its transactions, and how all of it changed claims. */
export interface JournalEnd extends Omit<BlockJournal, "transactions"> {
  /** Undefined on a chain without stake; null where the state that tells them is pruned. */
  readonly claims?: readonly PlacedClaimMove[] | null | undefined;
  /** Of the block's consensus header; absent in ranges and for genesis. */
  readonly consensusBlockHash?: Hash32 | undefined;
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
 * What follows the transactions in the answer of causeway_getBlockJournal.
 * @param cosmosTexts of `cosmosJson`
 */
export function journalEndJson(journal: JournalEnd, cosmosTexts: readonly string[]): string {
  const claims = journal.claims?.map(claimJson) ?? null;
  const { consensusBlockHash } = journal;
  return (
    (cosmosTexts.length === 0 ? "]" : `],"cosmosTransactions":[${cosmosTexts.join(",")}]`) +
    `,"blockChanges":${listJson(journal.blockChanges, changeJson)}` +
    `,"minted":"${toQuantity(journal.mintedAtoken)}","burned":"${toQuantity(journal.burnedAtoken)}"` +
    (consensusBlockHash === undefined ? "" : `,"consensusBlockHash":"${consensusBlockHash}"`) +
    (journal.claims === undefined ? "}" : `,"claims":${JSON.stringify(claims)}}`)
  );
}
