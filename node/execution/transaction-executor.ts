/**
 * One transaction over the state: checks, fee, execution, receipt, and the balance journal of
 * what moved. A transaction that is not valid here changes nothing and is not included.
 */
import { type Address, bytesToAddress, parseAddress } from "../../chain/address.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import type { BlockTransaction } from "../../chain/block.js";
import { contractAddressOf } from "../../chain/contract-address.js";
import { intrinsicGas, MAX_INITCODE_BYTES } from "../../chain/gas.js";
import { bytesToHash32, EMPTY_CODE_HASH } from "../../chain/hex.js";
import { type Log, logsToBloom, type Receipt } from "../../chain/receipt.js";
import { effectiveGasPriceAtoken, type SignedTransaction } from "../../chain/transaction.js";
import { type AccountRecord, EMPTY_ACCOUNT } from "../store/account-record.js";
import { BalanceRecorder } from "../state/balance-recorder.js";
import type { JournaledState } from "../state/journaled-state.js";
import { type BlockContext, type Machine, PRECOMPILES } from "./evm.js";

/** EIP-3529: at most a fifth of the gas used is refunded. */
const MAX_REFUND_QUOTIENT = 5n;

/** Why a transaction cannot be in the block that is being built. */
export type InvalidReason =
  | "nonce too low"
  | "nonce too high"
  | "insufficient funds"
  | "sender not an eoa"
  | "intrinsic gas too low"
  | "max initcode size exceeded"
  | "execution fault";

/** Outcome of one transaction. */
export type TransactionOutcome =
  | {
      readonly included: true;
      readonly receipt: Omit<Receipt, "cumulativeGasUsed">;
      readonly changes: readonly BalanceChange[];
      readonly feeAtoken: bigint;
    }
  | { readonly included: false; readonly reason: InvalidReason; readonly cause?: unknown };

/** What execution of a transaction needs from the block around it. */
export interface ExecutionEnvironment {
  readonly state: JournaledState;
  /** The EVM; made when the first transaction needs it. */
  readonly machine: () => Promise<Machine>;
  readonly block: BlockContext;
  readonly feeCollector: Address;
}

/** True when the transaction may run code: a creation, a contract or a precompile. */
export function entersCode(
  { to }: Pick<SignedTransaction, "to">,
  account: (address: Address) => AccountRecord | undefined,
): boolean {
  if (to === undefined || PRECOMPILES.has(to)) return true;
  return (account(to)?.codeHash ?? EMPTY_CODE_HASH) !== EMPTY_CODE_HASH;
}

function invalidity(
  { tx }: BlockTransaction,
  sender: AccountRecord,
  intrinsic: bigint,
): InvalidReason | undefined {
  if (tx.nonce < sender.nonce) return "nonce too low";
  if (tx.nonce > sender.nonce) return "nonce too high";
  if (sender.codeHash !== EMPTY_CODE_HASH) return "sender not an eoa";
  if (tx.to === undefined && tx.data.length > MAX_INITCODE_BYTES) {
    return "max initcode size exceeded";
  }
  if (tx.gasLimit < intrinsic) return "intrinsic gas too low";
  const costAtoken = tx.gasLimit * tx.maxFeePerGasAtoken + tx.valueAtoken;
  if (sender.balanceAtoken < costAtoken) return "insufficient funds";
  return undefined;
}

/**
 * Executes one transaction. The state is changed only if it is included; the fee goes to the
 * FeeCollector at once, unused gas is never charged.
 */
export async function executeTransaction(
  transaction: BlockTransaction,
  environment: ExecutionEnvironment,
): Promise<TransactionOutcome> {
  const { state } = environment;
  const { tx, from } = transaction;
  const sender = state.accountNow(from) ?? EMPTY_ACCOUNT;
  const intrinsic = intrinsicGas(tx);
  const reason = invalidity(transaction, sender, intrinsic);
  if (reason !== undefined) return { included: false, reason };
  const depth = state.depth();
  state.checkpoint();
  try {
    const runs = entersCode(tx, (address) => state.accountNow(address));
    const outcome = runs
      ? await runCode(transaction, environment, intrinsic)
      : transferOnly(transaction, environment, intrinsic);
    state.commit();
    return outcome;
  } catch (cause) {
    // The interpreter itself failed: the same bytes would fail everywhere, so they stay out.
    while (state.depth() > depth) state.revert();
    (await environment.machine()).evm.journal.cleanJournal();
    return { included: false, reason: "execution fault", cause };
  }
}

/** Gas used x effective price. */
function feeOf({ tx }: BlockTransaction, gasUsed: bigint): bigint {
  return gasUsed * effectiveGasPriceAtoken(tx);
}

/**
 * A transfer to an account without code needs no interpreter, and nothing in it can fail: the
 * sender was found to cover it, so each account is written once.
 */
function transferOnly(
  transaction: BlockTransaction,
  { state, feeCollector }: ExecutionEnvironment,
  gasUsed: bigint,
): TransactionOutcome {
  const { tx, from } = transaction;
  if (tx.to === undefined) throw new TypeError("a creation is not a transfer");
  const recorder = new BalanceRecorder();
  const sender = state.accountNow(from) ?? EMPTY_ACCOUNT;
  const feeAtoken = feeOf(transaction, gasUsed);
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
    receipt: receiptOf(transaction, { status: 1, gasUsed, logs: [], contractAddress: undefined }),
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
  const priceAtoken = effectiveGasPriceAtoken(tx);
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
  const feeAtoken = feeOf(transaction, gasUsed);
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
    receipt: receiptOf(transaction, { status: failed ? 0 : 1, gasUsed, logs, contractAddress }),
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
  outcome: Pick<Receipt, "status" | "gasUsed" | "logs" | "contractAddress">,
): Omit<Receipt, "cumulativeGasUsed"> {
  return {
    type: tx.type,
    effectiveGasPriceAtoken: effectiveGasPriceAtoken(tx),
    logsBloom: logsToBloom(outcome.logs),
    ...outcome,
  };
}
