/** Figures of a wallet's withdrawals for metrics and people. */
import type { Address } from "../../chain/address.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedInteger } from "../stored-values.js";
import type { WithdrawalStatus } from "./withdrawal-status.js";
import { storedStatus } from "./withdrawals.js";

/** Counts and ages of one moment. */
export interface WithdrawalFigures {
  readonly countByStatus: ReadonlyMap<WithdrawalStatus, number>;
  /** Age of the oldest withdrawal that has not ended; 0 without one. */
  readonly oldestOpenAgeSeconds: number;
}

/** Reads the figures of a wallet. */
export async function withdrawalFigures(sql: Sql, wallet: Address): Promise<WithdrawalFigures> {
  const counts = await sql.query<{ status: string; count: string }>(
    `SELECT status, count(*)::text AS count FROM withdrawal WHERE wallet = $1 GROUP BY status`,
    [wallet],
  );
  const ages = await sql.query<{ age: string }>(
    `SELECT coalesce(greatest(0, extract(epoch FROM now() - min(created_at))), 0)::bigint::text AS age
       FROM withdrawal
      WHERE wallet = $1 AND status NOT IN ('settled', 'failed', 'rejected', 'cancelled')`,
    [wallet],
  );
  return {
    countByStatus: new Map(
      counts.map((row) => [storedStatus(row.status), storedInteger(row.count)]),
    ),
    oldestOpenAgeSeconds: storedInteger(ages[0]?.age),
  };
}
