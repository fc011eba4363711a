/** Traces: a block's transactions over their parent's state, or one message over a fixed state. */
import type { ExecResult } from "@ethereumjs/evm";
import type { Address } from "../../../chain/address.js";
import { isEvm } from "../../../chain/block.js";
import type { MinedCosmosTransaction } from "../../../chain/cosmos/cosmos-result.js";
import type { JournaledState } from "../../state/journaled-state.js";
import type { TracedTransaction } from "./call-protocol.js";
import { contractAddressOf } from "../../../chain/contract-address.js";
import type { Hash32 } from "../../../chain/hex.js";
import { transactionLimitsOf } from "../../settings/genesis.js";
import { EMPTY_ACCOUNT } from "../../store/account-record.js";
import { CallError } from "./call-error.js";
import { frameErrorText, isRevert } from "./call-evm-errors.js";
import type { CallRequest, TraceKind } from "./call-port.js";
import type { WorkerSettings } from "./call-protocol.js";
import { MessageRunner, type RanOutcome, withFundsText } from "./call-run.js";
import {
  type BlockContext,
  createMachine,
  type Machine,
  type PrecompileChanges,
} from "../evm/evm.js";
import { CallTracer } from "../tracers/call-tracer.js";
import { PrestateTracer } from "../tracers/prestate-tracer.js";
import { StructLogger } from "../tracers/struct-logger.js";
import { TracedState } from "../tracers/traced-state.js";
import { TraceBudget, type Tracer } from "../tracers/tracer.js";
import { LibraryEngine } from "../evm/library-engine.js";
import { executeTransaction } from "../transaction-executor.js";

/** What every trace runs on. */
export interface TraceEnvironment {
  readonly settings: WorkerSettings;
  readonly state: TracedState;
  readonly block: BlockContext;
  readonly precompiles?: PrecompileChanges;
}

/** Trace of one mined transaction. */
export interface TransactionTrace {
  readonly transactionHash: Hash32;
  readonly result: unknown;
}

/**
 * Executes the transactions in order, exactly as the block did, and traces the wanted ones.
 * @param index the only transaction to trace, which is the last one given; undefined: all
 * @throws TRACE_TOO_LARGE
 */
export async function traceTransactions(
  transactions: readonly TracedTransaction[],
  index: number | undefined,
  kind: TraceKind,
  environment: TraceEnvironment,
): Promise<TransactionTrace[]> {
  const { state, block, settings } = environment;
  const { chainId, feeCollector } = settings;
  const limits = transactionLimitsOf(chainId, settings);
  const machine = await createMachine(chainId, state);
  const tracer = createTracer(kind, machine, environment);
  const last = rememberLastResult(machine);
  const traces: TransactionTrace[] = [];
  let position = -1;
  for (const transaction of transactions) {
    if (!isEvm(transaction)) {
      await repeatCosmos(transaction, state);
      continue;
    }
    position += 1;
    const { tx, from } = transaction;
    const isWanted = index === undefined || index === position;
    last.result = undefined;
    if (isWanted) {
      const created = tx.to === undefined ? contractAddressOf(from, tx.nonce) : undefined;
      await tracer.start({ ...tx, from, contractAddress: created });
    }
    const engine = new LibraryEngine(machine);
    const surroundings = { state, engine: () => engine, block, limits, feeCollector };
    const outcome = await executeTransaction(transaction, surroundings);
    if (!outcome.included) throw outcome.cause ?? invalidHere(tx.hash, outcome.reason);
    if (!isWanted) continue;
    const { gasUsed } = outcome.receipt;
    const result = await tracer.finish({ gasUsed, ...summaryOf(last.result) });
    traces.push({ transactionHash: tx.hash, result });
  }
  return traces;
}

/** What a Cosmos transaction did to the accounts: it runs no code that could be traced. */
async function repeatCosmos(mined: MinedCosmosTransaction, state: JournaledState): Promise<void> {
  const { from, changes } = mined;
  const sender = (await state.account(from)) ?? EMPTY_ACCOUNT;
  state.putAccount(from, { ...sender, nonce: sender.nonce + 1n });
  for (const change of changes) {
    if (!change.effective) continue;
    for (const address of [change.from, change.to]) {
      if (address !== undefined) await state.account(address);
    }
    if (change.from !== undefined) state.moveBalance(change.from, -change.amountAtoken);
    if (change.to !== undefined) state.moveBalance(change.to, change.amountAtoken);
  }
}

/** A mined transaction was valid when its block was made; here its parent's state is wrong. */
function invalidHere(transactionHash: Hash32, reason: string): CallError {
  return new CallError("CALL_WORKER_FAILED", `the transaction cannot be repeated: ${reason}`, {
    details: { transactionHash },
  });
}

/**
 * Executes a message as eth_call does and traces it.
 * @throws TRACE_TOO_LARGE, INSUFFICIENT_FUNDS
 */
export async function traceMessage(
  request: CallRequest,
  gasLimit: bigint,
  kind: TraceKind,
  environment: TraceEnvironment,
): Promise<unknown> {
  const { state, settings } = environment;
  const runner = await MessageRunner.create(settings.chainId, state, environment);
  const tracer = createTracer(kind, runner.machine, environment);
  const { from, to } = request;
  const { nonce } = (await state.account(from)) ?? EMPTY_ACCOUNT;
  const contractAddress = to === undefined ? contractAddressOf(from, nonce) : undefined;
  let trace: unknown;
  const options = {
    gasLimit,
    beforehand: () => tracer.start({ ...request, gasLimit, contractAddress }),
    afterwards: async (ran: RanOutcome) => {
      trace = await tracer.finish(ran);
    },
  };
  const inGethsWords = (refusal: string) => `tracing failed: ${refusal}`;
  const outcome = await withFundsText(() => runner.run(request, options), inGethsWords);
  if (outcome.kind === "invalid") {
    throw new CallError("INVALID_MESSAGE", inGethsWords(outcome.error));
  }
  return trace;
}

function createTracer(
  kind: TraceKind,
  machine: Machine,
  { state, block, settings }: TraceEnvironment,
): Tracer {
  const budget = new TraceBudget();
  if (kind.tracer === "callTracer") return new CallTracer(machine, kind, budget);
  if (kind.tracer === "structLogger") return new StructLogger(machine, state, kind, budget);
  const always: Address[] = [block.coinbase, settings.feeCollector];
  return new PrestateTracer(machine, { state, diffMode: kind.diffMode, always }, budget);
}

/** The result of the frame that ended last: of the message itself, once it has ended. */
function rememberLastResult(machine: Machine): { result: ExecResult | undefined } {
  const last: { result: ExecResult | undefined } = { result: undefined };
  machine.evm.events.on("afterMessage", ({ execResult }) => {
    last.result = execResult;
  });
  return last;
}

/** A plain transfer needs no EVM, so it has no result: it succeeded without data. */
function summaryOf(result: ExecResult | undefined) {
  if (result === undefined) {
    return { returnData: new Uint8Array(0), error: undefined, isRevert: false };
  }
  const error = frameErrorText(result);
  return { returnData: result.returnValue, error, isRevert: isRevert(result) };
}
