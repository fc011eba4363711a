/** Pure: what each answer of a node means for a withdrawal, and what follows from it. */
import type { Hash32 } from "../chain/hex.js";
import { TRANSFER_GAS } from "../chain/networks.js";
import type { Atoken } from "../chain/units.js";
import { RPC_CODES } from "../chain/evm/rpc-codes.js";
import type { RpcError } from "../rpc-client/errors.js";
import type { SendOutcome } from "../rpc-client/evm-client.js";
import { type SubmitRefusal, submitRefusalOf } from "../rpc-client/submit-refusal.js";

/**
 * What a node's answer to a raw transaction means:
 * - `sent`: the node has these bytes; they may or may not be mined, so watch on;
 * - `unknown`: nothing is known; keep the slot and send the same bytes again later;
 * - `node-broken`: the answer cannot be true; believe nothing of this node for a while;
 * - `nonce-consumed`: mined already, ours or foreign: only receipts can tell;
 * - `gap`: an earlier slot is missing there: send again from the lowest open slot, in order;
 * - `conflict`: another transaction with this nonce is in the pool;
 * - `no-funds`: nothing was consumed; pause the wallet, keep the slot;
 * - `price-too-low`, `gas-too-low`, `gas-too-high`: deterministic; next attempt on the same slot.
 */
export type SendMeaning =
  | { readonly kind: "sent" | "nonce-consumed" | "gap" | "conflict" | "no-funds" | "gas-too-high" }
  | { readonly kind: "unknown"; readonly reason: string }
  | { readonly kind: "node-broken"; readonly reason: string }
  | { readonly kind: "price-too-low"; readonly neededPriceAtoken: Atoken | undefined }
  | { readonly kind: "gas-too-low"; readonly neededGas: bigint | undefined };

/** Reads one answer to a raw transaction whose hash is known beforehand. */
export function meaningOfSend(outcome: SendOutcome, expectedHash: Hash32): SendMeaning {
  if (outcome.outcome === "accepted") {
    return outcome.hash === expectedHash
      ? { kind: "sent" }
      : { kind: "node-broken", reason: "it answered with the hash of other bytes" };
  }
  const text = outcome.error.nodeMessage;
  // Foreign nodes say "in cache" or "invalid nonce; got 5, expected 8" (Cosmos wording).
  if (/already exists in cache|tx already in mempool/i.test(text)) return { kind: "sent" };
  const cosmosNonce = /invalid nonce; got (\d{1,20}), expected (\d{1,20})/i.exec(text);
  if (cosmosNonce !== null) {
    const isLow = BigInt(cosmosNonce[1] ?? "0") < BigInt(cosmosNonce[2] ?? "0");
    return { kind: isLow ? "nonce-consumed" : "gap" };
  }
  return meaningOfRefusal(submitRefusalOf(outcome.error), text);
}

function meaningOfRefusal(refusal: SubmitRefusal, text: string): SendMeaning {
  switch (refusal) {
    case "ALREADY_KNOWN":
      return { kind: "sent" };
    case "NONCE_TOO_LOW":
      return { kind: "nonce-consumed" };
    case "NONCE_TOO_HIGH":
      return { kind: "gap" };
    case "REPLACEMENT_UNDERPRICED":
      return { kind: "conflict" };
    case "INSUFFICIENT_FUNDS":
      return { kind: "no-funds" };
    case "GAS_PRICE_TOO_LOW":
      return { kind: "price-too-low", neededPriceAtoken: neededNumber(text) };
    case "INTRINSIC_GAS_TOO_LOW":
      return { kind: "gas-too-low", neededGas: neededNumber(text) };
    case "GAS_LIMIT_EXCEEDED":
      return { kind: "gas-too-high" };
    case "WRONG_CHAIN_ID":
    case "TYPE_NOT_SUPPORTED":
    case "TRANSACTION_TOO_LARGE":
      return { kind: "node-broken", reason: `it refuses plain payments of this chain: ${text}` };
    default:
      // Full pools, a halted node, and every text that nobody wrote down: nothing is known.
      return { kind: "unknown", reason: text };
  }
}

/** "…, minimum needed N": what the node would take. */
function neededNumber(text: string): bigint | undefined {
  const match = /minimum needed (\d{1,60})/.exec(text);
  return match?.[1] === undefined ? undefined : BigInt(match[1]);
}

/** What an estimate says about a payment. */
export type EstimateMeaning =
  | { readonly kind: "payable"; readonly gas: bigint }
  /** The destination refuses: deterministic as far as anyone can tell now. */
  | { readonly kind: "refused-by-destination"; readonly reason: string }
  /** The wallet cannot cover it now. */
  | { readonly kind: "no-funds" }
  | { readonly kind: "unknown"; readonly reason: string };

/**
 * Execution's own words for a frame that failed, as geth and this chain's node write them. What is
 * not on this list never makes a withdrawal fail.
 */
const EXECUTION_FAULTS: readonly RegExp[] = [
  /execution reverted|\brevert/i,
  /invalid opcode|bad instruction|invalid jump/i,
  /out of gas|out of compute|gas required exceeds allowance/i,
  /stack (under|over)flow|write protection|max call depth/i,
];

/** Reads one answer to an estimate whose value the wallet's balance covered. */
export function meaningOfEstimate(
  outcome:
    | { readonly ok: true; readonly gas: bigint }
    | { readonly ok: false; readonly error: RpcError },
): EstimateMeaning {
  if (outcome.ok) {
    return outcome.gas >= TRANSFER_GAS
      ? { kind: "payable", gas: outcome.gas }
      : { kind: "unknown", reason: "its estimate is below the gas of a transfer" };
  }
  const { nodeMessage, rpc } = outcome.error;
  if (rpc.rpcCode === RPC_CODES.reverted)
    return { kind: "refused-by-destination", reason: nodeMessage };
  if (/insufficient (funds|balance)/i.test(nodeMessage)) return { kind: "no-funds" };
  return EXECUTION_FAULTS.some((pattern) => pattern.test(nodeMessage))
    ? { kind: "refused-by-destination", reason: nodeMessage }
    : { kind: "unknown", reason: nodeMessage };
}

/** What the evidence about a slot whose nonce is consumed on the chain amounts to. */
export type ConsumedNonceVerdict = "mined" | "look-again" | "freeze";

/**
 * Decides about a consumed nonce: a receipt of any attempt settles it; none, from a node at or
 * above the height where the nonce was read, is looked at again for a while (a node's indexes may
 * lag) and then freezes. It never leads to a second payment.
 */
export function verdictOnConsumedNonce(evidence: {
  readonly hasReceipt: boolean;
  /** Height of the node that was asked for receipts, and where the nonce was read. */
  readonly receiptsHeight: number;
  readonly nonceHeight: number;
  /** How long receipts have been missing, and how long that is borne. */
  readonly missingMs: number;
  readonly patienceMs: number;
}): ConsumedNonceVerdict {
  if (evidence.hasReceipt) return "mined";
  if (evidence.receiptsHeight < evidence.nonceHeight) return "look-again";
  return evidence.missingMs >= evidence.patienceMs ? "freeze" : "look-again";
}
