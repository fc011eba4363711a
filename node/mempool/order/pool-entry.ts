/** A transaction in the pool, with everything about it that is computed once. */
import type { Address } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import { measureSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { mostCosmosCostAtoken, mostStakedAtoken } from "../../../chain/cosmos/ante.js";
import type {
  AnyTransaction,
  CosmosTransaction,
} from "../../../chain/cosmos/cosmos-transaction.js";
import { decodedBytes } from "../../../chain/cosmos/decoded-bytes.js";
import { type Deadline, deadlineOf } from "../../../chain/cosmos/timeout-time.js";
import { effectiveGasPriceAtoken } from "../../../chain/transaction.js";
import { mostCostAtoken } from "../../../chain/transaction-rules.js";
import type { Atoken } from "../../../chain/units.js";

/** One admitted transaction. Entries are compared by identity: the same object is the same one. */
export interface PoolEntry {
  readonly tx: AnyTransaction;
  readonly from: Address;
  /** SHA-256 of it as an SDK Tx: how blocks name it, known before one comes. */
  readonly sdkHash: Hash32;
  /** Price really paid per gas, atoken (D7). */
  readonly priceAtoken: Atoken;
  /** Most that the transaction may cost its sender, atoken. */
  readonly costAtoken: Atoken;
  /** The part of it that locked coins pay as well, atoken. */
  readonly stakeAtoken: Atoken;
  /** Length of the raw bytes. */
  readonly sizeBytes: number;
  /** Length of it as an SDK Tx: as consensus carries it. */
  readonly carriedBytes: number;
  /** About the memory that it holds beside what every entry takes: what the pool's bytes count. */
  readonly weightBytes: number;
  /** Order of receipt; breaks price ties. */
  readonly sequence: number;
  /** Unix milliseconds. */
  readonly receivedAtMs: number;
  /** The same by the clock that nobody sets; long ago for what comes out of the journal. */
  readonly heldSinceMs: number;
  /** Refused unless it is the sender's next one: SDK chains keep no transactions behind a gap. */
  readonly isGapless: boolean;
  /** The last block that can hold it; undefined where any block can. */
  readonly deadline: Deadline | undefined;
}

/** One that no pool has yet: until it is handed on, its number may change. */
export type NewEntry = Omit<PoolEntry, "sequence"> & { sequence: number };

/** Builds the entry of a decoded transaction whose sender is known. */
export function createPoolEntry(
  tx: AnyTransaction,
  from: Address,
  receipt: {
    readonly sequence: number;
    readonly receivedAtMs: number;
    readonly heldSinceMs?: number;
    readonly isGapless?: boolean;
  },
): NewEntry {
  const isCosmos = tx.type === "cosmos";
  const carried = isCosmos
    ? { hash: tx.hash, sizeBytes: tx.raw.length }
    : measureSdkTransaction(tx, from);
  // One literal, spread from nothing: every transaction of the chain passes here.
  return {
    tx,
    from,
    sdkHash: carried.hash,
    priceAtoken: isCosmos ? cosmosPriceAtoken(tx) : effectiveGasPriceAtoken(tx),
    costAtoken: isCosmos ? mostCosmosCostAtoken(tx) : mostCostAtoken(tx),
    stakeAtoken: isCosmos ? mostStakedAtoken(tx) : 0n,
    sizeBytes: tx.raw.length,
    carriedBytes: carried.sizeBytes,
    weightBytes: decodedBytes(tx),
    sequence: receipt.sequence,
    receivedAtMs: receipt.receivedAtMs,
    heldSinceMs: receipt.heldSinceMs ?? Number.NEGATIVE_INFINITY,
    isGapless: receipt.isGapless ?? false,
    deadline: isCosmos ? deadlineOf(tx) : undefined,
  };
}

/** What a unit of the gas that it names is worth: its fee is paid in full. */
function cosmosPriceAtoken({ gasLimit, feeAtoken }: CosmosTransaction): Atoken {
  return gasLimit === 0n ? 0n : feeAtoken / gasLimit;
}

/** Entries by their senders, each sender's in the order given. */
export function bySender<Entry extends Pick<PoolEntry, "from">>(
  entries: readonly Entry[],
): ReadonlyMap<Address, readonly Entry[]> {
  const senders = new Map<Address, Entry[]>();
  for (const entry of entries) {
    const own = senders.get(entry.from);
    if (own === undefined) senders.set(entry.from, [entry]);
    else own.push(entry);
  }
  return senders;
}
