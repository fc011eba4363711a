/** What sweeps have stored for nonces of deposit addresses, as a chain that has lost them is asked for. */
import type { Address } from "../../chain/address.js";
import { type Hex, parseHex } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedAddress, storedAtoken } from "../stored-values.js";

/** What was stored for a nonce of a deposit address. */
export interface StoredPlace {
  readonly address: Address;
  readonly nonce: bigint;
  /** A sweep has it, signed or not. */
  readonly isOurs: boolean;
  /** Something was signed for it, to whichever wallet. */
  readonly isSigned: boolean;
  /** Bytes to wallets that may be given coins, oldest first. */
  readonly raws: readonly Hex[];
}

/** What was stored for these nonces. @param wallets that may be given coins */
export async function readStoredPlaces(
  sql: Sql,
  places: readonly { readonly address: Address; readonly nonce: bigint }[],
  wallets: readonly Address[],
): Promise<StoredPlace[]> {
  if (places.length === 0) return [];
  const rows = await sql.query<{
    address: string;
    nonce: string;
    is_ours: boolean;
    is_signed: boolean;
    raws: readonly string[] | null;
  }>(
    `SELECT place.address, place.nonce::text, count(s.id) > 0 AS is_ours,
            count(t.sweep_id) > 0 AS is_signed,
            json_agg(t.raw ORDER BY t.n) FILTER (
              WHERE t.raw IS NOT NULL AND coalesce(t.wallet, s.wallet) = ANY ($3::text[])) AS raws
       FROM unnest($1::text[], $2::numeric[]) WITH ORDINALITY AS place (address, nonce, at)
       LEFT JOIN sweep s ON s.address = place.address AND s.nonce = place.nonce
       LEFT JOIN sweep_attempt t ON t.sweep_id = s.id
      GROUP BY place.at, place.address, place.nonce ORDER BY min(s.id) NULLS LAST, place.at`,
    [places.map(({ address }) => address), places.map(({ nonce }) => nonce.toString()), wallets],
  );
  return rows.map((row) => ({
    address: storedAddress(row.address),
    nonce: storedAtoken(row.nonce),
    isOurs: row.is_ours,
    isSigned: row.is_signed,
    raws: (row.raws ?? []).map((raw) => parseHex(raw)),
  }));
}
