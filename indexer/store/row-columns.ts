/**
 * What a batch writes: names and types of columns, in the order of a row's values, which the compiler
 * holds against them. Tables that a batch appends to are in `schema.ts`; those that start with `stage_`
 * are of one transaction, and made of what stands here.
 */
import type { CopyColumn, CopyRows } from "../../runtime/sql/copy-rows.js";

/** Columns by table. */
export const ROW_COLUMNS = {
  block: [
    "height int4",
    "hash bytea",
    "parent_hash bytea",
    "time timestamptz",
    "proposer bytea",
    "gas_used numeric",
    "gas_limit numeric",
    "transactions int4",
    "size_bytes int4",
    "minted numeric",
    "burned numeric",
    "fees numeric",
    "total_minted numeric",
    "total_burned numeric",
  ],
  transaction: [
    "height int4",
    "tx_index int4",
    "hash bytea",
    "sdk_hash bytea",
    "status int2",
    "sender bytea",
    "recipient bytea",
    "contract bytea",
    "value numeric",
    "nonce numeric",
    "type int2",
    "gas_limit numeric",
    "gas_used numeric",
    "gas_price numeric",
    "fee numeric",
    "burned numeric",
    "input bytea",
    "failure text",
    "messages text",
    "memo text",
  ],
  log: [
    "height int4",
    "log_index int4",
    "tx_index int4",
    "address bytea",
    "topics bytea",
    "data bytea",
  ],
  transfer: [
    "height int4",
    "tx_index int4",
    "seq int4",
    "kind text",
    "reason text",
    "asset bytea",
    "sender bytea",
    "recipient bytea",
    "amount numeric",
    "token_id numeric",
    "log_index int4",
    "trace_path text",
  ],
  address_transaction: ["address bytea", "height int4", "tx_index int4"],
  /** What an account's balance of an asset changed by in a block. */
  stage_delta: [
    "address bytea",
    "asset bytea",
    "token_id numeric",
    "height int4",
    "credit numeric",
    "debit numeric",
    "fee numeric",
  ],
  /** How often an account was seen in a block. */
  stage_seen: [
    "address bytea",
    "height int4",
    "transactions int4",
    "transfers int4",
    "is_contract bool",
  ],
  /** Transfers of a token in a block, and the change of the supply that its logs tell of. */
  stage_token: [
    "address bytea",
    "standard text",
    "height int4",
    "transfers int4",
    "supply numeric",
  ],
  stage_pair: [
    "address bytea",
    "factory bytea",
    "token0 bytea",
    "token1 bytea",
    "height int4",
    "log_index int4",
  ],
  stage_sync: [
    "pair bytea",
    "height int4",
    "log_index int4",
    "reserve0 numeric",
    "reserve1 numeric",
  ],
  stage_swap: [
    "pair bytea",
    "height int4",
    "log_index int4",
    "tx_index int4",
    "sender bytea",
    "recipient bytea",
    "origin bytea",
    "amount0_in numeric",
    "amount1_in numeric",
    "amount0_out numeric",
    "amount1_out numeric",
  ],
  stage_liquidity: [
    "pair bytea",
    "height int4",
    "log_index int4",
    "tx_index int4",
    "kind text",
    "sender bytea",
    "recipient bytea",
    "origin bytea",
    "amount0 numeric",
    "amount1 numeric",
  ],
} as const satisfies Readonly<Record<string, readonly CopyColumn[]>>;

/** A table that a batch writes. */
export type RowTable = keyof typeof ROW_COLUMNS;

/** The rows of a batch, by table. */
export type BatchRows = {
  readonly [Table in RowTable]: CopyRows<(typeof ROW_COLUMNS)[Table]>;
};

/** All of them, in the order in which they are written. */
export const ROW_TABLES = Object.keys(ROW_COLUMNS) as RowTable[];
