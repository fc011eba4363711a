/**
 * Refusals and failures as SDK chains number them: code, codespace and log in the SDK's words,
 * because wallets recognise them by these (cosmossdk.io/errors, types/errors).
 */

/** Codes of the SDK's root codespace. */
export const SDK_CODE = {
  txDecode: 2,
  invalidSequence: 3,
  unauthorized: 4,
  insufficientFunds: 5,
  unknownRequest: 6,
  invalidAddress: 7,
  invalidPublicKey: 8,
  invalidCoins: 10,
  outOfGas: 11,
  memoTooLarge: 12,
  insufficientFee: 13,
  noSignatures: 15,
  invalidRequest: 18,
  alreadyInMempool: 19,
  mempoolFull: 20,
  transactionTooLarge: 21,
  invalidHeight: 26,
  invalidChainId: 28,
  timeoutHeight: 30,
  unknownExtension: 31,
  wrongSequence: 32,
  notSupported: 37,
  notFound: 38,
  invalidGasLimit: 41,
  timeout: 42,
} as const;

/** The SDK's words of each code; they end every log. */
const TEXTS: Readonly<Record<number, string>> = {
  2: "tx parse error",
  3: "invalid sequence",
  4: "unauthorized",
  5: "insufficient funds",
  6: "unknown request",
  7: "invalid address",
  8: "invalid pubkey",
  10: "invalid coins",
  11: "out of gas",
  12: "memo too large",
  13: "insufficient fee",
  15: "no signatures supplied",
  18: "invalid request",
  19: "tx already in mempool",
  20: "mempool is full",
  21: "tx too large",
  26: "invalid height",
  28: "invalid chain-id",
  30: "tx timeout height",
  31: "unknown extension options",
  32: "incorrect account sequence",
  37: "feature not supported",
  38: "not found",
  41: "invalid gas limit",
  42: "tx timeout",
};

/** A refusal or failure; `code` is never 0. */
export interface SdkFault {
  readonly code: number;
  readonly codespace: string;
  readonly log: string;
}

/** A fault of the root codespace: `<what>: <the code's words>`. */
export function sdkFault(code: number, what: string): SdkFault {
  const words = TEXTS[code] ?? "internal";
  return { code, codespace: "sdk", log: what === "" ? words : `${what}: ${words}` };
}
