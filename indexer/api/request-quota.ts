/** Requests of one client address in a minute, where a limit is set. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../runtime/process/clock.js";
import { clientOf, isLoopback } from "../../runtime/turns/client-address.js";
import { IndexerError } from "../errors.js";

const WINDOW_MS = 60_000;

/** Addresses that are remembered; beyond it all are forgotten, which lets too many through once. */
const MAX_CLIENTS = 100_000;

/** Where an answer's headers are put. */
type Headers = Pick<ServerResponse, "setHeader">;

/** Counts requests; zero requests a minute means no limit. */
export class RequestQuota {
  private readonly counts = new Map<string, number>();
  private windowStartMs = 0;

  constructor(
    private readonly perMinute: number,
    private readonly clock: Pick<Clock, "monotonicMs">,
  ) {}

  /**
   * Counts a request, whatever becomes of it, and says on its answer how many are left.
   * @throws RATE_LIMITED
   */
  pace({ socket }: Pick<IncomingMessage, "socket">, response: Headers): void {
    if (this.perMinute === 0) return;
    const client = clientOf(socket.remoteAddress);
    if (isLoopback(client)) return;
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.windowStartMs >= WINDOW_MS || this.counts.size > MAX_CLIENTS) {
      this.counts.clear();
      this.windowStartMs = nowMs;
    }
    const count = (this.counts.get(client) ?? 0) + 1;
    this.counts.set(client, count);
    const resetSeconds = Math.ceil((this.windowStartMs + WINDOW_MS - nowMs) / 1_000);
    response.setHeader("ratelimit-limit", this.perMinute);
    response.setHeader("ratelimit-remaining", Math.max(0, this.perMinute - count));
    response.setHeader("ratelimit-reset", resetSeconds);
    if (count <= this.perMinute) return;
    const message = `more than ${this.perMinute} requests in a minute`;
    const details = { retryAfterSeconds: resetSeconds, limit: this.perMinute };
    throw new IndexerError("RATE_LIMITED", message, { details });
  }
}
