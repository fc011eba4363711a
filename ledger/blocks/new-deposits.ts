/** Deposits as the watcher finds them: their keys, their rows, and what is told of them. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { HELD_FOR_TOKEN, type TokenCode } from "../assets/token-state.js";
import { waitingEvent } from "../deposits/deposit-events.js";
import type { DepositStatus } from "../deposits/deposit-queries.js";
import { LedgerError } from "../errors.js";
import type { NewEvent } from "../events.js";
import type { CustomerId } from "../journal/accounts.js";
import { lossSuffix } from "../journal/entry-keys.js";
import type { WatchCursor } from "../watch/watch-cursor.js";

/** One operation that raised the balance of a deposit address. */
export interface NewDeposit {
  readonly address: Address;
  readonly customerId: CustomerId;
  readonly asset: string;
  /** Greater than zero, in the asset's smallest unit. */
  readonly amountUnits: bigint;
  readonly height: Height;
  readonly blockHash: Hash32;
  readonly txHash: Hash32;
  readonly txIndex: number;
  readonly opIndex: number;
  /** Rewinds of the chain before it was seen; none when absent. */
  readonly rewind?: number;
  /** False for coins that nobody sent as a payment to the customer: they go to suspense. */
  readonly creditable: boolean;
}

/** Public identifier of a deposit, made of its natural key. */
export function depositId(key: {
  readonly height: Height;
  readonly txIndex: number;
  readonly opIndex: number;
  readonly rewind?: number;
}): string {
  return `${key.height}-${key.txIndex}-${key.opIndex}${lossSuffix(key.rewind ?? 0)}`;
}

/** Places of a chain that came back have keys of their own. */
export function placedAfter({ rewinds }: WatchCursor): (deposit: NewDeposit) => NewDeposit {
  return (deposit) => (rewinds === 0 ? deposit : { ...deposit, rewind: rewinds });
}

/** A deposit as it is stored first. */
export interface FirstRow {
  readonly deposit: NewDeposit;
  readonly status: DepositStatus;
  /** See `otherCodeOf`; absent where its token goes on. */
  readonly otherCode?: TokenCode | undefined;
}

/**
 * Stores deposits with their natural keys.
 * @throws DEPOSIT_CONFLICT for a place that has one
 */
export async function insertDeposits(tx: Sql, rows: readonly FirstRow[]): Promise<void> {
  if (rows.length === 0) return;
  const deposits = rows.map(({ deposit }) => deposit);
  try {
    await tx.query(
      `INSERT INTO deposit (id, address, customer_id, asset, amount_units, status, height,
                            block_hash, tx_hash, tx_index, op_index, rewind, other_code_hash,
                            other_implementation, held_for)
       SELECT id, address, customer_id, asset, amount_units, status, height, block_hash, tx_hash,
              tx_index, op_index, rewind, other_code_hash, other_implementation,
              CASE WHEN status = 'held' THEN '${HELD_FOR_TOKEN}' END
         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::numeric[], $6::text[], $7::bigint[],
                     $8::text[], $9::text[], $10::integer[], $11::integer[], $12::integer[],
                     $13::text[], $14::text[])
              AS input (id, address, customer_id, asset, amount_units, status, height,
                        block_hash, tx_hash, tx_index, op_index, rewind, other_code_hash,
                        other_implementation)
        ORDER BY height, tx_index, op_index`,
      [
        deposits.map(depositId),
        deposits.map((deposit) => deposit.address),
        deposits.map((deposit) => deposit.customerId),
        deposits.map((deposit) => deposit.asset),
        deposits.map((deposit) => deposit.amountUnits.toString()),
        rows.map(({ status }) => status),
        deposits.map((deposit) => deposit.height),
        deposits.map((deposit) => deposit.blockHash),
        deposits.map((deposit) => deposit.txHash),
        deposits.map((deposit) => deposit.txIndex),
        deposits.map((deposit) => deposit.opIndex),
        deposits.map((deposit) => deposit.rewind ?? 0),
        rows.map(({ otherCode }) => otherCode?.codeHash ?? null),
        rows.map(({ otherCode }) => otherCode?.implementation ?? null),
      ],
    );
  } catch (error) {
    if (!(error instanceof SqlError) || error.code !== "UNIQUE_VIOLATION") throw error;
    throw new LedgerError("DEPOSIT_CONFLICT", "the ledger already holds a deposit at this place", {
      details: { first: deposits.slice(0, 1).map(depositId) },
      cause: error,
    });
  }
}

/** See `waitingEvent`. */
export function depositEvent(type: NewEvent["type"], deposit: NewDeposit): NewEvent {
  return waitingEvent(type, { ...deposit, id: depositId(deposit) });
}
