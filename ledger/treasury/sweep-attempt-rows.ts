/** Signed bytes of sweeps, and how they are written, whoever has signed them. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Hex } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedInteger } from "../stored-values.js";

/** Signed bytes of a sweep. */
export interface SweepAttempt {
  readonly n: number;
  /** Hot wallet to which the bytes bring the coins. */
  readonly wallet: Address;
  readonly raw: Hex;
  readonly hash: Hash32;
  readonly gasPriceAtoken: Atoken;
  /** Time since it was signed. */
  readonly ageMs: number;
}

/** Signed bytes of a sweep that are to be stored, before any node gets them. */
export interface NewSweepAttempt extends Omit<SweepAttempt, "ageMs"> {
  readonly sweepId: number;
}

/**
 * Writes those whose sweeps may have them; the first moves its sweep on.
 * @param allowed SQL: ids of such sweeps, of those that stand in `input`
 * @returns the sweeps whose bytes are stored now: of two with one number one gets in
 */
export async function insertAttempts(
  tx: Sql,
  attempts: readonly NewSweepAttempt[],
  allowed: string,
): Promise<ReadonlySet<number>> {
  const rows = await tx.query<{ id: string }>(
    `WITH input AS (
       SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::numeric[],
                            $6::text[]) AS input (id, n, raw, hash, price, target)
     ), allowed AS (${allowed}
     ), stored AS (
       INSERT INTO sweep_attempt (sweep_id, n, raw, hash, gas_price_atoken, wallet)
       SELECT input.id, n, raw, hash, price, target FROM input JOIN allowed USING (id)
       ON CONFLICT DO NOTHING RETURNING sweep_id
     ), moved AS (
       UPDATE sweep SET state = 'signed' FROM stored
        WHERE sweep.id = stored.sweep_id AND sweep.state = 'ready')
     SELECT sweep_id::text AS id FROM stored`,
    [
      attempts.map(({ sweepId }) => sweepId),
      attempts.map(({ n }) => n),
      attempts.map(({ raw }) => raw),
      attempts.map(({ hash }) => hash),
      attempts.map(({ gasPriceAtoken }) => gasPriceAtoken.toString()),
      attempts.map(({ wallet }) => wallet),
    ],
  );
  return new Set(rows.map(({ id }) => storedInteger(id)));
}
