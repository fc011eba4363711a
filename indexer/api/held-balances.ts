/**
 * What an account has, or had at a height. Others may give it as many ids of their tokens as they like, and
 * take them back: what it has no more is not gone through for what it has.
 */
import { TOKEN_DECIMALS } from "../../chain/units.js";
import { isShownAsset, LIVE_SCHEMA as s, NO_TOKEN_ID } from "../store/schema.js";
import { readAddressText, readAt } from "./inputs.js";
import { type ListKind, type PageQuery, type Position, Where } from "./pages.js";
import { assetName, bytesOf } from "./reads.js";

interface BalanceRow {
  readonly asset: Buffer;
  readonly token_id: string;
  readonly amount: string;
  readonly method: string;
  readonly verified_at: number | null;
  readonly updated_at: number;
  readonly standard: string | null;
  readonly name: string | null;
  readonly symbol: string | null;
  readonly decimals: number | null;
  /** The last one that was looked at, whatever it was at the height. */
  readonly is_end: boolean;
}

/** Balances that changed since the height and are each looked up. */
export const MOST_CHANGED = 1_000;

/** Balances that one page goes through where more have changed since the height. */
export const BALANCES_WALKED = 2_500;

/** The address of a list's path. */
export function addressOf({ params }: Pick<PageQuery, "params">): Buffer {
  return bytesOf(readAddressText(params["address"]));
}

/** Parts of the statements, as SQL. */
interface Asked {
  readonly account: string;
  readonly height: string;
  /** A condition on `asset` and `token_id`. */
  readonly behind: string;
  readonly limit: number;
}

const ORDER = "ORDER BY asset, token_id";

/** The balance of an account, as a row `c` names it, at the height. */
function pastOf({ account, height }: Asked): string {
  return `SELECT p.asset, p.token_id, p.amount, p.height,
      CASE WHEN c.updated_at <= p.height THEN c.verified_at END AS verified_at
    FROM ${s}.balance_history p
    WHERE p.address = ${account} AND p.asset = c.asset AND p.token_id = c.token_id
      AND p.height <= ${height} ORDER BY p.height DESC LIMIT 1`;
}

/** Rows of `c` that the account had, in the order of the page. */
function ofPast(rows: string, asked: Asked): string {
  return `SELECT h.*, false AS is_end FROM ${rows} c CROSS JOIN LATERAL (${pastOf(asked)}) h
    WHERE h.amount <> 0 AND ${isShownAsset(s, "h.asset")} ${ORDER} LIMIT ${asked.limit}`;
}

/** Balances as they are where they have not changed since; the coin and what has, as they were. */
function heldAt(asked: Asked): string {
  const { account, height, behind, limit } = asked;
  const own = `SELECT asset, token_id, updated_at, verified_at FROM ${s}.balance
    WHERE address = ${account}`;
  // Apart, and with a sum that no index has, so that no plan goes through all that the account ever had.
  return `WITH since AS MATERIALIZED (
      ${own} AND asset = ''::bytea
      UNION ALL ${own} AND asset <> ''::bytea AND updated_at > ${height})
    (SELECT asset, token_id, amount, updated_at AS height, verified_at, false AS is_end
     FROM ${s}.balance b
     WHERE address = ${account} AND asset <> ''::bytea AND amount <> 0 AND updated_at + 0 <= ${height}
       AND ${isShownAsset(s, "b.asset")}${behind} ${ORDER} LIMIT ${limit})
    UNION ALL (${ofPast(`(SELECT * FROM since WHERE true${behind})`, asked)})
    ${ORDER} LIMIT ${limit}`;
}

/** The next ones that the account ever had, as they were, and behind them the last that was looked at. */
function walkedAt(asked: Asked): string {
  const { account, behind } = asked;
  return `WITH looked AS MATERIALIZED (
      SELECT asset, token_id, updated_at, verified_at FROM ${s}.balance
      WHERE address = ${account}${behind} ${ORDER} LIMIT ${BALANCES_WALKED})
    (${ofPast("looked", asked)})
    UNION ALL
    (SELECT asset, token_id, 0, 0, NULL, true FROM looked
     ${ORDER} OFFSET ${BALANCES_WALKED - 1} LIMIT 1)`;
}

/** Whether so many of an account's balances have changed since a height that a page is a walk. */
async function isFarBack({ snapshot }: PageQuery, account: Buffer, at: number): Promise<boolean> {
  if (at >= snapshot.progress.height) return false;
  const rows = await snapshot.sql.query(
    `SELECT 1 FROM ${s}.balance WHERE address = $1 AND asset <> ''::bytea AND updated_at > $2
     LIMIT ${MOST_CHANGED + 1}`,
    [account, at],
  );
  return rows.length > MOST_CHANGED;
}

/** The list of an account's balances. */
export const BALANCES: ListKind<BalanceRow> = {
  name: "balances",
  filters: ["at"],
  rows: async (query) => {
    const { snapshot, filters, ceiling, after, limit } = query;
    const address = addressOf(query);
    const at = readAt(snapshot, filters["at"]) ?? ceiling;
    const where = new Where();
    const [account, height] = [where.bind(address), where.bind(at)];
    const place = ([asset, id]: Position) =>
      `(decode(${where.bind(asset)}, 'hex'), ${where.bind(id)}::numeric)`;
    const behind = after === undefined ? "" : ` AND (asset, token_id) > ${place(after)}`;
    const asked = { account, height, behind, limit };
    const found = (await isFarBack(query, address, at)) ? walkedAt(asked) : heldAt(asked);
    // As of the height: what was checked since then says nothing about it.
    return snapshot.sql.query(
      `SELECT h.asset, h.token_id, h.amount,
         CASE WHEN h.asset = ''::bytea THEN 'journal' WHEN EXISTS (
           SELECT 1 FROM ${s}.correction c WHERE c.address = ${account} AND c.asset = h.asset
             AND c.token_id = h.token_id AND c.height <= h.height) THEN 'balanceOf'
         ELSE 'logs' END AS method, h.verified_at,
         h.height AS updated_at, k.standard, k.name, k.symbol, k.decimals, h.is_end
       FROM (${found}) h LEFT JOIN ${s}.token k ON k.address = h.asset
       ORDER BY h.asset, h.token_id, h.is_end`,
      where.parameters,
    );
  },
  isEndOfLook: ({ is_end }) => is_end,
  item: (row) => {
    const isCoin = row.asset.length === 0;
    return {
      asset: assetName(row.asset),
      standard: isCoin ? "native" : (row.standard ?? "erc20"),
      symbol: isCoin ? "TOKEN" : row.symbol,
      name: isCoin ? "TOKEN" : row.name,
      decimals: isCoin ? TOKEN_DECIMALS : row.decimals,
      tokenId: BigInt(row.token_id) === NO_TOKEN_ID ? null : row.token_id,
      amount: row.amount,
      method: row.method,
      verifiedAtHeight: row.verified_at,
      updatedAtHeight: row.updated_at,
    };
  },
  position: ({ asset, token_id }) => [asset.toString("hex"), token_id],
};
