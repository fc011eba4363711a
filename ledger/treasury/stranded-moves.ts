/**
 * Moves whose nonce stands on a wallet that was retired with it. Its key may be lost, and nothing but a
 * transaction on that nonce ends them, if one ever comes: they stay in transit, and take no other's place.
 */
import type { Address } from "../../chain/address.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedAddress, storedAtoken, storedInteger } from "../stored-values.js";

/** SQL: of a move `m`, whether its coins are in transit: it has not ended. */
export const IS_IN_TRANSIT = "m.state IN ('open', 'stranded')";

/** One that waits for such a nonce since it was looked at. */
export interface StrandedMove {
  readonly moveId: number;
  readonly withdrawalId: string;
  readonly asset: string;
  readonly amountUnits: bigint;
  readonly wallet: Address;
}

/**
 * Lets go of the places of moves that nothing is known to be mined of, and that a retired wallet has: another
 * one may go to cold storage, and other gas to the address. One that is mined all the same ends as ever.
 */
export async function strandMoves(sql: Sql): Promise<readonly StrandedMove[]> {
  const rows = await sql.query<Record<"id" | "withdrawal" | "asset" | "amount" | "wallet", string>>(
    `WITH stranded AS (
       UPDATE treasury_move m SET state = 'stranded'
         FROM nonce_slot s JOIN wallet w ON w.address = s.wallet AND w.status = 'retired'
        WHERE m.state = 'open' AND s.withdrawal_id = m.withdrawal_id AND s.outcome IS NULL
          AND s.mined_hash IS NULL
       RETURNING m.id, m.withdrawal_id, m.asset, m.amount_units, s.wallet)
     SELECT id::text, withdrawal_id AS withdrawal, asset, amount_units::text AS amount, wallet
       FROM stranded ORDER BY stranded.id`,
  );
  return rows.map((row) => ({
    moveId: storedInteger(row.id),
    withdrawalId: row.withdrawal,
    asset: row.asset,
    amountUnits: storedAtoken(row.amount),
    wallet: storedAddress(row.wallet),
  }));
}
