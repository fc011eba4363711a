/**
 * One transaction over the state: checks, fee, execution, receipt, and the balance journal of
 * what moved. A transaction that is not valid here changes nothing and is not included.
 */
import { type Address, bytesToAddress, parseAddress } from "../../chain/address.js";
import { errorCode } from "../../chain/errors.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import type { BlockTransaction } from "../../chain/block.js";
import { contractAddressOf } from "../../chain/contract-address.js";
import { bytesToHash32, EMPTY_CODE_HASH } from "../../chain/hex.js";
import { type Log, logsToBloom, type Receipt } from "../../chain/receipt.js";
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
import { BalanceRecorder } from "../state/balance-recorder.js";
import type { JournaledState } from "../state/journaled-state.js";
import { type BlockContext, type Machine, PRECOMPILES } from "./evm/evm.js";

/** EIP-3529: at most a fifth of the gas used is refunded. */
const MAX_REFUND_QUOTIENT = 5n;

/** Outcome of one transaction. */
export type TransactionOutcome =
  | {
      readonly included: true;
      readonly receipt: Omit<Receipt, "cumulativeGasUsed">;
      readonly changes: readonly BalanceChange[];
      readonly feeAtoken: bigint;
    }
  | {
      readonly included: false;
      readonly code: TransactionFaultCode | "EXECUTION_FAULT";
      /** In words. */
      readonly reason: string;
      readonly cause?: unknown;
    };

/** What execution of a transaction needs from the block around it. */
export interface ExecutionEnvironment {
  readonly state: JournaledState;
  /** The EVM; made when the first transaction needs it. */
  readonly machine: () => Promise<Machine>;
  readonly block: BlockContext;
  readonly limits: TransactionLimits;
  readonly feeCollector: Address;
  /** How a simulation differs from a block; blocks have none. */
  readonly simulation?: Simulation;
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
  if (to === undefined || PRECOMPILES.has(to)) return true;
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
  const sender = state.accountNow(from) ?? EMPTY_ACCOUNT;
  const intrinsic = intrinsicGas(tx);
  const judged = simulation === undefined ? sender : asSimulated(sender, tx, simulation);
  const fault = faultOf(transaction, judged, limits, intrinsic);
  if (fault !== undefined) return { included: false, code: fault.code, reason: fault.message };
  const depth = state.depth();
  state.checkpoint();
  try {
    const runs = simulation !== undefined || entersCode(tx, (address) => state.accountNow(address));
    const outcome = runs
      ? await runCode(transaction, environment, intrinsic)
      : transferOnly(transaction, environment, intrinsic);
    state.commit();
    return outcome;
  } catch (cause) {
    // The interpreter itself failed: the same bytes would fail everywhere, so they stay out.
    while (state.depth() > depth) state.revert();
    (await environment.machine()).evm.journal.cleanJournal();
    // A store that cannot be read says nothing of the transaction, and must not look as if it did.
    if (cause instanceof StoreError || errorCode(cause).startsWith("LEVEL_")) throw cause;
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
  { state, block, feeCollector }: ExecutionEnvironment,
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
    changes: recorder.changes(),
    receipt: receiptOf(transaction, block, {
      status: 1,
      gasUsed,
      logs: [],
      contractAddress: undefined,
    }),
  };
}

async function runCode(
  transaction: BlockTransaction,
  environment: ExecutionEnvironment,
  intrinsic: bigint,
): Promise<TransactionOutcome> {
  const { state, block, feeCollector } = environment;
  const machine = await environment.machine();
  const { tx, from } = transaction;
  const priceAtoken = effectiveGasPriceAtoken(tx, block.baseFeeAtoken);
  // The whole gas limit is reserved while code runs, so that BALANCE and value checks see it.
  const reservedAtoken = tx.gasLimit * priceAtoken;
  state.moveBalance(from, -reservedAtoken);
  const frames = new BalanceRecorder();
  const message = { ...tx, from, gasLimit: tx.gasLimit - intrinsic, gasPriceAtoken: priceAtoken };
  const result = await machine.run(message, block, frames);
  const { execResult, createdAddress } = result;
  const spent = intrinsic + execResult.executionGasUsed;
  const refundable = execResult.gasRefund ?? 0n;
  const refund =
    refundable < spent / MAX_REFUND_QUOTIENT ? refundable : spent / MAX_REFUND_QUOTIENT;
  const gasUsed = spent - refund;
  state.moveBalance(from, reservedAtoken);
  const fees = new BalanceRecorder();
  const feeAtoken = feeOf(transaction, gasUsed, block);
  if (feeAtoken > 0n) {
    state.moveBalance(from, -feeAtoken);
    state.moveBalance(feeCollector, feeAtoken);
    fees.add("FEE", from, feeCollector, feeAtoken);
  }
  const created = execResult.createdAddresses ?? new Set();
  const destroyed = [...(execResult.selfdestruct?.keys() ?? [])].filter((key) => created.has(key));
  destroy(destroyed, state, frames);
  await machine.evm.journal.cleanup();
  const failed = execResult.exceptionError !== undefined;
  const logs = failed ? [] : (execResult.logs ?? []).map(toLog);
  const contractAddress =
    tx.to === undefined
      ? ((createdAddress && bytesToAddress(createdAddress.bytes)) ??
        contractAddressOf(from, tx.nonce))
      : undefined;
  return {
    included: true,
    feeAtoken,
    changes: [...fees.changes(), ...frames.changes()],
    receipt: receiptOf(transaction, block, {
      status: failed ? 0 : 1,
      gasUsed,
      logs,
      contractAddress,
    }),
  };
}

/** EIP-6780: contracts that destroyed themselves in the transaction that made them go away. */
function destroy(
  addresses: readonly string[],
  state: JournaledState,
  recorder: BalanceRecorder,
): void {
  for (const text of addresses) {
    const address = parseAddress(text);
    const leftAtoken = state.accountNow(address)?.balanceAtoken ?? 0n;
    if (leftAtoken > 0n) recorder.add("DESTRUCT", address, undefined, leftAtoken, "");
    state.putAccount(address, undefined);
    state.wipeStorage(address);
  }
}

function toLog([address, topics, data]: readonly [Uint8Array, Uint8Array[], Uint8Array]): Log {
  return {
    address: bytesToAddress(address),
    topics: topics.map((topic) => bytesToHash32(topic)),
    data: data.slice(),
  };
}

function receiptOf(
  { tx }: BlockTransaction,
  { baseFeeAtoken }: BlockContext,
  outcome: Pick<Receipt, "status" | "gasUsed" | "logs" | "contractAddress">,
): Omit<Receipt, "cumulativeGasUsed"> {
  return {
    type: tx.type,
    effectiveGasPriceAtoken: effectiveGasPriceAtoken(tx, baseFeeAtoken),
    logsBloom: logsToBloom(outcome.logs),
    ...outcome,
  };
}
