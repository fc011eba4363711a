/** JSON-RPC 2.0 as CometBFT speaks it: requests and batches in, texts out. */
import { AppError, errorMessage } from "../../../chain/errors.js";
import type { Logger } from "../../../runtime/logger.js";
import { jsonArguments } from "./arguments.js";
import { COMET_ERRORS, CometFault, type CometFaultCode } from "./errors.js";
import { JsonText } from "./result-texts.js";
import type { Route, RouteContext, Routes } from "./route.js";
import type { Arguments } from "./arguments.js";

/** What identifies a request to its sender. */
export type RequestId = string | number | null;

/** Largest batch: as for the EVM JSON-RPC (D16). */
const MAX_BATCH_ENTRIES = 1_000;

/** Bytes of answers after which the rest of a batch is refused: a batch is held whole. */
const MAX_BATCH_BYTES = 64 * 1024 * 1024;

function resultText(id: RequestId, result: unknown): string {
  const text = result instanceof JsonText ? result.text : JSON.stringify(result);
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}`;
}

/** Text of an error; `data` says what happened. */
export function errorText(id: RequestId, code: CometFaultCode, data: string): string {
  const [number, message] = COMET_ERRORS[code];
  const error = { code: number, message, ...(data === "" ? {} : { data }) };
  return JSON.stringify({ jsonrpc: "2.0", id, error });
}

/** A text to send, and whether it is an error. */
export interface Answer {
  readonly text: string;
  readonly isError: boolean;
}

/** Runs a route; never rejects. */
export async function runRoute(
  route: Route,
  id: RequestId,
  values: () => Arguments,
  context: RouteContext,
  log: Logger,
): Promise<Answer> {
  try {
    return { text: resultText(id, await route.run(values(), context)), isError: false };
  } catch (error) {
    const isExpected = error instanceof CometFault;
    if (!isExpected && !context.signal.aborted) log.error({ err: error }, "consensus RPC failed");
    const code = isExpected ? error.code : "INTERNAL";
    // A foreign exception's text may name files and keys; those of ours never do.
    const data = error instanceof AppError ? error.message : "the request could not be answered";
    return { text: errorText(id, code, data), isError: true };
  }
}

/** What the dispatcher needs to know of its transport. */
export interface RequestScope {
  readonly routes: Routes;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** The WebSocket client for a request; undefined over HTTP. */
  client(id: RequestId): RouteContext["client"];
}

/** Answers a body: a request or a batch; undefined where nothing is to be answered. */
export async function answerBody(body: Buffer, scope: RequestScope): Promise<Answer | undefined> {
  let message: unknown;
  try {
    message = JSON.parse(body.toString("utf8"));
  } catch (error) {
    const text = `error unmarshaling request: ${errorMessage(error)}`;
    return { text: errorText(null, "PARSE_ERROR", text), isError: true };
  }
  if (!Array.isArray(message)) return answerRequest(message, scope);
  if (message.length > MAX_BATCH_ENTRIES) {
    return invalid(null, `batch of more than ${MAX_BATCH_ENTRIES} requests`);
  }
  const texts: string[] = [];
  let sizeBytes = 0;
  for (const request of message as readonly unknown[]) {
    if (scope.signal.aborted) return undefined;
    const isFull = sizeBytes > MAX_BATCH_BYTES;
    const answer = isFull ? tooLarge(request) : await answerRequest(request, scope);
    if (answer === undefined) continue;
    texts.push(answer.text);
    sizeBytes += answer.text.length;
  }
  return texts.length === 0 ? undefined : { text: `[${texts.join(",")}]`, isError: false };
}

function tooLarge(request: unknown): Answer {
  const id = idOf(request) ?? null;
  return { text: errorText(id, "INTERNAL", "the batch's answers are too large"), isError: true };
}

function invalid(id: RequestId, data: string): Answer {
  return { text: errorText(id, "INVALID_REQUEST", data), isError: true };
}

/** The id of a request; undefined for a notification and for an id of another type. */
function idOf(request: unknown): RequestId | undefined {
  if (typeof request !== "object" || request === null || !("id" in request)) return undefined;
  const { id } = request;
  return id === null || typeof id === "string" || typeof id === "number" ? id : undefined;
}

/** The answer to one request; undefined for a notification. */
async function answerRequest(message: unknown, scope: RequestScope): Promise<Answer | undefined> {
  if (typeof message !== "object" || message === null || Array.isArray(message)) {
    return invalid(null, "expected an object");
  }
  if (!("id" in message) || message.id === undefined) return undefined;
  const id = idOf(message);
  if (id === undefined) return invalid(null, "id is no string or number");
  if (!("method" in message) || typeof message.method !== "string") {
    return invalid(id, "method is missing");
  }
  const client = scope.client(id);
  const route = scope.routes.get(message.method);
  if (route === undefined || (route.isSocketOnly === true && client === undefined)) {
    return { text: errorText(id, "METHOD_NOT_FOUND", ""), isError: true };
  }
  const params = "params" in message ? message.params : undefined;
  const { signal, log } = scope;
  const values = () => jsonArguments(params, route.parameters);
  return runRoute(route, id, values, { signal, client }, log);
}
