/**
 * One transaction over the state: checks, fee, execution, receipt, and the balance journal of
 * what moved. A transaction that is not valid here changes nothing and is not included.
 */
import type { Address } from "../../chain/address.js";
import { errorCode } from "../../chain/errors.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import type { BlockTransaction } from "../../chain/block.js";
import type { AbciEvent } from "../../chain/consensus/abci-types.js";
import { contractAddressOf } from "../../chain/evm/contract-address.js";
import { EMPTY_CODE_HASH } from "../../chain/hex.js";
import { logsToBloom, type Receipt } from "../../chain/receipt.js";
import { effectiveGasPriceAtoken, type SignedTransaction } from "../../chain/transaction.js";
import {
  executionFault,
  intrinsicGas,
  staticFault,
  type TransactionFault,
  type TransactionFaultCode,
  type TransactionLimits,
} from "../../chain/transaction-rules.js";
import { type AccountRecord, EMPTY_ACCOUNT } from "../store/account-record.js";
import { StoreError } from "../store/database.js";
import type { MaybePromise } from "../store/state-reader.js";
import { BalanceRecorder } from "../state/balance-recorder.js";
import type { JournaledState } from "../state/journaled-state.js";
import { PRECOMPILE_ADDRESSES } from "../../chain/evm/precompiles.js";
import type { BlockContext, EvmMessage } from "./message.js";
import { type WeightsVersion, weightsOf } from "../../chain/evm/compute-weights.js";
import type { Atoken } from "../../chain/units.js";
import type { Watcher } from "./interpreter/watcher.js";
import type { RunResult, TransactionEngine } from "./transaction-engine.js";

/** EIP-3529: at most a fifth of the gas used is refunded. */
const MAX_REFUND_QUOTIENT = 5n;

/** A store that cannot be read says nothing of a transaction, and must not look as if it did. */
export function isStoreFault(cause: unknown): boolean {
  return cause instanceof StoreError || errorCode(cause).startsWith("LEVEL_");
}

/** Outcome of one transaction. */
export type TransactionOutcome =
  | {
      readonly included: true;
      readonly receipt: Omit<Receipt, "cumulativeGasUsed">;
      readonly changes: readonly BalanceChange[];
      /** Of modules that the code called; absent where no engine was needed. */
      readonly events?: readonly AbciEvent[];
      readonly feeAtoken: Atoken;
      /** Compute units (D21). */
      readonly computeNs: number;
      /** What the code came to; undefined where no engine was needed. */
      readonly result?: RunResult;
    }
  | {
      readonly included: false;
      /** OUT_OF_BLOCK_COMPUTE: it fits into another block, where more compute units are left. */
      readonly code: TransactionFaultCode | "EXECUTION_FAULT" | "OUT_OF_BLOCK_COMPUTE";
      /** In words. */
      readonly reason: string;
      readonly cause?: unknown;
    };

/** What execution of a transaction needs from the block around it. */
export interface ExecutionEnvironment {
  readonly state: JournaledState;
  /** Made when the first transaction needs it. */
  readonly engine: () => MaybePromise<TransactionEngine>;
  /** What compute units are counted by. */
  readonly computeWeights: WeightsVersion;
  /** Compute units that are left; none are counted in simulations. */
  readonly compute?: ComputeRoom;
  readonly block: BlockContext;
  readonly limits: TransactionLimits;
  readonly feeCollector: Address;
  /** How a simulation differs from a block; blocks have none. */
  readonly simulation?: Simulation;
  /** Is told what the engine does, with plain transfers too; blocks have none. */
  readonly watcher?: Watcher | undefined;
}

/** Compute units for a transaction (D21). */
export interface ComputeRoom {
  /** What is left of the block's. */
  readonly blockLeftNs: number;
  /** The most that any transaction may take. */
  readonly maxTransactionNs: number;
}

/**
 * What simulations leave out: the sender may be a contract, and its nonce another one unless it
 * is asked for. They never take the short way past the interpreter, where nothing can be watched.
 */
export interface Simulation {
  readonly checksNonce: boolean;
}

/** True when the transaction may run code: a creation, a contract or a precompile. */
export function entersCode(
  { to }: Pick<SignedTransaction, "to">,
  account: (address: Address) => AccountRecord | undefined,
): boolean {
  if (to === undefined || PRECOMPILE_ADDRESSES.has(to)) return true;
  return (account(to)?.codeHash ?? EMPTY_CODE_HASH) !== EMPTY_CODE_HASH;
}

/** The rule that keeps the transaction out of the block as it stands. */
function faultOf(
  { tx, from }: BlockTransaction,
  { balanceAtoken, nonce, codeHash }: AccountRecord,
  limits: TransactionLimits,
  intrinsic: bigint,
): TransactionFault | undefined {
  const hasCode = codeHash !== EMPTY_CODE_HASH;
  return (
    staticFault(tx, limits, intrinsic) ??
    executionFault(tx, from, { nonce, balanceAtoken, hasCode })
  );
}

/**
 * Executes one transaction. The state is changed only if it is included; the fee goes to the
 * FeeCollector at once, unused gas is never charged.
 */
export async function executeTransaction(
  transaction: BlockTransaction,
  environment: ExecutionEnvironment,
): Promise<TransactionOutcome> {
  const { state, limits, simulation } = environment;
  const { tx, from } = transaction;
  const account = state.accountNow(from) ?? EMPTY_ACCOUNT;
  const hasLocks = state.locks !== undefined;
  const sender = hasLocks ? { ...account, balanceAtoken: state.spendableNow(from) } : account;
  const intrinsic = intrinsicGas(tx);
  const judged = simulation === undefined ? sender : asSimulated(sender, tx, simulation);
  const fault = faultOf(transaction, judged, limits, intrinsic);
  if (fault !== undefined) return { included: false, code: fault.code, reason: fault.message };
  const { compute, computeWeights } = environment;
  if (compute !== undefined && leastComputeNs(tx, computeWeights) > compute.blockLeftNs) {
    // Not even what it always takes is left.
    return NO_COMPUTE_LEFT;
  }
  const depth = state.depth();
  state.checkpoint();
  try {
    const runs =
      simulation !== undefined ||
      environment.watcher !== undefined ||
      entersCode(tx, (address) => state.accountNow(address));
    if (!runs) {
      const outcome = transferOnly(transaction, environment, intrinsic);
      state.commit();
      return outcome;
    }
    const engine = await environment.engine();
    const outcome = await runCode(transaction, environment, { engine, intrinsic });
    if (!outcome.included) state.revert();
    await engine.finish(outcome.included);
    if (outcome.included) state.commit();
    return outcome;
  } catch (cause) {
    // The interpreter itself failed: the same bytes would fail everywhere, so they stay out.
    while (state.depth() > depth) state.revert();
    await (await environment.engine()).finish(false);
    if (isStoreFault(cause)) throw cause;
    return { included: false, code: "EXECUTION_FAULT", reason: "execution fault", cause };
  }
}

/** The sender as the rules are to see it where some of them do not hold. */
function asSimulated(
  sender: AccountRecord,
  { nonce }: SignedTransaction,
  { checksNonce }: Simulation,
): AccountRecord {
  return {
    ...sender,
    nonce: checksNonce ? sender.nonce : nonce,
    codeHash: EMPTY_CODE_HASH,
  };
}

/** Gas used x effective price. */
function feeOf({ tx }: BlockTransaction, gasUsed: bigint, block: BlockContext): bigint {
  return gasUsed * effectiveGasPriceAtoken(tx, block.baseFeeAtoken);
}

/**
 * A transfer to an account without code needs no interpreter, and nothing in it can fail: the
 * sender was found to cover it, so each account is written once.
 */
function transferOnly(
  transaction: BlockTransaction,
  { state, block, feeCollector, computeWeights }: ExecutionEnvironment,
  gasUsed: bigint,
): TransactionOutcome {
  const { tx, from } = transaction;
  if (tx.to === undefined) throw new TypeError("a creation is not a transfer");
  const recorder = new BalanceRecorder();
  const sender = state.accountNow(from) ?? EMPTY_ACCOUNT;
  const feeAtoken = feeOf(transaction, gasUsed, block);
  state.putAccount(from, {
    ...sender,
    nonce: sender.nonce + 1n,
    balanceAtoken: sender.balanceAtoken - feeAtoken - tx.valueAtoken,
  });
  if (feeAtoken > 0n) {
    state.moveBalance(feeCollector, feeAtoken);
    recorder.add("FEE", from, feeCollector, feeAtoken);
  }
  if (tx.valueAtoken > 0n) state.moveBalance(tx.to, tx.valueAtoken);
  recorder.add("CALL", from, tx.to, tx.valueAtoken, "");
  return {
    included: true,
    feeAtoken,
    computeNs: leastComputeNs(tx, computeWeights),
    changes: recorder.changes(),
    receipt: receiptOf(transaction, block, {
      status: 1,
      gasUsed,
      logs: [],
      contractAddress: undefined,
    }),
  };
}

/** What every transaction takes, whatever it runs. */
export function leastComputeNs(
  { data, accessList }: Pick<SignedTransaction, "data" | "accessList">,
  version: WeightsVersion,
): number {
  const { transactionNs, dataByteNs, listedAccountNs, listedSlotNs } = weightsOf(version);
  let computeNs = transactionNs + dataByteNs * data.length;
  for (const { storageKeys } of accessList) {
    computeNs += listedAccountNs + listedSlotNs * storageKeys.length;
  }
  return computeNs;
}

async function runCode(
  transaction: BlockTransaction,
  environment: ExecutionEnvironment,
  { engine, intrinsic }: { readonly engine: TransactionEngine; readonly intrinsic: bigint },
): Promise<TransactionOutcome> {
  const { state, block, feeCollector, compute, computeWeights, watcher } = environment;
  const { tx, from } = transaction;
  const priceAtoken = effectiveGasPriceAtoken(tx, block.baseFeeAtoken);
  // The whole gas limit is reserved while code runs, so that BALANCE and value checks see it.
  const reservedAtoken = tx.gasLimit * priceAtoken;
  take(state, from, reservedAtoken);
  const frames = new BalanceRecorder();
  // Named one by one: what a spread makes of so many fields is slow to read, for every instruction.
  const message: EvmMessage = {
    from,
    to: tx.to,
    valueAtoken: tx.valueAtoken,
    data: tx.data,
    gasLimit: tx.gasLimit - intrinsic,
    gasPriceAtoken: priceAtoken,
    accessList: tx.accessList,
  };
  const baseNs = leastComputeNs(tx, computeWeights);
  const limitNs =
    compute === undefined ? Number.POSITIVE_INFINITY : mostComputeNs(compute) - baseNs;
  const result = await engine.run(message, block, { recorder: frames, limitNs, watcher });
  // With all that a transaction may ever take it would be in the block, and fail there.
  if (result.isOutOfCompute && compute !== undefined && isShort(compute)) return NO_COMPUTE_LEFT;
  const spent = intrinsic + result.gasUsed;
  const mostRefund = spent / MAX_REFUND_QUOTIENT;
  const gasUsed = spent - (result.gasRefund < mostRefund ? result.gasRefund : mostRefund);
  state.moveBalance(from, reservedAtoken);
  const fees = new BalanceRecorder();
  const feeAtoken = feeOf(transaction, gasUsed, block);
  if (feeAtoken > 0n) {
    take(state, from, feeAtoken);
    state.moveBalance(feeCollector, feeAtoken);
    fees.add("FEE", from, feeCollector, feeAtoken);
  }
  destroy(result.destroyed, state, frames);
  const contractAddress =
    tx.to === undefined ? (result.createdAddress ?? contractAddressOf(from, tx.nonce)) : undefined;
  return {
    included: true,
    feeAtoken,
    computeNs: baseNs + result.computeNs,
    result,
    changes: [...fees.changes(), ...frames.changes()],
    events: frames.events(),
    receipt: receiptOf(transaction, block, {
      status: result.error === undefined ? 1 : 0,
      gasUsed,
      logs: result.logs,
      contractAddress,
    }),
  };
}

/** Takes what the sender was found to have. */
function take(state: JournaledState, from: Address, amountAtoken: Atoken): void {
  if (!state.moveBalance(from, -amountAtoken)) throw new RangeError("the sender cannot pay");
}

const NO_COMPUTE_LEFT: TransactionOutcome = {
  included: false,
  code: "OUT_OF_BLOCK_COMPUTE",
  reason: "the block has no compute units left for it",
};

function mostComputeNs({ blockLeftNs, maxTransactionNs }: ComputeRoom): number {
  return Math.min(blockLeftNs, maxTransactionNs);
}

function isShort({ blockLeftNs, maxTransactionNs }: ComputeRoom): boolean {
  return blockLeftNs < maxTransactionNs;
}

/** EIP-6780: contracts that destroyed themselves in the transaction that made them go away. */
export function destroy(
  addresses: readonly Address[],
  state: JournaledState,
  recorder: BalanceRecorder,
): void {
  for (const address of addresses) {
    const leftAtoken = state.accountNow(address)?.balanceAtoken ?? 0n;
    if (leftAtoken > 0n) recorder.add("DESTRUCT", address, undefined, leftAtoken, "");
    state.putAccount(address, undefined);
    state.wipeStorage(address);
  }
}

function receiptOf(
  { tx }: BlockTransaction,
  { baseFeeAtoken }: BlockContext,
  outcome: Pick<Receipt, "status" | "gasUsed" | "logs" | "contractAddress">,
): Omit<Receipt, "cumulativeGasUsed"> {
  const { status, gasUsed, logs, contractAddress } = outcome;
  return {
    type: tx.type,
    status,
    gasUsed,
    effectiveGasPriceAtoken: effectiveGasPriceAtoken(tx, baseFeeAtoken),
    logs,
    logsBloom: logsToBloom(logs),
    contractAddress,
  };
}
