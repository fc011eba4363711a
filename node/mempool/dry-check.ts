/**
 * What the pool would say to a transaction, without admitting it: `check_tx` of the consensus
 * RPC. The sender's other transactions count only by their nonces.
 */
import type { Address } from "../../chain/address.js";
import { ChainError } from "../../chain/errors.js";
import type { Hash32 } from "../../chain/hex.js";
import {
  decodeTransaction,
  effectiveGasPriceAtoken,
  recoverSender,
} from "../../chain/transaction.js";
import {
  checkCallGas,
  checkSender,
  checkSize,
  checkTransaction,
  type PoolRules,
  type StateAtHead,
} from "./admission.js";
import {
  alreadyKnown,
  fromChainError,
  insufficientFunds,
  nonceTooLow,
  type PoolError,
} from "./pool-error.js";

/** What a check reads. */
export interface DryCheckPorts {
  readonly rules: PoolRules;
  readonly state: StateAtHead;
  readonly isKnown: (hash: Hash32) => boolean;
}

/** The pool's refusal of raw bytes as they are now; undefined where there is none. */
export function dryCheck(raw: Uint8Array, ports: DryCheckPorts): PoolError | undefined {
  const { rules, state, isKnown } = ports;
  const tooLarge = checkSize(raw);
  if (tooLarge !== undefined) return tooLarge;
  try {
    const tx = decodeTransaction(raw);
    const early = checkTransaction(tx, rules);
    if (early !== undefined) return early;
    if (isKnown(tx.hash)) return alreadyKnown();
    const from: Address = recoverSender(tx);
    const refusal = checkSender(from, state) ?? checkCallGas(tx, rules, state);
    if (refusal !== undefined) return refusal;
    const nonce = state.nonce(from);
    if (tx.nonce < nonce) return nonceTooLow(nonce, tx.nonce);
    const costAtoken = tx.gasLimit * effectiveGasPriceAtoken(tx) + tx.valueAtoken;
    const balanceAtoken = state.balanceAtoken(from);
    if (costAtoken <= balanceAtoken) return undefined;
    const shortfall = { balanceAtoken, costAtoken, queuedCostAtoken: 0n };
    return insufficientFunds({ ...shortfall, replacedCostAtoken: undefined });
  } catch (error) {
    if (error instanceof ChainError) return fromChainError(error);
    throw error;
  }
}
