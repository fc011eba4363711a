/** One job of a call worker, from its description to its answer; free of threads and ports. */
import type { Address } from "../../../chain/address.js";
import { isEvm } from "../../../chain/block.js";
import { AppError, ChainError } from "../../../chain/errors.js";
import { type Hash32, type Height, ZERO_HASH } from "../../../chain/hex.js";
import type { AccountRecord } from "../../store/account-record.js";
import type { StateReader } from "../../store/state-reader.js";
import { createAccessList, type AccessListResult } from "./call-access-list.js";
import { type Estimate, estimateGas, estimateTransfer } from "./call-estimate.js";
import type { AnswerJson, CallOverrides, CallRequest, CallResult } from "./call-port.js";
import type { TracedTransaction, Job, JobWork, WorkerSettings } from "./call-protocol.js";
import {
  impossibleState,
  OverlaidState,
  overriddenBlock,
  overridesChain,
  precompilesUnder,
} from "./call-overrides.js";
import { RememberingReader } from "./call-reader.js";
import { MessageRunner, type RunOutcome, withFundsText } from "./call-run.js";
import { stateOf } from "./call-state.js";
import { traceMessage, traceTransactions } from "./call-trace.js";
import { type PackedTraces, packTraces } from "./packed-traces.js";
import { simulate } from "./simulation/simulate.js";
import { simulationJson } from "./simulation/simulation-json.js";
import type { BlockContext } from "../message.js";
import type { AnyPrecompile } from "../native/table.js";

/** Accounts asked for before a block is repeated, and how many of them in one request. */
const PREFETCH_ACCOUNTS = 10_000;
const PREFETCHED_AT_ONCE = 1_024;

/** State and facts that jobs are done with. */
export interface JobEnvironment {
  readonly settings: WorkerSettings;
  /** State that the job starts from; traces of blocks need one that answers at once. */
  readonly reader: StateReader;
  /** Many accounts in one request, where the reader's answers come from afar. */
  readonly accounts?: (addresses: readonly Address[]) => readonly (AccountRecord | undefined)[];
  readonly blockHash: (height: Height) => Hash32 | Promise<Hash32>;
}

/** Answers by kind of job. */
export interface JobResults {
  readonly call: CallResult;
  readonly estimateGas: Estimate;
  readonly createAccessList: AccessListResult;
  readonly traceCall: AnswerJson;
  readonly traceBlock: PackedTraces;
  readonly simulate: AnswerJson;
}

/**
 * Does a job. The answer is of the job's kind in `JobResults`.
 * @throws CallError with the codes of the job's kind
 */
export async function runJob(job: Job, environment: JobEnvironment): Promise<unknown> {
  try {
    return await answerOf(job, environment);
  } catch (error) {
    throw isOfOverrides(error, job.work) ? impossibleState(error) : error;
  }
}

/** Whether a fault is of a state that a client has made up for the chain's own contracts. */
function isOfOverrides(error: unknown, work: JobWork): boolean {
  if (error instanceof AppError && !(error instanceof ChainError)) return false;
  if (work.kind === "traceBlock") return false;
  const all = work.kind === "simulate" ? work.request.blocks : [work];
  return all.some(({ overrides }) => overridesChain(overrides));
}

async function answerOf(job: Job, environment: JobEnvironment): Promise<unknown> {
  const { settings } = environment;
  const { work } = job;
  const block: BlockContext = { ...job.block, blockHash: hashesUpTo(job.block, environment) };
  const remembering = new RememberingReader(environment.reader);
  if (work.kind === "traceBlock") {
    prefetch(work.transactions, block, remembering, environment);
    const state = stateOf(remembering, block, settings);
    const traced = { settings, state, block, blockHash: job.block.hash };
    return packTraces(await traceTransactions(work.transactions, work.index, work.trace, traced));
  }
  if (work.kind === "simulate") {
    const base = { ...job.block, ...block };
    const simulated = await simulate(work.request, { settings, reader: remembering, base });
    return simulationJson(simulated, work.request.returnFullTransactions);
  }
  const seen = await overridden({ reader: remembering, block }, work);
  const gasLimit = callGas(work.request, settings);
  const state = stateOf(seen.reader, seen.block, settings);
  if (work.kind === "traceCall") {
    return traceMessage(work.request, gasLimit, work.trace, { settings, state, ...seen });
  }
  const runner = new MessageRunner({ settings, state, ...seen });
  if (work.kind === "call") return call(work.request, gasLimit, runner);
  if (work.kind === "createAccessList") return createAccessList(work.request, runner, gasLimit);
  const capGas = estimateCap(settings, work.blockOverrides?.gasLimit);
  return estimateGas(work.request, { runner, reader: seen.reader, capGas });
}

/** The hashes that code may see: the base block's, where its number is raised, and older ones. */
function hashesUpTo(base: Job["block"], { blockHash }: JobEnvironment): BlockContext["blockHash"] {
  return (height) => {
    if (height === base.height) return base.hash;
    return height < base.height ? blockHash(height) : ZERO_HASH;
  };
}

/** State, block and precompiles as a client's overrides make them. */
async function overridden(
  { reader, block }: { reader: StateReader; block: BlockContext },
  { overrides, blockOverrides }: CallOverrides,
): Promise<{
  reader: StateReader;
  block: BlockContext;
  precompiles?: ReadonlyMap<Address, AnyPrecompile>;
}> {
  const seen = blockOverrides === undefined ? block : overriddenBlock(block, blockOverrides);
  if (overrides === undefined || overrides.size === 0) return { reader, block: seen };
  const precompiles = precompilesUnder(overrides);
  const overlaid = new OverlaidState(reader);
  await overlaid.override(overrides);
  return { reader: overlaid, block: seen, precompiles };
}

function callGas({ gasLimit }: CallRequest, { gasCap }: WorkerSettings): bigint {
  return gasLimit === undefined || gasLimit > gasCap ? gasCap : gasLimit;
}

function estimateCap(
  { gasCap, maxTransactionGas }: WorkerSettings,
  blockGasLimit?: bigint,
): bigint {
  const capGas = gasCap < maxTransactionGas ? gasCap : maxTransactionGas;
  return blockGasLimit !== undefined && blockGasLimit < capGas ? blockGasLimit : capGas;
}

/** Bytes of data, entries of an access list and keys of all of them for the main thread to look at. */
const SMALL_DATA_BYTES = 4_096;
const SMALL_ACCESS_LIST = 64;
const SMALL_ACCESS_KEYS = 256;

/** What is needed on the thread of whoever asks; the reader must answer at once, as the head's does. */
type PlaceEnvironment = Pick<JobEnvironment, "settings" | "reader" | "blockHash">;

/** Runs messages on a block's state where they stand. */
function runnerOf(base: Job["block"], environment: PlaceEnvironment): MessageRunner {
  const { settings, reader } = environment;
  const block: BlockContext = { ...base, blockHash: hashesUpTo(base, environment) };
  return new MessageRunner({ settings, state: stateOf(reader, block, settings), block });
}

/**
 * Estimates a payment to an account without code where it stands. Undefined for all else, and for one that
 * fails, which is a worker's to tell.
 * @throws INSUFFICIENT_FUNDS
 */
export function estimateInPlace(
  request: CallRequest,
  base: () => Job["block"],
  environment: PlaceEnvironment,
): Estimate | undefined {
  const { settings, reader } = environment;
  return estimateTransfer(request, reader, () => ({
    runner: runnerOf(base(), environment),
    capGas: estimateCap(settings),
  }));
}

/**
 * Executes a call where it stands, on the thread of whoever asks, within so many compute units.
 * Undefined where it is too large for that: then it is a worker's.
 * @throws INSUFFICIENT_FUNDS
 */
export function callInPlace(
  request: CallRequest,
  base: Job["block"],
  environment: PlaceEnvironment,
  limitNs: number,
): CallResult | undefined {
  if (request.data.length > SMALL_DATA_BYTES) return undefined;
  const { accessList } = request;
  if (accessList.length > SMALL_ACCESS_LIST) return undefined;
  const keys = accessList.reduce((sum, { storageKeys }) => sum + storageKeys.length, 0);
  if (keys > SMALL_ACCESS_KEYS) return undefined;
  const gasLimit = callGas(request, environment.settings);
  const outcome = withFundsText(
    () => runnerOf(base, environment).runWithin(request, gasLimit, limitNs),
    inGethsWords(gasLimit),
  );
  return outcome === undefined ? undefined : callResult(outcome, gasLimit);
}

function call(request: CallRequest, gasLimit: bigint, runner: MessageRunner): CallResult {
  const run = () => runner.run(request, { gasLimit });
  return callResult(withFundsText(run, inGethsWords(gasLimit)), gasLimit);
}

function inGethsWords(gasLimit: bigint): (refusal: string) => string {
  return (refusal) => `err: ${refusal} (supplied gas ${gasLimit})`;
}

function callResult(outcome: RunOutcome, gasLimit: bigint): CallResult {
  if (outcome.kind === "invalid") {
    return { outcome: "error", error: inGethsWords(gasLimit)(outcome.error), gasUsed: 0n };
  }
  const { returnData, gasUsed, error, isRevert } = outcome;
  if (isRevert) return { outcome: "revert", returnData, gasUsed };
  if (error !== undefined) return { outcome: "error", error, gasUsed };
  return { outcome: "success", returnData, gasUsed };
}

/** Asks at once for the accounts that a block's transactions will surely touch. */
function prefetch(
  transactions: readonly TracedTransaction[],
  block: BlockContext,
  reader: RememberingReader,
  { accounts, settings }: JobEnvironment,
): void {
  if (accounts === undefined) return;
  const wanted = new Set<Address>([block.coinbase, settings.feeCollector]);
  for (const transaction of transactions) {
    if (wanted.size >= PREFETCH_ACCOUNTS) break;
    wanted.add(transaction.from);
    if (isEvm(transaction) && transaction.tx.to !== undefined) wanted.add(transaction.tx.to);
  }
  const addresses = [...wanted];
  for (let at = 0; at < addresses.length; at += PREFETCHED_AT_ONCE) {
    const some = addresses.slice(at, at + PREFETCHED_AT_ONCE);
    for (const [index, account] of accounts(some).entries()) {
      const address = some[index];
      if (address !== undefined) reader.put(address, account);
    }
  }
}
