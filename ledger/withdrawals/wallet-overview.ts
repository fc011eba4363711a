/** Every wallet's state of work in one read: what its worker last saw, what is reserved, who holds it. */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { keepsOthersOut } from "../lease.js";
import { readFreeze, type SigningFreeze } from "../requests/signing-freeze.js";
import {
  storedAddress,
  storedAtoken,
  storedHeight,
  storedInteger,
  storedTime,
} from "../stored-values.js";
import { isKeyHeld } from "../wallets/key-mark.js";
import type { Payer } from "../wallets/payer-choice.js";
import { type HotWallet, listWallets } from "../wallets/wallet.js";
import { isReserving } from "./slot-rows.js";

/** A wallet with its lane. */
export interface WalletLane extends HotWallet {
  /** What its worker last saw on the chain, after `seenHeight`; undefined before it looked. */
  readonly seenAtoken: Atoken | undefined;
  readonly seenHeight: Height | undefined;
  /** What its open slots may still take of it. */
  readonly reservedAtoken: Atoken;
  readonly openSlots: number;
  /** The nonce that the next slot gets; undefined before a worker opened it. */
  readonly nextNonce: bigint | undefined;
  /** Lowest nonce that is taken and not booked. */
  readonly oldestSlot:
    | { readonly nonce: bigint; readonly withdrawalId: string; readonly takenAt: string }
    | undefined;
  readonly freeze: SigningFreeze;
  /** The process that works for it now; undefined when none does. */
  readonly leaseHolder: string | undefined;
  /** A worker has said lately that it holds the key. */
  readonly isKeyHeld: boolean;
}

interface LaneRow {
  readonly wallet: string;
  readonly next_nonce: string;
  readonly seen: string | null;
  readonly seen_height: string | null;
  readonly holder: string | null;
  readonly key_held: boolean;
  readonly open: string;
  readonly reserved: string;
  readonly oldest_nonce: string | null;
  readonly oldest_withdrawal: string | null;
  readonly oldest_at: unknown;
}

/** SQL: of a row `h` of `hot_wallet` how many slots are open, and what they reserve of its seen balance. */
const LIVE_SLOTS = `
  SELECT count(*) AS open,
         coalesce(sum(reserved_atoken) FILTER (WHERE ${isReserving("h.seen_nonce")}), 0) AS reserved
    FROM nonce_slot s WHERE s.wallet = h.wallet AND s.outcome IS NULL`;

const SELECT_LANES = `
  SELECT h.wallet, h.next_nonce::text, h.seen_balance_atoken::text AS seen, h.seen_height::text,
         CASE WHEN ${keepsOthersOut("h.lease_expires_at")} THEN h.lease_owner END AS holder,
         ${isKeyHeld("h")} AS key_held,
         live.open::text, live.reserved::text, oldest.nonce::text AS oldest_nonce,
         oldest.withdrawal_id AS oldest_withdrawal, oldest.taken_at AS oldest_at
    FROM hot_wallet h
   CROSS JOIN LATERAL (${LIVE_SLOTS}) AS live
    LEFT JOIN LATERAL (
           SELECT nonce, withdrawal_id, taken_at FROM nonce_slot s
            WHERE s.wallet = h.wallet AND s.outcome IS NULL ORDER BY nonce LIMIT 1) AS oldest
      ON true`;

/** Reads all wallets, the first registered first. */
export async function readWalletOverview(sql: Sql): Promise<WalletLane[]> {
  const wallets = await listWallets(sql);
  const rows = await sql.query<LaneRow>(SELECT_LANES);
  const byWallet = new Map(rows.map((row) => [row.wallet, row]));
  const lanes: WalletLane[] = [];
  for (const wallet of wallets) {
    const row = byWallet.get(wallet.address);
    const freeze = await readFreeze(sql, wallet.address);
    lanes.push({ ...wallet, freeze, ...toLane(row) });
  }
  return lanes;
}

function toLane(row: LaneRow | undefined): Omit<WalletLane, keyof HotWallet | "freeze"> {
  const hasOldest = row !== undefined && row.oldest_nonce !== null;
  return {
    seenAtoken: row === undefined || row.seen === null ? undefined : storedAtoken(row.seen),
    seenHeight:
      row === undefined || row.seen_height === null ? undefined : storedHeight(row.seen_height),
    reservedAtoken: row === undefined ? 0n : storedAtoken(row.reserved),
    openSlots: row === undefined ? 0 : storedInteger(row.open),
    nextNonce: row === undefined ? undefined : storedAtoken(row.next_nonce),
    oldestSlot: hasOldest
      ? {
          nonce: storedAtoken(row.oldest_nonce),
          withdrawalId: row.oldest_withdrawal ?? "",
          takenAt: storedTime(row.oldest_at),
        }
      : undefined,
    leaseHolder: row?.holder ?? undefined,
    isKeyHeld: row?.key_held ?? false,
  };
}

/**
 * Wallets that can take a payment now as far as the tables say: active, held by a worker, not frozen
 * by their switch, their balance seen. In the order of their registration.
 */
export async function readPayers(sql: Sql): Promise<Payer[]> {
  const rows = await sql.query<{ wallet: string; free: string; open: string }>(
    `SELECT h.wallet, (h.seen_balance_atoken - live.reserved)::text AS free, live.open::text
       FROM wallet w
       JOIN hot_wallet h ON h.wallet = w.address
       LEFT JOIN signing_freeze f ON f.wallet = w.address
      CROSS JOIN LATERAL (${LIVE_SLOTS}) AS live
      WHERE w.status = 'active' AND f.frozen IS NOT TRUE AND h.seen_balance_atoken IS NOT NULL
        AND h.lease_owner IS NOT NULL AND ${keepsOthersOut("h.lease_expires_at")}
      ORDER BY w.place`,
  );
  return rows.map((row) => ({
    wallet: storedAddress(row.wallet),
    freeAtoken: storedAtoken(row.free),
    openSlots: storedInteger(row.open),
  }));
}

/**
 * Wallets that have nonces here and may still have paid, the first registered first.
 * @param wallet left out: the others are meant
 */
export async function readOtherWallets(sql: Sql, wallet?: Address): Promise<Address[]> {
  const rows = await sql.query<{ wallet: string }>(
    `SELECT h.wallet FROM hot_wallet h JOIN wallet w ON w.address = h.wallet
      WHERE h.wallet IS DISTINCT FROM $1::text AND w.status <> 'retired' ORDER BY w.place`,
    [wallet],
  );
  return rows.map((row) => storedAddress(row.wallet));
}
