/**
 * What the main thread and a call worker say to each other. Everything here survives structured
 * cloning. State is read synchronously by the worker: it posts a request, sleeps on a shared
 * counter, and the main thread wakes it when the answer lies in the port.
 */
import type { WeightsVersion } from "../../../chain/evm/compute-weights.js";
import type { MessagePort } from "node:worker_threads";
import type { Address } from "../../../chain/address.js";
import type { BlockTransaction } from "../../../chain/block.js";
import type { MinedCosmosTransaction } from "../../../chain/cosmos/cosmos-result.js";
import type { ErrorDetails } from "../../../chain/errors.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import type { AccountRecord } from "../../store/account-record.js";
import type { NativeFacts } from "../message.js";
import type { VestingSchedules } from "../../settings/vesting.js";
import type { CallFaultCode } from "./call-error.js";
import type { CallOverrides, CallRequest, SimulationRequest, TraceKind } from "./call-port.js";

/**
 * A transaction of a block that is repeated: only those of the EVM can be traced. What came of the others
 * is left out, which is most of them.
 */
export type TracedTransaction = BlockTransaction | Pick<MinedCosmosTransaction, "tx" | "from">;

/** Facts of the block that a job executes in. */
export interface BlockFacts {
  readonly height: Height;
  readonly hash: Hash32;
  readonly timestampSeconds: number;
  readonly coinbase: Address;
  readonly gasLimit: bigint;
  readonly mixHash: Hash32;
  /** Absent where the chain has no contracts of its own. */
  readonly native?: NativeFacts;
}

/** Work on one message over a state and block that a client may have changed. */
interface MessageWork<Kind extends string> extends CallOverrides {
  readonly kind: Kind;
  readonly request: CallRequest;
}

/** What a job does. */
export type JobWork =
  | MessageWork<"call">
  | MessageWork<"estimateGas">
  | MessageWork<"createAccessList">
  | (MessageWork<"traceCall"> & { readonly trace: TraceKind })
  | { readonly kind: "simulate"; readonly request: SimulationRequest }
  | {
      readonly kind: "traceBlock";
      /** From the block's first up to the last that is wanted. */
      readonly transactions: readonly TracedTransaction[];
      /** Undefined: all of them. */
      readonly index: number | undefined;
      readonly trace: TraceKind;
    };

/** One job of a worker. */
export interface Job {
  readonly id: number;
  readonly block: BlockFacts;
  readonly work: JobWork;
}

/** Transactions of the block that the next job repeats, in order: they are not in the job itself. */
export interface JobPart {
  readonly transactions: readonly TracedTransaction[];
}

/** What the main thread posts to a worker. */
export type WorkerRequest = Job | JobPart;

/** Fixed facts that a worker is started with. */
export interface WorkerSettings {
  readonly chainId: bigint;
  readonly feeCollector: Address;
  readonly validatorsPool: Address;
  /** Schedules of locked coins, as blocks keep to them. */
  readonly locks?: VestingSchedules | undefined;
  /** Most gas of a call; its gas where the caller names none. */
  readonly gasCap: bigint;
  /** Most gas of a transaction (D21); an estimate tries no more. */
  readonly maxTransactionGas: bigint;
  /** Compute units (D21) of a transaction at most, and of a call. */
  readonly maxTransactionComputeNs: number;
  /** What they are counted by. */
  readonly computeWeights: WeightsVersion;
}

/** `workerData` of a worker thread. */
export interface WorkerStart {
  readonly settings: WorkerSettings;
  /** State requests go out here, answers come in. */
  readonly reads: MessagePort;
  /** One 32-bit counter, raised and notified by the main thread after each answer. */
  readonly answered: SharedArrayBuffer;
}

/** A read of state at the job's height. */
export type ReadRequest =
  | { readonly kind: "account"; readonly address: Address }
  | { readonly kind: "storage"; readonly address: Address; readonly slot: Hash32 }
  | { readonly kind: "code"; readonly codeHash: Hash32 }
  | { readonly kind: "blockHash"; readonly height: Height }
  /** Many accounts at once: what a block's transactions will surely touch. */
  | { readonly kind: "accounts"; readonly addresses: readonly Address[] };

/** Answer to the request of the same kind. */
export interface ReadAnswers {
  readonly account: AccountRecord | undefined;
  readonly storage: Uint8Array;
  readonly code: Uint8Array;
  readonly blockHash: Hash32;
  readonly accounts: readonly (AccountRecord | undefined)[];
}

/** What a worker posts to the main thread. */
export type WorkerMessage =
  | { readonly type: "ready" }
  | { readonly type: "done"; readonly id: number; readonly result: unknown }
  | {
      readonly type: "fault";
      readonly id: number;
      readonly code: CallFaultCode;
      readonly message: string;
      readonly details: ErrorDetails;
    };
