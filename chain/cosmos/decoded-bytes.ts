/**
 * Memory that a decoded transaction takes for what it holds. Lists take many times their bytes on the wire:
 * an address is 21 bytes there and a text in an object here, an empty coin is two bytes.
 */
import type { AnyTransaction } from "./cosmos-transaction.js";

/** An entry of an access list: its object, its list and its address as hex text. */
const ACCESS_LIST_ENTRY_BYTES = 140;

/** A storage key as hex text. */
const STORAGE_KEY_BYTES = 100;

/** A message inside a Cosmos transaction, without its texts. */
const MESSAGE_BYTES = 180;

/**
 * About the bytes that a transaction holds beside what every one takes. The length of the raw bytes where
 * it has no lists; nothing is walked but the access list.
 */
export function decodedBytes(tx: AnyTransaction): number {
  // Texts and bytes of messages are copies.
  if (tx.type === "cosmos") return 2 * tx.raw.length + tx.messageCount * MESSAGE_BYTES;
  let sizeBytes = tx.raw.length;
  for (const { storageKeys } of tx.accessList) {
    sizeBytes += ACCESS_LIST_ENTRY_BYTES + storageKeys.length * STORAGE_KEY_BYTES;
  }
  return sizeBytes;
}
