/**
 * Holds derived balances against state: coins against `eth_getBalance`, tokens against `balanceOf`.
 * A token that says otherwise is believed, and the difference recorded: rebasing tokens, fees on
 * transfers and silent mints move balances without a log. Coins that differ are a contradiction.
 */
import { bytesToAddress } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { MAX_QUERIES_AT_ONCE } from "../../rpc-client/tokens/token-balances.js";
import type { Clock } from "../../runtime/process/clock.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { IndexerError } from "../errors.js";
import { readProgress } from "../store/progress.js";
import { LAST_HEIGHT, NO_TOKEN_ID, UNPROVEN } from "../store/schema.js";
import { holdersChange } from "./holders.js";
import { type BatchTarget, IndexMoved, stateOf, type Tip } from "./batch-write.js";
import { RoundTime } from "./round-time.js";

/** A token's balance that was right is looked at again after so many blocks: about an hour. */
const RECHECK_BLOCKS = 1_800;

/** One that differs each time is looked at after twice as long as before, up to so many: about a day. */
const MAX_RECHECK_BLOCKS = 43_200;

/** Balances looked at again in one round, beside those that changed: a bound of the node's work. */
const RECHECKS = 50;

/** Before all tokens, and behind the coin, which has no bytes. */
const FIRST_TOKEN: Buffer = Buffer.from([0]);

/** The node as far as balances go. */
export type BalanceSource = Pick<EvmClient, "getBalances" | "tokenBalances">;

interface BalanceRow {
  readonly address: Buffer;
  readonly asset: Buffer;
  readonly token_id: string;
  readonly amount: string;
}

/** How a round is bounded, and where it begins. */
export interface BalanceRoundOptions extends RpcOptions {
  /** Of coins that changed, and of token balances that changed. */
  readonly limit: number;
  /** What the round before said; the first token without. */
  readonly from: Buffer | undefined;
  /** Only what changed up to here, and nothing again; a run that is to end has a number of rounds then. */
  readonly upTo?: Height;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** What a round came to. */
export interface BalanceRound {
  readonly checked: number;
  readonly corrected: number;
  /** Whether more that changed are waiting. */
  readonly isMore: boolean;
  /** The token with which the next round begins, so that each has its turn. */
  readonly next: Buffer;
}

/**
 * One round at the tip.
 * @returns how many balances were looked at, and how many of them are corrected now
 * @throws CONTRADICTED for coins; IndexMoved
 */
export async function checkBalances(
  target: BatchTarget,
  tip: Tip,
  node: BalanceSource,
  options: BalanceRoundOptions,
): Promise<BalanceRound> {
  const { session, schema } = target;
  const { limit, from = FIRST_TOKEN, upTo = LAST_HEIGHT, clock } = options;
  const time = new RoundTime(clock);
  const coins = await session.query<BalanceRow>(
    `SELECT address, asset, token_id, amount FROM ${schema}.balance
     WHERE checked_at IS NULL AND asset = ''::bytea AND updated_at <= $2
     ORDER BY updated_at LIMIT $1`,
    [limit, upTo],
  );
  const changed = await changedTokens(target, { from, upTo, limit });
  const stale = await session.query<BalanceRow>(
    `SELECT address, asset, token_id, amount FROM ${schema}.balance
     WHERE asset <> ''::bytea AND checked_at < $1 ORDER BY checked_at LIMIT $2`,
    [tip.height - RECHECK_BLOCKS, options.upTo === undefined ? RECHECKS : 0],
  );
  if (coins.length + changed.length + stale.length === 0) {
    if (!from.equals(FIRST_TOKEN)) {
      return checkBalances(target, tip, node, { ...options, from: FIRST_TOKEN });
    }
    return { checked: 0, corrected: 0, isMore: false, next: FIRST_TOKEN };
  }
  const at = stateOf(tip);
  const rows = [...coins];
  const observed: (bigint | undefined)[] = await observeCoins(node, coins, tip, options);
  const exchangesOfChanged = exchangesOf(changed);
  const exchanges = inTurn(exchangesOfChanged, exchangesOf(stale));
  for (const exchange of time.asFarAsThereIsTime(exchanges)) {
    observed.push(...(await observeTokens(node, exchange, at, options)));
    rows.push(...exchange);
  }
  const asked = new Set(rows);
  const left = exchangesOfChanged.flat().find((row) => !asked.has(row));
  return session.transaction(async (tx) => {
    const stored = await readProgress(tx, schema, { lock: true });
    if (stored?.height !== tip.height || stored.hash !== tip.hash) throw new IndexMoved();
    await store(tx, schema, tip.height, rows, observed);
    const waiting = await tx.query(
      `SELECT 1 FROM ${schema}.balance WHERE checked_at IS NULL AND updated_at <= $1 LIMIT 1`,
      [upTo],
    );
    failpoint("indexer.before-check-commit");
    return {
      checked: rows.length,
      corrected: rows.filter((row, index) => isWrong(row, observed[index])).length,
      isMore: waiting.length > 0,
      next: left?.asset ?? behind(changed),
    };
  });
}

/**
 * Balances of tokens that changed, the longest waiting first of each, and as many of each: one that anybody
 * can have as many of as he likes leaves room for the others.
 */
function changedTokens(
  { session, schema: s }: BatchTarget,
  { from, upTo, limit }: { readonly from: Buffer; readonly upTo: Height; readonly limit: number },
): Promise<BalanceRow[]> {
  return session.query<BalanceRow>(
    `WITH RECURSIVE waiting AS (
       (SELECT asset FROM ${s}.balance
        WHERE checked_at IS NULL AND asset >= $1 AND updated_at <= $3
        ORDER BY asset LIMIT 1)
       UNION ALL
       SELECT n.asset FROM waiting w CROSS JOIN LATERAL (
         SELECT asset FROM ${s}.balance
         WHERE checked_at IS NULL AND asset > w.asset AND updated_at <= $3
         ORDER BY asset LIMIT 1) n),
     taken AS MATERIALIZED (SELECT asset FROM waiting LIMIT $2)
     SELECT b.* FROM taken CROSS JOIN LATERAL (
       SELECT address, asset, token_id, amount FROM ${s}.balance
       WHERE asset = taken.asset AND checked_at IS NULL AND updated_at <= $3
       ORDER BY updated_at LIMIT $2 / (SELECT count(*) FROM taken)) b
     ORDER BY b.asset`,
    [from, limit, upTo],
  );
}

/**
 * What is asked in one exchange each: of every asset the first rows before any has a second exchange. As many
 * of one asset as an exchange holds are asked in one call, so they are not mixed with others.
 */
function exchangesOf(rows: readonly BalanceRow[]): BalanceRow[][] {
  const byAsset = new Map<string, BalanceRow[]>();
  for (const row of rows) {
    const asset = row.asset.toString("hex");
    const ofAsset = byAsset.get(asset) ?? [];
    byAsset.set(asset, ofAsset);
    ofAsset.push(row);
  }
  const turns: BalanceRow[][][] = [];
  for (const ofAsset of byAsset.values()) {
    for (const [turn, part] of inParts(ofAsset).entries()) (turns[turn] ??= []).push(part);
  }
  return turns.flatMap((parts) => {
    const isFull = (part: readonly BalanceRow[]) => part.length === MAX_QUERIES_AT_ONCE;
    return [...parts.filter(isFull), ...inParts(parts.filter((part) => !isFull(part)).flat())];
  });
}

function inParts(rows: readonly BalanceRow[]): BalanceRow[][] {
  const count = Math.ceil(rows.length / MAX_QUERIES_AT_ONCE);
  return Array.from({ length: count }, (_, index) =>
    rows.slice(index * MAX_QUERIES_AT_ONCE, (index + 1) * MAX_QUERIES_AT_ONCE),
  );
}

/** One of each by turns, as far as both go. */
function inTurn<T>(some: readonly T[], others: readonly T[]): T[] {
  const length = Math.max(some.length, others.length);
  return Array.from({ length }, (_, index) => [some[index], others[index]])
    .flat()
    .filter((one) => one !== undefined);
}

/** Behind the last of these tokens; the first again behind none. */
function behind(rows: readonly BalanceRow[]): Buffer {
  const last = rows.at(-1);
  return last === undefined ? FIRST_TOKEN : Buffer.concat([last.asset, FIRST_TOKEN]);
}

/** @throws CONTRADICTED */
async function observeCoins(
  node: BalanceSource,
  rows: readonly BalanceRow[],
  tip: Tip,
  options: RpcOptions,
): Promise<bigint[]> {
  const at = stateOf(tip);
  const queries = rows.map(({ address }) => ({ address: bytesToAddress(address), at }));
  const balances = await node.getBalances(queries, options);
  rows.forEach((row, index) => {
    if (!isWrong(row, balances[index])) return;
    const address = bytesToAddress(row.address);
    const message =
      `the journal gives ${address} ${row.amount} atoken at block ${tip.height}, and the state ` +
      `${balances[index]}: one of the two is wrong; run causeway audit execution`;
    throw new IndexerError("CONTRADICTED", message, { details: { address, height: tip.height } });
  });
  return balances;
}

function observeTokens(
  node: BalanceSource,
  rows: readonly BalanceRow[],
  at: Hash32,
  options: RpcOptions,
): Promise<(bigint | undefined)[]> {
  const queries = rows.map(({ address, asset, token_id }) => ({
    token: bytesToAddress(asset),
    account: bytesToAddress(address),
    at,
    ...(BigInt(token_id) === NO_TOKEN_ID ? {} : { tokenId: BigInt(token_id) }),
  }));
  return node.tokenBalances(queries, options);
}

function isWrong(row: BalanceRow, observed: bigint | undefined): boolean {
  return observed !== undefined && observed !== BigInt(row.amount);
}

/**
 * What contracts say takes the place of what their logs add up to. Between two movements one difference is
 * written down, the newest: a contract can say something else at every look, and has paid for one log.
 */
async function store(
  tx: Sql,
  s: BatchTarget["schema"],
  height: Height,
  rows: readonly BalanceRow[],
  observed: readonly (bigint | undefined)[],
): Promise<void> {
  const seen = `unnest($1::bytea[], $2::bytea[], $3::numeric[], $4::numeric[])
    AS o (address, asset, token_id, observed)`;
  const parameters = [
    rows.map(({ address }) => address),
    rows.map(({ asset }) => asset),
    rows.map(({ token_id }) => token_id),
    observed.map((one) => one?.toString() ?? null),
  ];
  const key = "(address, asset, token_id)";
  const wrong = `FROM ${s}.balance b JOIN ${seen} USING ${key}
     WHERE o.observed IS NOT NULL AND o.observed <> b.amount`;
  await correctHistory(tx, s, { seen, wrong, parameters: [...parameters, height] });
  await correctTokens(tx, s, { seen, wrong, parameters });
  await tx.query(
    `UPDATE ${s}.balance b SET
       method = CASE WHEN o.observed <> b.amount THEN 'balanceOf' ELSE b.method END,
       amount = coalesce(o.observed, b.amount),
       updated_at = CASE WHEN o.observed <> b.amount THEN $5::integer ELSE b.updated_at END,
       verified_at = CASE WHEN o.observed IS NULL THEN NULL ELSE $5::integer END,
       checked_at = $5 + CASE WHEN o.observed <> b.amount THEN
         greatest(0, least($6, 2 * ($5 - coalesce(b.verified_at, $5))) - $7) ELSE 0 END
     FROM ${seen}
     WHERE b.address = o.address AND b.asset = o.asset AND b.token_id = o.token_id`,
    [...parameters, height, MAX_RECHECK_BLOCKS, RECHECK_BLOCKS],
  );
}

/** Looks as SQL, and the balances that they contradict. */
interface Looks {
  readonly seen: string;
  readonly wrong: string;
  readonly parameters: readonly unknown[];
}

/** Writes the differences down. @param looks.parameters the height of the looks behind those of `seen` */
async function correctHistory(
  tx: Sql,
  s: BatchTarget["schema"],
  { seen, wrong, parameters }: Looks,
): Promise<void> {
  const key = "(address, asset, token_id)";
  // A row of the history is true of its height: it goes to the new one, and is not changed where it stands.
  // The newest one has the height at which the balance was last changed.
  await tx.query(
    `WITH moved AS (
       UPDATE ${s}.balance_history h SET height = $5, amount = o.observed
       FROM ${s}.balance b JOIN ${seen} USING ${key}
         JOIN ${s}.correction c USING ${key}
       WHERE o.observed <> b.amount AND c.height = b.updated_at AND h.height = b.updated_at
         AND (h.address, h.asset, h.token_id) = (b.address, b.asset, b.token_id)
         AND (h.credit, h.debit, h.fee) = (0, 0, 0)
       RETURNING b.address, b.asset, b.token_id, c.height, o.observed)
     UPDATE ${s}.correction c SET height = $5, observed = m.observed FROM moved m
     WHERE (c.address, c.asset, c.token_id, c.height) = (m.address, m.asset, m.token_id, m.height)`,
    parameters,
  );
  await tx.query(
    `INSERT INTO ${s}.correction (address, asset, token_id, height, derived, observed)
     SELECT address, asset, token_id, $5, b.amount, o.observed ${wrong}
     ON CONFLICT (address, asset, token_id, height) DO UPDATE SET observed = excluded.observed`,
    parameters,
  );
  await tx.query(
    `INSERT INTO ${s}.balance_history
       (address, asset, token_id, height, amount, credit, debit, fee)
     SELECT address, asset, token_id, $5, o.observed, 0, 0, 0 ${wrong}
     ON CONFLICT (address, asset, token_id, height) DO UPDATE SET amount = excluded.amount`,
    parameters,
  );
}

/** Tokens whose logs did not add up, and contracts that have proven to be tokens by answering. */
async function correctTokens(
  tx: Sql,
  s: BatchTarget["schema"],
  { seen, wrong, parameters }: Looks,
): Promise<void> {
  await tx.query(
    `UPDATE ${s}.token t SET is_consistent = false, holders = t.holders + c.change
     FROM (${holdersChange(
       s,
       `SELECT asset, address, token_id, b.amount AS before, o.observed AS after ${wrong}`,
     )}) c
     WHERE t.address = c.asset`,
    parameters,
  );
  await tx.query(
    `UPDATE ${s}.token SET standard = 'erc20' WHERE standard = '${UNPROVEN}' AND address IN (
       SELECT o.asset FROM ${seen} WHERE o.observed IS NOT NULL)`,
    parameters,
  );
}
