/**
 * Executes messages that are no transactions over a fixed state, any number of times: each run
 * starts from the same state and leaves no trace. The rules are geth's for eth_call: intrinsic gas
 * is charged, the nonce is not checked, the balance only covers what the message itself names.
 */
import type { EVMResult } from "@ethereumjs/evm";
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { intrinsicGas, MAX_INITCODE_BYTES } from "../../../chain/transaction-rules.js";
import {
  type AccessListEntry,
  effectiveGasPriceAtoken,
  type GasFees,
} from "../../../chain/transaction.js";
import { EMPTY_ACCOUNT } from "../../store/account-record.js";
import { BalanceRecorder } from "../../state/balance-recorder.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { CallError } from "./call-error.js";
import { frameErrorText, isOutOfGas, isRevert } from "./call-evm-errors.js";
import type { CallRequest } from "./call-port.js";
import {
  type BlockContext,
  changePrecompiles,
  createMachine,
  type Machine,
  type PrecompileChanges,
} from "../evm/evm.js";

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
  readonly isOutOfGas: boolean;
}

/** What a run came to. */
export type RunOutcome =
  | RanOutcome
  /** The message cannot be executed at all; `isGas` when more gas would help. */
  | { readonly kind: "invalid"; readonly error: string; readonly isGas: boolean };

/** How one run differs from the request. */
export interface RunOptions {
  readonly gasLimit: bigint;
  readonly accessList?: readonly AccessListEntry[];
  /** Awaited before anything of the message happens to the state. */
  readonly beforehand?: () => void | Promise<void>;
  /** Awaited with the state as the message left it, before it is undone. */
  readonly afterwards?: (outcome: RanOutcome) => void | Promise<void>;
}

/** Runs messages over one state and block. */
export class MessageRunner {
  private constructor(
    readonly machine: Machine,
    private readonly state: JournaledState,
    private readonly block: BlockContext,
  ) {}

  static async create(
    chainId: bigint,
    state: JournaledState,
    { block, precompiles }: { block: BlockContext; precompiles?: PrecompileChanges },
  ): Promise<MessageRunner> {
    const machine = await createMachine(chainId, state);
    if (precompiles !== undefined) changePrecompiles(machine, precompiles);
    return new MessageRunner(machine, state, block);
  }

  /**
   * Executes the message once; the state is afterwards as before.
   * @throws INSUFFICIENT_FUNDS when the sender cannot cover value and, if it names a price, gas
   */
  async run(request: CallRequest, options: RunOptions): Promise<RunOutcome> {
    const { gasLimit } = options;
    const accessList = options.accessList ?? request.accessList;
    const intrinsic = intrinsicGas({ ...request, accessList });
    const gasPriceAtoken = effectiveGasPriceAtoken(feesOf(request), this.block.baseFeeAtoken);
    const refusal =
      feeRefusal(request, this.block.baseFeeAtoken) ?? refusalOf(request, gasLimit, intrinsic);
    this.state.checkpoint();
    try {
      await options.beforehand?.();
      await this.buyGas({ ...request, gasPriceAtoken }, gasLimit);
      if (refusal !== undefined) return refusal;
      const message = { ...request, gasPriceAtoken, accessList, gasLimit: gasLimit - intrinsic };
      const result = await this.machine.run(message, this.block, new BalanceRecorder());
      const outcome = outcomeOf(result, intrinsic);
      await options.afterwards?.(outcome);
      return outcome;
    } finally {
      while (this.state.depth() > 0) this.state.revert();
      this.machine.evm.journal.cleanJournal();
    }
  }

  private async buyGas(request: CallRequest, gasLimit: bigint): Promise<void> {
    const { from, valueAtoken, gasPriceAtoken } = request;
    const { balanceAtoken } = (await this.state.account(from)) ?? EMPTY_ACCOUNT;
    const gasCostAtoken = gasLimit * gasPriceAtoken;
    const wantedAtoken = gasCostAtoken + valueAtoken;
    if (balanceAtoken < wantedAtoken) {
      throw new CallError("INSUFFICIENT_FUNDS", fundsText(from, balanceAtoken, wantedAtoken), {
        details: { address: from, balanceAtoken, wantedAtoken },
      });
    }
    // Reserved while the code runs, so that BALANCE sees what it would in a transaction.
    if (gasCostAtoken > 0n) this.state.moveBalance(from, -gasCostAtoken);
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
export function belowBaseFeeText(from: Address, feeAtoken: bigint, baseFeeAtoken: bigint): string {
  const who = `address ${toChecksumAddress(from)}`;
  const sums = `maxFeePerGas: ${feeAtoken}, baseFee: ${baseFeeAtoken}`;
  return `max fee per gas less than block base fee: ${who}, ${sums}`;
}

function feeRefusal(request: CallRequest, baseFeeAtoken = 0n): RunOutcome | undefined {
  const { maxFeePerGasAtoken } = feesOf(request);
  // A message that names no fees is free, whatever the base fee.
  if (maxFeePerGasAtoken === 0n || maxFeePerGasAtoken >= baseFeeAtoken) return undefined;
  const error = belowBaseFeeText(request.from, maxFeePerGasAtoken, baseFeeAtoken);
  return { kind: "invalid", error, isGas: false };
}

/** Does `work`; a refusal for lack of funds gets the words that geth puts around it. */
export async function withFundsText<T>(
  work: () => Promise<T>,
  text: (refusal: string) => string,
): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof CallError) || cause.code !== "INSUFFICIENT_FUNDS") throw cause;
    const { message, details } = cause;
    throw new CallError("INSUFFICIENT_FUNDS", text(message), { details, cause });
  }
}

/** geth's text for a sender that cannot pay. */
export function fundsText(from: Address, haveAtoken: bigint, wantAtoken: bigint): string {
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

function outcomeOf({ execResult }: EVMResult, intrinsic: bigint): RanOutcome {
  const spent = intrinsic + execResult.executionGasUsed;
  const refundable = execResult.gasRefund ?? 0n;
  const most = spent / MAX_REFUND_QUOTIENT;
  const refundedGas = refundable < most ? refundable : most;
  return {
    kind: "ran",
    gasUsed: spent - refundedGas,
    refundedGas,
    returnData: execResult.returnValue.slice(),
    error: frameErrorText(execResult),
    isRevert: isRevert(execResult),
    isOutOfGas: isOutOfGas(execResult),
  };
}
