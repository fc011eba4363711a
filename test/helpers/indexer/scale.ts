/**
 * An index with many rows more than a benchmark can make blocks for: what a long life of transfers
 * would have left in the tables, in the heights that are there. The database makes the rows itself.
 */
import type { Client } from "pg";
import type { Address } from "../../../chain/address.js";
import { hexToBytes } from "../../../chain/hex.js";
import { indexStatements, LIVE_SCHEMA } from "../../../indexer/store/schema.js";

/** What is added to an index. */
export interface ScaleTask {
  /** The owner's connection. */
  readonly client: Client;
  /** Transfers of this token, which the index knows. */
  readonly token: Address;
  readonly transfers: number;
  readonly say: (line: string) => void;
}

/** What the reads then ask for. */
export interface ScaledIndex {
  readonly accounts: number;
  /** Address of an account with some twenty transfers, of 0 to `accounts` - 1. */
  readonly accountAt: (turn: number) => string;
}

const TRANSFERS_PER_ACCOUNT = 10;
const TRANSFERS_PER_TRANSACTION = 4;
const FIRST_ACCOUNT = 0x2000000;

/** Behind the transactions that the blocks really have. */
const FIRST_INDEX = 1_000_000;

const secondsSince = (startMs: number) => Math.round((performance.now() - startMs) / 1_000);

/** Adds the rows; every index of the tables takes part, as at the head of a chain. */
export async function scaleIndex(task: ScaleTask): Promise<ScaledIndex> {
  const { client, token, transfers, say } = task;
  const accounts = transfers / TRANSFERS_PER_ACCOUNT;
  const { rows } = await client.query("SELECT height FROM indexer.progress");
  const heights = Number(rows[0].height);
  const step = Math.floor(heights / TRANSFERS_PER_ACCOUNT);
  const asset = hexToBytes(token);
  const account = (index: string) =>
    `decode(lpad(to_hex(${FIRST_ACCOUNT} + (${index}) % ${accounts}), 40, '0'), 'hex')`;
  const transaction = `i / ${TRANSFERS_PER_TRANSACTION}`;
  const place = `1 + (${transaction}) % ${heights} AS height, ${FIRST_INDEX} + (${transaction}) / ${heights} AS tx_index`;
  const sender = account(transaction);
  const recipient = account("i::bigint * 7919 + 1");
  const every = `FROM generate_series(0, ${transfers - 1}) i`;
  const perTransaction = `FROM generate_series(0, ${transfers - 1}, ${TRANSFERS_PER_TRANSACTION}) i`;
  const perAccount = `FROM generate_series(0, ${accounts - 1}) i`;
  // Each account's balance changes in so many blocks.
  const change = `1 + (i + j * ${step}) % ${heights}`;
  const changes = `generate_series(0, ${TRANSFERS_PER_ACCOUNT - 1}) j`;
  const parts: readonly (readonly [table: string, rows: string])[] = [
    [
      "transaction",
      `SELECT ${place}, sha256(int8send(i)), sha256(int8send(-1 - i)), 1, ${sender}, $1::bytea, NULL, 0,
         i, 2, 80000, 51000, 1000000000, 51000000000000, 25500000000000, sha256(int8send(i)), NULL, NULL, NULL ${perTransaction}`,
    ],
    [
      "transfer",
      `SELECT ${place}, 100 + i % ${TRANSFERS_PER_TRANSACTION}, 'erc20', NULL, $1::bytea, ${sender},
         ${recipient}, 1 + i, NULL, ${FIRST_INDEX} + i, NULL ${every}`,
    ],
    [
      "address_transaction",
      `SELECT sender, height, tx_index FROM indexer.transaction
       WHERE tx_index >= ${FIRST_INDEX} AND length($1::bytea) > 0`,
    ],
    [
      "address",
      `SELECT ${account("i")}, 1, ${heights}, 3, 20, false ${perAccount} WHERE length($1::bytea) > 0`,
    ],
    [
      "balance",
      `SELECT ${account("i")}, $1::bytea, -1, 1 + i, 'logs', (SELECT max(${change}) FROM ${changes}),
         ${heights}, ${heights} ${perAccount}`,
    ],
    [
      "balance_history",
      `SELECT ${account("i")}, $1::bytea, -1, ${change}, 1 + i, 1, 0, 0
       FROM ${changes} CROSS JOIN generate_series(0, ${accounts - 1}) i`,
    ],
  ];
  // As in a catch-up far behind the head: rows come faster without, and all are held to them at the end.
  const indexes = await client.query(
    `SELECT indexname AS name FROM pg_indexes
     WHERE schemaname = 'indexer' AND indexname NOT IN (SELECT conname FROM pg_constraint)`,
  );
  for (const { name } of indexes.rows) await client.query(`DROP INDEX indexer.${name}`);
  for (const [table, select] of parts) {
    const startMs = performance.now();
    const { rowCount } = await client.query(`INSERT INTO indexer.${table} ${select}`, [asset]);
    await client.query(`ANALYZE indexer.${table}`);
    say(`${rowCount} rows more in ${table}, in ${secondsSince(startMs)} s`);
  }
  const startMs = performance.now();
  await client.query("SET maintenance_work_mem = '512MB'");
  for (const statement of indexStatements(LIVE_SCHEMA)) await client.query(statement);
  say(`the indexes were made in ${secondsSince(startMs)} s`);
  return {
    accounts,
    accountAt: (turn) => `0x${(FIRST_ACCOUNT + (turn % accounts)).toString(16).padStart(40, "0")}`,
  };
}
