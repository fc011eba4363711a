/** Deposit addresses: who gets which index, from which block on they count, and their past. */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { type CustomerId, parseCustomerId } from "../journal/accounts.js";
import { storedAddress, storedHeight, storedInteger } from "../stored-values.js";
import { LedgerError } from "../errors.js";
import { inRecovery, refuseInRecovery } from "../guard/ledger-guard.js";
import { lockCursor } from "../watch/watch-cursor.js";

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

/** The customer is the one that a person named where a recovery could not. */
const SELECT_ADDRESS = `
  SELECT d.index, d.address, coalesce(a.customer_id, d.customer_id) AS customer_id, d.from_height
    FROM deposit_address d LEFT JOIN address_assignment a ON a.address = d.address`;

/**
 * Registers the next address for a customer; each call gives a new index. The cursor row is
 * locked meanwhile, so every block after the commit is matched against the new address.
 * @param issue.deriveAddress address of an index; throws when its two derivations disagree
 * @param issue.issuedBelow all lower indexes were given out before, whatever the ledger says
 * @throws RECOVERY; OWN_ADDRESS where the next one is a hot wallet's: what came there would be nobody's
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
    await refuseWallet(tx, address, index);
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

/** Under the cursor's lock, which whoever registers a wallet holds, too. */
async function refuseWallet(tx: Sql, address: Address, index: number): Promise<void> {
  const rows = await tx.query(`SELECT 1 FROM wallet WHERE address = $1`, [address]);
  if (rows.length === 0) return;
  throw new LedgerError(
    "OWN_ADDRESS",
    `address ${index} of the deposit key is the hot wallet ${address}: both are of one seed, and no ` +
      "customer's coins would be told from the exchange's; give the home another deposit key, or " +
      "another wallet",
    { details: { address, index } },
  );
}

/** Addresses with an index of `firstIndex` or more, in order, at most `limit`. */
export async function addressesFrom(
  sql: Sql,
  page: { readonly firstIndex: number; readonly limit: number },
): Promise<DepositAddress[]> {
  const rows = await sql.query<AddressRow>(
    `${SELECT_ADDRESS} WHERE d.index >= $1 ORDER BY d.index LIMIT $2`,
    [page.firstIndex, page.limit],
  );
  return rows.map(parseRow);
}

/**
 * SQL: the block from which on the watcher books an address `d` whose past is not booked. Where the chain
 * lost blocks after it was given out, the watcher books them anew, for this address as well. Which of the
 * two came first says the number of addresses then: both happen under the cursor's lock.
 */
export const WATCHED_FROM = `
  least(d.from_height, (SELECT min(l.from_height) FROM loss l WHERE l.next_address_index > d.index))`;

/** SQL: the losses of blocks that `WATCHED_FROM` asks. Their evidence may be large: it is read once. */
export const WITH_LOSSES = `
  WITH loss AS MATERIALIZED (
    SELECT to_height + 1 AS from_height,
           (evidence ->> 'nextAddressIndex')::bigint AS next_address_index
      FROM chain_rewind)`;

/** Addresses whose coins from before the watcher's blocks are not booked yet, oldest first. */
export async function addressesToBackfill(sql: Sql, limit: number): Promise<DepositAddress[]> {
  const rows = await sql.query<AddressRow & { readonly watched_from: string }>(
    `${WITH_LOSSES}
     SELECT waiting.*, ${WATCHED_FROM} AS watched_from
       FROM (${SELECT_ADDRESS} WHERE NOT d.backfilled ORDER BY d.index LIMIT $1) AS waiting
       JOIN deposit_address d USING (index) ORDER BY d.index`,
    [limit],
  );
  return rows.map((row) => parseRow({ ...row, from_height: row.watched_from }));
}

/** As `addressesFrom`, each with the block from which on the watcher books it by now. */
export async function watchedAddressesFrom(
  sql: Sql,
  page: { readonly firstIndex: number; readonly limit: number },
): Promise<DepositAddress[]> {
  const rows = await sql.query<AddressRow>(
    `${WITH_LOSSES}
     SELECT d.index, d.address, d.customer_id, ${WATCHED_FROM} AS from_height
       FROM deposit_address d WHERE d.index >= $1 ORDER BY d.index LIMIT $2`,
    [page.firstIndex, page.limit],
  );
  return rows.map(parseRow);
}

/** A person's word about an address that a recovery found. */
export interface AddressAssignment {
  /** Grows with each assignment. */
  readonly id: number;
  readonly address: Address;
  readonly customerId: CustomerId;
}

/** Assignments behind one, oldest first, at most `limit`. */
export async function assignmentsAfter(
  sql: Sql,
  page: { readonly afterId: number; readonly limit: number },
): Promise<AddressAssignment[]> {
  const rows = await sql.query<{ id: string; address: string; customer_id: string }>(
    `SELECT id::text, address, customer_id FROM address_assignment
      WHERE id > $1 ORDER BY address_assignment.id LIMIT $2`,
    [page.afterId, page.limit],
  );
  return rows.map((row) => ({
    id: storedInteger(row.id),
    address: storedAddress(row.address),
    customerId: parseCustomerId(row.customer_id),
  }));
}

function parseRow(row: AddressRow): DepositAddress {
  return {
    index: storedInteger(row.index),
    address: storedAddress(row.address),
    customerId: parseCustomerId(row.customer_id),
    fromHeight: storedHeight(row.from_height),
  };
}
