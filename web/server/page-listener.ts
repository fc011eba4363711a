/** The port of a server of pages: bounded connections, an orderly end, and what probes are told. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { ListenAddress } from "../../runtime/config/config-values.js";
import { boundConnections } from "../../runtime/http/connections/client-connections.js";
import { endServer } from "../../runtime/http/connections/ending.js";
import { beginListening, mostConnections } from "../../runtime/http/connections/listening.js";
import type { PipelineBound } from "../../runtime/http/connections/pipeline.js";
import { endSocket } from "../../runtime/http/http-reply.js";
import type { Readiness } from "../../runtime/http/http-server.js";
import { boundUnsent } from "../../runtime/http/connections/unsent.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import { PageError } from "../errors.js";

/** Connections at once; beyond it new ones are refused instead of starving the rest. */
const MAX_CONNECTIONS = 2_048;

const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000;

/** Time for pages in the making when stopping. */
const DRAIN_TIMEOUT_MS = 1_000;

/** What a listener is made of. */
export interface PageListenerOptions {
  /** Who listens, for messages: "the explorer". */
  readonly owner: string;
  readonly listen: ListenAddress;
  readonly log: Logger;
  readonly app: (request: IncomingMessage, response: ServerResponse) => void;
  /** Told of each request by `app`. */
  readonly pipelines: PipelineBound;
}

/** A port with pages behind it. */
export class PageListener {
  private readonly server: Server;

  constructor(private readonly options: PageListenerOptions) {
    const { app, pipelines } = options;
    const limits = { requestTimeout: REQUEST_TIMEOUT_MS, requireHostHeader: false };
    this.server = createServer(limits, app);
    this.server.on("checkExpectation", app);
    const refusal = { code: "BAD_REQUEST", message: "the request cannot be read" };
    this.server.on("clientError", (_error, socket) => {
      pipelines.refuseUnread(socket, () => endSocket(socket, 400, refusal));
    });
    this.server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
    boundConnections(this.server, { most: mostConnections(MAX_CONNECTIONS), isOpen: true });
    boundUnsent(this.server);
  }

  /** Port in use after `start`, also where port 0 was asked for. */
  get port(): number {
    const address = this.server.address();
    return typeof address === "object" && address !== null
      ? address.port
      : this.options.listen.port;
  }

  /** Listens. @throws PORT_TAKEN, LISTEN_FAILED */
  start(): Promise<void> {
    const { owner, listen, log } = this.options;
    return beginListening(this.server, {
      owner,
      listen,
      log,
      faultOf: (code, message, cause) => new PageError(code, message, { cause }),
    });
  }

  /** Ends; pages in the making have a moment. */
  stop(): Promise<void> {
    return endServer(this.server, DRAIN_TIMEOUT_MS);
  }
}

/** Paths that programs ask, beside the pages. */
export type ProbePath = "/health" | "/ready" | "/metrics";

/** Whether a path is a probe's. */
export function isProbePath(path: string): path is ProbePath {
  return path === "/health" || path === "/ready" || path === "/metrics";
}

/** Answers a probe: `/health` (the process lives), `/ready` (503 with the reason), `/metrics`. */
export async function answerProbe(
  path: ProbePath,
  response: ServerResponse,
  from: { readonly metrics: Metrics; readonly readiness: () => Promise<Readiness> },
): Promise<void> {
  if (path === "/metrics") {
    const page = await from.metrics.page();
    response.setHeader("content-type", from.metrics.registry.contentType);
    response.end(page);
    return;
  }
  const found = path === "/health" ? { status: "ok" } : await from.readiness();
  const status = "ready" in found && !found.ready ? 503 : 200;
  const text = JSON.stringify(found);
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}
