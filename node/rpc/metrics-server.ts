/** 26660: the node's metrics in Prometheus text format. */
import type { ListenAddress } from "../../runtime/config/config-values.js";
import { createServer, type ServerResponse } from "node:http";
import { errorMessage } from "../../chain/errors.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import type { ClientMemory } from "./client-memory.js";
import { USUAL_CONNECTIONS } from "./connection-bounds.js";
import { listen, type RpcServer, sendPieces, sendText, stopServer } from "./http-listener.js";

/** What the server needs. */
export interface MetricsServerOptions {
  readonly listen: ListenAddress;
  readonly metrics: Metrics;
  /** Connections at once; by default as many as where files are plenty. */
  readonly maxConnections?: number;
  /** What the clients of all servers together may make the node keep. */
  readonly memory: ClientMemory;
  readonly log: Logger;
}

/**
 * Serves `GET /metrics`; every other path is 404.
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function startMetricsServer(options: MetricsServerOptions): Promise<RpcServer> {
  const server = createServer((request, response) => {
    const path = request.url?.split("?")[0];
    if (path !== "/metrics") {
      sendText(response, 404, "not found; metrics are at /metrics\n");
      return;
    }
    if (request.method !== "GET" && request.method !== "HEAD") {
      sendText(response, 405, "method not allowed\n", { Allow: "GET, HEAD" });
      return;
    }
    void sendPage(response, options);
  });
  server.maxConnections = options.maxConnections ?? USUAL_CONNECTIONS.metrics;
  const address = await listen(server, { name: "metrics", ...options });
  return { name: "metrics", address, stop: () => stopServer(server) };
}

async function sendPage(
  response: ServerResponse,
  { metrics, memory, log }: MetricsServerOptions,
): Promise<void> {
  try {
    const page = await metrics.page();
    if (response.destroyed) return;
    const { contentType } = metrics.registry;
    sendPieces({ response, memory }, 200, [page], { "Content-Type": contentType });
  } catch (error) {
    log.error({ err: error }, "metrics page failed");
    sendText(response, 500, `metrics failed: ${errorMessage(error)}\n`);
  }
}
