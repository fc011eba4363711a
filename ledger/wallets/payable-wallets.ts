/** Wallets that may be given the exchange's coins: of any other the key may be gone, or in other hands. */
import type { Address } from "../../chain/address.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedAddress } from "../stored-values.js";
import { isKeyHeld, isKeyMissed } from "./key-mark.js";

/** SQL: of a wallet `w`, whether it is active and not frozen by its own switch. */
const IS_OPEN = `w.status = 'active' AND NOT EXISTS (
  SELECT 1 FROM signing_freeze f WHERE f.wallet = w.address AND f.frozen)`;

/** SQL: of a wallet `w`, whether a worker holds its key. A status alone may be that of a backup. */
const HAS_KEY = `EXISTS (
  SELECT 1 FROM hot_wallet h WHERE h.wallet = w.address AND ${isKeyHeld("h")})`;

/** SQL: of a wallet `w`, whether it may be given coins. */
const IS_PAYABLE = `${IS_OPEN} AND ${HAS_KEY}`;

/** Those that may be given coins now, the first registered first. */
export async function readPayable(sql: Sql): Promise<Address[]> {
  const rows = await sql.query<{ address: string }>(
    `SELECT address FROM wallet w WHERE ${IS_PAYABLE} ORDER BY place`,
  );
  return rows.map(({ address }) => storedAddress(address));
}

/** Those that would be given coins, if only a worker held their key; the first registered first. */
export async function readKeyless(sql: Sql): Promise<Address[]> {
  const rows = await sql.query<{ address: string }>(
    `SELECT address FROM wallet w WHERE ${IS_OPEN} AND NOT ${HAS_KEY} ORDER BY place`,
  );
  return rows.map(({ address }) => storedAddress(address));
}

/** Whether some would be given coins, if only their workers were not away since lately. */
export async function isAnyMissed(sql: Sql): Promise<boolean> {
  const rows = await sql.query(
    `SELECT 1 FROM wallet w JOIN hot_wallet h ON h.wallet = w.address
      WHERE ${IS_OPEN} AND ${isKeyMissed("h")} LIMIT 1`,
  );
  return rows.length > 0;
}

/**
 * Of these those that may be given coins, held until the commit: who retires or freezes one at the same
 * time waits for it, or is seen. A process that is stopped while it holds them loses its connection after
 * 5 s, so that their lanes go on.
 */
export async function lockPayable(
  tx: Sql,
  wallets: readonly Address[],
): Promise<ReadonlySet<Address>> {
  await tx.query(`SELECT set_config('idle_in_transaction_session_timeout', '5000', true)`);
  // In the order of locks a wallet comes before its switch.
  for (const table of ["hot_wallet", "signing_freeze"] as const) {
    await tx.query(
      `SELECT 1 FROM ${table} WHERE wallet = ANY ($1::text[]) ORDER BY wallet FOR SHARE`,
      [wallets],
    );
  }
  // Read behind the locks.
  const rows = await tx.query<{ address: string }>(
    `SELECT address FROM wallet w WHERE address = ANY ($1::text[]) AND ${IS_PAYABLE}`,
    [wallets],
  );
  return new Set(rows.map(({ address }) => storedAddress(address)));
}
