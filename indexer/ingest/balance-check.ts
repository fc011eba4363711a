/**
 * Holds derived balances against state: coins against `eth_getBalance`, tokens against `balanceOf`.
 * A token that says otherwise is believed, and the difference recorded: rebasing tokens, fees on
 * transfers and silent mints move balances without a log. Coins that differ are a contradiction.
 */
import { type Address, bytesToAddress } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { IndexerError } from "../errors.js";
import { readProgress } from "../store/progress.js";
import { NO_TOKEN_ID } from "../store/schema.js";
import { holdersChange } from "./holders.js";
import { type BatchTarget, IndexMoved, stateOf, type Tip } from "./batch-write.js";

/** A token's balance that was right is looked at again after so many blocks: about an hour. */
const RECHECK_BLOCKS = 1_800;

/** One that differs each time is looked at after twice as long as before, up to so many: about a day. */
const MAX_RECHECK_BLOCKS = 43_200;

/** Balances looked at again in one round, beside those that changed: a bound of the node's work. */
const RECHECKS = 50;

/** The node as far as balances go. */
export type BalanceSource = Pick<EvmClient, "getBalances" | "tokenBalances">;

interface BalanceRow {
  readonly address: Buffer;
  readonly asset: Buffer;
  readonly token_id: string;
  readonly amount: string;
  /** Not looked at since it changed. */
  readonly is_changed: boolean;
}

/** What a round came to. */
export interface BalanceRound {
  readonly checked: number;
  readonly corrected: number;
  readonly isMore: boolean;
}

/**
 * One round at the tip.
 * @returns how many balances were looked at, how many of them are corrected now, and whether more
 *   that changed are waiting
 * @throws CONTRADICTED for coins; IndexMoved
 */
export async function checkBalances(
  target: BatchTarget,
  tip: Tip,
  node: BalanceSource,
  options: RpcOptions & { readonly limit: number },
): Promise<BalanceRound> {
  const { session, schema } = target;
  const rows = await session.query<BalanceRow>(
    `(SELECT address, asset, token_id, amount, true AS is_changed FROM ${schema}.balance
      WHERE checked_at IS NULL ORDER BY updated_at LIMIT $1)
     UNION ALL
     (SELECT address, asset, token_id, amount, false AS is_changed FROM ${schema}.balance
      WHERE asset <> ''::bytea AND checked_at < $2 ORDER BY checked_at LIMIT $3)`,
    [options.limit, tip.height - RECHECK_BLOCKS, RECHECKS],
  );
  if (rows.length === 0) return { checked: 0, corrected: 0, isMore: false };
  const observed = await observe(node, rows, tip, options);
  const corrected = await session.transaction(async (tx) => {
    const stored = await readProgress(tx, schema, { lock: true });
    if (stored?.height !== tip.height || stored.hash !== tip.hash) throw new IndexMoved();
    await store(tx, schema, tip.height, rows, observed);
    failpoint("indexer.before-check-commit");
    return rows.filter((row, index) => isWrong(row, observed[index])).length;
  });
  const isMore = rows.filter((row) => row.is_changed).length === options.limit;
  return { checked: rows.length, corrected, isMore };
}

async function observe(
  node: BalanceSource,
  rows: readonly BalanceRow[],
  tip: Tip,
  options: RpcOptions,
): Promise<(bigint | undefined)[]> {
  const at = stateOf(tip);
  const coins = rows.filter(({ asset }) => asset.length === 0);
  const tokens = rows.filter(({ asset }) => asset.length > 0);
  const [coinBalances, tokenBalances] = await Promise.all([
    node.getBalances(
      coins.map(({ address }) => ({ address: addressOf(address), at })),
      options,
    ),
    node.tokenBalances(
      tokens.map(({ address, asset, token_id }) => ({
        token: addressOf(asset),
        account: addressOf(address),
        at,
        ...(BigInt(token_id) === NO_TOKEN_ID ? {} : { tokenId: BigInt(token_id) }),
      })),
      options,
    ),
  ]);
  coins.forEach((row, index) => {
    if (!isWrong(row, coinBalances[index])) return;
    const address = addressOf(row.address);
    const message =
      `the journal gives ${address} ${row.amount} atoken at block ${tip.height}, and the state ` +
      `${coinBalances[index]}: one of the two is wrong; run causeway audit execution`;
    throw new IndexerError("CONTRADICTED", message, { details: { address, height: tip.height } });
  });
  const found = new Map<BalanceRow, bigint | undefined>([
    ...coins.map((row, index) => [row, coinBalances[index]] as const),
    ...tokens.map((row, index) => [row, tokenBalances[index]] as const),
  ]);
  return rows.map((row) => found.get(row));
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
    [...parameters, height],
  );
  await tx.query(
    `INSERT INTO ${s}.correction (address, asset, token_id, height, derived, observed)
     SELECT address, asset, token_id, $5, b.amount, o.observed ${wrong}
     ON CONFLICT (address, asset, token_id, height) DO UPDATE SET observed = excluded.observed`,
    [...parameters, height],
  );
  await tx.query(
    `INSERT INTO ${s}.balance_history
       (address, asset, token_id, height, amount, credit, debit, fee)
     SELECT address, asset, token_id, $5, o.observed, 0, 0, 0 ${wrong}
     ON CONFLICT (address, asset, token_id, height) DO UPDATE SET amount = excluded.amount`,
    [...parameters, height],
  );
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

function addressOf(bytes: Buffer): Address {
  return bytesToAddress(bytes);
}
