/**
 * JSON-RPC 2.0: from the bytes of a request to the bytes of its answer. Answers are pieces of
 * text and cached bytes that are written one after another, so big results are never copied.
 */
import { errorCode } from "../../../chain/errors.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { RareLine } from "../../../runtime/process/rare-line.js";
import { hasTooManyValues } from "../json-text.js";
import {
  type Answer,
  BatchReply,
  BatchRoom,
  type BatchRules,
  type NoRoom,
  type Reply,
} from "./batch-reply.js";
import { BatchCall, BatchOfCalls } from "./batch-call.js";
import { isRounded, parseBatchText, parseRequestText, WrittenId } from "./batch-text.js";
import {
  INTERNAL_ERROR,
  invalidParams,
  methodNotFound,
  RPC_ERROR_NUMBERS,
  type RpcErrorObject,
  toRpcError,
} from "./errors.js";
import { LargeLane, TOO_MANY_LARGE } from "./large-lane.js";
import {
  type CallContext,
  type MethodEntries,
  JsonPieces,
  RawJson,
  type RpcMethod,
  type RpcResult,
} from "./method.js";
import type { EvmApiOptions } from "./options.js";
import { Params } from "./params.js";
import type { RequestContext } from "./request-context.js";
import { POLL_METHOD } from "./methods/filter-methods.js";
import { SEND_METHOD, SYNC_SEND_METHOD } from "./methods/transaction-methods.js";

/** One call of a request, understood. `id` is JSON text; undefined for a notification. */
interface Call {
  readonly id: string | undefined;
  readonly name: string;
  readonly params: readonly unknown[];
}

/** A method with its metrics. */
interface Observed {
  readonly method: RpcMethod;
  readonly observe: (startMs: number, failed: boolean) => void;
  /** Its faults of ours in the log: who asks may ask for the same one as often as they like. */
  readonly faults: RareLine;
}

/** Calls of a batch that run at the same time; bounds what one client can start at once. */
const BATCH_CONCURRENCY = 32;

/** Batches of more bytes are read in slices. */
const SLICED_BYTES = 128 * 1024;

/** Results below this size are merged into the text around them; larger ones stay bytes. */
const MERGE_BYTES = 4_096;

function errorText(id: string, error: RpcErrorObject): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}`;
}

function faultText(id: string, code: keyof typeof RPC_ERROR_NUMBERS, message: string): string {
  return errorText(id, { code: RPC_ERROR_NUMBERS[code], message });
}

/**
 * Answer to a request that is not read, because it is too large. It has no id: where several requests are
 * under way at once, nobody takes it for theirs.
 */
export const TOO_LARGE_REPLY: Reply = [faultText("null", "INVALID_REQUEST", "request too large")];

/** JSON text of a usable id; undefined for none, "invalid" for objects and the like. */
function idText(message: object): { readonly text: string | undefined; readonly valid: boolean } {
  if (!("id" in message) || message.id === undefined) return { text: undefined, valid: true };
  const { id } = message;
  if (id instanceof WrittenId) return { text: id.text, valid: true };
  const valid = id === null || typeof id === "string" || typeof id === "number";
  return { text: valid ? JSON.stringify(id) : "null", valid };
}

/** The methods behind one front; knows nothing about sockets. */
export class Dispatcher {
  private readonly methods: ReadonlyMap<string, Observed>;
  private readonly observeUnknown: (startMs: number, failed: boolean) => void;
  private readonly lane = new LargeLane();
  private readonly room: BatchRoom;

  constructor(
    entries: MethodEntries,
    private readonly options: Pick<EvmApiOptions, "limits" | "clock" | "log" | "metrics">,
  ) {
    this.room = new BatchRoom(options.limits.batchResponseBytes);
    const observer = this.observers();
    this.methods = new Map(
      entries.map(([name, method]) => {
        return [name, { method, observe: observer(name), faults: new RareLine(options.clock) }];
      }),
    );
    this.observeUnknown = observer("unknown");
  }

  /** Names served, for tests and documents. */
  names(): readonly string[] {
    return [...this.methods.keys()];
  }

  /** Largest body whose first byte is this one: only a batch may be larger than a single call. */
  bodyLimitBytes(body: Uint8Array): number {
    const { bodyBytes, batchBodyBytes } = this.options.limits;
    return firstCharacter(body) === "[" ? batchBodyBytes : bodyBytes;
  }

  /** Answers one request body; a plain value where nothing had to be waited for. */
  handle(body: Buffer, context: RequestContext): Reply | Promise<Reply> {
    context.useLane(this.lane);
    if (body.length > SLICED_BYTES && firstCharacter(body) === "[") {
      return this.slicedBatch(body, context);
    }
    if (hasTooManyValues(body)) return TOO_LARGE_REPLY;
    let message: unknown;
    try {
      message = parseRequestText(body);
    } catch {
      return [faultText("null", "PARSE_ERROR", "parse error")];
    }
    if (Array.isArray(message)) {
      return message.some(isRounded)
        ? this.slicedBatch(body, context)
        : this.batch(message, context);
    }
    const answer = this.answer(message, context);
    return answer instanceof Promise ? answer.then(asReply) : asReply(answer);
  }

  private async slicedBatch(body: Buffer, context: RequestContext): Promise<Reply> {
    const { batchEntries: entries, bodyBytes: entryBytes } = this.options.limits;
    const isCall = (entry: unknown) => callId(entry) !== undefined;
    const batch = await parseBatchText(body, { entries, entryBytes, isCall }, context.owner);
    if (!("fault" in batch)) return this.batch(batch.entries, context);
    if (batch.fault === "malformed") return [faultText("null", "PARSE_ERROR", "parse error")];
    if (batch.fault === "too many") return refusedBatch([batch.firstCall]);
    return TOO_LARGE_REPLY;
  }

  private batch(entries: readonly unknown[], context: RequestContext): Reply | Promise<Reply> {
    if (entries.length === 0) return [faultText("null", "INVALID_REQUEST", "empty batch")];
    const isTooLarge = entries.length > this.options.limits.batchEntries;
    return isTooLarge ? refusedBatch(entries) : this.runBatch(entries, context);
  }

  private async runBatch(entries: readonly unknown[], context: RequestContext): Promise<Reply> {
    const batch = new BatchOfCalls(context, entries.length);
    // All raw transactions of a batch start in this turn, so that the pool gets them whole; those that wait
    // for their block wait for it together, in the time that the request has.
    const sends = entries.map((entry) => {
      if (!BATCH_RULES.isSent(entry)) return undefined;
      const call = new BatchCall(batch);
      const answer = this.answer(entry, call);
      // Its turn ends here: what comes before it in the batch, and is joined before it, may wait for that.
      if (answer instanceof Promise) void answer.then(() => call.settled());
      return answer;
    });
    const reply = new BatchReply(this.room, BATCH_RULES, context);
    const { owner } = context;
    let isOver = false;
    for (const [index, entry] of entries.entries()) {
      // What a poll gives, nobody is given again: it runs only where there is room for its answer.
      if (reply.runningCount === BATCH_CONCURRENCY || isCallOf(entry, POLL_METHOD)) {
        await reply.join();
        isOver ||= !reply.isFull && reply.isLarge && !(await hasPlace(context));
      }
      const sent = sends[index];
      if (sent !== undefined) {
        reply.add(entry, sent);
      } else if (isOver || reply.isFull) {
        reply.add(entry, refusedEntry(entry, "RESPONSE_TOO_LARGE"));
      } else {
        const call = new BatchCall(batch);
        reply.add(entry, this.answer(entry, call), call);
      }
      await breathe(undefined, owner);
    }
    await reply.join();
    return reply.finish();
  }

  /** Answer to one entry; undefined for a notification. */
  private answer(message: unknown, context: CallContext): Answer | Promise<Answer> {
    const call = parseCall(message);
    if (typeof call === "string") return call;
    const startMs = this.options.clock.monotonicMs();
    const observed = this.methods.get(call.name);
    const observe = observed?.observe ?? this.observeUnknown;
    const failed = (error: unknown): Answer => {
      observe(startMs, true);
      return call.id === undefined ? undefined : errorText(call.id, this.describe(call, error));
    };
    const succeeded = (result: RpcResult): Answer => {
      const answer = call.id === undefined ? undefined : this.resultAnswer(call.id, result);
      observe(startMs, false);
      return answer;
    };
    try {
      if (observed === undefined) throw methodNotFound(call.name);
      const { method } = observed;
      if (call.params.length > method.maxParams) {
        throw invalidParams(`too many arguments, want at most ${method.maxParams}`);
      }
      const result = method.run(new Params(call.params), context);
      return result instanceof Promise ? result.then(succeeded).catch(failed) : succeeded(result);
    } catch (error) {
      return failed(error);
    }
  }

  private resultAnswer(id: string, result: RpcResult): Answer {
    const most = this.options.limits.responseBytes;
    const refused = () => faultText(id, "RESPONSE_TOO_LARGE", "response too large");
    const head = `{"jsonrpc":"2.0","id":${id},"result":`;
    if (result instanceof JsonPieces) {
      return result.sizeBytes > most ? refused() : [head, ...result.pieces(), "}"];
    }
    const content = result instanceof RawJson ? result.content : JSON.stringify(result);
    if (content.length > most) return refused();
    if (typeof content === "string") return `${head}${content}}`;
    return content.length < MERGE_BYTES
      ? `${head}${content.toString("utf8")}}`
      : [head, content, "}"];
  }

  /** The error object for a client; a fault of ours is logged and hidden. */
  private describe(call: Call, error: unknown): RpcErrorObject {
    const known = toRpcError(error);
    if (known !== undefined) return known;
    const { name } = call;
    // Faults are of methods that are served: others end before anything of ours can fail.
    this.methods.get(name)?.faults.happened((times) => {
      const fields = { method: name, times, code: errorCode(error), err: error };
      this.options.log.error(fields, "JSON-RPC method failed");
    });
    return INTERNAL_ERROR;
  }

  private observers(): (name: string) => (startMs: number, failed: boolean) => void {
    const { metrics, clock } = this.options;
    const requests = metrics.counter(
      "causeway_jsonrpc_requests_total",
      "JSON-RPC calls by method and outcome",
      ["method", "outcome"],
    );
    const seconds = metrics.histogram(
      "causeway_jsonrpc_request_seconds",
      "Time to answer a JSON-RPC call",
      ["method"],
    );
    return (method) => {
      const ok = requests.labels({ method, outcome: "ok" });
      const error = requests.labels({ method, outcome: "error" });
      const duration = seconds.labels({ method });
      return (startMs, failed) => {
        (failed ? error : ok).inc();
        duration.observe((clock.monotonicMs() - startMs) / 1_000);
      };
    };
  }
}

function asReply(answer: Answer): Reply {
  return typeof answer === "string" ? [answer] : answer;
}

function firstCharacter(body: Uint8Array): string {
  for (const byte of body) {
    const isSpace = byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
    if (!isSpace) return String.fromCharCode(byte);
  }
  return "";
}

/** The call, or the text of the error that answers it. */
function parseCall(message: unknown): Call | string {
  if (typeof message !== "object" || message === null || Array.isArray(message)) {
    return faultText("null", "INVALID_REQUEST", "invalid request");
  }
  const { text, valid } = idText(message);
  const name = methodOf(message);
  if (!valid || name === undefined) {
    return faultText(text ?? "null", "INVALID_REQUEST", "invalid request");
  }
  const params = "params" in message ? message.params : undefined;
  if (params === undefined || params === null) return { id: text, name, params: [] };
  // An empty object means the same as no parameters; named ones have no meaning here.
  if (Array.isArray(params)) return { id: text, name, params };
  const isEmpty = typeof params === "object" && Object.keys(params).length === 0;
  if (isEmpty) return { id: text, name, params: [] };
  return faultText(text ?? "null", "INVALID_PARAMS", "non-array args");
}

/** The method that a message of JSON-RPC 2.0 names. */
function methodOf(message: object): string | undefined {
  const isVersion2 = "jsonrpc" in message && message.jsonrpc === "2.0";
  const name = "method" in message ? message.method : undefined;
  return isVersion2 && typeof name === "string" ? name : undefined;
}

/** The id of what is a call to go-ethereum, whatever its parameters; undefined for anything else. */
function callId(entry: unknown): string | undefined {
  if (typeof entry !== "object" || entry === null) return undefined;
  const { text, valid } = idText(entry);
  return valid && methodOf(entry) ? text : undefined;
}

function isCallOf(entry: unknown, method: string): boolean {
  return (
    typeof entry === "object" && entry !== null && "method" in entry && entry.method === method
  );
}

const BATCH_RULES: BatchRules = {
  isSent: (entry) => isCallOf(entry, SEND_METHOD) || isCallOf(entry, SYNC_SEND_METHOD),
  isTaken: (entry) => isCallOf(entry, POLL_METHOD),
  refused: refusedEntry,
};

function refusedEntry(entry: unknown, why: NoRoom): Answer {
  const call = parseCall(entry);
  if (typeof call === "string") return call;
  if (call.id === undefined) return undefined;
  return faultText(call.id, why, why === "LIMIT_EXCEEDED" ? TOO_MANY_LARGE : "response too large");
}

/**
 * Answer to a batch of too many requests, as go-ethereum's: it has the id of the first call, because
 * clients that share a connection wait until an id of theirs comes back.
 */
function refusedBatch(entries: readonly unknown[]): Reply {
  for (const entry of entries) {
    const id = callId(entry);
    if (id !== undefined) return [`[${faultText(id, "INVALID_REQUEST", "batch too large")}]`];
  }
  return [`[${faultText("null", "INVALID_REQUEST", "batch too large")}]`];
}

/** Waits for the batch's place in the lane; false when the request's time is over before. */
function hasPlace(context: RequestContext): Promise<boolean> {
  return context.becameLarge().then(
    () => true,
    () => false,
  );
}
