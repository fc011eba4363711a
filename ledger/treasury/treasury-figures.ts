/** What the exchange has where, by asset, as the books say; and what of it is on its way. */
import type { Sql } from "../../runtime/sql/sql.js";
import { COLD_STORAGE, DEPOSIT_ADDRESSES, IN_TRANSIT } from "../journal/accounts.js";
import { storedAtoken, storedInteger } from "../stored-values.js";
import { openRefills, type RefillRequest } from "./refills.js";

/** One asset; amounts in its smallest unit. */
export interface TreasuryFigures {
  readonly asset: string;
  readonly hotUnits: bigint;
  readonly depositAddressesUnits: bigint;
  readonly inTransitUnits: bigint;
  /** Of it what waits for nonces of retired wallets, if they are ever used. */
  readonly strandedUnits: bigint;
  /** Below zero where coins came back that the books never had there. */
  readonly coldUnits: bigint;
  readonly openSweeps: number;
  readonly frozenSweeps: number;
  /** What persons are asked to send from cold storage; undefined for nothing. */
  readonly refill: RefillRequest | undefined;
}

/** All assets of the ledger, by symbol. */
export async function readTreasury(sql: Sql): Promise<TreasuryFigures[]> {
  const rows = await sql.query<Record<string, string>>(
    `SELECT a.symbol AS asset, coalesce(sum(side.units) FILTER (WHERE is_wallet_account(side.account)
              OR side.account = 'asset:hot_wallet'), 0)::text AS hot,
            coalesce(sum(side.units) FILTER (WHERE side.account = $1), 0)::text AS deposits,
            coalesce(sum(side.units) FILTER (WHERE side.account = $2), 0)::text AS transit,
            coalesce(sum(side.units) FILTER (WHERE side.account = $3), 0)::text AS cold,
            (SELECT count(*) FROM sweep s WHERE s.asset = a.symbol
              AND s.state IN ('needs-gas', 'ready', 'signed', 'sent', 'frozen'))::text AS open,
            (SELECT count(*) FROM sweep s WHERE s.asset = a.symbol
              AND s.state = 'frozen')::text AS frozen,
            (SELECT coalesce(sum(m.amount_units), 0) FROM treasury_move m WHERE m.asset = a.symbol
              AND m.state = 'stranded')::text AS stranded
       FROM asset a
       LEFT JOIN asset_units() AS side ON side.asset = a.symbol
      GROUP BY a.symbol ORDER BY a.symbol`,
    [DEPOSIT_ADDRESSES, IN_TRANSIT, COLD_STORAGE],
  );
  const refills = new Map((await openRefills(sql)).map((refill) => [refill.asset, refill]));
  return rows.map((row) => ({
    asset: row["asset"] ?? "",
    hotUnits: storedAtoken(row["hot"]),
    depositAddressesUnits: storedAtoken(row["deposits"]),
    inTransitUnits: storedAtoken(row["transit"]),
    strandedUnits: storedAtoken(row["stranded"]),
    coldUnits: storedAtoken(row["cold"]),
    openSweeps: storedInteger(row["open"]),
    frozenSweeps: storedInteger(row["frozen"]),
    refill: refills.get(row["asset"] ?? ""),
  }));
}
