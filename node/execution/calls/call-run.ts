/**
 * Executes messages that are no transactions over a fixed state, any number of times: each run
 * starts from the same state and leaves no trace. The rules are geth's for eth_call: intrinsic gas
 * is charged, the nonce is not checked, the balance only covers what the message itself names.
 */
import { weightsOf } from "../../../chain/evm/compute-weights.js";
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { EVM_FAILURE } from "../../../chain/evm/evm-failure.js";
import {
  intrinsicGas,
  MAX_INITCODE_BYTES,
  mostCostAtoken,
} from "../../../chain/transaction-rules.js";
import {
  type AccessListEntry,
  effectiveGasPriceAtoken,
  type GasFees,
} from "../../../chain/transaction.js";
import type { Atoken } from "../../../chain/units.js";
import { BalanceRecorder } from "../../state/balance-recorder.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { CallError } from "./call-error.js";
import type { CallRequest } from "./call-port.js";
import type { WorkerSettings } from "./call-protocol.js";
import { Engine } from "../interpreter/engine.js";
import { OUT_OF_COMPUTE } from "../interpreter/halt.js";
import { EXACT_STEPS, type MessageEnd, type Watcher } from "../interpreter/watcher.js";
import type { Message } from "../interpreter/frame-message.js";
import type { BlockContext } from "../message.js";
import type { AnyPrecompile } from "../native/table.js";
import type { RunResult } from "../transaction-engine.js";
import { destroy, leastComputeNs } from "../transaction-executor.js";

/** EIP-3529: at most a fifth of the gas used is refunded. */
const MAX_REFUND_QUOTIENT = 5n;

/** A message that was executed, with success or not. */
export interface RanOutcome {
  readonly kind: "ran";
  /** After the refund: what a transaction would pay for. */
  readonly gasUsed: bigint;
  readonly refundedGas: bigint;
  readonly returnData: Uint8Array;
  /** geth's text; undefined for success. */
  readonly error: string | undefined;
  readonly isRevert: boolean;
  /** More gas would have helped. */
  readonly isOutOfGas: boolean;
  readonly isOutOfCompute: boolean;
  /** Messages of its code that failed, whatever came of it; not counted where somebody watches. */
  readonly failedFrames: number;
}

/** What a run came to. */
export type RunOutcome =
  | RanOutcome
  /** The message cannot be executed at all; `isGas` when more gas would help. */
  | { readonly kind: "invalid"; readonly error: string; readonly isGas: boolean };

/** How one run differs from the request. */
export interface RunOptions {
  readonly gasLimit: bigint;
  /** Compute units at most; as many as a transaction may take where it is undefined. */
  readonly limitNs?: number;
  readonly accessList?: readonly AccessListEntry[];
  readonly watcher?: Watcher;
  /** Called before anything of the message happens to the state. */
  readonly beforehand?: () => void;
  /** Called with the state as the transaction would leave it, before it is undone. */
  readonly afterwards?: (outcome: RanOutcome) => void;
}

/** What messages are run on. */
export interface RunEnvironment {
  readonly settings: WorkerSettings;
  readonly state: JournaledState;
  readonly block: BlockContext;
  /** Where they are not those of fork and chain. */
  readonly precompiles?: ReadonlyMap<Address, AnyPrecompile>;
}

/** Runs messages over one state and block, on the engine and in the bounds of real blocks. */
export class MessageRunner {
  private readonly engine: Engine;

  constructor(private readonly environment: RunEnvironment) {
    const { settings, state, precompiles } = environment;
    const { chainId } = settings;
    const weights = weightsOf(settings.computeWeights);
    this.engine = new Engine({ chainId, state, weights, ...(precompiles && { precompiles }) });
  }

  /**
   * Executes the message once; the state is afterwards as before.
   * @throws INSUFFICIENT_FUNDS when the sender cannot cover value and, if it names a price, gas
   */
  run(request: CallRequest, options: RunOptions): RunOutcome {
    const outcome = this.attempt(request, options);
    const isAmbiguous = outcome.kind === "ran" && outcome.error !== undefined && !outcome.isRevert;
    if (!isAmbiguous || options.watcher !== undefined) return outcome;
    if (outcome.error === OUT_OF_COMPUTE.text) return outcome;
    // Blocks of code are checked as a whole; which instruction it was only shows step by step.
    return this.attempt(request, { ...options, watcher: { steps: EXACT_STEPS } });
  }

  /**
   * As `run`, within compute units that are fewer than a transaction may take. Undefined where they
   * were too few, or where only a second look would tell why it failed.
   */
  runWithin(request: CallRequest, gasLimit: bigint, limitNs: number): RunOutcome | undefined {
    const outcome = this.attempt(request, { gasLimit, limitNs });
    if (outcome.kind === "invalid" || outcome.isRevert) return outcome;
    return outcome.error === undefined && !outcome.isOutOfCompute ? outcome : undefined;
  }

  /**
   * As `run`, where nobody asks why it failed: only success or not is to be relied on.
   * @param mostFailedFrames with more of them it has not done what was wanted
   */
  succeeds(request: CallRequest, gasLimit: bigint, mostFailedFrames: number): boolean {
    const outcome = this.attempt(request, { gasLimit });
    if (outcome.kind === "invalid" || outcome.error !== undefined) return false;
    return outcome.failedFrames <= mostFailedFrames;
  }

  /** What of a sender's balance it may spend in this block; locked coins are left out. */
  spendableAtoken(from: Address): Atoken {
    return this.environment.state.spendableNow(from);
  }

  private attempt(request: CallRequest, options: RunOptions): RunOutcome {
    const { state, block, settings } = this.environment;
    const { gasLimit } = options;
    const frames = new FailedFrames();
    const { watcher = frames } = options;
    const accessList = options.accessList ?? request.accessList;
    const intrinsic = intrinsicGas({ ...request, accessList });
    const gasPriceAtoken = effectiveGasPriceAtoken(feesOf(request), block.baseFeeAtoken);
    const refusal =
      feeRefusal(request, block.baseFeeAtoken) ?? refusalOf(request, gasLimit, intrinsic);
    state.checkpoint();
    try {
      options.beforehand?.();
      this.buyGas({ ...request, gasPriceAtoken }, gasLimit);
      if (refusal !== undefined) return refusal;
      const message = { ...request, gasPriceAtoken, accessList, gasLimit: gasLimit - intrinsic };
      // As much as a transaction may take, so that what is answered here holds in a block.
      const { maxTransactionComputeNs, computeWeights } = settings;
      const mostNs = maxTransactionComputeNs - leastComputeNs(message, computeWeights);
      const limitNs = Math.min(options.limitNs ?? mostNs, mostNs);
      const result = this.engine.run(message, block, { limitNs, watcher });
      const outcome = outcomeOf(result, intrinsic, frames.count);
      if (options.afterwards !== undefined) {
        this.settle(request.from, { gasLimit, gasUsed: outcome.gasUsed, gasPriceAtoken }, result);
        options.afterwards(outcome);
      }
      return outcome;
    } finally {
      while (state.depth() > 0) state.revert();
    }
  }

  private buyGas(request: CallRequest, gasLimit: bigint): void {
    const { state } = this.environment;
    const { from, valueAtoken, gasPriceAtoken } = request;
    const balanceAtoken = this.spendableAtoken(from);
    const gasCostAtoken = gasLimit * gasPriceAtoken;
    // As a block demands it: at the fee cap, whatever less is taken.
    const wantedAtoken = mostCostAtoken({ ...feesOf(request), gasLimit, valueAtoken });
    if (balanceAtoken < wantedAtoken) {
      throw new CallError("INSUFFICIENT_FUNDS", fundsText(from, balanceAtoken, wantedAtoken), {
        details: { address: from, balanceAtoken, wantedAtoken },
      });
    }
    // Reserved while the code runs, so that BALANCE sees what it would in a transaction.
    if (gasCostAtoken > 0n) state.moveBalance(from, -gasCostAtoken);
  }

  /** What a transaction does behind its code: unused gas goes back, the fee to its collector. */
  private settle(
    from: Address,
    gas: {
      readonly gasLimit: bigint;
      readonly gasUsed: bigint;
      readonly gasPriceAtoken: Atoken;
    },
    result: RunResult,
  ): void {
    const { state, settings } = this.environment;
    const feeAtoken = gas.gasUsed * gas.gasPriceAtoken;
    const reservedAtoken = gas.gasLimit * gas.gasPriceAtoken;
    if (reservedAtoken > 0n) {
      state.moveBalance(from, reservedAtoken - feeAtoken);
      state.moveBalance(settings.feeCollector, feeAtoken);
    }
    destroy(result.destroyed, state, new BalanceRecorder());
  }
}

/** What a message is willing to pay for its gas. */
export function feesOf({ dynamicFees, gasPriceAtoken }: CallRequest): GasFees {
  return (
    dynamicFees ?? {
      maxFeePerGasAtoken: gasPriceAtoken,
      maxPriorityFeePerGasAtoken: gasPriceAtoken,
    }
  );
}

/** geth's text for fees that do not reach the base fee that a client has named. */
export function belowBaseFeeText(from: Address, feeAtoken: Atoken, baseFeeAtoken: Atoken): string {
  const who = `address ${toChecksumAddress(from)}`;
  const sums = `maxFeePerGas: ${feeAtoken}, baseFee: ${baseFeeAtoken}`;
  return `max fee per gas less than block base fee: ${who}, ${sums}`;
}

/** geth's text for a tip that is above what a unit of gas may cost at all. */
export function tipAboveFeeText(from: Address, fees: GasFees): string {
  const { maxFeePerGasAtoken, maxPriorityFeePerGasAtoken } = fees;
  const who = `address ${toChecksumAddress(from)}`;
  const tip = `maxPriorityFeePerGas: ${maxPriorityFeePerGasAtoken}`;
  const sums = `${tip}, maxFeePerGas: ${maxFeePerGasAtoken}`;
  return `max priority fee per gas higher than max fee per gas: ${who}, ${sums}`;
}

function feeRefusal(request: CallRequest, baseFeeAtoken = 0n): RunOutcome | undefined {
  const fees = feesOf(request);
  const { maxFeePerGasAtoken, maxPriorityFeePerGasAtoken } = fees;
  if (maxFeePerGasAtoken < maxPriorityFeePerGasAtoken) {
    return { kind: "invalid", error: tipAboveFeeText(request.from, fees), isGas: false };
  }
  // A message that names no fees is free, whatever the base fee.
  if (maxFeePerGasAtoken === 0n || maxFeePerGasAtoken >= baseFeeAtoken) return undefined;
  const error = belowBaseFeeText(request.from, maxFeePerGasAtoken, baseFeeAtoken);
  return { kind: "invalid", error, isGas: false };
}

/** Does `work`; a refusal for lack of funds gets the words that geth puts around it. */
export function withFundsText<T>(work: () => T, text: (refusal: string) => string): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof CallError) || cause.code !== "INSUFFICIENT_FUNDS") throw cause;
    const { message, details } = cause;
    throw new CallError("INSUFFICIENT_FUNDS", text(message), { details, cause });
  }
}

/** geth's text for a sender that cannot pay. */
export function fundsText(from: Address, haveAtoken: Atoken, wantAtoken: Atoken): string {
  const who = `address ${toChecksumAddress(from)} have ${haveAtoken} want ${wantAtoken}`;
  return `insufficient funds for gas * price + value: ${who}`;
}

function refusalOf(
  request: CallRequest,
  gasLimit: bigint,
  intrinsic: bigint,
): RunOutcome | undefined {
  if (request.to === undefined && request.data.length > MAX_INITCODE_BYTES) {
    const sizes = `code size ${request.data.length} limit ${MAX_INITCODE_BYTES}`;
    return { kind: "invalid", error: `max initcode size exceeded: ${sizes}`, isGas: false };
  }
  if (gasLimit < intrinsic) {
    const error = `intrinsic gas too low: have ${gasLimit}, want ${intrinsic}`;
    return { kind: "invalid", error, isGas: true };
  }
  return undefined;
}

/** Counts messages of code that fail. */
class FailedFrames implements Watcher {
  count = 0;

  leave({ depth }: Message, { halt }: MessageEnd): void {
    if (depth > 0 && halt !== undefined) this.count += 1;
  }
}

function outcomeOf(result: RunResult, intrinsic: bigint, failedFrames: number): RanOutcome {
  const spent = intrinsic + result.gasUsed;
  const most = spent / MAX_REFUND_QUOTIENT;
  const refundedGas = result.gasRefund < most ? result.gasRefund : most;
  const { output, errorText, isRevert, isOutOfCompute } = result;
  return {
    kind: "ran",
    gasUsed: spent - refundedGas,
    refundedGas,
    returnData: output.slice(),
    error: errorText,
    isRevert,
    isOutOfGas: errorText !== undefined && errorText.startsWith(EVM_FAILURE.outOfGas),
    isOutOfCompute,
    failedFrames,
  };
}
