/**
 * Who may call an API: asked before a body is read. What keys are and where they lie is for who
 * implements the port; the server knows callers, scopes and the statuses 401, 403 and 429.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { MAX_REASON_CHARACTERS, wholeLine } from "../../chain/evm/foreign-text.js";
import { withTimeout } from "../process/task.js";
import { HttpError, requestError } from "./http-errors.js";
import {
  checkSignature,
  type RequestVerifier,
  signedDigest,
  type SignedParts,
} from "./signed-request.js";

/** Who asks, and for what the key is good. */
export interface Caller {
  /** Name of the key in logs and records; never the key. */
  readonly keyId: string;
  /** "all", or the scopes of the key. */
  readonly scopes: "all" | ReadonlySet<string>;
  /** How its changing requests are signed; undefined for a key that signs nothing. */
  readonly verifier?: RequestVerifier | undefined;
}

/** A call that may change something, as it is written down before it is handled. */
export interface RecordedCall {
  readonly keyId: string;
  readonly method: string;
  /** Path without query. */
  readonly path: string;
  readonly idempotencyKey: string | undefined;
  /** SHA-256 of the body as received, 64 hex digits. */
  readonly bodySha256: string;
  /** Natural key of a signed request, 64 hex digits; undefined for one that is not signed. */
  readonly signedDigest: string | undefined;
  /** The person that the caller names (`causeway-actor`), its word alone; undefined for none. */
  readonly actor: string | undefined;
  /** Why, in that person's words (`causeway-reason`); undefined for none. */
  readonly reason: string | undefined;
}

/** A call that is written down while it is handled: it can only stop. */
export interface UnwrittenCall {
  readonly call: RecordedCall;
  /** Has it written down; as `HttpAccess.record`. */
  readonly write: () => Promise<void>;
}

/** The gate in front of an API. */
export interface HttpAccess {
  /**
   * The caller behind a bearer key.
   * @throws requestError 401 for no valid key, 429 for too many calls in a second; faults of where keys lie
   */
  identify(bearerKey: string | undefined): Promise<Caller>;
  /**
   * The caller as he was known a while ago, without asking where keys lie; undefined for one who was not.
   * @throws requestError 429
   */
  recall(bearerKey: string | undefined): Caller | undefined;
  /**
   * Resolves when the call is written down; a call that cannot be is not handled.
   * @throws requestError 401 for a signed call that was written down before, and where the key has ended
   *   since the caller was admitted
   */
  record(call: RecordedCall): Promise<void>;
  /** Wall clock, milliseconds: signatures are young. */
  nowMs(): number;
}

/** Bytes of a key's digest: keys are random, so one round of SHA-256 is enough to keep them. */
export function keyDigest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** The key of an `Authorization: Bearer` header; undefined for anything else. */
function bearerKeyOf(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
}

/** The refusal of a call without a valid key. */
export function noValidKey(): Error {
  return requestError(401, "a valid API key is needed: Authorization: Bearer <key>");
}

/** Whether a key has this digest, in a time that does not tell how far they agree. */
export function hasDigest(key: string, digest: Uint8Array): boolean {
  return timingSafeEqual(keyDigest(key), digest);
}

/** What the gate knows of a route. */
export interface GatedRoute {
  /** Lower case, as routes are written. */
  readonly method: string;
  /** As in the API file. */
  readonly path: string;
  /** What the caller's key must be good for. */
  readonly scope?: string;
  /**
   * What a call of it does can only stop: it is let in by a key that was good a while ago where keys cannot
   * be asked for, and handled before it is written down, which its handler has done.
   */
  readonly stopsOnly?: boolean;
}

/** What the gate sees of a request. */
export interface GatedRequest {
  readonly method: string;
  /** Path without query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

/** Longest name of an actor, in characters (code points). */
const MAX_ACTOR_CHARACTERS = 100;

/**
 * A text of a header: UTF-8, percent-encoded where it is not printable ASCII.
 * @throws requestError 400 for one that cannot be read or is too long
 */
function recordedText(
  headers: IncomingHttpHeaders,
  name: string,
  maxCharacters: number,
): string | undefined {
  const value = headers[name];
  if (value === undefined) return undefined;
  try {
    const text = typeof value === "string" ? decodeURIComponent(value).trim() : "";
    const line = wholeLine(text, maxCharacters);
    if (line !== undefined) return line;
  } catch {
    // No encoding: refused below.
  }
  const message = `${name} must be 1 to ${maxCharacters} characters, percent-encoded`;
  throw requestError(400, message, { path: `/headers/${name}` });
}

/** Who called, for records of people: the key, and the person that it names. @throws requestError 400 */
export function callerName({ keyId }: Caller, headers: IncomingHttpHeaders): string {
  const actor = recordedText(headers, "causeway-actor", MAX_ACTOR_CHARACTERS);
  return actor === undefined ? keyId : `${keyId} (${actor})`;
}

/** The same, once its body is there. */
export interface ReadRequest extends GatedRequest, SignedParts {}

/** Time for the answer whether a key is good, where one that only stops may be taken without it. */
const IDENTIFY_MS = 2_000;

/** Methods that change nothing, so that nothing is written down. */
const READING = new Set(["get", "head"]);

/** Asks the port at two points: when a request's head is there, and before its handler runs. */
export class HttpGate {
  /** @throws LISTEN_FAILED for a route that names no scope: it would be open to every valid key */
  constructor(
    private readonly access: HttpAccess,
    private readonly routes: readonly (GatedRoute & { readonly pattern: RegExp })[],
  ) {
    for (const { method, path, scope } of routes) {
      if (scope !== undefined) continue;
      throw new HttpError(
        "LISTEN_FAILED",
        `${method} ${path} names no scope for its callers' keys`,
      );
    }
  }

  /**
   * The caller.
   * @throws requestError 401, 403, 429; faults of where keys lie
   */
  async admit({ method, path, headers }: GatedRequest): Promise<Caller> {
    const wanted = method === "HEAD" ? "get" : method.toLowerCase();
    const route = this.routes.find((one) => one.method === wanted && one.pattern.test(path));
    const bearerKey = bearerKeyOf(headers.authorization);
    const caller =
      route?.stopsOnly === true
        ? await this.#identifyToStop(bearerKey)
        : await this.access.identify(bearerKey);
    checkScope(caller, route?.scope);
    return caller;
  }

  /** As `identify`; where keys cannot be asked for, or no answer comes, who was known a while ago is. */
  async #identifyToStop(bearerKey: string | undefined): Promise<Caller> {
    const { signal } = new AbortController();
    const what = "the look for a key";
    try {
      const asked = () => this.access.identify(bearerKey);
      return await withTimeout(asked, { timeoutMs: IDENTIFY_MS, signal, what });
    } catch (error) {
      const known = error instanceof HttpError ? undefined : this.access.recall(bearerKey);
      if (known === undefined) throw error;
      return known;
    }
  }

  /**
   * When the body is there: a key that signs has signed this request, if it may change something.
   * @throws requestError 401
   */
  authenticate({ verifier }: Caller, request: ReadRequest): void {
    if (verifier === undefined || READING.has(request.method.toLowerCase())) return;
    checkSignature(request, verifier, this.access.nowMs());
  }

  /** Whether the caller's key is good for a scope; false also while keys cannot be asked for. */
  async opens(headers: IncomingHttpHeaders, scope: string): Promise<boolean> {
    try {
      checkScope(await this.access.identify(bearerKeyOf(headers.authorization)), scope);
      return true;
    } catch {
      return false; // Who asks gets what everybody may see.
    }
  }

  /**
   * Before the handler of a route runs: asks for the scope again, now that the route is certain,
   * and has the call written down if it may change something.
   * @returns the call, where its handler is to have it written down
   * @throws requestError 403, 401 for a signed request that was let through before; faults of where
   * calls are written down
   */
  async enter(
    route: GatedRoute,
    caller: Caller,
    request: ReadRequest,
  ): Promise<UnwrittenCall | undefined> {
    checkScope(caller, route.scope);
    if (READING.has(route.method)) return undefined;
    const idempotencyKey = request.headers["idempotency-key"];
    const { headers } = request;
    const call = {
      keyId: caller.keyId,
      method: request.method,
      path: request.path,
      idempotencyKey: typeof idempotencyKey === "string" ? idempotencyKey : undefined,
      bodySha256: createHash("sha256").update(request.rawBody).digest("hex"),
      signedDigest: caller.verifier === undefined ? undefined : signedDigest(caller.keyId, request),
      actor: recordedText(headers, "causeway-actor", MAX_ACTOR_CHARACTERS),
      reason: recordedText(headers, "causeway-reason", MAX_REASON_CHARACTERS.api),
    };
    const write = () => this.access.record(call);
    if (route.stopsOnly === true) return { call, write };
    await write();
    return undefined;
  }
}

/** @throws requestError 403 naming the scope that the key lacks */
function checkScope(caller: Caller, scope: string | undefined): void {
  if (scope === undefined || caller.scopes === "all" || caller.scopes.has(scope)) return;
  throw requestError(403, `the API key lacks the scope ${scope}`, { details: { scope } });
}
