/** JSON-RPC 2.0 as CometBFT speaks it: requests and batches in, texts out. */
import { AppError, errorMessage } from "../../../chain/errors.js";
import type { Logger } from "../../../runtime/process/logger.js";
import type { LazySignal } from "../../../runtime/process/lazy-signal.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { ownerOf } from "../../../runtime/process/work-owner.js";
import { Turns } from "../../../runtime/turns/turns.js";
import { jsonArguments } from "./arguments.js";
import { busy, COMET_ERRORS, CometFault, type CometFaultCode } from "./errors.js";
import { JsonPieces, piecesOfList } from "./json/json-pieces.js";
import type { Route, RouteContext, Routes } from "./route.js";
import type { Arguments } from "./arguments.js";

/** What identifies a request to its sender. */
export type RequestId = string | number | null;

/** Longest id; clients number their requests, or name them by a UUID. A subscription keeps its own. */
const MAX_ID_CHARACTERS = 256;

/** Largest batch: as for the EVM JSON-RPC (D16). */
const MAX_BATCH_ENTRIES = 1_000;

/** Bytes of answers after which the rest of a batch is refused: a batch is held whole. */
const MAX_BATCH_BYTES = 64 * 1024 * 1024;

/** A batch that holds more than this goes on when few others do. */
const LARGE_BATCH_BYTES = 1024 * 1024;

/** Large batches that are made up at the same time, and those that wait, each with one answer too many. */
const MAX_LARGE_BATCHES = 2;
const MAX_WAITING_BATCHES = 64;

/** Places for large batches of all clients of a server. */
export class LargeBatches extends Turns {
  constructor() {
    super({
      maxRunning: MAX_LARGE_BATCHES,
      maxWaiting: MAX_WAITING_BATCHES,
      full: () => busy("too many large batches are asked for at once"),
    });
  }
}

function resultPieces(id: RequestId, result: unknown): Answer["pieces"] {
  const start = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
  if (result instanceof JsonPieces) return [start, ...result.pieces, "}"];
  return [`${start}${JSON.stringify(result)}}`];
}

/** Text of an error; `data` says what happened. */
export function errorText(id: RequestId, code: CometFaultCode, data: string): string {
  const [number, message] = COMET_ERRORS[code];
  const error = { code: number, message, ...(data === "" ? {} : { data }) };
  return JSON.stringify({ jsonrpc: "2.0", id, error });
}

/** A fault of ours, of which a client learns no more. */
const UNANSWERED = "the request could not be answered";

/** Text for a request whose answer was lost by a fault of ours. */
export function lostText(id: RequestId): string {
  return errorText(id, "INTERNAL", UNANSWERED);
}

/** What to send, piece after piece, and whether it is an error. */
export interface Answer {
  readonly pieces: readonly (string | Buffer)[];
  readonly isError: boolean;
  /** Nothing in the body could be read as a request: over HTTP CometBFT answers that with 500. */
  readonly isUnreadable?: boolean;
}

/** Who waits for an answer. */
interface Asker {
  /** Fires when nobody waits any more; its owner is who asks. */
  readonly ending: LazySignal;
  readonly client: RouteContext["client"];
}

/** Runs a route; what it throws is in the answer. */
export async function runRoute(
  route: Route,
  id: RequestId,
  values: () => Arguments,
  { ending, client }: Asker,
  log: Logger,
): Promise<Answer> {
  const context: RouteContext = {
    client,
    get clientAddress() {
      return ownerOf(ending.signal).client;
    },
    get signal() {
      return ending.signal;
    },
  };
  try {
    const result = await route.run(values(), context);
    return { pieces: resultPieces(id, result), isError: false };
  } catch (error) {
    const isExpected = error instanceof CometFault;
    if (!isExpected && !ending.isAborted) log.error({ err: error }, "consensus RPC failed");
    const code = isExpected ? error.code : "INTERNAL";
    // A foreign exception's text may name files and keys; those of ours never do.
    const data = error instanceof AppError ? error.message : UNANSWERED;
    return { pieces: [errorText(id, code, data)], isError: true };
  }
}

/** What the dispatcher needs to know of its transport. */
export interface RequestScope {
  readonly routes: Routes;
  readonly log: Logger;
  readonly ending: LazySignal;
  readonly large: LargeBatches;
  /** The WebSocket client for a request; undefined over HTTP. */
  client(id: RequestId): RouteContext["client"];
}

/** Answers a body: a request or a batch; undefined where nothing is to be answered. */
export async function answerBody(body: Buffer, scope: RequestScope): Promise<Answer | undefined> {
  let message: unknown;
  try {
    message = JSON.parse(body.toString("utf8"));
  } catch (error) {
    return unreadable(errorMessage(error));
  }
  if (!Array.isArray(message)) {
    return isRequest(message) ? answerRequest(message, scope) : unreadable("expected an object");
  }
  if (message.length > MAX_BATCH_ENTRIES) {
    return invalid(null, `batch of more than ${MAX_BATCH_ENTRIES} requests`);
  }
  if (!message.every(isRequest)) return unreadable("expected an array of objects");
  return answerBatch(message, scope);
}

async function answerBatch(
  requests: readonly Request[],
  scope: RequestScope,
): Promise<Answer | undefined> {
  const answers: JsonPieces[] = [];
  let sizeBytes = 0;
  let leave: (() => void) | undefined;
  try {
    for (const request of requests) {
      if (sizeBytes > LARGE_BATCH_BYTES) leave ??= await placeOf(scope);
      if (scope.ending.isAborted) return undefined;
      const isFull =
        sizeBytes > MAX_BATCH_BYTES || (sizeBytes > LARGE_BATCH_BYTES && leave === undefined);
      const answer = isFull ? tooLarge(request) : await answerRequest(request, scope);
      if (answer === undefined) continue;
      answers.push(new JsonPieces(answer.pieces));
      for (const { length } of answer.pieces) sizeBytes += length;
      await breathe(undefined, scope.ending.owner?.());
    }
  } finally {
    leave?.();
  }
  return answers.length === 0 ? undefined : { pieces: piecesOfList(answers), isError: false };
}

/** Waits for a place; undefined where there is none, or nobody waits any more. */
function placeOf({ large, ending }: RequestScope): Promise<(() => void) | undefined> {
  const { signal } = ending;
  return large.enter(signal, ownerOf(signal).client).catch(() => undefined);
}

function tooLarge(request: unknown): Answer {
  const id = idOf(request) ?? null;
  const text = errorText(id, "INTERNAL", "the batch's answers are too large");
  return { pieces: [text], isError: true };
}

function unreadable(reason: string): Answer {
  const text = errorText(null, "PARSE_ERROR", `error unmarshaling request: ${reason}`);
  return { pieces: [text], isError: true, isUnreadable: true };
}

/** What is answered; one that names no method asks for one that is not there. */
interface Request {
  readonly method?: string;
}

/** Whether a value has the shape of a request: an id that is a text or a number, a method by name. */
function isRequest(message: unknown): message is Request {
  if (typeof message !== "object" || message === null || Array.isArray(message)) return false;
  if ("method" in message && typeof message.method !== "string") return false;
  return !("id" in message) || message.id === undefined || idOf(message) !== undefined;
}

function invalid(id: RequestId, data: string): Answer {
  return { pieces: [errorText(id, "INVALID_REQUEST", data)], isError: true };
}

/** The id of a request; undefined for a notification and for an id of another type. */
function idOf(request: unknown): RequestId | undefined {
  if (typeof request !== "object" || request === null || !("id" in request)) return undefined;
  const { id } = request;
  return id === null || typeof id === "string" || typeof id === "number" ? id : undefined;
}

/** The answer to one request; undefined for a notification. */
async function answerRequest(message: Request, scope: RequestScope): Promise<Answer | undefined> {
  const id = idOf(message);
  if (id === undefined) return undefined;
  if (typeof id === "string" && id.length > MAX_ID_CHARACTERS) {
    return invalid(null, `the id has more than ${MAX_ID_CHARACTERS} characters: use a shorter one`);
  }
  const client = scope.client(id);
  const route = scope.routes.get(message.method ?? "");
  if (route === undefined || (route.isSocketOnly === true && client === undefined)) {
    return { pieces: [errorText(id, "METHOD_NOT_FOUND", "")], isError: true };
  }
  const params = "params" in message ? message.params : undefined;
  const { ending, log } = scope;
  const values = () => jsonArguments(params, route.parameters);
  return runRoute(route, id, values, { ending, client }, log);
}
