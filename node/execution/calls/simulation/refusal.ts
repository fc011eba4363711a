/** Simulations that end with an error: geth's words, and which of its numbers belongs to them. */
import { toChecksumAddress } from "../../../../chain/address.js";
import type { BlockTransaction } from "../../../../chain/block.js";
import {
  intrinsicGas,
  MAX_INITCODE_BYTES,
  mostCostAtoken,
  type TransactionFaultCode,
} from "../../../../chain/transaction-rules.js";
import type { Atoken } from "../../../../chain/units.js";
import type { AccountRecord } from "../../../store/account-record.js";
import { CallError } from "../call-error.js";
import type { SimulationRefusal } from "../call-port.js";
import { belowBaseFeeText, fundsText, tipAboveFeeText } from "../call-run.js";

/** EIP-2681: no transaction has this nonce. */
const FIRST_IMPOSSIBLE_NONCE = 2n ** 64n - 1n;

/** A refusal on its way to the client. */
export function refused(refusal: SimulationRefusal, text: string): CallError {
  return new CallError("SIMULATION_REFUSED", text, { details: { refusal } });
}

/** Throws SIMULATION_REFUSED where fees or nonce rule the call out before any other check. */
export function checkCall(
  { tx, from }: BlockTransaction,
  { baseFeeAtoken, validation }: { baseFeeAtoken: Atoken; validation: boolean },
): void {
  const { maxFeePerGasAtoken, maxPriorityFeePerGasAtoken, gasLimit, nonce } = tx;
  const who = `address ${toChecksumAddress(from)}`;
  const refuse = (refusal: SimulationRefusal, text: string) =>
    refused(refusal, asGethWraps(text, gasLimit));
  if (nonce >= FIRST_IMPOSSIBLE_NONCE) {
    throw refuse("NONCE_EXHAUSTED", `nonce has max value: ${who}, nonce: ${nonce}`);
  }
  // A call that names no fees is free, unless the rules of real blocks were asked for.
  if (!validation && maxFeePerGasAtoken === 0n && maxPriorityFeePerGasAtoken === 0n) return;
  if (maxFeePerGasAtoken < maxPriorityFeePerGasAtoken) {
    throw refuse("TIP_ABOVE_FEE", tipAboveFeeText(from, tx));
  }
  if (maxFeePerGasAtoken < baseFeeAtoken) {
    throw refuse("FEE_BELOW_BASE_FEE", belowBaseFeeText(from, maxFeePerGasAtoken, baseFeeAtoken));
  }
}

/** Why the executor did not take the call, as geth says it. */
export function refusedBecause(
  code: TransactionFaultCode,
  transaction: BlockTransaction,
  sender: Sender,
): CallError {
  const describe = REFUSALS.get(code);
  // The others are ruled out before: a simulation's sender may be a contract, its gas is capped.
  if (describe === undefined) throw new TypeError(`a simulation cannot be refused by ${code}`);
  const [refusal, text] = describe(transaction, sender);
  return refused(refusal, asGethWraps(text, transaction.tx.gasLimit));
}

function asGethWraps(text: string, gasLimit: bigint): string {
  return `err: ${text} (supplied gas ${gasLimit})`;
}

/** Of the sender: its nonce, and what it may spend. */
type Sender = Pick<AccountRecord, "nonce" | "balanceAtoken">;

type Describe = (
  transaction: BlockTransaction,
  sender: Sender,
) => readonly [SimulationRefusal, string];

function nonceText({ tx, from }: BlockTransaction, sender: Sender): string {
  return `address ${toChecksumAddress(from)}, tx: ${tx.nonce} state: ${sender.nonce}`;
}

const REFUSALS: ReadonlyMap<TransactionFaultCode, Describe> = new Map<
  TransactionFaultCode,
  Describe
>([
  ["NONCE_TOO_LOW", (...of) => ["NONCE_TOO_LOW", `nonce too low: ${nonceText(...of)}`]],
  ["NONCE_TOO_HIGH", (...of) => ["NONCE_TOO_HIGH", `nonce too high: ${nonceText(...of)}`]],
  [
    "INSUFFICIENT_FUNDS",
    ({ tx, from }, { balanceAtoken }) => [
      "INSUFFICIENT_FUNDS",
      fundsText(from, balanceAtoken, mostCostAtoken(tx)),
    ],
  ],
  [
    "INTRINSIC_GAS_TOO_LOW",
    ({ tx }) => [
      "INTRINSIC_GAS_TOO_LOW",
      `intrinsic gas too low: have ${tx.gasLimit}, want ${intrinsicGas(tx)}`,
    ],
  ],
  [
    "INITCODE_TOO_LARGE",
    ({ tx }) => [
      "INITCODE_TOO_LARGE",
      `max initcode size exceeded: code size ${tx.data.length} limit ${MAX_INITCODE_BYTES}`,
    ],
  ],
]);
