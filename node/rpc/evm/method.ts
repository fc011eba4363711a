/** The form of a JSON-RPC method and of its result. */
import type { Params } from "./params.js";

/** Values that JSON.stringify writes as they are meant. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue | undefined };

/** A result that is JSON text already; it is spliced into the answer as it is. */
export class RawJson {
  constructor(readonly content: Buffer | string) {}

  /** JSON that is there as UTF-8 bytes, which are not copied. */
  static of({ buffer, byteOffset, byteLength }: Uint8Array): RawJson {
    return new RawJson(Buffer.from(buffer, byteOffset, byteLength));
  }
}

/** Bytes of the first piece, and of the largest. */
const FIRST_BYTES = 4 * 1024;
const PIECE_BYTES = 256 * 1024;

/** Of a text, at most so many bytes a UTF-16 unit. */
const MAX_UNIT_BYTES = 3;

/**
 * JSON that is written as it comes, for answers of megabytes that are made once and kept by nobody: as one
 * text it would be copied again and again, most of all by the garbage collector.
 */
export class JsonPieces {
  private readonly full: Buffer[] = [];
  private piece: Buffer = Buffer.allocUnsafe(FIRST_BYTES);
  private used = 0;
  private fullBytes = 0;

  get sizeBytes(): number {
    return this.fullBytes + this.used;
  }

  add(text: string): void {
    const mostBytes = MAX_UNIT_BYTES * text.length;
    if (this.used + mostBytes > this.piece.length) this.begin(mostBytes);
    this.used += this.piece.write(text, this.used, "utf8");
  }

  /** What was written, in order. */
  pieces(): readonly Buffer[] {
    return [...this.full, this.piece.subarray(0, this.used)];
  }

  private begin(leastBytes: number): void {
    this.full.push(this.piece.subarray(0, this.used));
    this.fullBytes += this.used;
    const nextBytes = Math.min(PIECE_BYTES, 2 * this.piece.length);
    this.piece = Buffer.allocUnsafe(Math.max(nextBytes, leastBytes));
    this.used = 0;
  }
}

/** What a method returns. */
export type RpcResult = JsonValue | RawJson | JsonPieces;

/** A client that can be told things later: one WebSocket connection. */
export interface Subscriber {
  /** Sends one notification, or drops the connection when its backlog is too large. */
  notify(text: string): void;
  /** Drops the connection: more is to be told to it than can be sent. */
  tooSlow(): void;
  /** Ends the connection: a subscription of it cannot go on. @param why told to the client */
  failed(why: string): void;
  /** So much is waiting to be sent that it is to be waited for before there is more. */
  readonly isBehind: boolean;
  /** Resolves when little is waiting to be sent; rejects when the connection is gone. */
  drained(): Promise<void>;
  /** Calls back once when the connection ends. */
  onClose(callback: () => void): void;
}

/** What a method may use of the request that it answers. */
export interface CallContext {
  /** Ends with the client or with the request's time-out. */
  readonly signal: AbortSignal;
  /** Undefined over HTTP, where nothing can be pushed. */
  readonly subscriber: Subscriber | undefined;
  /** Who asks, as far as it can be told: an address, or a network of them. Empty where it is not known. */
  readonly client: string;
  /** Runs the callback when the answer has been handed to the socket. */
  afterReply(callback: () => void): void;
  /**
   * To be awaited by who makes an answer that has become larger than `LARGE_BYTES`, again and again if it
   * likes: few requests go on from there at the same time, and of a batch one call.
   * @throws REQUEST_TIMED_OUT, LIMIT_EXCEEDED, RESPONSE_TOO_LARGE
   */
  becameLarge(): Promise<void>;
}

/** What is used of it where an answer is made that may become large. */
export type LargeContext = Pick<CallContext, "signal" | "becameLarge">;

/** One method: how many parameters it takes at most, and what it does. */
export interface RpcMethod {
  readonly maxParams: number;
  run(params: Params, context: CallContext): RpcResult | Promise<RpcResult>;
}

/** Methods by name; a Map, so that names like "constructor" find nothing. */
export type MethodEntries = readonly (readonly [name: string, method: RpcMethod])[];

/** Describes one method for a table. */
export function method(
  name: string,
  maxParams: number,
  run: RpcMethod["run"],
): readonly [string, RpcMethod] {
  return [name, { maxParams, run }];
}
