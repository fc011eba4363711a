/** Coins at deposit addresses that are no deposits: gas that a hot wallet gave to them for a sweep. */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { NATIVE_ASSET } from "../journal/accounts.js";
import { storedAddress, storedAtoken, storedHash, storedInteger } from "../stored-values.js";

/** What a transaction brought to one of our addresses. */
export interface Brought {
  readonly address: Address;
  readonly asset: string;
  readonly amountUnits: bigint;
  readonly txHash: Hash32;
}

/** Moves of the treasury by the deposit that they show as; what is none is not among them. */
export async function readTopUps<Deposit extends Brought>(
  sql: Sql,
  deposits: readonly Deposit[],
): Promise<ReadonlyMap<Deposit, { readonly id: number }>> {
  const coins = deposits.filter(({ asset }) => asset === NATIVE_ASSET);
  if (coins.length === 0) return new Map();
  const rows = await sql.query<Record<"hash" | "id" | "destination" | "amount", string>>(
    `SELECT a.hash, m.id::text, m.destination, m.amount_units::text AS amount
       FROM withdrawal_attempt a
       JOIN nonce_slot s ON s.id = a.slot_id
       JOIN treasury_move m ON m.withdrawal_id = s.withdrawal_id AND m.kind = 'top-up'
      WHERE a.hash = ANY ($1::text[])`,
    [coins.map(({ txHash }) => txHash)],
  );
  const moves = new Map(rows.map((row) => [storedHash(row.hash), row]));
  return new Map(
    coins.flatMap((deposit) => {
      const move = moves.get(deposit.txHash);
      const isIt =
        move !== undefined &&
        storedAddress(move.destination) === deposit.address &&
        storedAtoken(move.amount) === deposit.amountUnits;
      return isIt ? [[deposit, { id: storedInteger(move.id) }] as const] : [];
    }),
  );
}
