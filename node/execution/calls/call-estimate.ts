/**
 * Gas estimation in as few executions as geth needs: what the message spends at the cap nearly
 * always is the answer; only where a frame keeps a 64th back (EIP-150) does a search follow.
 */
import type { Address } from "../../../chain/address.js";
import { TRANSFER_GAS } from "../../../chain/transaction-rules.js";
import { EMPTY_CODE_HASH } from "../../../chain/hex.js";
import { EMPTY_ACCOUNT } from "../../store/account-record.js";
import type { StateReader } from "../../store/state-reader.js";
import { CallError } from "./call-error.js";
import type { CallRequest, CallResult } from "./call-port.js";
import { type MessageRunner, type RanOutcome, type RunOutcome, withFundsText } from "./call-run.js";
import { PRECOMPILES } from "../evm/evm.js";

/** Gas that a frame gets on top when value comes with a call. */
const CALL_STIPEND = 2_300n;
/** Up to here the search is exact; runs of dearer messages cost too much for that. */
const EXACT_BELOW_GAS = 1_000_000n;
/** Above it the search ends when the bounds are this close: 1 / 64, as geth's 1.5 %. */
const TOLERANCE_QUOTIENT = 64n;

/** What an estimate needs. */
export interface EstimateOptions {
  readonly runner: MessageRunner;
  readonly reader: StateReader;
  /** Most gas that is tried: a transaction's most, or the node's gas cap if that is less. */
  readonly capGas: bigint;
}

/** Answer of an estimate. */
export type Estimate =
  | { readonly outcome: "success"; readonly gas: bigint }
  | Exclude<CallResult, { outcome: "success" }>;

/**
 * Smallest gas limit with which the message succeeds (within a 64th above a million gas).
 * @throws INSUFFICIENT_FUNDS, GAS_ALLOWANCE_EXCEEDED with `allowance` in its details
 */
export async function estimateGas(
  request: CallRequest,
  options: EstimateOptions,
): Promise<Estimate> {
  const highest = await highestGas(request, options);
  const run = (gasLimit: bigint) => runAt(request, gasLimit, options.runner);
  if (await isPlainTransfer(request, options.reader)) {
    const transfer = highest < TRANSFER_GAS ? undefined : await run(TRANSFER_GAS);
    if (transfer !== undefined && isSuccess(transfer)) {
      return { outcome: "success", gas: TRANSFER_GAS };
    }
  }
  const first = await run(highest);
  if (first.kind === "invalid") {
    if (first.isGas) throw allowanceExceeded(highest);
    return { outcome: "error", error: first.error, gasUsed: 0n };
  }
  if (!isSuccess(first)) {
    if (first.isOutOfGas) throw allowanceExceeded(highest);
    const { returnData, gasUsed } = first;
    return first.isRevert
      ? { outcome: "revert", returnData, gasUsed }
      : { outcome: "error", error: first.error ?? "", gasUsed };
  }
  return { outcome: "success", gas: await smallest(first, highest, run) };
}

async function smallest(
  first: RanOutcome,
  highest: bigint,
  run: (gasLimit: bigint) => Promise<RunOutcome>,
): Promise<bigint> {
  const spent = first.gasUsed + first.refundedGas;
  // Less than it spent cannot be enough, unless the code looks at its gas: then it is a guess.
  if (spent >= highest) return highest;
  if (isSuccess(await run(spent))) return spent;
  let failing = spent;
  let succeeding = highest;
  const likely = ((spent + CALL_STIPEND) * 64n) / 63n;
  if (likely < succeeding) {
    if (isSuccess(await run(likely))) succeeding = likely;
    else failing = likely;
  }
  while (failing + 1n < succeeding) {
    const isExact = succeeding <= EXACT_BELOW_GAS;
    if (!isExact && (succeeding - failing) * TOLERANCE_QUOTIENT < succeeding) break;
    // The answer is rarely far above what was spent.
    const middle = (failing + succeeding) / 2n;
    const next = middle > failing * 2n ? failing * 2n : middle;
    if (isSuccess(await run(next))) succeeding = next;
    else failing = next;
  }
  return succeeding;
}

function isSuccess(outcome: RunOutcome): boolean {
  return outcome.kind === "ran" && outcome.error === undefined;
}

function runAt(request: CallRequest, gasLimit: bigint, runner: MessageRunner): Promise<RunOutcome> {
  return withFundsText(
    () => runner.run(request, { gasLimit }),
    (refusal) => `failed with ${gasLimit} gas: ${refusal}`,
  );
}

/** Upper bound of the search: what the caller, the chain and the sender's balance allow. */
async function highestGas(
  request: CallRequest,
  { reader, capGas }: EstimateOptions,
): Promise<bigint> {
  const { gasLimit, gasPriceAtoken, valueAtoken, from } = request;
  const asked = gasLimit === undefined || gasLimit < TRANSFER_GAS ? capGas : gasLimit;
  const highest = asked < capGas ? asked : capGas;
  if (gasPriceAtoken === 0n) return highest;
  const { balanceAtoken } = (await reader.account(from)) ?? EMPTY_ACCOUNT;
  if (valueAtoken > 0n && valueAtoken >= balanceAtoken) {
    throw new CallError("INSUFFICIENT_FUNDS", "insufficient funds for transfer", {
      details: { address: from, balanceAtoken, wantedAtoken: valueAtoken },
    });
  }
  const affordable = (balanceAtoken - valueAtoken) / gasPriceAtoken;
  return affordable < highest ? affordable : highest;
}

async function isPlainTransfer(
  { to, data, accessList }: CallRequest,
  reader: StateReader,
): Promise<boolean> {
  if (to === undefined || data.length > 0 || accessList.length > 0) return false;
  return !PRECOMPILES.has(to) && !(await hasCode(to, reader));
}

async function hasCode(address: Address, reader: StateReader): Promise<boolean> {
  return ((await reader.account(address))?.codeHash ?? EMPTY_CODE_HASH) !== EMPTY_CODE_HASH;
}

function allowanceExceeded(allowance: bigint): CallError {
  return new CallError("GAS_ALLOWANCE_EXCEEDED", `gas required exceeds allowance (${allowance})`, {
    details: { allowance },
  });
}
