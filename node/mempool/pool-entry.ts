/** A transaction in the pool, with everything about it that is computed once. */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import { sdkTransactionHash } from "../../chain/consensus/sdk-transaction.js";
import { effectiveGasPriceAtoken, type SignedTransaction } from "../../chain/transaction.js";
import { mostCostAtoken } from "../../chain/transaction-rules.js";
import type { PendingTransaction } from "../view/event-bus.js";

/** One admitted transaction. Entries are compared by identity: the same object is the same one. */
export interface PoolEntry extends PendingTransaction {
  /** SHA-256 of the SDK Tx around it: how blocks name it, known before one comes. */
  readonly sdkHash: Hash32;
  /** Price really paid per gas, atoken (D7). */
  readonly priceAtoken: bigint;
  /** Most that the transaction may cost its sender, atoken. */
  readonly costAtoken: bigint;
  /** Length of the raw bytes. */
  readonly sizeBytes: number;
  /** Order of receipt; breaks price ties. */
  readonly sequence: number;
  /** Unix milliseconds. */
  readonly receivedAtMs: number;
}

/** Builds the entry of a decoded transaction whose sender is known. */
export function createPoolEntry(
  tx: SignedTransaction,
  from: Address,
  receipt: { readonly sequence: number; readonly receivedAtMs: number },
): PoolEntry {
  const priceAtoken = effectiveGasPriceAtoken(tx);
  return {
    tx,
    from,
    sdkHash: sdkTransactionHash(tx, from),
    priceAtoken,
    costAtoken: mostCostAtoken(tx),
    sizeBytes: tx.raw.length,
    sequence: receipt.sequence,
    receivedAtMs: receipt.receivedAtMs,
  };
}
