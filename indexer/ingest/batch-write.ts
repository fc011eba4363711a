/** Writes one batch: rows, balances, counts and progress in one transaction. */
import { present } from "../../chain/errors.js";
import type { Hash32, Height } from "../../chain/hex.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import { doBreathing } from "../../runtime/process/main-thread.js";
import type { Sql } from "../../runtime/sql/sql.js";
import type { CopyRows } from "../../runtime/sql/copy-rows.js";
import type { CopySql, SqlSession } from "../../runtime/sql/sql-session.js";
import type { RangedBlock } from "../../rpc-client/indexing/ranged-block.js";
import { IndexerError } from "../errors.js";
import { isOfPair, mergeCandles } from "../store/candles.js";
import { assertOurs, readProgress } from "../store/progress.js";
import { type BatchRows, ROW_TABLES } from "../store/row-columns.js";
import { type IndexSchema, UNPROVEN } from "../store/schema.js";
import { readUnaccompanied, storeUnaccompanied } from "../store/wrapped-coins.js";
import { type Batch, batchOf, batchSteps, type RunningTotals } from "./batch-rows.js";
import { holdersChange } from "./holders.js";
import { isStaged, openStaged } from "./staged-rows.js";
import type { KnownCoins } from "./wrapped-coins.js";

/** Where a batch is written. */
export interface BatchTarget {
  readonly session: SqlSession;
  readonly schema: IndexSchema;
}

/** The block that a batch has to follow. */
export interface Tip {
  /** -1 before block 0. */
  readonly height: Height;
  readonly hash: Hash32 | undefined;
}

/**
 * What state is asked for at the tip: by its hash, because another node that is behind the same
 * address by now would answer for the height with a state of its own.
 */
export function stateOf(tip: Tip): Hash32 {
  return present(tip.hash, "the hash of the tip");
}

/** Somebody else moved the index: a rebuild was put in its place. Read its progress again. */
export class IndexMoved extends Error {}

/**
 * Appends consecutive blocks to the index.
 * @param prepared their rows, where somebody has made them already
 * @returns the new tip, how many transfers were written, and coins of which the rows took nothing for known
 * @throws CONTRADICTED when the first block does not follow the tip; FOREIGN_INDEX when it is another
 *   chain's block 0; IndexMoved
 */
export async function writeBatch(
  target: BatchTarget,
  tip: Tip,
  blocks: readonly RangedBlock[],
  prepared?: { readonly batch: Batch; readonly before: RunningTotals },
): Promise<{ readonly tip: Tip; readonly transfers: number; readonly known: KnownCoins }> {
  const [first, last] = [blocks[0], blocks.at(-1)];
  if (first === undefined || last === undefined) return { tip, transfers: 0, known: new Map() };
  assertFollows(tip, first);
  const { session, schema } = target;
  const written = await session.transaction(async (tx) => {
    const stored = await readProgress(tx, schema, { lock: true });
    if (stored?.height !== tip.height || stored.hash !== tip.hash) throw new IndexMoved();
    // Behind one address there may be another node by now than the one that said which chain it is.
    if (first.height === 0) assertOurs(stored, { ...stored, genesisHash: first.hash });
    const totals = await readTotals(tx, schema, tip.height);
    const isFitting =
      prepared?.before.mintedAtoken === totals.mintedAtoken &&
      prepared.before.burnedAtoken === totals.burnedAtoken;
    let batch = isFitting ? prepared.batch : batchOf(blocks, totals);
    const known = await readUnaccompanied(tx, schema, batch.coins.doubtful);
    if (known.size > 0) {
      const all = new Map([...batch.coins.known, ...known]);
      batch = await doBreathing(batchSteps(blocks, totals, all));
    }
    await openStaged(tx);
    await copyRows(tx, schema, batch);
    failpoint("indexer.after-copy");
    await tx.query(mergeStatements(schema, batch.rows).join(";\n"));
    await storeUnaccompanied(tx, schema, batch.coins.found);
    await tx.query(`UPDATE ${schema}.progress SET height = $1, hash = $2, time = $3`, [
      last.height,
      Buffer.from(last.hash.slice(2), "hex"),
      new Date(last.timestampMs),
    ]);
    failpoint("indexer.before-commit");
    return { transfers: batch.transfers, known };
  });
  failpoint("indexer.after-commit");
  return { tip: { height: last.height, hash: last.hash }, ...written };
}

/** Blocks are final: one that does not follow is of another chain, or one of the two lies. */
function assertFollows(tip: Tip, first: RangedBlock): void {
  const isNext = first.height === tip.height + 1;
  if (isNext && (tip.hash === undefined || first.parentHash === tip.hash)) return;
  throw new IndexerError(
    "CONTRADICTED",
    `block ${first.height} of the node follows ${first.parentHash}, and the index ends at block ` +
      `${tip.height} with ${tip.hash}: blocks are final, so one of the two is not of this chain; ` +
      "connect the right node, or run causeway indexer rebuild",
    { details: { height: first.height, parentHash: first.parentHash, indexed: tip.hash } },
  );
}

/** Sums up to a block of the index; none before block 0. */
export async function readTotals(
  tx: Sql,
  schema: IndexSchema,
  height: Height,
): Promise<RunningTotals> {
  const [row] = await tx.query<{ total_minted: string; total_burned: string }>(
    `SELECT total_minted, total_burned FROM ${schema}.block WHERE height = $1`,
    [height],
  );
  return {
    mintedAtoken: BigInt(row?.total_minted ?? "0"),
    burnedAtoken: BigInt(row?.total_burned ?? "0"),
  };
}

async function copyRows(tx: CopySql, s: IndexSchema, { rows }: Batch): Promise<void> {
  for (const table of ROW_TABLES) {
    await tx.copyIn(isStaged(table) ? table : `${s}.${table}`, rows[table]);
  }
}

/**
 * What follows from the staged rows, in an order in which each statement finds what it needs; sent as
 * one text, because on a busy machine a way to the database and back costs more than most of them.
 */
function mergeStatements(s: IndexSchema, rows: BatchRows): readonly string[] {
  return [
    // Enough to see how many rows there are and whose: more of a sample costs more than a better plan saves.
    "SET LOCAL default_statistics_target = 10",
    "ANALYZE stage_delta",
    `INSERT INTO ${s}.token (address, standard, first_seen, transfers, holders, supply_logged)
     SELECT address, (array_agg(standard ORDER BY standard = '${UNPROVEN}', height))[1], min(height),
       sum(transfers), 0, sum(supply)
     FROM stage_token GROUP BY address ORDER BY address
     ON CONFLICT (address) DO UPDATE SET
       standard = CASE token.standard WHEN '${UNPROVEN}' THEN excluded.standard ELSE token.standard END,
       transfers = token.transfers + excluded.transfers,
       supply_logged = token.supply_logged + excluded.supply_logged`,
    `INSERT INTO ${s}.balance_history
     SELECT d.address, d.asset, d.token_id, d.height,
       coalesce(b.amount, 0) + sum(d.credit - d.debit - d.fee)
         OVER (PARTITION BY d.address, d.asset, d.token_id ORDER BY d.height),
       d.credit, d.debit, d.fee
     FROM stage_delta d LEFT JOIN ${s}.balance b USING (address, asset, token_id)`,
    `UPDATE ${s}.token t SET holders = t.holders + c.change
     FROM (${holdersChange(
       s,
       `SELECT d.asset, d.address, d.token_id, coalesce(b.amount, 0) AS before,
          coalesce(b.amount, 0) + d.delta AS after
        FROM (
          SELECT address, asset, token_id, sum(credit - debit - fee) AS delta
          FROM stage_delta WHERE asset <> ''::bytea GROUP BY address, asset, token_id
        ) d LEFT JOIN ${s}.balance b USING (address, asset, token_id)`,
     )}) c WHERE t.address = c.asset AND c.change <> 0`,
    `INSERT INTO ${s}.balance (address, asset, token_id, amount, method, updated_at)
     SELECT address, asset, token_id, sum(credit - debit - fee),
       CASE WHEN asset = ''::bytea THEN 'journal' ELSE 'logs' END, max(height)
     FROM stage_delta GROUP BY address, asset, token_id
     ON CONFLICT (address, asset, token_id) DO UPDATE SET
       amount = balance.amount + excluded.amount, updated_at = excluded.updated_at,
       verified_at = NULL, checked_at = NULL`,
    `INSERT INTO ${s}.address (address, first_seen, last_seen, transactions, transfers, is_contract)
     SELECT address, min(height), max(height), sum(transactions), sum(transfers),
       bool_or(is_contract)
     FROM stage_seen GROUP BY address
     ON CONFLICT (address) DO UPDATE SET
       last_seen = excluded.last_seen, transactions = address.transactions + excluded.transactions,
       transfers = address.transfers + excluded.transfers,
       is_contract = address.is_contract OR excluded.is_contract`,
    ...exchangeStatements(s, rows),
  ];
}

/**
 * The same of pairs; most batches have none of their events. A pair's history begins with the first log
 * that names it, whoever made that, so that it does not depend on where batches begin and end, nor on
 * what is logged of it later. One that was asked is asked again where something else is logged of it than
 * it was asked for: the same can be logged with every block.
 */
function exchangeStatements(s: IndexSchema, rows: BatchRows): readonly string[] {
  const statements: readonly (readonly [CopyRows, string])[] = [
    [
      rows.stage_pair,
      `INSERT INTO ${s}.pair (address, factory, token0, token1, height, log_index)
     SELECT DISTINCT ON (address) address, factory, token0, token1,
       first_value(height) OVER named, first_value(log_index) OVER named
     FROM stage_pair WINDOW named AS (PARTITION BY address ORDER BY height, log_index)
     ORDER BY address, height DESC, log_index DESC
     ON CONFLICT (address) DO UPDATE SET factory = excluded.factory, token0 = excluded.token0,
       token1 = excluded.token1, is_confirmed = NULL
     WHERE pair.is_confirmed IS NOT TRUE AND (pair.factory, pair.token0, pair.token1)
       <> (excluded.factory, excluded.token0, excluded.token1)`,
    ],
    [
      rows.stage_sync,
      `UPDATE ${s}.pair p SET reserve0 = r.reserve0, reserve1 = r.reserve1
     FROM (SELECT DISTINCT ON (pair) * FROM stage_sync ORDER BY pair, height DESC, log_index DESC) r
     WHERE p.address = r.pair AND ${isOfPair("r")}`,
    ],
    [
      rows.stage_swap,
      `INSERT INTO ${s}.swap SELECT w.* FROM stage_swap w
     JOIN ${s}.pair p ON p.address = w.pair AND ${isOfPair("w")}`,
    ],
    [
      rows.stage_liquidity,
      `INSERT INTO ${s}.liquidity
     SELECT l.* FROM stage_liquidity l
     JOIN ${s}.pair p ON p.address = l.pair AND ${isOfPair("l")}`,
    ],
    [
      rows.stage_swap,
      `UPDATE ${s}.pair p SET swaps = p.swaps + w.swaps, volume0 = p.volume0 + w.volume0,
       volume1 = p.volume1 + w.volume1
     FROM (SELECT w.pair, count(*) AS swaps, sum(w.amount0_in + w.amount0_out) AS volume0,
         sum(w.amount1_in + w.amount1_out) AS volume1
       FROM stage_swap w JOIN ${s}.pair p ON p.address = w.pair AND ${isOfPair("w")}
       GROUP BY w.pair) w
     WHERE p.address = w.pair`,
    ],
    [rows.stage_swap, mergeCandles(s)],
  ];
  return statements.flatMap(([staged, statement]) => (staged.isEmpty ? [] : [statement]));
}
