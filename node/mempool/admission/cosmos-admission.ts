/**
 * What the pool holds a Cosmos transaction against before anything of it is kept, the cheap rules
 * first. The rules are the chain's (`chain/cosmos/ante.ts`).
 */
import type { Address } from "../../../chain/address.js";
import {
  balanceFault,
  type CosmosLimits,
  feeFault,
  memoFault,
  mostCosmosCostAtoken,
  mostStakedAtoken,
  senderOf,
  sequenceFault,
  signatureFault,
  staticCosmosFault,
  timeoutFault,
  timestampFault,
} from "../../../chain/cosmos/ante.js";
import type { CosmosTransaction } from "../../../chain/cosmos/cosmos-transaction.js";
import { decodeCosmosTransaction } from "../../../chain/cosmos/cosmos-transaction.js";
import { SDK_CODE, type SdkFault, sdkFault } from "../../../chain/cosmos/sdk-fault.js";
import { ChainError } from "../../../chain/errors.js";
import { routingFault } from "../../modules/message-router.js";
import { sizeFault } from "../../../chain/transaction-rules.js";
import { type DryCheckPorts, fundsFor, fundsOf, type PoolRules } from "./admission.js";
import { alreadyKnown, PoolError, refusalOf } from "../pool-error.js";

/** What no block can hold, whatever its state: it comes before anything that costs more. */
export function cosmosFault(tx: CosmosTransaction, limits: CosmosLimits): SdkFault | undefined {
  return staticCosmosFault(tx, limits) ?? routingFault(tx.messages) ?? signatureFault(tx, limits);
}

/** Fee and timeouts by this node's settings and head; asked before the signature is verified. */
export function ownCosmosFault(tx: CosmosTransaction, rules: PoolRules): SdkFault | undefined {
  return (
    staticCosmosFault(tx, rules) ??
    memoFault(tx) ??
    routingFault(tx.messages) ??
    feeFault(tx, rules.minGasPrice) ??
    voidFault(tx, rules)
  );
}

/**
 * Why no block after the head can hold a transaction; undefined where one can. It leaves the pool then, so
 * that its signer can use the sequence again for the same price.
 */
export function voidFault(
  tx: CosmosTransaction,
  rules: Pick<PoolRules, "headHeight" | "headTimeMs">,
): SdkFault | undefined {
  return timeoutFault(tx, rules.headHeight() + 1) ?? timestampFault(tx, rules.headTimeMs());
}

/**
 * The pool's refusal of a Cosmos transaction as it is now, without admitting it; undefined where
 * there is none.
 * @param expected the sender's next sequence, by its address
 */
export function dryCosmosCheck(
  raw: Uint8Array,
  { rules, state, isKnown }: DryCheckPorts,
  expected: (from: Address) => bigint,
): PoolError | undefined {
  const tooLarge = sizeFault(raw, rules.maxTransactionBytes);
  if (tooLarge !== undefined) return refusalOf(tooLarge);
  const tx = readCosmos(raw);
  if (tx instanceof PoolError) return tx;
  const own = ownCosmosFault(tx, rules);
  if (own !== undefined) return sdkRefusal(own);
  if (isKnown(tx.hash)) return alreadyKnown();
  const from = senderOf(tx);
  const fault =
    signatureFault(tx, rules) ??
    sequenceFault(expected(from), tx.nonce) ??
    balanceFault(fundsFor(fundsOf(state, from), mostStakedAtoken(tx)), mostCosmosCostAtoken(tx));
  return fault === undefined ? undefined : sdkRefusal(fault);
}

/** A fault as the pool's refusal. */
export function sdkRefusal({ code, codespace, log }: SdkFault): PoolError {
  return new PoolError("SDK_FAULT", log, { details: { sdkCode: code, codespace } });
}

/** Untrusted bytes, decoded, or the refusal with code 2. */
export function readCosmos(raw: Uint8Array): CosmosTransaction | PoolError {
  try {
    return decodeCosmosTransaction(raw);
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    return sdkRefusal(sdkFault(SDK_CODE.txDecode, error.message));
  }
}
