/** 26660: the node's metrics in Prometheus text format. */
import type { ListenAddress } from "../../runtime/config/config-values.js";
import { createServer } from "node:http";
import { errorMessage } from "../../chain/errors.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import { listen, type RpcServer, sendText, stopServer } from "./http-listener.js";

/** What the server needs. */
export interface MetricsServerOptions {
  readonly listen: ListenAddress;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/**
 * Serves `GET /metrics`; every other path is 404.
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function startMetricsServer(options: MetricsServerOptions): Promise<RpcServer> {
  const { metrics, log } = options;
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
    metrics.page().then(
      (page) => sendText(response, 200, page, { "Content-Type": metrics.registry.contentType }),
      (error: unknown) => {
        log.error({ err: error }, "metrics page failed");
        sendText(response, 500, `metrics failed: ${errorMessage(error)}\n`);
      },
    );
  });
  const address = await listen(server, "metrics", options.listen);
  return { name: "metrics", address, stop: () => stopServer(server) };
}
