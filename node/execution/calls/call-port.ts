/** Read-only execution at a fixed height, done in worker threads (design point 9). */
import type { Address } from "../../../chain/address.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import type { AccessListEntry, GasFees } from "../../../chain/transaction.js";
import type { Atoken } from "../../../chain/units.js";

/** A message to execute without a transaction. */
export interface CallRequest {
  readonly from: Address;
  readonly to: Address | undefined;
  readonly valueAtoken: Atoken;
  /** Price under base fee 0; zero when the caller named none: then gas needs no balance. */
  readonly gasPriceAtoken: Atoken;
  /** Set where the caller named the fees of a type 2 transaction. */
  readonly dynamicFees?: GasFees;
  /** Only simulations look at it. */
  readonly nonce?: bigint;
  /** Undefined: the node's gas cap (calls) or a transaction's most (estimates). */
  readonly gasLimit: bigint | undefined;
  readonly data: Uint8Array;
  readonly accessList: readonly AccessListEntry[];
}

/** geth's state override set, parsed. `state` replaces all storage, `stateDiff` single slots. */
export type StateOverrides = ReadonlyMap<
  Address,
  {
    readonly balanceAtoken?: Atoken;
    readonly nonce?: bigint;
    readonly code?: Uint8Array;
    readonly state?: ReadonlyMap<Hash32, bigint>;
    readonly stateDiff?: ReadonlyMap<Hash32, bigint>;
    /** Where the account's precompile can be called; the account loses it. */
    readonly movePrecompileTo?: Address;
  }
>;

/** geth's block override set, parsed: what code sees of the block it runs in. */
export interface BlockOverrides {
  readonly height?: Height;
  readonly timestampSeconds?: number;
  readonly gasLimit?: bigint;
  readonly coinbase?: Address;
  readonly mixHash?: Hash32;
  readonly baseFeeAtoken?: Atoken;
  readonly blobBaseFeeAtoken?: Atoken;
}

/** How the state and block of a job differ from the committed ones. */
export interface CallOverrides {
  readonly overrides?: StateOverrides;
  readonly blockOverrides?: BlockOverrides;
}

/** Options of every job. */
export interface JobOptions {
  readonly signal: AbortSignal;
  /** Who asks: clients have turns. Those of whom it is not known are as one. */
  readonly client?: string;
}

/** Options of a call. */
export interface CallOptions extends CallOverrides, JobOptions {}

/** One block of a simulation, as the client describes it. */
export interface BlockStateCalls {
  readonly blockOverrides: BlockOverrides;
  /** Applied before the block's first call; what it changes stays for the blocks after it. */
  readonly overrides: StateOverrides;
  readonly calls: readonly CallRequest[];
}

/** What eth_simulateV1 is asked. */
export interface SimulationRequest {
  readonly blocks: readonly BlockStateCalls[];
  /** True: coins that move are logs of 0xeeee...eeee among the contracts' own (ERC-7528). */
  readonly traceTransfers: boolean;
  /** True: nonces are checked, and a price must reach the base fee, if one was named. */
  readonly validation: boolean;
  /** True: the answer has whole transactions, in place of their hashes. */
  readonly returnFullTransactions: boolean;
}

/** Why a simulation cannot be carried out at all. */
export type SimulationRefusal =
  | "NONCE_TOO_LOW"
  | "NONCE_TOO_HIGH"
  | "NONCE_EXHAUSTED"
  | "FEE_BELOW_BASE_FEE"
  | "TIP_ABOVE_FEE"
  | "INTRINSIC_GAS_TOO_LOW"
  | "INSUFFICIENT_FUNDS"
  | "BLOCK_GAS_LIMIT_REACHED"
  | "BLOCK_NUMBER_ORDER"
  | "BLOCK_TIMESTAMP_ORDER"
  | "INITCODE_TOO_LARGE"
  | "TOO_MANY_BLOCKS"
  | "GAS_CAP_EXHAUSTED";

/** Outcome of a call. */
export type CallResult =
  | { readonly outcome: "success"; readonly returnData: Uint8Array; readonly gasUsed: bigint }
  | { readonly outcome: "revert"; readonly returnData: Uint8Array; readonly gasUsed: bigint }
  /** Any other exception; `error` is geth's text, for example "out of gas". */
  | { readonly outcome: "error"; readonly error: string; readonly gasUsed: bigint };

/** Options of the prestateTracer, as in geth's tracerConfig. */
export interface PrestateOptions {
  readonly diffMode: boolean;
  readonly disableCode: boolean;
  readonly disableStorage: boolean;
  readonly includeEmpty: boolean;
}

/** Which trace is wanted; options as in geth's tracers. */
export type TraceKind =
  | { readonly tracer: "callTracer"; readonly onlyTopCall: boolean; readonly withLog: boolean }
  | {
      readonly tracer: "flatCallTracer";
      readonly convertParityErrors: boolean;
      readonly includePrecompiles: boolean;
    }
  | ({ readonly tracer: "prestateTracer" } & PrestateOptions)
  | { readonly tracer: "4byteTracer" | "noopTracer" }
  /** Several at once; the answer has each under its name. */
  | { readonly tracer: "muxTracer"; readonly tracers: readonly (readonly [string, TraceKind])[] }
  | {
      readonly tracer: "structLogger";
      readonly enableMemory: boolean;
      readonly disableStack: boolean;
      readonly disableStorage: boolean;
      readonly enableReturnData: boolean;
      /** Bytes of entries behind which no more are made; 0 for no bound of the caller's. */
      readonly limit: number;
    };

/** Codes of faults that a call can end in, beside the EVM's own outcome. */
export type CallErrorCode =
  | "CALL_TIMEOUT"
  | "CALL_QUEUE_FULL"
  | "HEADER_NOT_FOUND"
  | "INSUFFICIENT_FUNDS"
  | "GAS_ALLOWANCE_EXCEEDED"
  /** The override set contradicts itself; the text is geth's. */
  | "INVALID_OVERRIDE"
  /** `details.refusal` is a `SimulationRefusal`; the text is geth's. */
  | "SIMULATION_REFUSED";

/**
 * An answer of a worker that may be large, as its client gets it: JSON text in UTF-8. As objects one of some
 * megabytes would hold up the thread that decides blocks for a fifth of a second, while they are copied there
 * and become text.
 */
export type AnswerJson = Uint8Array;

/** Trace of one mined transaction. */
export interface TransactionTrace {
  readonly transactionHash: Hash32;
  readonly json: AnswerJson;
}

/**
 * The call workers. All methods reject with an AppError carrying a CallErrorCode; a call that
 * outlives its time-out ends with its worker.
 */
export interface CallWorkers {
  call(request: CallRequest, height: Height, options: CallOptions): Promise<CallResult>;
  /** Smallest gas limit with which the message succeeds, or its failure at the cap. */
  estimateGas(
    request: CallRequest,
    height: Height,
    options: CallOptions,
  ): Promise<{ outcome: "success"; gas: bigint } | Exclude<CallResult, { outcome: "success" }>>;
  createAccessList(
    request: CallRequest,
    height: Height,
    options: Omit<CallOptions, "blockOverrides">,
  ): Promise<{ accessList: readonly AccessListEntry[]; gasUsed: bigint; error?: string }>;
  /** Traces of the wanted transactions of a mined block: all when `index` is undefined. */
  traceBlock(
    height: Height,
    index: number | undefined,
    kind: TraceKind,
    options: JobOptions,
  ): Promise<readonly TransactionTrace[]>;
  traceCall(
    request: CallRequest,
    height: Height,
    kind: TraceKind,
    options: CallOptions,
  ): Promise<AnswerJson>;
  /** A list of the blocks that would follow the block at `height`, gaps between their numbers filled. */
  simulate(request: SimulationRequest, height: Height, options: JobOptions): Promise<AnswerJson>;
}
