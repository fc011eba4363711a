/** Deposit addresses: who gets which index, from which block on they count, and their past. */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import { breathe } from "../../runtime/process/main-thread.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { type CustomerId, parseCustomerId } from "../journal/accounts.js";
import { storedAddress, storedHeight, storedInteger } from "../stored-values.js";
import { LedgerError } from "../errors.js";
import { inRecovery, refuseInRecovery } from "../guard/recovery-incident.js";
import { lockCursor, readCursor } from "../watch/watch-cursor.js";

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
 * Registers the next addresses, one for each customer that is named, in their order; all in one commit.
 * The cursor row is locked meanwhile, so every block after the commit is matched against them.
 * @param issue.deriveAddress address of an index; throws when its two derivations disagree
 * @param issue.issuedBelow all lower indexes were given out before, whatever the ledger says
 * @throws RECOVERY; OWN_ADDRESS where one of them is a hot wallet's: what came there would be nobody's
 */
export async function registerAddresses(
  database: SqlDatabase,
  customerIds: readonly CustomerId[],
  issue: {
    readonly deriveAddress: (index: number) => Address;
    readonly issuedBelow: number;
  },
): Promise<DepositAddress[]> {
  const { deriveAddress, issuedBelow } = issue;
  // Ahead of the lock, for which the watcher's blocks wait: mostly nobody else gives any out meanwhile.
  const ahead = new Map<number, Address>();
  const { nextAddressIndex } = await readCursor(database);
  for (const place of customerIds.keys()) {
    await breathe();
    ahead.set(nextAddressIndex + place, deriveAddress(nextAddressIndex + place));
  }
  return database.transaction(async (tx) => {
    const cursor = await lockCursor(tx);
    await refuseInRecovery(tx);
    if (cursor.nextAddressIndex < issuedBelow) {
      throw inRecovery(
        `the ledger would give out address ${cursor.nextAddressIndex} again, ${issuedBelow} were given out`,
        "to see what the chain proves: causeway recover",
      );
    }
    const fromHeight = cursor.height + 1;
    const given = customerIds.map((customerId, place) => {
      const index = cursor.nextAddressIndex + place;
      const address = ahead.get(index) ?? deriveAddress(index);
      return { index, address, customerId, fromHeight };
    });
    await refuseWallets(tx, given);
    await insertAddresses(tx, given);
    await tx.query(`UPDATE watch_cursor SET next_address_index = next_address_index + $1`, [
      given.length,
    ]);
    return given;
  });
}

async function insertAddresses(tx: Sql, given: readonly DepositAddress[]): Promise<void> {
  const customerIds = given.map(({ customerId }) => customerId);
  await tx.query(
    `INSERT INTO customer (id) SELECT DISTINCT unnest($1::text[]) ON CONFLICT DO NOTHING`,
    [customerIds],
  );
  await tx.query(
    // Nothing can lie before block 0, so such an address has no past to look for.
    `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
     SELECT index, address, customer_id, from_height, from_height = 0
       FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[])
            AS given (index, address, customer_id, from_height)`,
    [
      given.map(({ index }) => index),
      given.map(({ address }) => address),
      customerIds,
      given.map(({ fromHeight }) => fromHeight),
    ],
  );
}

/** Under the cursor's lock, which whoever registers a wallet holds, too. */
async function refuseWallets(tx: Sql, given: readonly DepositAddress[]): Promise<void> {
  const addresses = given.map(({ address }) => address);
  const rows = await tx.query<{ address: string }>(
    `SELECT address FROM wallet WHERE address = ANY($1::text[])`,
    [addresses],
  );
  const wallet = given.find(({ address }) => rows.some((row) => row.address === address));
  if (wallet === undefined) return;
  const { address, index } = wallet;
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

/** A deposit key with the indexes that are its own. */
export interface KeyRange {
  readonly firstIndex: number;
  /** Index behind its last one; undefined for the key that addresses are given out by. */
  readonly endIndex?: number | undefined;
  readonly deriveAddress: (index: number) => Address;
}

/** An address within the indexes of a key. */
export type AddressOfRange = DepositAddress & { readonly isOfKey: boolean };

/**
 * Whether the addresses from an index on are of a key, told by the first of them: a home that was made by
 * itself has another one, and what comes to an address of that is swept by no seed of the others.
 * @returns that address; undefined where there is none yet
 */
export function firstOfKey(sql: Sql, key: KeyRange): Promise<AddressOfRange | undefined> {
  return oneOfKey(sql, key, "ASC");
}

/** As `firstOfKey`, by the last of them: a former key is that of the first one still. */
export function lastOfKey(sql: Sql, key: KeyRange): Promise<AddressOfRange | undefined> {
  return oneOfKey(sql, key, "DESC");
}

async function oneOfKey(
  sql: Sql,
  { firstIndex, endIndex = Number.MAX_SAFE_INTEGER, deriveAddress }: KeyRange,
  order: "ASC" | "DESC",
): Promise<AddressOfRange | undefined> {
  const [row] = await sql.query<AddressRow>(
    `${SELECT_ADDRESS} WHERE d.index >= $1 AND d.index < $2 ORDER BY d.index ${order} LIMIT 1`,
    [firstIndex, endIndex],
  );
  if (row === undefined) return undefined;
  const found = parseRow(row);
  return { ...found, isOfKey: deriveAddress(found.index) === found.address };
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

/** As `addressesFrom`, of those whose coins from before the watcher's blocks are not booked yet. */
export async function addressesToBackfill(
  sql: Sql,
  page: { readonly firstIndex: number; readonly limit: number },
): Promise<DepositAddress[]> {
  const rows = await sql.query<AddressRow & { readonly watched_from: string }>(
    `${WITH_LOSSES}
     SELECT waiting.*, ${WATCHED_FROM} AS watched_from
       FROM (${SELECT_ADDRESS} WHERE NOT d.backfilled AND d.index >= $1
              ORDER BY d.index LIMIT $2) AS waiting
       JOIN deposit_address d USING (index) ORDER BY d.index`,
    [page.firstIndex, page.limit],
  );
  return rows.map((row) => parseRow({ ...row, from_height: row.watched_from }));
}

/** Whether coins from before the watcher's blocks are not booked yet of one of these addresses. */
export async function isPastAwaited(sql: Sql, addresses: readonly Address[]): Promise<boolean> {
  const rows = await sql.query(
    `SELECT 1 FROM deposit_address WHERE address = ANY ($1::text[]) AND NOT backfilled LIMIT 1`,
    [addresses],
  );
  return rows.length > 0;
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
