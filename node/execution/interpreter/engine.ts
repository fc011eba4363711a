/**
 * An EVM of our own (Cancun, D19): synchronous, over the journaled state of a block. The other
 * engine, @ethereumjs/evm, is held against it by tests.
 */
import type { Address } from "../../../chain/address.js";
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import type { ComputeWeights } from "../../../chain/evm/compute-weights.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { EMPTY_ACCOUNT } from "../../store/account-record.js";
import type { BlockContext, EvmMessage } from "../message.js";
import { ALL_PRECOMPILES, type AnyPrecompile } from "../native/table.js";
import { PRECOMPILE_ADDRESSES, PRECOMPILES_BY_NAME } from "../../../chain/evm/precompiles.js";
import type { RunResult, RunTerms, TransactionEngine } from "../transaction-engine.js";
import { BlockReads } from "./block-reads.js";
import type { Code, Execution } from "./frame.js";
import { MESSAGE_OPCODES } from "./frame-message.js";
import { REVERTED } from "./halt.js";
import { Interpreter } from "./interpreter.js";
import { Substate } from "./substate.js";

const FORK_PRECOMPILES: ReadonlySet<Address> = new Set(PRECOMPILES_BY_NAME.values());

/** Precompiled contracts are warm; without facts of the chain those of the fork only. */
function alwaysWarm({ native }: BlockContext): ReadonlySet<Address> {
  return native === undefined ? FORK_PRECOMPILES : PRECOMPILE_ADDRESSES;
}

/** One engine over the state of one block; it runs one message at a time. */
export class Engine implements TransactionEngine {
  private readonly precompiles: ReadonlyMap<Address, AnyPrecompile>;
  private readonly reads: BlockReads<Code>;

  constructor(
    private readonly options: {
      readonly chainId: bigint;
      readonly state: JournaledState;
      /** What compute units are counted by. */
      readonly weights: ComputeWeights;
      /** Where they are not those of fork and chain. */
      readonly precompiles?: ReadonlyMap<Address, AnyPrecompile>;
    },
  ) {
    this.precompiles = options.precompiles ?? ALL_PRECOMPILES;
    this.reads = new BlockReads(options.weights.keptCodeBytes);
  }

  /**
   * Runs a message and raises its sender's nonce, also where it fails. The state must have been
   * able to pay: a value that the sender does not have ends in "insufficient balance".
   */
  run(
    message: EvmMessage,
    block: BlockContext,
    { recorder, limitNs, watcher }: RunTerms,
  ): RunResult {
    const { state, chainId, weights } = this.options;
    const substate = new Substate(alwaysWarm(block));
    this.warmUp(substate, message, block);
    state.beginTransaction();
    this.reads.begin();
    const sender = state.accountNow(message.from) ?? EMPTY_ACCOUNT;
    state.putAccount(message.from, { ...sender, nonce: sender.nonce + 1n });
    const { from: origin, gasPriceAtoken } = message;
    const meter = { leftNs: limitNs };
    const fixed = { weights, block, chainId, origin, gasPriceAtoken };
    const { reads } = this;
    const execution: Execution = { meter, state, reads, substate, ...fixed, watcher };
    if (recorder !== undefined) {
      state.balanceListener = (address, deltaAtoken) => {
        recorder.balanceChanged(address, deltaAtoken);
      };
    }
    try {
      return this.execute(execution, message, { nonce: sender.nonce, recorder, limitNs });
    } finally {
      state.balanceListener = undefined;
    }
  }

  private execute(
    execution: Execution,
    message: EvmMessage,
    { nonce, recorder, limitNs }: RunTerms & { readonly nonce: bigint },
  ): RunResult {
    const { from, to, valueAtoken, data: input } = message;
    const { substate, meter } = execution;
    const gas = Number(message.gasLimit);
    // Beyond it a number no longer counts by ones, and a loop would run for ever.
    if (!Number.isSafeInteger(gas)) throw new RangeError("no message has 2^53 gas");
    const created = to === undefined ? contractAddressOf(from, nonce) : undefined;
    if (created !== undefined) substate.warmAddress(created);
    const result = new Interpreter(execution, this.precompiles, recorder).run({
      kind: to === undefined ? "CREATE" : "CALL",
      opcode: to === undefined ? MESSAGE_OPCODES.CREATE : MESSAGE_OPCODES.CALL,
      caller: from,
      to,
      codeAddress: to ?? created,
      valueAtoken,
      input,
      gas,
      isStatic: false,
      depth: 0,
    });
    const isWell = result.halt === undefined;
    return {
      error: result.halt?.message,
      errorText: result.halt?.text,
      isRevert: result.halt === REVERTED,
      gasUsed: BigInt(gas - result.gasLeft),
      gasRefund: isWell ? BigInt(substate.refundGas) : 0n,
      output: result.output,
      logs: substate.logs,
      createdAddress: result.createdAddress,
      destroyed: isWell ? [...substate.destroyed] : [],
      computeNs: limitNs - Math.max(0, meter.leftNs),
      isOutOfCompute: meter.leftNs < 0,
    };
  }

  /** The state has its effects; what it has read is known here alone. */
  finish(isIncluded: boolean): void {
    this.reads.finish(isIncluded);
  }

  /** EIP-2929, EIP-2930, EIP-3651: what else is warm before the first instruction. */
  private warmUp(substate: Substate, message: EvmMessage, block: BlockContext): void {
    substate.warmAddress(message.from);
    if (message.to !== undefined) substate.warmAddress(message.to);
    substate.warmAddress(block.coinbase);
    for (const { address, storageKeys } of message.accessList) {
      substate.warmAddress(address);
      for (const slot of storageKeys) substate.warmSlot(address, BigInt(slot));
    }
  }
}
