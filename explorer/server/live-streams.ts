/**
 * Server-sent events (WHATWG HTML, "Server-sent events"): one for each new head, to pages that want
 * to be kept up to date. They only say that there is something new; the page is fetched as always.
 */
import type { ServerResponse } from "node:http";
import { ClientPlaces, type ClientPlacesOptions } from "../../runtime/turns/client-places.js";
import { PageError } from "../../web/errors.js";

/** What readers are told of a head. */
export interface HeadEvent {
  readonly height: number;
  readonly timestampSeconds: number;
}

/** Proxies end connections that are silent for a minute. */
const HEARTBEAT_MS = 15_000;

/** A client that has not taken so much does not read: it is let go. */
const MAX_UNSENT_BYTES = 64 * 1024;

/** Pause that browsers make before they connect again. */
const RETRY_MS = 5_000;

/** The open streams. */
export class LiveStreams {
  private readonly open = new Set<ServerResponse>();
  private readonly places: ClientPlaces;
  private timer: NodeJS.Timeout | undefined;

  constructor(places: ClientPlacesOptions) {
    this.places = new ClientPlaces(places);
  }

  /** Streams that are open now. */
  get size(): number {
    return this.open.size;
  }

  /**
   * Begins a stream with what is known.
   * @param remoteAddress of who gets it
   * @throws BUSY when there are enough, or he has enough
   */
  add(
    response: ServerResponse,
    head: HeadEvent | undefined,
    remoteAddress: string | undefined,
  ): void {
    if (!this.places.hasRoom(remoteAddress)) {
      throw new PageError("BUSY", "enough pages are kept up to date", {
        retriable: true,
        details: { retryAfterSeconds: 60 },
      });
    }
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    this.open.add(response);
    const leave = this.places.take(remoteAddress);
    response.once("close", () => {
      leave();
      this.remove(response);
    });
    response.write(`retry: ${RETRY_MS}\n\n`);
    if (head !== undefined) this.send(response, eventText(head));
    this.timer ??= setInterval(() => this.sendAll(":\n\n"), HEARTBEAT_MS).unref();
  }

  /** Tells all of a new head. */
  announce(head: HeadEvent): void {
    this.sendAll(eventText(head));
  }

  /** Ends all streams. */
  close(): void {
    for (const response of this.open) response.end();
    this.open.clear();
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private sendAll(text: string): void {
    for (const response of this.open) this.send(response, text);
  }

  private send(response: ServerResponse, text: string): void {
    if (response.writableLength > MAX_UNSENT_BYTES) response.destroy();
    else response.write(text);
  }

  private remove(response: ServerResponse): void {
    this.open.delete(response);
    if (this.open.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

function eventText(head: HeadEvent): string {
  return `event: head\nid: ${head.height}\ndata: ${JSON.stringify(head)}\n\n`;
}
