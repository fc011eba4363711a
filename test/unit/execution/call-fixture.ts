/** A little chain state in memory, jobs over it in process, and the same messages as transactions. */
import { NEWEST_WEIGHTS, weightsOf } from "../../../chain/evm/compute-weights.js";
import { type Address, parseAddress } from "../../../chain/address.js";
import type { BlockTransaction } from "../../../chain/block.js";
import { keccak256, keccak256Hex } from "../../../chain/hashes.js";
import {
  bigintToBytes,
  bigintToWord,
  bytesToHash32,
  EMPTY_CODE_HASH,
  EMPTY_TRIE_ROOT,
  type Hash32,
  hexToBytes,
  ZERO_HASH,
} from "../../../chain/hex.js";
import type {
  AnswerJson,
  CallOverrides,
  CallRequest,
  CallWorkers,
  StateOverrides,
  TraceKind,
} from "../../../node/execution/calls/call-port.js";
import type { Job, JobWork, WorkerSettings } from "../../../node/execution/calls/call-protocol.js";
import { type JobResults, runJob } from "../../../node/execution/calls/call-jobs.js";
import { unpackTraces } from "../../../node/execution/calls/packed-traces.js";
import { Engine } from "../../../node/execution/interpreter/engine.js";
import { executeTransaction } from "../../../node/execution/transaction-executor.js";
import { transactionLimitsOf } from "../../../node/settings/genesis.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import type { AccountRecord } from "../../../node/store/account-record.js";
import { type StateReader, ZERO_VALUE } from "../../../node/store/state-reader.js";

export const ALICE = parseAddress(`0x${"a1".repeat(20)}`);
export const BOB = parseAddress(`0x${"b0".repeat(20)}`);
export const CONTRACT = parseAddress(`0x${"c0".repeat(20)}`);
export const OTHER = parseAddress(`0x${"d0".repeat(20)}`);
export const COINBASE = parseAddress(`0x${"cb".repeat(20)}`);
export const FEE_COLLECTOR = parseAddress(`0x${"fc".repeat(20)}`);
export const TEN = 10n ** 19n;

export const SETTINGS: WorkerSettings = {
  chainId: 6_940n,
  feeCollector: FEE_COLLECTOR,
  validatorsPool: parseAddress(`0x${"9d".repeat(20)}`),
  gasCap: 50_000_000n,
  maxTransactionGas: 10_000_000n,
  maxTransactionComputeNs: 250_000_000,
  computeWeights: NEWEST_WEIGHTS,
};

export const BLOCK: Job["block"] = {
  height: 7,
  hash: keccak256Hex(Buffer.from("block 7")),
  timestampSeconds: 1_750_000_000,
  coinbase: COINBASE,
  gasLimit: 600_000_000n,
  mixHash: ZERO_HASH,
};

/** An account of the fixture. */
export interface FixtureAccount {
  readonly balanceAtoken?: bigint;
  readonly nonce?: bigint;
  /** Hex without prefix. */
  readonly code?: string;
  readonly storage?: Readonly<Record<number, bigint>>;
  /** Of a trie that is not there; absent: of an empty one. */
  readonly storageRoot?: Hash32;
}

export const slot = (key: number | bigint): Hash32 => bytesToHash32(bigintToWord(BigInt(key)));

/** A reader over plain objects; it counts its reads. */
export class MemoryState implements StateReader {
  private readonly accounts = new Map<Address, AccountRecord>();
  private readonly codes = new Map<Hash32, Uint8Array>();
  private readonly slots = new Map<string, Uint8Array>();
  reads = 0;

  constructor(accounts: Readonly<Record<Address, FixtureAccount>>) {
    for (const [key, account] of Object.entries(accounts)) {
      const address = parseAddress(key);
      const code = hexToBytes(`0x${account.code ?? ""}`);
      const codeHash = code.length === 0 ? EMPTY_CODE_HASH : keccak256Hex(code);
      this.codes.set(codeHash, code);
      const { nonce = 0n, balanceAtoken = 0n, storageRoot = EMPTY_TRIE_ROOT } = account;
      this.accounts.set(address, { nonce, balanceAtoken, codeHash, storageRoot });
      for (const [index, value] of Object.entries(account.storage ?? {})) {
        this.slots.set(`${address}${slot(Number(index))}`, bigintToBytes(value));
      }
    }
  }

  account(address: Address): AccountRecord | undefined {
    this.reads++;
    return this.accounts.get(address);
  }

  code(codeHash: Hash32): Uint8Array {
    return this.codes.get(codeHash) ?? ZERO_VALUE;
  }

  storage(address: Address, key: Hash32): Uint8Array {
    this.reads++;
    return this.slots.get(`${address}${key}`) ?? ZERO_VALUE;
  }
}

/** A request from Alice to the contract, with changes. */
export function request(changes: Partial<CallRequest> = {}): CallRequest {
  return {
    from: ALICE,
    to: CONTRACT,
    valueAtoken: 0n,
    gasPriceAtoken: 0n,
    gasLimit: undefined,
    data: new Uint8Array(0),
    accessList: [],
    ...changes,
  };
}

/** Call workers that do every job in process, over a state and the fixture's block. */
export class InProcessCalls implements CallWorkers {
  constructor(
    private readonly state: StateReader,
    readonly block: Job["block"] = BLOCK,
    readonly settings: WorkerSettings = SETTINGS,
  ) {}

  call: CallWorkers["call"] = (message, _height, options) =>
    this.work({ kind: "call", request: message, ...overridesOf(options) });
  estimateGas: CallWorkers["estimateGas"] = (message, _height, options) =>
    this.work({ kind: "estimateGas", request: message, ...overridesOf(options) });
  createAccessList: CallWorkers["createAccessList"] = (message, _height, { overrides }) =>
    this.work({ kind: "createAccessList", request: message, overrides });
  traceCall: CallWorkers["traceCall"] = (message, _height, trace, options) =>
    this.work({ kind: "traceCall", request: message, trace, ...overridesOf(options) });
  traceBlock: CallWorkers["traceBlock"] = async () => [];
  simulate: CallWorkers["simulate"] = (simulation) =>
    this.work({ kind: "simulate", request: simulation });

  private work<Kind extends JobWork["kind"]>(
    job: Extract<JobWork, { kind: Kind }>,
  ): Promise<JobResults[Kind]> {
    return work(this.state, job, this);
  }
}

function overridesOf({ overrides, blockOverrides }: CallOverrides): CallOverrides {
  return { overrides, blockOverrides };
}

const CIRCUMSTANCES = { block: BLOCK, settings: SETTINGS };

/** Does one job in process. */
export function work<Kind extends JobWork["kind"]>(
  state: StateReader,
  job: Extract<JobWork, { kind: Kind }>,
  { block, settings }: { block: Job["block"]; settings: WorkerSettings } = CIRCUMSTANCES,
): Promise<JobResults[Kind]> {
  const blockHash = (height: number) => keccak256Hex(Buffer.from(`block ${height}`));
  const environment = { settings, reader: state, blockHash };
  return runJob({ id: 1, block, work: job }, environment) as Promise<JobResults[Kind]>;
}

export const call = (
  state: StateReader,
  changes: Partial<CallRequest>,
  overrides?: StateOverrides,
) => work(state, { kind: "call", request: request(changes), overrides });

export const estimate = (state: StateReader, changes: Partial<CallRequest>) =>
  work(state, { kind: "estimateGas", request: request(changes) });

/** A trace as its client reads it. */
const readTrace = (json: AnswerJson) => JSON.parse(Buffer.from(json).toString()) as never;

export const traceCall = async (
  state: StateReader,
  changes: Partial<CallRequest>,
  trace: TraceKind,
) => readTrace(await work(state, { kind: "traceCall", request: request(changes), trace }));

/** The request as a mined transaction; its signature is never looked at. */
export function transaction(
  changes: Partial<CallRequest> & { gasLimit: bigint; nonce?: bigint },
): BlockTransaction {
  const { from, to, valueAtoken, gasPriceAtoken, data, accessList } = request(changes);
  const nonce = changes.nonce ?? 0n;
  const raw = keccak256(Buffer.concat([bigintToWord(nonce), data]));
  const tx = {
    type: 0 as const,
    chainId: SETTINGS.chainId,
    nonce,
    maxFeePerGasAtoken: gasPriceAtoken,
    maxPriorityFeePerGasAtoken: gasPriceAtoken,
    gasLimit: changes.gasLimit,
    to,
    valueAtoken,
    data,
    accessList,
    v: 0n,
    r: 0n,
    s: 0n,
    raw,
    hash: keccak256Hex(raw),
  };
  return { tx, from };
}

/** Executes transactions as a block does; the state changes stay in the overlay. */
export async function execute(reader: StateReader, transactions: readonly BlockTransaction[]) {
  const state = new JournaledState(reader);
  const { chainId, computeWeights, maxTransactionComputeNs: maxTransactionNs } = SETTINGS;
  const engine = new Engine({ chainId, state, weights: weightsOf(computeWeights) });
  const compute = { blockLeftNs: maxTransactionNs, maxTransactionNs };
  const block = { ...BLOCK, blockHash: () => ZERO_HASH };
  const receipts = [];
  for (const item of transactions) {
    const feeCollector = FEE_COLLECTOR;
    const limits = transactionLimitsOf(SETTINGS.chainId, SETTINGS);
    const bounds = { limits, compute, computeWeights };
    const environment = { state, engine: () => engine, block, feeCollector, ...bounds };
    const outcome = await executeTransaction(item, environment);
    if (!outcome.included) throw new Error(outcome.reason, { cause: outcome.cause });
    receipts.push(outcome.receipt);
  }
  return { state, receipts };
}

export const traceBlock = async (
  reader: StateReader,
  transactions: readonly BlockTransaction[],
  trace: TraceKind,
  index?: number,
) => {
  const packed = await work(reader, { kind: "traceBlock", transactions, index, trace });
  return unpackTraces(packed).map(({ transactionHash, json }) => ({
    transactionHash,
    result: readTrace(json),
  }));
};

/** Minimal PUSH of a value. */
export function push(value: number | bigint): string {
  if (BigInt(value) === 0n) return "5f";
  const digits = value.toString(16);
  const hex = digits.length % 2 === 0 ? digits : `0${digits}`;
  return (0x5f + hex.length / 2).toString(16) + hex;
}

/** A CALL-like opcode with everything given; the result stays on the stack. */
export function callCode(
  opcode: "f1" | "f2" | "f4" | "fa",
  to: Address,
  options: { value?: bigint; gas?: string; inBytes?: number; outBytes?: number } = {},
): string {
  const { value = 0n, gas = "5a", inBytes = 0, outBytes = 0 } = options;
  const hasValue = opcode === "f1" || opcode === "f2";
  const memory = push(outBytes) + push(0) + push(inBytes) + push(0);
  return `${memory}${hasValue ? push(value) : ""}73${to.slice(2)}${gas}${opcode}`;
}
