/** Traces: a block's transactions over their parent's state, or one message over a fixed state. */
import { weightsOf } from "../../../chain/evm/compute-weights.js";
import type { Address } from "../../../chain/address.js";
import { type BlockTransaction, isEvm } from "../../../chain/block.js";
import type { JournaledState } from "../../state/journaled-state.js";
import type { TracedTransaction } from "./call-protocol.js";
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import type { Hash32 } from "../../../chain/hex.js";
import { transactionLimitsOf } from "../../settings/genesis.js";
import { EMPTY_ACCOUNT } from "../../store/account-record.js";
import { executeCosmosTransaction } from "../cosmos/cosmos-executor.js";
import { Engine } from "../interpreter/engine.js";
import type { BlockContext } from "../message.js";
import type { AnyPrecompile } from "../native/table.js";
import { CallTracer } from "../tracers/call-tracer.js";
import { FlatCallTracer } from "../tracers/flat-call-tracer.js";
import { FourByteTracer } from "../tracers/four-byte-tracer.js";
import { MuxTracer, NOOP_TRACER } from "../tracers/mux-tracer.js";
import { PrestateTracer } from "../tracers/prestate-tracer.js";
import { StructLogger } from "../tracers/struct-logger.js";
import { TraceBudget, type Tracer, type TraceSummary } from "../tracers/tracer.js";
import type { RunResult } from "../transaction-engine.js";
import { executeTransaction } from "../transaction-executor.js";
import { CallError } from "./call-error.js";
import type { AnswerJson, CallRequest, TraceKind, TransactionTrace } from "./call-port.js";
import type { WorkerSettings } from "./call-protocol.js";
import { MessageRunner, type RanOutcome, withFundsText } from "./call-run.js";

/** What every trace runs on. */
export interface TraceEnvironment {
  readonly settings: WorkerSettings;
  readonly state: JournaledState;
  readonly block: BlockContext;
  readonly precompiles?: ReadonlyMap<Address, AnyPrecompile>;
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
  environment: TraceEnvironment & { readonly blockHash: Hash32 },
): Promise<TransactionTrace[]> {
  const { state, block, settings } = environment;
  const { chainId, feeCollector, computeWeights } = settings;
  const { maxTransactionComputeNs: maxTransactionNs } = settings;
  const limits = transactionLimitsOf(chainId, settings);
  const engine = new Engine({ chainId, state, weights: weightsOf(computeWeights) });
  // What is in the block had room in it; only its own bound can have ended a transaction.
  const compute = { blockLeftNs: maxTransactionNs, maxTransactionNs };
  const always = [block.coinbase, feeCollector];
  const tracer = createTracer(kind, { state, always }, new TraceBudget());
  const traces: TransactionTrace[] = [];
  let position = -1;
  let logCount = 0;
  for (const transaction of transactions) {
    if (!isEvm(transaction)) {
      repeatCosmos(transaction, environment);
      continue;
    }
    position += 1;
    const { tx, from } = transaction;
    const isWanted = index === undefined || index === position;
    if (isWanted) {
      const isCreation = tx.to === undefined;
      const target = tx.to ?? contractAddressOf(from, tx.nonce);
      const place = {
        blockHash: environment.blockHash,
        blockNumber: block.height,
        transactionHash: tx.hash,
        transactionPosition: position,
        firstLogIndex: logCount,
      };
      tracer.start({ from, target, isCreation, gasLimit: tx.gasLimit, place });
    }
    const watcher = isWanted ? tracer.watcher : undefined;
    const bounds = { limits, compute, computeWeights };
    const surroundings = { state, engine: () => engine, block, feeCollector, ...bounds };
    const outcome = await executeTransaction(transaction, { ...surroundings, watcher });
    if (!outcome.included) throw outcome.cause ?? invalidHere(tx.hash, outcome.reason);
    const { gasUsed, logs } = outcome.receipt;
    logCount += logs.length;
    if (!isWanted) continue;
    const trace = tracer.finish({ gasUsed, ...summaryOf(outcome.result) });
    traces.push({ transactionHash: tx.hash, json: jsonOf(trace) });
  }
  return traces;
}

/** A Cosmos transaction runs no code that could be traced, but may change what code sees. */
function repeatCosmos(
  mined: Exclude<TracedTransaction, BlockTransaction>,
  environment: TraceEnvironment,
): void {
  const { state, settings, block } = environment;
  const { feeCollector, validatorsPool, computeWeights } = settings;
  const { maxTransactionGas, maxTransactionComputeNs } = settings;
  const outcome = executeCosmosTransaction(mined, {
    state,
    height: block.height,
    timeMs: block.native?.timeMs ?? block.timestampSeconds * 1_000,
    maxTransactionGas,
    maxTransactionComputeNs,
    computeWeights,
    feeCollector,
    validatorsPool,
  });
  if (!outcome.included) throw invalidHere(mined.tx.hash, outcome.fault.log);
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
export function traceMessage(
  request: CallRequest,
  gasLimit: bigint,
  kind: TraceKind,
  environment: TraceEnvironment,
): AnswerJson {
  const { state, block, settings } = environment;
  const runner = new MessageRunner(environment);
  // Who names no price pays nobody.
  const paid = request.gasPriceAtoken > 0n ? [settings.feeCollector] : [];
  const always = [block.coinbase, ...paid];
  const tracer = createTracer(kind, { state, always }, new TraceBudget());
  const { from, to } = request;
  const { nonce } = state.accountNow(from) ?? EMPTY_ACCOUNT;
  const target = to ?? contractAddressOf(from, nonce);
  let json: AnswerJson | undefined;
  const options = {
    gasLimit,
    watcher: tracer.watcher,
    beforehand: () => tracer.start({ from, target, isCreation: to === undefined, gasLimit }),
    afterwards: (ran: RanOutcome) => {
      json = jsonOf(tracer.finish(ran));
    },
  };
  const inGethsWords = (refusal: string) => `tracing failed: ${refusal}`;
  const outcome = withFundsText(() => runner.run(request, options), inGethsWords);
  if (outcome.kind === "invalid") {
    throw new CallError("INVALID_MESSAGE", inGethsWords(outcome.error));
  }
  if (json === undefined) throw new TypeError("a message that ran has a trace");
  return json;
}

function jsonOf(trace: unknown): AnswerJson {
  return new TextEncoder().encode(JSON.stringify(trace));
}

/** What tracers look at beside the execution. */
interface Traced {
  readonly state: JournaledState;
  /** Accounts that the transaction touches whatever its code does, beside sender and target. */
  readonly always: readonly Address[];
}

function createTracer(kind: TraceKind, traced: Traced, budget: TraceBudget): Tracer {
  const { state, always } = traced;
  switch (kind.tracer) {
    case "callTracer":
      return new CallTracer(kind, budget);
    case "flatCallTracer":
      return new FlatCallTracer(kind, budget);
    case "structLogger":
      return new StructLogger(state, kind, budget);
    case "4byteTracer":
      return new FourByteTracer(budget);
    case "noopTracer":
      return NOOP_TRACER;
    case "prestateTracer":
      return new PrestateTracer(state, kind, always, budget);
    default:
      return new MuxTracer(
        kind.tracers.map(([name, each]) => [name, createTracer(each, traced, budget)] as const),
      );
  }
}

function summaryOf(result: RunResult | undefined): Omit<TraceSummary, "gasUsed"> {
  if (result === undefined) throw new TypeError("a watched transaction is run by the engine");
  const { output, errorText, isRevert } = result;
  return { returnData: output, error: errorText, isRevert };
}
