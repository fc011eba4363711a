/** How long replies take, by route and status. */
import type { ServerResponse } from "node:http";
import type { MetricHistogram, Metrics } from "../process/metrics.js";

/** Measures the replies of one server. */
export class ReplyTimer {
  readonly #server: string;
  readonly #durations: MetricHistogram;
  /** Route of a reply in progress. */
  readonly #routes = new WeakMap<ServerResponse, string>();

  constructor(server: string, metrics: Metrics) {
    this.#server = server;
    this.#durations = metrics.histogram(
      "causeway_http_request_duration_seconds",
      "Time from a request's arrival to the end of its reply.",
      ["server", "route", "status"],
    );
  }

  /** Starts the measurement of a reply; called again it only names the route. */
  time(response: ServerResponse, route: string): void {
    const isKnown = this.#routes.has(response);
    this.#routes.set(response, route);
    if (isKnown) return;
    const startedMs = performance.now();
    response.once("close", () => {
      const labels = {
        server: this.#server,
        route: this.#routes.get(response) ?? "other",
        status: String(response.statusCode),
      };
      this.#durations.observe(labels, (performance.now() - startedMs) / 1_000);
    });
  }
}
