/** What every node of the chain refuses for ever, known without asking one, before anything is signed. */
import { type Hex, hexToBytes } from "../../chain/hex.js";
import { encodeSignedLegacy, type LegacyIntent } from "../../chain/transaction.js";
import { intrinsicGas, MAX_TRANSACTION_BYTES, sizeFault } from "../../chain/transaction-rules.js";
import type { Atoken } from "../../chain/units.js";
import { callOf, type Intent } from "../rosetta/evm-call.js";
import { SidecarError } from "../rosetta/errors.js";

/** Facts of a transaction as far as they are known. */
export interface KnownFacts {
  readonly chainId?: bigint;
  readonly nonce: bigint | undefined;
  readonly gasPriceAtoken: Atoken | undefined;
  readonly gasLimit: bigint | undefined;
  /** Calldata of a CALL, `0x` for none; that of other intents follows from them. */
  readonly data: Hex;
}

/** The largest signature; most have as many bytes. */
const SIGNATURE = {
  r: new Uint8Array(32).fill(0xff),
  s: new Uint8Array(32).fill(0xff),
  recoveryId: 1,
};

/**
 * Refuses a gas limit below what the transaction costs before any code runs, and more bytes, the signature
 * included, than a pool takes. What is not known yet counts as little as it can.
 * @throws INTRINSIC_GAS_TOO_LOW, TRANSACTION_TOO_LARGE
 */
export function checkStaticRules(intent: Intent, facts: KnownFacts): void {
  const { chainId = 0n, nonce = 0n, gasPriceAtoken = 0n, gasLimit = 0n } = facts;
  const { to, valueAtoken, data: calldata } = callOf(intent, facts.data);
  const data = hexToBytes(calldata);
  if (facts.gasLimit !== undefined) checkGasLimit({ to, data }, facts.gasLimit);
  checkSize({ chainId, nonce, gasPriceAtoken, gasLimit, to, valueAtoken, data });
}

function checkGasLimit(call: Pick<LegacyIntent, "to" | "data">, gasLimit: bigint): void {
  const needed = intrinsicGas({ ...call, accessList: [] });
  if (gasLimit >= needed) return;
  throw new SidecarError("INTRINSIC_GAS_TOO_LOW", {
    gas_limit: gasLimit.toString(),
    needed: needed.toString(),
  });
}

function checkSize(legacy: LegacyIntent): void {
  const raw = encodeSignedLegacy(legacy, SIGNATURE);
  if (sizeFault(raw) === undefined) return;
  throw new SidecarError("TRANSACTION_TOO_LARGE", {
    size_bytes: raw.length,
    limit_bytes: MAX_TRANSACTION_BYTES,
  });
}
