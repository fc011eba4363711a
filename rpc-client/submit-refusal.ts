/** What a refusal of `eth_sendRawTransaction` means: this node's codes, or geth's texts. */
import type { RpcError } from "./errors.js";

/**
 * Meaning of a refusal. ALREADY_KNOWN is a success for whoever sent the same bytes before.
 * OTHER is a text this table does not know.
 */
export type SubmitRefusal =
  | "ALREADY_KNOWN"
  | "NONCE_TOO_LOW"
  | "NONCE_TOO_HIGH"
  | "REPLACEMENT_UNDERPRICED"
  | "GAS_PRICE_TOO_LOW"
  | "INTRINSIC_GAS_TOO_LOW"
  | "GAS_LIMIT_EXCEEDED"
  | "INSUFFICIENT_FUNDS"
  | "WRONG_CHAIN_ID"
  | "TYPE_NOT_SUPPORTED"
  | "POOL_FULL"
  | "ACCOUNT_LIMIT"
  | "TRANSACTION_TOO_LARGE"
  | "NODE_HALTED"
  | "OTHER";

/** This chain's node names the reason in the error's `data.reason`: its pool's code. */
const REASONS: Readonly<Record<string, SubmitRefusal>> = {
  ALREADY_KNOWN: "ALREADY_KNOWN",
  NONCE_TOO_LOW: "NONCE_TOO_LOW",
  NONCE_TOO_HIGH: "NONCE_TOO_HIGH",
  REPLACEMENT_UNDERPRICED: "REPLACEMENT_UNDERPRICED",
  GAS_PRICE_BELOW_MINIMUM: "GAS_PRICE_TOO_LOW",
  INTRINSIC_GAS_TOO_LOW: "INTRINSIC_GAS_TOO_LOW",
  GAS_LIMIT_EXCEEDED: "GAS_LIMIT_EXCEEDED",
  INSUFFICIENT_FUNDS: "INSUFFICIENT_FUNDS",
  INVALID_CHAIN_ID: "WRONG_CHAIN_ID",
  UNPROTECTED: "WRONG_CHAIN_ID",
  TYPE_NOT_SUPPORTED: "TYPE_NOT_SUPPORTED",
  POOL_FULL: "POOL_FULL",
  // Full of what pays more: the same bytes may get in later.
  UNDERPRICED: "POOL_FULL",
  ACCOUNT_LIMIT: "ACCOUNT_LIMIT",
  TRANSACTION_TOO_LARGE: "TRANSACTION_TOO_LARGE",
  INITCODE_TOO_LARGE: "TRANSACTION_TOO_LARGE",
  NODE_HALTED: "NODE_HALTED",
};

/**
 * Texts in the order they are tried, for nodes that name no reason: JSON-RPC gives all of them the
 * number -32000, so geth's wording is the only key.
 */
const TEXTS: readonly (readonly [RegExp, SubmitRefusal])[] = [
  [/already known/i, "ALREADY_KNOWN"],
  [/nonce too low/i, "NONCE_TOO_LOW"],
  [/nonce too high|nonce has max value/i, "NONCE_TOO_HIGH"],
  [/replacement transaction underpriced/i, "REPLACEMENT_UNDERPRICED"],
  [/below minimum|transaction underpriced/i, "GAS_PRICE_TOO_LOW"],
  [/intrinsic gas too low/i, "INTRINSIC_GAS_TOO_LOW"],
  [/exceeds block gas limit|gas limit (too high|exceeded)/i, "GAS_LIMIT_EXCEEDED"],
  [/insufficient funds/i, "INSUFFICIENT_FUNDS"],
  [/invalid chain id|replay-protected/i, "WRONG_CHAIN_ID"],
  [/transaction type not (supported|valid)/i, "TYPE_NOT_SUPPORTED"],
  [/txpool is full/i, "POOL_FULL"],
  [/account limit exceeded/i, "ACCOUNT_LIMIT"],
  [/oversized data|transaction too large|max initcode size exceeded/i, "TRANSACTION_TOO_LARGE"],
  [/halted|cannot accept transactions/i, "NODE_HALTED"],
];

/** Classifies a refusal of a raw transaction. */
export function submitRefusalOf(error: RpcError): SubmitRefusal {
  const reason = reasonOf(error.rpc.data);
  if (reason !== undefined) return reason;
  return TEXTS.find(([pattern]) => pattern.test(error.nodeMessage))?.[1] ?? "OTHER";
}

function reasonOf(data: unknown): SubmitRefusal | undefined {
  if (typeof data !== "object" || data === null || !("reason" in data)) return undefined;
  const { reason } = data;
  return typeof reason === "string" && Object.hasOwn(REASONS, reason) ? REASONS[reason] : undefined;
}
