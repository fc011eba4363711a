/** Where slots were found mined: a receipt is recorded first, and booked later as it is recorded. */
import type { Address } from "../../chain/address.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { appendEvents } from "../events.js";
import type { WithdrawalId } from "../requests/withdrawal-id.js";
import { stepWithdrawals } from "../requests/withdrawal-steps.js";
import { lockWallet, type WalletLease } from "../wallets/wallet-lease.js";
import { readCursor } from "../watch/watch-cursor.js";
import {
  type Inclusion,
  type LiveSlot,
  SELECT_LIVE_SLOT,
  type SlotRow,
  toLiveSlot,
} from "./slot-rows.js";

/** A receipt for one of a slot's attempts. */
export interface SlotReceipt extends Inclusion {
  readonly slotId: string;
  /** Whose slot it is: this one paid. */
  readonly wallet: Address;
  readonly withdrawalId: WithdrawalId;
  /** False when the transaction was mined but failed: the nonce and the fee are gone. */
  readonly isSuccess: boolean;
  /**
   * False for a token's payment that was mined and succeeded without logging exactly its transfer, or by
   * other code than was accepted: nobody but a person can tell whether it paid.
   */
  readonly isProven: boolean;
  /** Set when it is the cancelling transfer that was mined: the payment never will be. */
  readonly cancelled: LiveSlot["cancel"];
  /** Found on the chain, not signed by this ledger: it may have been booked as an outflow. */
  readonly isAdopted?: boolean;
}

/**
 * Records where attempts were mined: `included`.
 * @param by of the worker that says so: since it looked another one may have found otherwise, or the watcher
 *   have gone back behind the block; none for a person's command
 * @returns the withdrawals that moved
 * @throws LEASE_LOST
 */
export function recordInclusions(
  database: SqlDatabase,
  receipts: readonly SlotReceipt[],
  by?: { readonly lease: WalletLease; readonly rewinds: number },
): Promise<ReadonlySet<WithdrawalId>> {
  return database.transaction(async (tx) => {
    if (by !== undefined) {
      await lockWallet(tx, by.lease);
      if ((await readCursor(tx)).rewinds !== by.rewinds) return new Set();
    }
    const { moved, events } = await stepWithdrawals(
      tx,
      "included",
      receipts.map(({ withdrawalId, hash, blockNumber }) => ({
        id: withdrawalId,
        data: { txHash: hash, blockNumber },
      })),
    );
    const movedReceipts = receipts.filter(({ withdrawalId }) => moved.has(withdrawalId));
    await tx.query(
      `UPDATE nonce_slot s
          SET mined_hash = input.hash, block_number = input.block_number,
              block_hash = input.block_hash, gas_used = input.gas_used,
              effective_gas_price_atoken = input.price
         FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::numeric[],
                     $6::numeric[]) AS input (id, hash, block_number, block_hash, gas_used, price)
        WHERE s.id = input.id AND s.live`,
      [
        movedReceipts.map(({ slotId }) => slotId),
        movedReceipts.map(({ hash }) => hash),
        movedReceipts.map(({ blockNumber }) => blockNumber),
        movedReceipts.map(({ blockHash }) => blockHash),
        movedReceipts.map(({ gasUsed }) => gasUsed.toString()),
        movedReceipts.map(({ effectiveGasPriceAtoken }) => effectiveGasPriceAtoken.toString()),
      ],
    );
    await appendEvents(tx, events);
    return new Set(moved.keys());
  });
}

/** Where the open slot of a frozen withdrawal was found mined; undefined where it was not. */
export async function readInclusion(sql: Sql, id: WithdrawalId): Promise<Inclusion | undefined> {
  const [row] = await sql.query<SlotRow>(
    `${SELECT_LIVE_SLOT} WHERE s.withdrawal_id = $1 AND s.outcome IS NULL AND w.status = 'frozen'`,
    [id],
  );
  return row === undefined ? undefined : toLiveSlot(row).inclusion;
}

/**
 * Those that are recorded as they are: whoever read them may have stood still while another worker froze the
 * withdrawal and a person found it mined otherwise.
 */
export async function stillRecorded(
  tx: Sql,
  receipts: readonly SlotReceipt[],
): Promise<readonly SlotReceipt[]> {
  if (receipts.length === 0) return [];
  // Who records where one was mined holds it.
  await tx.query(
    `SELECT 1 FROM withdrawal WHERE id = ANY ($1::text[]) ORDER BY position FOR UPDATE`,
    [receipts.map(({ withdrawalId }) => withdrawalId)],
  );
  const rows = await tx.query<Record<"id" | "mined_hash" | "block_hash", string | null>>(
    `SELECT id::text, mined_hash, block_hash FROM nonce_slot WHERE id = ANY ($1::bigint[])`,
    [receipts.map(({ slotId }) => slotId)],
  );
  const recorded = new Map(rows.map((row) => [row.id, row]));
  return receipts.filter(({ slotId, hash, blockHash }) => {
    const row = recorded.get(slotId);
    return row?.mined_hash === hash && row.block_hash === blockHash;
  });
}
