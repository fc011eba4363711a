/** Requests of one client address in a minute, where a limit is set. */
import type { Clock } from "../../runtime/process/clock.js";
import { clientOf, isLoopback } from "../../runtime/turns/client-address.js";
import type { HttpRequest, HttpRoute } from "../../runtime/http/http-route.js";
import { IndexerError } from "../errors.js";

const WINDOW_MS = 60_000;

/** Addresses that are remembered; beyond it all are forgotten, which lets too many through once. */
const MAX_CLIENTS = 100_000;

/** Counts requests; zero requests a minute means no limit. */
export class RateLimit {
  private readonly counts = new Map<string, number>();
  private windowStartMs = 0;

  constructor(
    private readonly perMinute: number,
    private readonly clock: Pick<Clock, "monotonicMs">,
  ) {}

  /** The routes, each counted before its handler and told of after it. */
  around(routes: readonly HttpRoute[]): readonly HttpRoute[] {
    if (this.perMinute === 0) return routes;
    return routes.map((route) => ({
      ...route,
      handler: async (request) => {
        const headers = this.count(request);
        const reply = await route.handler(request);
        return { ...reply, headers: { ...headers, ...reply.headers } };
      },
    }));
  }

  /** @throws RATE_LIMITED */
  private count({ remoteAddress }: HttpRequest): Readonly<Record<string, string>> {
    const client = clientOf(remoteAddress);
    if (isLoopback(client)) return {};
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.windowStartMs >= WINDOW_MS || this.counts.size > MAX_CLIENTS) {
      this.counts.clear();
      this.windowStartMs = nowMs;
    }
    const count = (this.counts.get(client) ?? 0) + 1;
    this.counts.set(client, count);
    const resetSeconds = Math.ceil((this.windowStartMs + WINDOW_MS - nowMs) / 1_000);
    if (count > this.perMinute) {
      const message = `more than ${this.perMinute} requests in a minute`;
      const details = { retryAfterSeconds: resetSeconds, limit: this.perMinute };
      throw new IndexerError("RATE_LIMITED", message, { details });
    }
    return {
      "ratelimit-limit": String(this.perMinute),
      "ratelimit-remaining": String(this.perMinute - count),
      "ratelimit-reset": String(resetSeconds),
    };
  }
}
