/** What a server of an API is made of: paths with their handlers, and what those are given. */
import type { IncomingHttpHeaders } from "node:http";
import type { Caller, UnwrittenCall } from "./http-access.js";
import type { HttpReply } from "./http-reply.js";

/** A validated request as handlers see it. */
export interface HttpRequest {
  readonly method: string;
  /** Path without query. */
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  /** Query after validation: numbers and booleans are converted, defaults filled in. */
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
  /** Parsed JSON body; undefined without one. */
  readonly body: unknown;
  /** The body as received. */
  readonly rawBody: Uint8Array;
  /** Who asks; undefined where the API is open. */
  readonly caller?: Caller | undefined;
  /** Of a route that only stops: the call, for the handler to have written down. */
  readonly unwritten?: UnwrittenCall | undefined;
  /** The other end of the connection; undefined when it is gone. */
  readonly remoteAddress?: string | undefined;
  /** Fires when the client goes away or the server is forced to stop. */
  readonly signal: AbortSignal;
}

/** One operation of the API file. */
export interface HttpRoute {
  readonly method: "get" | "post" | "put" | "patch" | "delete";
  /** Path as in the API file: "/v1/deposits/{id}". */
  readonly path: string;
  /**
   * POST with a JSON body only: requests that the API file accepts go to the handler without
   * Express. Nothing else changes: checks, errors, metrics and the reply's bytes are the same.
   */
  readonly direct?: boolean;
  /** What the caller's key must be good for; undefined only where the API is open. */
  readonly scope?: string;
  /** What a call of it does can only stop, and waits for no record of it: see `GatedRoute`. */
  readonly stopsOnly?: boolean;
  /** Throws what is wrong with the headers; asked before the body is parsed, and told whatever that is. */
  readonly checkHead?: (headers: IncomingHttpHeaders) => void;
  readonly handler: (request: HttpRequest) => Promise<HttpReply>;
}

/** One operation of an API behind keys. */
export interface KeyedRoute extends HttpRoute {
  readonly scope: string;
}
