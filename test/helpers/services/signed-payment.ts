/** A withdrawal's signed payment as rows, for tests that have no worker. */
import type { Address } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { Sql } from "../../../runtime/sql/sql.js";

/** What is signed. */
export interface SignedPayment {
  readonly id: string;
  /** Of alice, who must be a customer. */
  readonly asset: string;
  readonly wallet: Address;
  readonly destination: Address;
  readonly amountUnits: bigint;
  readonly nonce: number;
  readonly hash: Hash32;
}

/** Stores request, slot and attempt as the worker leaves them after signing; nothing is held. @returns the slot */
export async function storeSigned(tx: Sql, payment: SignedPayment): Promise<string | undefined> {
  const { id, asset, wallet, destination, amountUnits, nonce, hash } = payment;
  await tx.query(
    `INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset, wallet,
                             destination, destination_text, amount_units, status)
     VALUES ($1, $1, '', 'alice', $2, $3, $4, $4, $5, 'signed')`,
    [id, asset, wallet, destination, amountUnits.toString()],
  );
  await tx.query(
    `INSERT INTO hot_wallet (wallet, next_nonce) VALUES ($1, 0)
                  ON CONFLICT DO NOTHING`,
    [wallet],
  );
  const [slot] = await tx.query<{ id: string }>(
    `INSERT INTO nonce_slot (wallet, nonce, withdrawal_id, gas_limit, gas_price_atoken,
                             reserved_atoken)
     VALUES ($1, $2, $3, 21, 1, 0) RETURNING id`,
    [wallet, nonce, id],
  );
  await tx.query(
    `INSERT INTO withdrawal_attempt (slot_id, n, raw, hash, gas_limit, gas_price_atoken)
     VALUES ($1, 0, '0x00', $2, 21, 1)`,
    [slot?.id, hash],
  );
  return slot?.id;
}
