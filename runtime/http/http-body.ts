/** Request bodies: bounded reading and strict JSON. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { hasRepeatedField } from "../../chain/encoding/json-fields.js";
import { CollectedBytes } from "./collected-bytes.js";
import { COUNTED_BYTES, type HeldBytes, type Holding, holdUntilAnswered } from "./held-bytes.js";
import { requestError } from "./http-errors.js";

/** Deeper JSON has no use in any of our APIs and could exhaust the validators' stack. */
const MAX_JSON_DEPTH = 64;

/** Of a refused body this much is read all the same; sending more is no mistake of a client. */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;

/** Whole bodies only, so nothing is kept from one to the next. */
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Where a body is counted, with those of all other connections, until its answer is made. */
export interface BodyRoom {
  readonly unread: HeldBytes;
  readonly response: ServerResponse;
  /** Lets go of a body that counted, and of what was made of it: its answer is made. */
  readonly forget: () => void;
}

/**
 * Reads a whole body.
 * @param room without it the body counts nowhere: the caller bounds how many there are
 * @throws INVALID_REQUEST with status 413 beyond `limitBytes`, 400 when the client breaks off, 429 where
 * there is no room for the bodies of all clients
 */
export async function readBody(
  request: IncomingMessage,
  limitBytes: number,
  room?: BodyRoom,
): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > limitBytes) {
    throw tooLarge(limitBytes);
  }
  let body = new CollectedBytes();
  let holding: Holding | undefined;
  return new Promise((resolve, reject) => {
    const onClose = () => reject(requestError(400, "the body broke off"));
    const refuse = (error: Error) => {
      request.pause();
      request.removeAllListeners("data");
      body = new CollectedBytes();
      holding?.release();
      reject(error);
    };
    request.on("data", (chunk: Buffer) => {
      body.add(chunk);
      if (body.sizeBytes > limitBytes) {
        refuse(tooLarge(limitBytes));
        return;
      }
      if (room === undefined || body.sizeBytes <= COUNTED_BYTES) return;
      const { unread, response, forget } = room;
      holding ??= holdUntilAnswered(unread, response, () => refuse(noRoom()), forget);
      holding.update(body.sizeBytes);
    });
    request.on("end", () => {
      // Every request closes in the end: an error made then would only be thrown away.
      request.removeListener("close", onClose);
      holding?.pin();
      resolve(body.whole());
      // These listeners stay as long as the request.
      body = new CollectedBytes();
    });
    request.on("error", (cause) => reject(requestError(400, "the body broke off", { cause })));
    request.on("close", onClose);
  });
}

/**
 * Reads on, and throws away, what a client still sends of a request that is refused already; called before
 * the answer is sent. A connection that is closed instead is reset by what arrives then: most clients lose
 * the answer on it, and see a broken connection where they are told 413 or 401. A client that wants the
 * connection closed has that behind its last byte. Beyond `maxBytes` the connection ends.
 */
export function discardRest(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes = MAX_DISCARDED_BYTES,
): void {
  if (request.complete) return;
  let leftBytes = maxBytes;
  request.on("data", (chunk: Buffer) => {
    leftBytes -= chunk.length;
    if (leftBytes < 0) request.destroy();
  });
  if (!response.shouldKeepAlive) {
    // Node would close it behind the answer.
    response.shouldKeepAlive = true;
    request.once("end", () => {
      if (response.writableFinished) request.socket.end();
      else response.once("finish", () => request.socket.end());
    });
  }
  request.resume();
}

/** True for `application/json`, with or without parameters. */
export function isJsonType(contentType: string | undefined): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType ?? "");
}

/**
 * Bytes to a JSON value. Refuses bytes that are no UTF-8, whole numbers beyond 2^53 - 1 (they would
 * silently change), NUL characters (PostgreSQL cannot store them), nesting beyond 64, and a field that is
 * written twice: whoever looked at the body on its way may have read the other one. A fault of one value
 * names a rule, as those of the validator do: such a body was understood.
 * @throws INVALID_REQUEST with status 400
 */
export function parseJsonBody(body: Uint8Array): unknown {
  let value: unknown;
  try {
    value = JSON.parse(UTF8.decode(body));
  } catch (cause) {
    throw requestError(400, "the body is not valid JSON", { path: "/body", cause });
  }
  checkValue(value, "/body", 0);
  if (hasRepeatedField(body, value)) {
    throw requestError(400, "the body has a field twice", { path: "/body" });
  }
  return value;
}

function checkValue(value: unknown, path: string, depth: number): void {
  if (depth > MAX_JSON_DEPTH) {
    throw requestError(400, `the body is nested deeper than ${MAX_JSON_DEPTH}`, { path: "/body" });
  }
  if (typeof value === "string") {
    checkText(value, path);
  } else if (typeof value === "number") {
    if (Math.abs(value) > Number.MAX_SAFE_INTEGER) {
      throw requestError(400, "numbers beyond 2^53 - 1 are not exact", { path, rule: "exact" });
    }
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      checkText(key, path);
      checkValue(item, `${path}/${key}`, depth + 1);
    }
  }
}

function checkText(text: string, path: string): void {
  if (text.includes("\u0000")) {
    throw requestError(400, "NUL characters are not allowed", { path, rule: "text" });
  }
}

function noRoom(): Error {
  return requestError(429, "too many large requests at once, try again", { path: "/body" });
}

function tooLarge(limitBytes: number): Error {
  return requestError(413, `the body is larger than ${limitBytes} bytes`, { path: "/body" });
}
