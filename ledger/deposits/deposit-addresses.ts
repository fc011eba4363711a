/** Deposit addresses: who gets which index, from which block on they count, and their past. */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { type CustomerId, parseCustomerId } from "../books/accounts.js";
import { storedAddress, storedHeight, storedInteger } from "../stored-values.js";
import { inRecovery, refuseInRecovery } from "../recovery/ledger-guard.js";
import { lockCursor } from "./watch-cursor.js";

/** One registered address. */
export interface DepositAddress {
  /** Child index below the account's extended public key; never reused. */
  readonly index: number;
  readonly address: Address;
  readonly customerId: CustomerId;
  /** First block whose deposits are the customer's; what came before goes to suspense. */
  readonly fromHeight: Height;
}

interface AddressRow {
  readonly index: string;
  readonly address: string;
  readonly customer_id: string;
  readonly from_height: string;
}

const COLUMNS = `index, address, customer_id, from_height`;

/**
 * Registers the next address for a customer; each call gives a new index. The cursor row is
 * locked meanwhile, so every block after the commit is matched against the new address.
 * @param issue.deriveAddress address of an index; throws when its two derivations disagree
 * @param issue.issuedBelow all lower indexes were given out before, whatever the ledger says
 * @throws RECOVERY
 */
export async function registerAddress(
  database: SqlDatabase,
  customerId: CustomerId,
  issue: {
    readonly deriveAddress: (index: number) => Address;
    readonly issuedBelow: number;
  },
): Promise<DepositAddress> {
  const { deriveAddress, issuedBelow } = issue;
  return database.transaction(async (tx) => {
    const cursor = await lockCursor(tx);
    await refuseInRecovery(tx);
    if (cursor.nextAddressIndex < issuedBelow) {
      throw inRecovery(
        `the ledger would give out address ${cursor.nextAddressIndex} again, ${issuedBelow} were ` +
          "given out; to see what the chain proves: causeway recover",
      );
    }
    const index = cursor.nextAddressIndex;
    const address = deriveAddress(index);
    const fromHeight = cursor.height + 1;
    await tx.query(`UPDATE watch_cursor SET next_address_index = $1`, [index + 1]);
    await tx.query(`INSERT INTO customer (id) VALUES ($1) ON CONFLICT DO NOTHING`, [customerId]);
    await tx.query(
      `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
       VALUES ($1, $2, $3, $4, $5)`,
      // Nothing can lie before block 0, so such an address has no past to look for.
      [index, address, customerId, fromHeight, fromHeight === 0],
    );
    return { index, address, customerId, fromHeight };
  });
}

/** Addresses with an index of `firstIndex` or more, in order, at most `limit`. */
export async function addressesFrom(
  sql: Sql,
  page: { readonly firstIndex: number; readonly limit: number },
): Promise<DepositAddress[]> {
  const rows = await sql.query<AddressRow>(
    `SELECT ${COLUMNS} FROM deposit_address WHERE index >= $1 ORDER BY index LIMIT $2`,
    [page.firstIndex, page.limit],
  );
  return rows.map(parseRow);
}

/** Addresses whose coins from before the registration are not booked yet, oldest first. */
export async function addressesToBackfill(sql: Sql, limit: number): Promise<DepositAddress[]> {
  const rows = await sql.query<AddressRow>(
    `SELECT ${COLUMNS} FROM deposit_address WHERE NOT backfilled ORDER BY index LIMIT $1`,
    [limit],
  );
  return rows.map(parseRow);
}

function parseRow(row: AddressRow): DepositAddress {
  return {
    index: storedInteger(row.index),
    address: storedAddress(row.address),
    customerId: parseCustomerId(row.customer_id),
    fromHeight: storedHeight(row.from_height),
  };
}
