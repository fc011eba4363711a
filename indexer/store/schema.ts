/**
 * The tables of the index, as text for a schema of a given name: the live one, or the one that a
 * rebuild fills beside it. Everything in them is derived from the chain. Keys are natural, so that
 * no row can be there twice. Bytes are BYTEA; the coin's asset is zero bytes, a token's its contract.
 */

/** Version of the tables; another one is refused, and `causeway indexer rebuild` makes it anew. */
export const INDEX_SCHEMA_VERSION = 3;

/** Schema that the API reads. */
export const LIVE_SCHEMA = "indexer";

/** Schema that a rebuild fills. */
export const REBUILD_SCHEMA = "indexer_rebuild";

/** Schema of the tables that a rebuild has replaced, until they are dropped. */
export const OLD_SCHEMA = "indexer_old";

/** One of the schemas of this program. */
export type IndexSchema = typeof LIVE_SCHEMA | typeof REBUILD_SCHEMA;

/** `token_id` of balances of assets that have no ids. */
export const NO_TOKEN_ID = -1n;

/**
 * `standard` of a contract that has logged Deposits and Withdrawals alone, while it has answered no
 * `balanceOf`: escrows and vaults log these as well, and are no tokens. Nothing is shown of it as of one.
 */
export const UNPROVEN = "unproven";

/**
 * Whether an asset is not such a contract, as a condition; one look for each row, however many tokens are.
 * @param asset as SQL has it
 */
export function isShownAsset(schema: IndexSchema, asset: string): string {
  return `(SELECT u.standard FROM ${schema}.token u WHERE u.address = ${asset})
    IS DISTINCT FROM '${UNPROVEN}'`;
}

/** The highest that a column of heights holds. */
export const LAST_HEIGHT = 2 ** 31 - 1;

const AMOUNT = "numeric(78,0)";

/**
 * Of rows that a batch changes, most stand together: half of each page is left for what they become, else
 * every change is another page and another entry of the key.
 */
const IN_PLACE = "WITH (fillfactor = 50)";

/** Accounts that the chain's genesis names; indexes of earlier releases are without. */
export function accountStatement(schema: IndexSchema): string {
  return `CREATE TABLE IF NOT EXISTS ${schema}.chain_account (
      name text PRIMARY KEY,
      address bytea NOT NULL)`;
}

/**
 * Contracts that logged a Deposit or Withdrawal of more than nothing without the equal Transfer, and the
 * block of the first one; indexes of earlier releases begin with the next one that is logged.
 */
export function wrappedCoinStatement(schema: IndexSchema): string {
  return `CREATE TABLE IF NOT EXISTS ${schema}.wrapped_coin (
      address bytea PRIMARY KEY,
      height integer NOT NULL)`;
}

/** Every statement that makes the tables; safe to run again. */
export function schemaStatements(schema: IndexSchema): readonly string[] {
  return [
    `CREATE SCHEMA IF NOT EXISTS ${schema}`,
    progressStatement(schema),
    accountStatement(schema),
    wrappedCoinStatement(schema),
    ...blockStatements(schema),
    ...addressStatements(schema),
    ...balanceStatements(schema),
    tokenStatement(schema),
    ...dexStatements(schema),
  ];
}

/** How far the index has come, and on which chain. */
function progressStatement(s: IndexSchema): string {
  return `CREATE TABLE IF NOT EXISTS ${s}.progress (
      single boolean PRIMARY KEY DEFAULT true CHECK (single),
      schema_version integer NOT NULL,
      chain_id ${AMOUNT} NOT NULL,
      genesis_hash bytea NOT NULL,
      height integer NOT NULL,
      hash bytea,
      time timestamptz)`;
}

/** What stands in blocks: transactions, their logs, and what they moved. */
function blockStatements(s: IndexSchema): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${s}.block (
      height integer PRIMARY KEY,
      hash bytea NOT NULL,
      parent_hash bytea NOT NULL,
      time timestamptz NOT NULL,
      proposer bytea NOT NULL,
      gas_used ${AMOUNT} NOT NULL,
      gas_limit ${AMOUNT} NOT NULL,
      transactions integer NOT NULL,
      size_bytes integer NOT NULL,
      minted ${AMOUNT} NOT NULL,
      burned ${AMOUNT} NOT NULL,
      fees ${AMOUNT} NOT NULL,
      total_minted ${AMOUNT} NOT NULL,
      total_burned ${AMOUNT} NOT NULL)`,
    `CREATE TABLE IF NOT EXISTS ${s}.transaction (
      height integer NOT NULL,
      tx_index integer NOT NULL,
      hash bytea NOT NULL,
      sdk_hash bytea NOT NULL,
      status smallint NOT NULL,
      sender bytea NOT NULL,
      recipient bytea,
      contract bytea,
      value ${AMOUNT} NOT NULL,
      nonce ${AMOUNT} NOT NULL,
      type smallint,
      gas_limit ${AMOUNT} NOT NULL,
      gas_used ${AMOUNT} NOT NULL,
      gas_price ${AMOUNT} NOT NULL,
      fee ${AMOUNT} NOT NULL,
      burned ${AMOUNT} NOT NULL,
      input bytea NOT NULL,
      failure text,
      messages text,
      memo text,
      PRIMARY KEY (height, tx_index))`,
    `CREATE TABLE IF NOT EXISTS ${s}.log (
      height integer NOT NULL,
      log_index integer NOT NULL,
      tx_index integer NOT NULL,
      address bytea NOT NULL,
      topics bytea NOT NULL,
      data bytea NOT NULL,
      PRIMARY KEY (height, log_index))`,
    `CREATE TABLE IF NOT EXISTS ${s}.transfer (
      height integer NOT NULL,
      tx_index integer NOT NULL,
      seq integer NOT NULL,
      kind text NOT NULL,
      reason text,
      asset bytea NOT NULL,
      sender bytea,
      recipient bytea,
      amount ${AMOUNT} NOT NULL,
      token_id ${AMOUNT},
      log_index integer,
      trace_path text,
      PRIMARY KEY (height, tx_index, seq))`,
  ];
}

/** Who took part in what, and since when. */
function addressStatements(s: IndexSchema): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${s}.address_transaction (
      address bytea NOT NULL,
      height integer NOT NULL,
      tx_index integer NOT NULL)`,
    `CREATE TABLE IF NOT EXISTS ${s}.address (
      address bytea PRIMARY KEY,
      first_seen integer NOT NULL,
      last_seen integer NOT NULL,
      transactions bigint NOT NULL,
      transfers bigint NOT NULL,
      is_contract boolean NOT NULL) ${IN_PLACE}`,
  ];
}

/** What accounts hold of coins and tokens, now and at each change, and where logs did not add up. */
function balanceStatements(s: IndexSchema): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${s}.balance (
      address bytea NOT NULL,
      asset bytea NOT NULL,
      token_id numeric NOT NULL,
      amount numeric NOT NULL,
      method text NOT NULL CHECK (method IN ('journal', 'logs', 'balanceOf')),
      -- Height of the newest row of its history.
      updated_at integer NOT NULL,
      verified_at integer,
      -- From here the usual pause until the next look counts: behind the last one where that is longer.
      checked_at integer,
      PRIMARY KEY (address, asset, token_id)) ${IN_PLACE}`,
    `CREATE TABLE IF NOT EXISTS ${s}.balance_history (
      address bytea NOT NULL,
      asset bytea NOT NULL,
      token_id numeric NOT NULL,
      height integer NOT NULL,
      amount numeric NOT NULL,
      credit numeric NOT NULL,
      debit numeric NOT NULL,
      fee numeric NOT NULL)`,
    `CREATE TABLE IF NOT EXISTS ${s}.correction (
      address bytea NOT NULL,
      asset bytea NOT NULL,
      token_id numeric NOT NULL,
      height integer NOT NULL,
      derived numeric NOT NULL,
      observed numeric NOT NULL,
      PRIMARY KEY (address, asset, token_id, height))`,
  ];
}

/** Contracts of tokens, as their logs and they themselves tell of them. */
function tokenStatement(s: IndexSchema): string {
  return `CREATE TABLE IF NOT EXISTS ${s}.token (
      address bytea PRIMARY KEY,
      standard text NOT NULL,
      first_seen integer NOT NULL,
      transfers bigint NOT NULL,
      holders bigint NOT NULL,
      supply_logged numeric NOT NULL,
      name text,
      symbol text,
      decimals smallint,
      total_supply numeric,
      metadata_height integer,
      is_consistent boolean NOT NULL DEFAULT true)`;
}

/** Pairs of exchanges on the chain: what was swapped, at which prices, and what is in them. */
function dexStatements(s: IndexSchema): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${s}.pair (
      address bytea PRIMARY KEY,
      factory bytea NOT NULL,
      token0 bytea NOT NULL,
      token1 bytea NOT NULL,
      height integer NOT NULL,
      log_index integer NOT NULL,
      reserve0 ${AMOUNT} NOT NULL DEFAULT 0,
      reserve1 ${AMOUNT} NOT NULL DEFAULT 0,
      swaps bigint NOT NULL DEFAULT 0,
      volume0 numeric NOT NULL DEFAULT 0,
      volume1 numeric NOT NULL DEFAULT 0,
      is_confirmed boolean,
      UNIQUE (height, log_index))`,
    `CREATE TABLE IF NOT EXISTS ${s}.swap (
      pair bytea NOT NULL,
      height integer NOT NULL,
      log_index integer NOT NULL,
      tx_index integer NOT NULL,
      sender bytea NOT NULL,
      recipient bytea NOT NULL,
      origin bytea NOT NULL,
      amount0_in ${AMOUNT} NOT NULL,
      amount1_in ${AMOUNT} NOT NULL,
      amount0_out ${AMOUNT} NOT NULL,
      amount1_out ${AMOUNT} NOT NULL,
      PRIMARY KEY (height, log_index))`,
    // Of every width; prices NULL where no swap of the interval has one.
    `CREATE TABLE IF NOT EXISTS ${s}.candle (
      pair bytea NOT NULL,
      width integer NOT NULL,
      start timestamptz NOT NULL,
      open numeric,
      high numeric,
      low numeric,
      close numeric,
      volume0 numeric NOT NULL,
      volume1 numeric NOT NULL,
      swaps bigint NOT NULL,
      PRIMARY KEY (pair, width, start))`,
    `CREATE TABLE IF NOT EXISTS ${s}.liquidity (
      pair bytea NOT NULL,
      height integer NOT NULL,
      log_index integer NOT NULL,
      tx_index integer NOT NULL,
      kind text NOT NULL CHECK (kind IN ('mint', 'burn')),
      sender bytea NOT NULL,
      recipient bytea,
      origin bytea NOT NULL,
      amount0 ${AMOUNT} NOT NULL,
      amount1 ${AMOUNT} NOT NULL,
      PRIMARY KEY (height, log_index))`,
  ];
}

/** Of `indexStatements` the index that is made last: where it is, all are. */
export const LAST_INDEX = "liquidity_pair";

/**
 * Every statement that makes what is left for when the head is reached: far behind it, rows come
 * faster without. What is unique is held to it from then on, and all that came before by the making.
 */
export function indexStatements(s: IndexSchema): readonly string[] {
  return [
    `CREATE UNIQUE INDEX IF NOT EXISTS block_hash ON ${s}.block (hash)`,
    `CREATE UNIQUE INDEX IF NOT EXISTS transaction_hash ON ${s}.transaction (hash)`,
    `CREATE UNIQUE INDEX IF NOT EXISTS address_transaction_key
      ON ${s}.address_transaction (address, height, tx_index)`,
    `CREATE UNIQUE INDEX IF NOT EXISTS balance_history_key
      ON ${s}.balance_history (address, asset, token_id, height)`,
    `CREATE INDEX IF NOT EXISTS block_time ON ${s}.block (time, height)`,
    `CREATE INDEX IF NOT EXISTS transaction_sdk_hash ON ${s}.transaction (sdk_hash)`,
    `CREATE INDEX IF NOT EXISTS transfer_asset ON ${s}.transfer (asset, height, tx_index, seq)
      WHERE asset <> ''::bytea`,
    // What an account moved is found by both sides: a list of its own would be two rows a transfer.
    ...["sender", "recipient"].flatMap((side) => [
      `CREATE INDEX IF NOT EXISTS transfer_${side} ON ${s}.transfer (${side}, height, tx_index, seq)`,
      `CREATE INDEX IF NOT EXISTS transfer_${side}_asset
        ON ${s}.transfer (${side}, asset, height, tx_index, seq)`,
    ]),
    // Read backwards: the list of holders has every part of it the other way round.
    `CREATE INDEX IF NOT EXISTS balance_ranking
      ON ${s}.balance (asset, amount, address, token_id) WHERE asset <> ''::bytea`,
    // What an account has, in the order of its list, without the ids that it has no more.
    `CREATE INDEX IF NOT EXISTS balance_listed
      ON ${s}.balance (address, asset, token_id) WHERE asset <> ''::bytea AND amount <> 0`,
    // Whether it holds a token, without those of which logs say that it gave what it never had.
    `CREATE INDEX IF NOT EXISTS balance_owned
      ON ${s}.balance (address, asset) WHERE asset <> ''::bytea AND amount > 0`,
    `DROP INDEX IF EXISTS ${s}.balance_held`,
    // What of it has changed since a height.
    `CREATE INDEX IF NOT EXISTS balance_moved
      ON ${s}.balance (address, updated_at) WHERE asset <> ''::bytea`,
    `CREATE INDEX IF NOT EXISTS balance_changed
      ON ${s}.balance (asset, updated_at) WHERE asset <> ''::bytea`,
    `DROP INDEX IF EXISTS ${s}.balance_holders`,
    `DROP INDEX IF EXISTS ${s}.balance_unchecked`,
    `CREATE INDEX IF NOT EXISTS balance_waiting
      ON ${s}.balance (asset, updated_at) WHERE checked_at IS NULL`,
    `CREATE INDEX IF NOT EXISTS balance_stale ON ${s}.balance (checked_at) WHERE asset <> ''::bytea`,
    `CREATE INDEX IF NOT EXISTS balance_history_asset
      ON ${s}.balance_history (asset, height) WHERE asset <> ''::bytea`,
    ...["transfers", "holders", "first_seen"].map(
      (order) =>
        `CREATE INDEX IF NOT EXISTS token_${order} ON ${s}.token (${order} DESC, address DESC)`,
    ),
    `CREATE INDEX IF NOT EXISTS token_metadata ON ${s}.token (metadata_height NULLS FIRST)`,
    `CREATE INDEX IF NOT EXISTS pair_unasked
      ON ${s}.pair (address) WHERE is_confirmed IS NULL`,
    ...["token0", "token1"].flatMap((side) => [
      `DROP INDEX IF EXISTS ${s}.pair_${side}`,
      `CREATE INDEX IF NOT EXISTS pair_${side}_place ON ${s}.pair (${side}, height, log_index)`,
    ]),
    `CREATE INDEX IF NOT EXISTS swap_pair ON ${s}.swap (pair, height, log_index)`,
    `CREATE INDEX IF NOT EXISTS swap_sender ON ${s}.swap (sender, height, log_index)`,
    `CREATE INDEX IF NOT EXISTS swap_recipient ON ${s}.swap (recipient, height, log_index)`,
    `CREATE INDEX IF NOT EXISTS swap_origin ON ${s}.swap (origin, height, log_index)`,
    `CREATE INDEX IF NOT EXISTS liquidity_pair ON ${s}.liquidity (pair, height, log_index)`,
  ];
}
