/** What payments cost and earned, by UTC day: read from the newest journal entries, never from all. */
import type { Sql } from "../../runtime/sql/sql.js";
import { storedAtoken } from "../stored-values.js";
import { FAILED_PAYOUTS, NETWORK_FEE, WITHDRAWAL_FEES } from "./accounts.js";

/** One asset on one day; units may be negative where an entry was reversed. */
export interface FeeDay {
  /** YYYY-MM-DD, UTC. */
  readonly day: string;
  readonly asset: string;
  /** Paid to the network, the exchange's expense. */
  readonly networkFeeUnits: bigint;
  /** Charged to customers for withdrawals that were paid. */
  readonly serviceFeeUnits: bigint;
  /** Charged to customers for payouts that failed on the chain. */
  readonly failedPayoutUnits: bigint;
}

/** Journal entries that are looked at, at most: days before them are left out. */
const MAX_ENTRIES = 100_000;

/** Fees of the last days, the newest day first. */
export async function readFeeDays(sql: Sql, from: Date): Promise<readonly FeeDay[]> {
  const rows = await sql.query<Record<"day" | "asset" | "network" | "service" | "failed", string>>(
    `WITH newest AS (
       SELECT id, posted_at FROM journal_entry ORDER BY id DESC LIMIT $2)
     SELECT to_char(e.posted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, p.asset,
            coalesce(sum(side.units) FILTER (WHERE side.account = $3), 0)::text AS network,
            coalesce(-sum(side.units) FILTER (WHERE side.account = $4), 0)::text AS service,
            coalesce(-sum(side.units) FILTER (WHERE side.account = $5), 0)::text AS failed
       FROM newest e JOIN posting p ON p.journal_id = e.id
      CROSS JOIN LATERAL (VALUES (p.debit, p.amount_units), (p.credit, -p.amount_units))
            AS side (account, units)
      WHERE e.posted_at >= $1 AND side.account IN ($3, $4, $5)
      GROUP BY 1, 2 ORDER BY 1 DESC, 2`,
    [from, MAX_ENTRIES, NETWORK_FEE, WITHDRAWAL_FEES, FAILED_PAYOUTS],
  );
  return rows.map(({ day, asset, network, service, failed }) => ({
    day,
    asset,
    networkFeeUnits: storedAtoken(network),
    serviceFeeUnits: storedAtoken(service),
    failedPayoutUnits: storedAtoken(failed),
  }));
}
