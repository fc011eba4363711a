/**
 * Gas estimation in as few executions as geth needs: what the message spends at the cap nearly
 * always is the answer; only where a frame keeps a 64th back (EIP-150) does a search follow. A message
 * whose code takes the failure of a call for an answer succeeds with less than that call needs, and
 * does not do what it was sent for: no more of its calls may fail than at the cap.
 */
import type { Address } from "../../../chain/address.js";
import { PRECOMPILE_ADDRESSES } from "../../../chain/evm/precompiles.js";
import { TRANSFER_GAS } from "../../../chain/networks.js";
import { EMPTY_CODE_HASH } from "../../../chain/hex.js";
import type { AccountRecord } from "../../store/account-record.js";
import type { StateReader } from "../../store/state-reader.js";
import { CallError } from "./call-error.js";
import type { CallRequest, CallResult } from "./call-port.js";
import { feesOf, type MessageRunner, type RanOutcome, withFundsText } from "./call-run.js";

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
 * Smallest gas limit with which the message succeeds (within a 64th above a million gas), and all of
 * its calls that succeed with the most gas.
 * @throws INSUFFICIENT_FUNDS, GAS_ALLOWANCE_EXCEEDED with `allowance` in its details
 */
export async function estimateGas(
  request: CallRequest,
  options: EstimateOptions,
): Promise<Estimate> {
  const highest = highestGas(request, options);
  const { runner } = options;
  const to = transferTo(request);
  if (to !== undefined && !hasCode(await options.reader.account(to))) {
    const estimate = transferEstimate(request, highest, runner);
    if (estimate !== undefined) return estimate;
  }
  const succeedsWith = (mostFailedFrames: number) => (gasLimit: bigint) =>
    isDone(request, runner, { gasLimit, mostFailedFrames });
  const first = inGethsWords(highest, () => runner.run(request, { gasLimit: highest }));
  if (first.kind === "invalid") {
    if (first.isGas) throw allowanceExceeded(highest);
    return { outcome: "error", error: failedWith(highest, first.error), gasUsed: 0n };
  }
  const { error, returnData, gasUsed, failedFrames } = first;
  if (error === undefined) {
    return { outcome: "success", gas: smallest(first, highest, succeedsWith(failedFrames)) };
  }
  if (first.isOutOfGas) throw allowanceExceeded(highest);
  return first.isRevert
    ? { outcome: "revert", returnData, gasUsed }
    : { outcome: "error", error, gasUsed };
}

/**
 * The same where no code is to be run, by a reader that answers at once: undefined for what may be no
 * payment to an account without code, and for one that fails.
 * @throws INSUFFICIENT_FUNDS
 */
export function estimateTransfer(
  request: CallRequest,
  reader: StateReader,
  optionsOf: () => Omit<EstimateOptions, "reader">,
): Estimate | undefined {
  const to = transferTo(request);
  if (to === undefined) return undefined;
  const account = reader.account(to);
  if (account instanceof Promise || hasCode(account)) return undefined;
  const options = optionsOf();
  return transferEstimate(request, highestGas(request, options), options.runner);
}

/** Of a payment to an account without code; undefined where it needs more than a transfer's gas, or fails. */
function transferEstimate(
  request: CallRequest,
  highest: bigint,
  runner: MessageRunner,
): Estimate | undefined {
  const transfer = { gasLimit: TRANSFER_GAS, mostFailedFrames: 0 };
  const isEnough = highest >= TRANSFER_GAS && isDone(request, runner, transfer);
  return isEnough ? { outcome: "success", gas: TRANSFER_GAS } : undefined;
}

function isDone(
  request: CallRequest,
  runner: MessageRunner,
  { gasLimit, mostFailedFrames }: { readonly gasLimit: bigint; readonly mostFailedFrames: number },
): boolean {
  return inGethsWords(gasLimit, () => runner.succeeds(request, gasLimit, mostFailedFrames));
}

function smallest(
  first: RanOutcome,
  highest: bigint,
  succeeds: (gasLimit: bigint) => boolean,
): bigint {
  const spent = first.gasUsed + first.refundedGas;
  // Less than it spent cannot be enough, unless the code looks at its gas: then it is a guess.
  if (spent >= highest) return highest;
  if (succeeds(spent)) return spent;
  let failing = spent;
  let succeeding = highest;
  const likely = ((spent + CALL_STIPEND) * 64n) / 63n;
  if (likely < succeeding) {
    if (succeeds(likely)) succeeding = likely;
    else failing = likely;
  }
  while (failing + 1n < succeeding) {
    const isExact = succeeding <= EXACT_BELOW_GAS;
    if (!isExact && (succeeding - failing) * TOLERANCE_QUOTIENT < succeeding) break;
    // The answer is rarely far above what was spent.
    const middle = (failing + succeeding) / 2n;
    const next = middle > failing * 2n ? failing * 2n : middle;
    if (succeeds(next)) succeeding = next;
    else failing = next;
  }
  return succeeding;
}

function inGethsWords<T>(gasLimit: bigint, work: () => T): T {
  return withFundsText(work, (refusal) => failedWith(gasLimit, refusal));
}

function failedWith(gasLimit: bigint, refusal: string): string {
  return `failed with ${gasLimit} gas: ${refusal}`;
}

/** Upper bound of the search: what the caller, the chain and the sender's free coins allow. */
function highestGas(
  request: CallRequest,
  { runner, capGas }: Omit<EstimateOptions, "reader">,
): bigint {
  const { gasLimit, valueAtoken, from } = request;
  const { maxFeePerGasAtoken } = feesOf(request);
  const asked = gasLimit === undefined || gasLimit < TRANSFER_GAS ? capGas : gasLimit;
  const highest = asked < capGas ? asked : capGas;
  if (maxFeePerGasAtoken === 0n) return highest;
  const balanceAtoken = runner.spendableAtoken(from);
  // Who sends nothing and has nothing lacks coins, too: clients tell their users so by this text.
  if (valueAtoken >= balanceAtoken) {
    throw new CallError("INSUFFICIENT_FUNDS", "insufficient funds for transfer", {
      details: { address: from, balanceAtoken, wantedAtoken: valueAtoken },
    });
  }
  const affordable = (balanceAtoken - valueAtoken) / maxFeePerGasAtoken;
  return affordable < highest ? affordable : highest;
}

/** Whom a message pays that does nothing else where there is no code. */
function transferTo({ to, data, accessList }: CallRequest): Address | undefined {
  const isBare = data.length === 0 && accessList.length === 0;
  return isBare && to !== undefined && !PRECOMPILE_ADDRESSES.has(to) ? to : undefined;
}

function hasCode(account: AccountRecord | undefined): boolean {
  return (account?.codeHash ?? EMPTY_CODE_HASH) !== EMPTY_CODE_HASH;
}

function allowanceExceeded(allowance: bigint): CallError {
  return new CallError("GAS_ALLOWANCE_EXCEEDED", `gas required exceeds allowance (${allowance})`, {
    details: { allowance },
  });
}
