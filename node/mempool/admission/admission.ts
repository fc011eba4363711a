/**
 * What the pool holds a single transaction against, and its dry run: `check_tx` of the consensus
 * RPC. The rules themselves are the chain's (`chain/transaction-rules.ts`).
 */
import type { Address } from "../../../chain/address.js";
import { ChainError } from "../../../chain/errors.js";
import type { Hash32 } from "../../../chain/hex.js";
import {
  decodeTransaction,
  recoverSender,
  refusedType,
  type SignedTransaction,
} from "../../../chain/transaction.js";
import {
  fundsFault,
  mostCostAtoken,
  priceFault,
  senderFault,
  sizeFault,
  staticFault,
  type TransactionFault,
  type TransactionLimits,
} from "../../../chain/transaction-rules.js";
import type { GasPriceRational, Atoken } from "../../../chain/units.js";
import type { PoolEntry } from "../order/pool-entry.js";
import type { PoolLimits } from "../pool-limits.js";
import { alreadyKnown, fromChainError, type PoolError, refusalOf } from "../pool-error.js";
import type { SenderBounds } from "../order/sender-queue.js";

/** Synchronous reads of the committed state at the head; 0 and false for unknown accounts. */
export interface StateAtHead {
  /** Next nonce of the account. */
  nonce(address: Address): bigint;
  /** What of the balance is free. */
  balanceAtoken(address: Address): Atoken;
  /** The rest of it: locked coins, which can be delegated and nothing else (D14). */
  lockedAtoken(address: Address): Atoken;
  hasCode(address: Address): boolean;
}

/** What the chain and this node's settings ask of every transaction. */
export interface PoolRules extends TransactionLimits {
  /** Most raw bytes of a transaction. */
  readonly maxTransactionBytes: number;
  readonly cosmosChainId: string;
  /** Floor of a Cosmos transaction's price, atoken per gas, as the setting has it (D1). */
  readonly minGasPrice: GasPriceRational;
  /** Height of the newest block, for timeouts. */
  headHeight(): number;
  /** Its time, Unix milliseconds. */
  headTimeMs(): number;
  /** Floor of the effective price, atoken per gas (D1). */
  readonly minGasPriceAtoken: Atoken;
}

/**
 * Refusal of raw bytes that are too large to be decoded. A type that the chain refuses is named all the same:
 * with their blobs such transactions are always too large, and a smaller one would not be taken either.
 */
export function sizeRefusal(
  raw: Uint8Array,
  { maxTransactionBytes }: Pick<PoolRules, "maxTransactionBytes">,
): PoolError | undefined {
  const oversized = sizeFault(raw, maxTransactionBytes);
  if (oversized === undefined) return undefined;
  const ofType = refusedType(raw);
  return ofType === undefined ? refusalOf(oversized) : fromChainError(ofType);
}

/** Everything that depends on neither sender nor state: it comes before the costly recovery. */
export function ownFault(tx: SignedTransaction, rules: PoolRules): TransactionFault | undefined {
  return staticFault(tx, rules) ?? priceFault(tx, rules.minGasPriceAtoken);
}

/** A sender's coins at the head, atoken. */
export interface SenderFunds {
  readonly balanceAtoken: Atoken;
  readonly lockedAtoken: Atoken;
}

/** What a sender has for transactions that delegate so much of what they cost. */
export function fundsFor(
  { balanceAtoken, lockedAtoken }: SenderFunds,
  stakeAtoken: Atoken,
): Atoken {
  return balanceAtoken + (stakeAtoken < lockedAtoken ? stakeAtoken : lockedAtoken);
}

/** The sender's coins, by the state at the head. */
export function fundsOf(state: StateAtHead, from: Address): SenderFunds {
  return { balanceAtoken: state.balanceAtoken(from), lockedAtoken: state.lockedAtoken(from) };
}

/**
 * Why a transaction whose turn it is does not become executable; undefined where the pool only has to look
 * at it again, as it does with each block.
 */
export function waitReason(
  { from, costAtoken, stakeAtoken }: PoolEntry,
  bounds: SenderBounds | undefined,
  { state, limits }: { readonly state: StateAtHead; readonly limits: PoolLimits },
): string | undefined {
  const fault = fundsFault({
    balanceAtoken: fundsFor(fundsOf(state, from), (bounds?.pendingStakeAtoken ?? 0n) + stakeAtoken),
    costAtoken,
    earlierCostAtoken: bounds === undefined ? 0n : bounds.pendingCostAtoken,
  });
  if (fault !== undefined) return fault.message;
  const pendingCount = bounds === undefined ? 0 : Number(bounds.pendingEnd - bounds.firstNonce);
  return pendingCount < limits.executablePerSender ? undefined : "the account's limit is reached";
}

/** What a dry check reads. */
export interface DryCheckPorts {
  readonly rules: PoolRules;
  readonly state: StateAtHead;
  readonly isKnown: (hash: Hash32) => boolean;
}

/**
 * The pool's refusal of raw bytes as they are now, without admitting them; undefined where there
 * is none. The sender's other transactions count only by their nonces.
 */
export function dryCheck(raw: Uint8Array, ports: DryCheckPorts): PoolError | undefined {
  const tooLarge = sizeRefusal(raw, ports.rules);
  if (tooLarge !== undefined) return tooLarge;
  try {
    const tx = decodeTransaction(raw);
    const own = ownFault(tx, ports.rules);
    if (own !== undefined) return refusalOf(own);
    if (ports.isKnown(tx.hash)) return alreadyKnown();
    const fault = faultAtHead(tx, recoverSender(tx), ports.state);
    return fault === undefined ? undefined : refusalOf(fault);
  } catch (error) {
    if (error instanceof ChainError) return fromChainError(error);
    throw error;
  }
}

function faultAtHead(
  tx: SignedTransaction,
  from: Address,
  state: StateAtHead,
): TransactionFault | undefined {
  const account = { nonce: state.nonce(from), hasCode: state.hasCode(from) };
  return (
    senderFault(tx, from, account) ??
    fundsFault({
      balanceAtoken: state.balanceAtoken(from),
      costAtoken: mostCostAtoken(tx),
      earlierCostAtoken: 0n,
    })
  );
}
