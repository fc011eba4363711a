/**
 * Who holds a wallet's key says so in the wallet's row, again and again. A wallet that nobody has said it of
 * lately may have lost its key, whatever its status says: it pays nothing, and what comes to it may lie
 * there for ever. Nothing but the worker's lanes writes it.
 */
import type { Address } from "../../chain/address.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { keepsOthersOut } from "../lease.js";

/** How long it counts, in milliseconds: a worker's restart, or its node's, takes no wallet away. */
const KEY_HELD_MS = 120_000;

/** It is said again when so much of it is over, in milliseconds: seldom beside what lanes write. */
const SAID_AGAIN_MS = 15_000;

/** SQL: of a row of `hot_wallet`, whether a worker has said lately that it holds the key. */
export function isKeyHeld(row: string): string {
  return `${keepsOthersOut(`${row}.key_held_until`, String(KEY_HELD_MS))} IS TRUE`;
}

/**
 * So long behind the end of the last word of its key, in milliseconds, a wallet's worker may be away for an
 * update, or its host for a repair: its coins are given to nobody, and nobody is asked for others instead.
 * A word that lies ahead, of a clock that went back since, says nothing of that.
 */
const KEY_MISSED_MS = 900_000;

/** SQL: of a row of `hot_wallet`, whether nobody says that he holds the key, and somebody did lately. */
export function isKeyMissed(row: string): string {
  return `(NOT ${isKeyHeld(row)}
           AND ${row}.key_held_until BETWEEN
               clock_timestamp() - ${KEY_MISSED_MS} * interval '1 millisecond'
               AND clock_timestamp()) IS TRUE`;
}

/** SQL: of a row of `hot_wallet`, whether who holds the key should say so now. */
export function isKeyUnsaid(row: string): string {
  return `(${row}.key_held_until BETWEEN
             clock_timestamp() + ${KEY_HELD_MS - SAID_AGAIN_MS} * interval '1 millisecond'
             AND clock_timestamp() + ${KEY_HELD_MS} * interval '1 millisecond') IS NOT TRUE`;
}

/** Says that this process holds the wallet's key. Whether it works for the wallet makes no difference. */
export async function sayKeyHeld(sql: Sql, wallet: Address): Promise<void> {
  await sql.query(
    `UPDATE hot_wallet
        SET key_held_until = clock_timestamp() + $2::integer * interval '1 millisecond'
      WHERE wallet = $1`,
    [wallet, KEY_HELD_MS],
  );
}

/** What a backup says of keys is of its time: those who hold them say it anew. */
export async function forgetKeysHeld(tx: Sql): Promise<void> {
  await tx.query(`UPDATE hot_wallet SET key_held_until = NULL WHERE key_held_until IS NOT NULL`);
}
