/** One JSON POST over kept-alive connections: with a time-out, a bound on the reply, a signal. */
import * as http from "node:http";
import * as https from "node:https";
import { urlToHttpOptions } from "node:url";
import { CollectedBytes } from "../runtime/http/collected-bytes.js";
import { routeOf } from "../runtime/http/outgoing/route-url.js";
import { NodeFault } from "./errors.js";

/** Options of a connection to one server. */
export interface HttpPostOptions {
  /** http or https; a user and password in it become Basic authorisation. */
  readonly url: string;
  /** Time for one exchange, from the first byte sent to the last one read. */
  readonly timeoutMs: number;
  /** A longer reply is refused with ANSWER_TOO_LARGE. */
  readonly maxResponseBytes: number;
  /** Connections at once; default 64. */
  readonly maxConnections?: number;
}

/** A reply as it came. */
export interface HttpReply {
  readonly status: number;
  readonly body: Buffer;
}

/** What one exchange may choose. */
export interface PostOptions {
  readonly signal: AbortSignal;
  /** A route of the server, below the URL's path; without it the URL itself is what is asked. */
  readonly path?: string | undefined;
  /** A bound for this reply, where it is lower than the connection's. */
  readonly maxResponseBytes?: number | undefined;
  /** Time for this exchange, where it is shorter than the connection's. */
  readonly timeoutMs?: number | undefined;
}

/** A kept-alive connection pool to one server. */
export interface HttpPoster {
  /** Host and port, for messages. */
  readonly host: string;
  /** @throws NodeFault NODE_UNREACHABLE, NODE_TIMEOUT, ANSWER_TOO_LARGE; the signal's reason */
  post(body: string, options: PostOptions): Promise<HttpReply>;
  /** Ends idle and busy connections. */
  close(): void;
}

/** Connections to one server by default; more requests than that wait for a free one. */
const MAX_SOCKETS = 64;

/** What a socket reads at once: shorter replies come in one piece, which is kept as it is. */
const ONE_PIECE_BYTES = 64 * 1024;

/** Faults of a kept-alive connection that the server had already closed. */
const STALE_CODES = new Set(["ECONNRESET", "EPIPE"]);

/** Opens no connection before the first request. Throws TypeError on a malformed URL. */
export function createHttpPoster(options: HttpPostOptions): HttpPoster {
  const url = new URL(options.url);
  const transport = url.protocol === "https:" ? https : http;
  const maxSockets = options.maxConnections ?? MAX_SOCKETS;
  const agent = new transport.Agent({
    keepAlive: true,
    maxSockets,
    // Bursts come again, and opening a connection costs more than most requests.
    maxFreeSockets: maxSockets,
    // The last used connection first: the others may reach their idle limit and go.
    scheduling: "lifo",
  });
  // Where a kept connection was closed the others may be, too: one that is made for the request is not.
  const fresh = new transport.Agent({ keepAlive: false });
  const exchange = new HttpExchange(url, transport, options);
  return {
    host: url.host,
    async post(body, chosen) {
      chosen.signal.throwIfAborted();
      try {
        return await exchange.run(body, chosen, agent);
      } catch (error) {
        // Every request of this kit may be sent twice: reads, and transactions known by hash.
        if (!(error instanceof StaleConnection)) throw error;
        return await exchange.run(body, chosen, fresh);
      }
    },
    close: () => {
      agent.destroy();
      fresh.destroy();
    },
  };
}

/** The reused connection was closed under the request; nothing of a reply had arrived. */
class StaleConnection extends NodeFault {}

class HttpExchange {
  /** The URL taken apart once, not for each request that names no route. */
  private readonly target: http.RequestOptions;

  constructor(
    private readonly url: URL,
    private readonly transport: typeof http | typeof https,
    private readonly options: HttpPostOptions,
  ) {
    this.target = urlToHttpOptions(url);
  }

  run(body: string, chosen: PostOptions, agent: http.Agent): Promise<HttpReply> {
    const { signal, path } = chosen;
    const most = Math.min(chosen.maxResponseBytes ?? Infinity, this.options.maxResponseBytes);
    const timeoutMs = Math.min(chosen.timeoutMs ?? Infinity, this.options.timeoutMs);
    return new Promise((resolve, reject) => {
      const request = this.transport.request({
        ...(path === undefined ? this.target : urlToHttpOptions(routeOf(this.url.href, path))),
        method: "POST",
        agent,
        headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) },
      });
      const timer = setTimeout(() => finish(this.timedOut(timeoutMs)), timeoutMs);
      const onAbort = () => finish(abortReason(signal));
      signal.addEventListener("abort", onAbort, { once: true });
      const finish = (outcome: HttpReply | Error) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        if (!(outcome instanceof Error)) return resolve(outcome);
        request.destroy();
        reject(outcome);
      };
      request.on("error", (error) => finish(this.unreachable(error, request.reusedSocket)));
      request.on("response", (response) => this.collect(response, most, finish));
      // As text, head and body leave in one piece; bytes would be a second one.
      request.end(body, "utf8");
    });
  }

  private collect(
    response: http.IncomingMessage,
    maxResponseBytes: number,
    finish: (outcome: HttpReply | Error) => void,
  ): void {
    const told = Number(response.headers["content-length"] ?? Infinity);
    const body = new ReplyBytes(told <= maxResponseBytes ? told : undefined);
    response.on("data", (chunk: Buffer) => {
      body.add(chunk);
      if (body.size > maxResponseBytes) finish(this.tooLarge(maxResponseBytes));
    });
    response.on("error", (error) => finish(this.unreachable(error, false)));
    response.on("end", () => {
      finish({ status: response.statusCode ?? 0, body: body.whole() });
    });
  }

  private unreachable(cause: Error, reused: boolean): NodeFault {
    const code = "code" in cause && typeof cause.code === "string" ? cause.code : "UNKNOWN";
    const Fault = reused && STALE_CODES.has(code) ? StaleConnection : NodeFault;
    return new Fault("NODE_UNREACHABLE", `no connection to ${this.url.host}`, {
      retriable: true,
      details: { host: this.url.host, reason: code },
      cause,
    });
  }

  private timedOut(timeoutMs: number): NodeFault {
    return new NodeFault("NODE_TIMEOUT", `no answer from ${this.url.host} in time`, {
      retriable: true,
      details: { host: this.url.host, timeoutMs },
    });
  }

  private tooLarge(maxResponseBytes: number): NodeFault {
    return new NodeFault("ANSWER_TOO_LARGE", `the answer of ${this.url.host} is too large`, {
      details: { host: this.url.host, maxResponseBytes },
    });
  }
}

/** A reply as it comes in. */
class ReplyBytes {
  size = 0;
  private readonly collected = new CollectedBytes();
  /** For a long reply whose length is told: each piece is copied while it is at hand, and let go of. */
  private readonly all: Buffer | undefined;

  constructor(told: number | undefined) {
    if (told !== undefined && told > ONE_PIECE_BYTES) this.all = Buffer.allocUnsafeSlow(told);
  }

  add(chunk: Buffer): void {
    if (this.all === undefined) this.collected.add(chunk);
    else this.all.set(chunk, this.size);
    this.size += chunk.length;
  }

  /** To be asked once all is there. */
  whole(): Buffer {
    return this.all?.subarray(0, this.size) ?? this.collected.whole();
  }
}

function abortReason(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error("aborted");
}
