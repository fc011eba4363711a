/**
 * Executes messages that are no transactions over a fixed state, any number of times: each run
 * starts from the same state and leaves no trace. The rules are geth's for eth_call: intrinsic gas
 * is charged, the nonce is not checked, the balance only covers what the message itself names.
 */
import type { EVMResult } from "@ethereumjs/evm";
import { type Address, toChecksumAddress } from "../../chain/address.js";
import { intrinsicGas, MAX_INITCODE_BYTES } from "../../chain/gas.js";
import type { AccessListEntry } from "../../chain/transaction.js";
import { EMPTY_ACCOUNT } from "../store/account-record.js";
import { BalanceRecorder } from "../state/balance-recorder.js";
import type { JournaledState } from "../state/journaled-state.js";
import { CallError } from "./call-error.js";
import { frameErrorText, isOutOfGas, isRevert } from "./call-evm-errors.js";
import type { CallRequest } from "./call-port.js";
import { type BlockContext, createMachine, type Machine } from "./evm.js";
import { toAddress } from "./evm-state.js";

/** EIP-3529: at most a fifth of the gas used is refunded. */
const MAX_REFUND_QUOTIENT = 5n;

/** What a run came to. */
export type RunOutcome =
  /** The message cannot be executed at all; `isGas` when more gas would help. */
  | { readonly kind: "invalid"; readonly error: string; readonly isGas: boolean }
  | {
      readonly kind: "ran";
      /** After the refund: what a transaction would pay for. */
      readonly gasUsed: bigint;
      readonly refundedGas: bigint;
      readonly returnData: Uint8Array;
      /** geth's text; undefined for success. */
      readonly error: string | undefined;
      readonly isRevert: boolean;
      readonly isOutOfGas: boolean;
      readonly contractAddress: Address | undefined;
    };

/** How one run differs from the request. */
export interface RunOptions {
  readonly gasLimit: bigint;
  readonly accessList?: readonly AccessListEntry[];
  /** Called with the state as the message left it, before it is undone. */
  readonly afterwards?: () => void;
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
    block: BlockContext,
  ): Promise<MessageRunner> {
    return new MessageRunner(await createMachine(chainId, state), state, block);
  }

  /**
   * Executes the message once; the state is afterwards as before.
   * @throws INSUFFICIENT_FUNDS when the sender cannot cover value and, if it names a price, gas
   */
  async run(request: CallRequest, options: RunOptions): Promise<RunOutcome> {
    const { gasLimit } = options;
    const accessList = options.accessList ?? request.accessList;
    const intrinsic = intrinsicGas({ ...request, accessList });
    const refusal = refusalOf(request, gasLimit, intrinsic);
    this.state.checkpoint();
    try {
      await this.buyGas(request, gasLimit);
      if (refusal !== undefined) return refusal;
      const message = { ...request, accessList, gasLimit: gasLimit - intrinsic };
      const result = await this.machine.run(message, this.block, new BalanceRecorder());
      const outcome = outcomeOf(result, intrinsic);
      options.afterwards?.();
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

function fundsText(from: Address, haveAtoken: bigint, wantAtoken: bigint): string {
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

function outcomeOf({ execResult, createdAddress }: EVMResult, intrinsic: bigint): RunOutcome {
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
    contractAddress: createdAddress === undefined ? undefined : toAddress(createdAddress),
  };
}
