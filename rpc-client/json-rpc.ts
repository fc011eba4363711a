/** JSON-RPC 2.0 over HTTP: ids and shape of every answer are checked, batches keep their order. */
import { assertHasBlock, headerCall, type KnownBlock } from "./at.js";
import { badAnswer, NodeFault, RpcError } from "./errors.js";
import { createHttpPoster } from "./http-post.js";

/** One call. */
export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What one call of a batch came to; a refusal of one leaves the others alone. */
export type RpcOutcome =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: RpcError };

/** Untyped access to one node; `evm-client.ts` gives the results their types. */
export interface JsonRpcClient {
  /**
   * The result of one call.
   * @throws RpcError when the node refuses; NodeFault when it cannot be asked or believed
   */
  request(method: string, params: readonly unknown[], options: RpcOptions): Promise<unknown>;
  /**
   * Outcomes in the order of the calls; no call at all gives none. Longer lists are sent as
   * several batches of at most `MAX_BATCH_CALLS`, one after the other.
   * @throws NodeFault
   */
  batch(calls: readonly RpcCall[], options: RpcOptions): Promise<RpcOutcome[]>;
  /** Ends its connections. */
  close(): void;
}

/** Options of every call that waits. */
export interface RpcOptions {
  readonly signal: AbortSignal;
  /** Longest reply to this call, where it is lower than the client's. */
  readonly maxResponseBytes?: number;
  /** Time for each exchange of this call, where it is shorter than the client's. */
  readonly timeoutMs?: number;
  /**
   * A block that whoever answers has to have: its header is asked for in each exchange of this call. Of a
   * node that does not have it nothing is taken, and the call fails with BAD_ANSWER.
   */
  readonly known?: KnownBlock | undefined;
}

/** Settings of a client. */
export interface JsonRpcClientOptions {
  readonly url: string;
  /** Time for one HTTP exchange; default 10 s. */
  readonly timeoutMs?: number;
  /** Longest reply; default 64 MiB, a full block's journal. */
  readonly maxResponseBytes?: number;
}

/** Calls in one HTTP request: what the node promises to take at least. */
export const MAX_BATCH_CALLS = 500;

const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

/** Opens no connection before the first call. Throws TypeError on a malformed URL. */
export function createJsonRpcClient(options: JsonRpcClientOptions): JsonRpcClient {
  const poster = createHttpPoster({
    url: options.url,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxResponseBytes: options.maxResponseBytes ?? DEFAULT_MAX_RESPONSE_BYTES,
  });
  let nextId = 1;

  const exchange = async (body: string, chosen: RpcOptions): Promise<unknown> => {
    const reply = await poster.post(body, chosen);
    if (reply.status !== 200) {
      throw new NodeFault("NODE_HTTP_STATUS", `${poster.host} answered HTTP ${reply.status}`, {
        retriable: true,
        details: { host: poster.host, status: reply.status },
      });
    }
    try {
      return JSON.parse(reply.body.toString("utf8"));
    } catch (cause) {
      throw badAnswer("the body is not JSON", cause);
    }
  };

  const sendBatch = async (calls: readonly RpcCall[], chosen: RpcOptions) => {
    const firstId = nextId;
    nextId += calls.length;
    const messages = calls.map((call, index) => ({ jsonrpc: "2.0", id: firstId + index, ...call }));
    const answer = await exchange(JSON.stringify(messages), chosen);
    return parseBatch(answer, calls, firstId);
  };

  const batch: JsonRpcClient["batch"] = async (calls, chosen) => {
    const { known } = chosen;
    const proof = known === undefined ? [] : [headerCall(known.height)];
    const most = MAX_BATCH_CALLS - proof.length;
    const outcomes: RpcOutcome[] = [];
    for (let start = 0; start < calls.length; start += most) {
      const part = await sendBatch([...proof, ...calls.slice(start, start + most)], chosen);
      if (known !== undefined) assertHasBlock(resultOf(part.shift()), known);
      for (const outcome of part) outcomes.push(outcome);
    }
    return outcomes;
  };

  return {
    async request(method, params, chosen) {
      if (chosen.known !== undefined)
        return resultOf((await batch([{ method, params }], chosen))[0]);
      const id = nextId++;
      const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
      const answer = await exchange(body, chosen);
      if (!isRecord(answer)) throw badAnswer("not an object");
      const outcome = parseAnswer(answer, method);
      // A node that could not read the request answers with a null id: report what it said.
      if (answer["id"] !== id && (outcome.ok || answer["id"] !== null)) {
        throw badAnswer("the id is not the request's");
      }
      if (!outcome.ok) throw outcome.error;
      return outcome.result;
    },
    batch,
    close: () => poster.close(),
  };
}

/** The result of a successful outcome; throws the refusal otherwise. */
export function resultOf(outcome: RpcOutcome | undefined): unknown {
  if (outcome === undefined) throw badAnswer("an outcome is missing");
  if (!outcome.ok) throw outcome.error;
  return outcome.result;
}

function parseBatch(answer: unknown, calls: readonly RpcCall[], firstId: number): RpcOutcome[] {
  // A batch refused as a whole is answered by one error, in a list or not.
  const only = Array.isArray(answer) && answer.length === 1 && calls.length > 1;
  const whole: unknown = only ? answer[0] : answer;
  if (isRecord(whole) && isRecord(whole["error"])) throw refusedBatch(whole);
  if (!Array.isArray(answer)) throw badAnswer("a batch was not answered by a list");
  const outcomes: (RpcOutcome | undefined)[] = calls.map(() => undefined);
  for (const entry of answer) {
    if (!isRecord(entry)) throw badAnswer("an entry of a batch is not an object");
    const index = typeof entry["id"] === "number" ? entry["id"] - firstId : -1;
    const call = calls[index];
    if (call === undefined || outcomes[index] !== undefined) {
      throw badAnswer("an id of a batch is unknown or comes twice");
    }
    outcomes[index] = parseAnswer(entry, call.method);
  }
  return outcomes.map((outcome) => {
    if (outcome === undefined) throw badAnswer("a call of a batch was not answered");
    return outcome;
  });
}

function refusedBatch(answer: Record<string, unknown>): RpcError {
  const outcome = parseAnswer(answer, "batch");
  if (outcome.ok) throw badAnswer("a batch was answered by one result");
  return outcome.error;
}

function parseAnswer(answer: Record<string, unknown>, method: string): RpcOutcome {
  if (answer["jsonrpc"] !== "2.0") throw badAnswer("not JSON-RPC 2.0");
  const error = answer["error"];
  if (error === undefined || error === null) {
    if (!("result" in answer)) throw badAnswer("neither result nor error");
    return { ok: true, result: answer["result"] };
  }
  if (!isRecord(error) || typeof error["code"] !== "number") {
    throw badAnswer("an error without a number");
  }
  const message = typeof error["message"] === "string" ? error["message"] : "";
  const data = error["data"];
  const rpc = { rpcCode: error["code"], method, ...(data === undefined ? {} : { data }) };
  return { ok: false, error: new RpcError(message, rpc) };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
