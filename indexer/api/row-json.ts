/** Rows of transactions and transfers as JSON, and the columns that these need. */
import { TOKEN_DECIMALS } from "../../chain/units.js";
import { LIVE_SCHEMA as s } from "../store/schema.js";
import { assetName, hexOf, hexOrNull, type Snapshot } from "./reads.js";

/** A transaction with its block's hash and time. */
export interface TransactionRow {
  readonly height: number;
  readonly tx_index: number;
  readonly hash: Buffer;
  readonly sdk_hash: Buffer;
  readonly status: number;
  readonly sender: Buffer;
  readonly recipient: Buffer | null;
  readonly contract: Buffer | null;
  readonly value: string;
  readonly nonce: string;
  /** NULL for a Cosmos transaction. */
  readonly type: number | null;
  readonly gas_limit: string;
  readonly gas_used: string;
  readonly gas_price: string;
  readonly fee: string;
  readonly method: Buffer;
  readonly block_hash: Buffer;
  readonly time: Date;
}

/** Columns of `TransactionRow`, of a transaction `t` in a block `b`. */
export const TRANSACTION_COLUMNS = `t.height, t.tx_index, t.hash, t.sdk_hash, t.status, t.sender,
  t.recipient, t.contract, t.value, t.nonce, t.type, t.gas_limit, t.gas_used, t.gas_price, t.fee,
  substr(t.input, 1, 4) AS method, b.hash AS block_hash, b.time`;

/** Where these columns are from. */
export const TRANSACTION_TABLES = `${s}.transaction t JOIN ${s}.block b USING (height)`;

const SELECTOR_BYTES = 4;

/** As `Transaction` of the API. */
export function transactionJson(row: TransactionRow, { nodeHeight, progress }: Snapshot) {
  const head = nodeHeight === undefined ? undefined : Math.max(nodeHeight, progress.height);
  return {
    hash: hexOf(row.hash),
    cosmosHash: hexOf(row.sdk_hash),
    kind: row.type === null ? "cosmos" : "evm",
    status: row.status === 1 ? "success" : "failed",
    height: row.height,
    blockHash: hexOf(row.block_hash),
    index: row.tx_index,
    time: row.time.toISOString(),
    from: hexOf(row.sender),
    to: hexOrNull(row.recipient),
    contractCreated: row.status === 1 ? hexOrNull(row.contract) : null,
    value: row.value,
    nonce: row.nonce,
    type: row.type,
    gasLimit: row.gas_limit,
    gasUsed: row.gas_used,
    gasPrice: row.gas_price,
    fee: row.fee,
    method: row.method.length === SELECTOR_BYTES ? hexOf(row.method) : null,
    confirmations: head === undefined ? 0 : head - row.height + 1,
    final: true,
  };
}

/** A transfer with what belongs to it. */
export interface TransferRow {
  readonly height: number;
  readonly tx_index: number;
  readonly seq: number;
  readonly kind: string;
  readonly reason: string | null;
  readonly asset: Buffer;
  readonly sender: Buffer | null;
  readonly recipient: Buffer | null;
  readonly amount: string;
  readonly token_id: string | null;
  readonly log_index: number | null;
  readonly trace_path: string | null;
  readonly time: Date;
  readonly hash: Buffer | null;
  readonly symbol: string | null;
  readonly decimals: number | null;
}

/** Columns of `TransferRow`, of a transfer `f`. */
export const TRANSFER_COLUMNS = `f.height, f.tx_index, f.seq, f.kind, f.reason, f.asset, f.sender,
  f.recipient, f.amount, f.token_id, f.log_index, f.trace_path, b.time, t.hash, k.symbol, k.decimals`;

/** Where these columns are from, beside the transfer itself. */
export const TRANSFER_JOINS = `JOIN ${s}.block b ON b.height = f.height
  LEFT JOIN ${s}.transaction t ON t.height = f.height AND t.tx_index = f.tx_index
  LEFT JOIN ${s}.token k ON k.address = f.asset`;

/** As `Transfer` of the API. */
export function transferJson(row: TransferRow) {
  const isCoin = row.asset.length === 0;
  return {
    id: `${row.height}-${row.tx_index}-${row.seq}`,
    height: row.height,
    time: row.time.toISOString(),
    txIndex: row.tx_index,
    txHash: hexOrNull(row.hash),
    seq: row.seq,
    kind: row.kind,
    reason: row.reason,
    asset: assetName(row.asset),
    symbol: isCoin ? "TOKEN" : row.symbol,
    decimals: isCoin ? TOKEN_DECIMALS : row.decimals,
    from: hexOrNull(row.sender),
    to: hexOrNull(row.recipient),
    amount: row.amount,
    tokenId: row.token_id,
    logIndex: row.log_index,
    tracePath: row.trace_path,
  };
}
