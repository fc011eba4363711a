/** Read-only execution at a fixed height, done in worker threads (design point 9). */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { AccessListEntry } from "../../chain/transaction.js";

/** A message to execute without a transaction. */
export interface CallRequest {
  readonly from: Address;
  readonly to: Address | undefined;
  readonly valueAtoken: bigint;
  /** Zero when the caller named no price: then no balance is needed for gas. */
  readonly gasPriceAtoken: bigint;
  /** Undefined: the node's gas cap (calls) or `max_call_gas` (estimates). */
  readonly gasLimit: bigint | undefined;
  readonly data: Uint8Array;
  readonly accessList: readonly AccessListEntry[];
}

/** geth's state override set, parsed. `state` replaces all storage, `stateDiff` single slots. */
export type StateOverrides = ReadonlyMap<
  Address,
  {
    readonly balanceAtoken?: bigint;
    readonly nonce?: bigint;
    readonly code?: Uint8Array;
    readonly state?: ReadonlyMap<Hash32, bigint>;
    readonly stateDiff?: ReadonlyMap<Hash32, bigint>;
  }
>;

/** Outcome of a call. */
export type CallResult =
  | { readonly outcome: "success"; readonly returnData: Uint8Array; readonly gasUsed: bigint }
  | { readonly outcome: "revert"; readonly returnData: Uint8Array; readonly gasUsed: bigint }
  /** Any other exception; `error` is geth's text, for example "out of gas". */
  | { readonly outcome: "error"; readonly error: string; readonly gasUsed: bigint };

/** Which trace is wanted; options as in geth's tracers. */
export type TraceKind =
  | { readonly tracer: "callTracer"; readonly onlyTopCall: boolean; readonly withLog: boolean }
  | { readonly tracer: "prestateTracer"; readonly diffMode: boolean }
  | {
      readonly tracer: "structLogger";
      readonly enableMemory: boolean;
      readonly disableStack: boolean;
      readonly disableStorage: boolean;
      readonly enableReturnData: boolean;
    };

/** Codes of faults that a call can end in, beside the EVM's own outcome. */
export type CallErrorCode =
  | "CALL_TIMEOUT"
  | "CALL_QUEUE_FULL"
  | "HEADER_NOT_FOUND"
  | "INSUFFICIENT_FUNDS"
  | "GAS_ALLOWANCE_EXCEEDED";

/**
 * The call workers. All methods reject with an AppError carrying a CallErrorCode; a call that
 * outlives its time-out ends with its worker.
 */
export interface CallWorkers {
  call(
    request: CallRequest,
    height: Height,
    options: { overrides?: StateOverrides; signal: AbortSignal },
  ): Promise<CallResult>;
  /** Smallest gas limit with which the message succeeds, or its failure at the cap. */
  estimateGas(
    request: CallRequest,
    height: Height,
    options: { overrides?: StateOverrides; signal: AbortSignal },
  ): Promise<{ outcome: "success"; gas: bigint } | Exclude<CallResult, { outcome: "success" }>>;
  createAccessList(
    request: CallRequest,
    height: Height,
    options: { signal: AbortSignal },
  ): Promise<{ accessList: readonly AccessListEntry[]; gasUsed: bigint; error?: string }>;
  /** Traces of the wanted transactions of a mined block (all when `index` is undefined), as JSON. */
  traceBlock(
    height: Height,
    index: number | undefined,
    kind: TraceKind,
    options: { signal: AbortSignal },
  ): Promise<readonly { transactionHash: Hash32; result: unknown }[]>;
  traceCall(
    request: CallRequest,
    height: Height,
    kind: TraceKind,
    options: { overrides?: StateOverrides; signal: AbortSignal },
  ): Promise<unknown>;
}
