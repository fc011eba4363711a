/** One WebSocket client: its requests, its events, and what happens when it does not read. */
import type { RawData, WebSocket } from "ws";
import type { Holding } from "../../../runtime/http/held-bytes.js";
import { LazySignal } from "../../../runtime/process/lazy-signal.js";
import type { Logger } from "../../../runtime/process/logger.js";
import type { WorkOwner } from "../../../runtime/process/work-owner.js";
import { type ClientMemory, holdMessage } from "../client-memory.js";
import { messageBytes, type SocketClient } from "../web-sockets.js";
import { type Answer, answerBody, type LargeBatches, lostText } from "./json-rpc.js";
import type { EventReceiver, Routes } from "./route.js";

/** Requests of one connection that run at once; reading pauses above it. */
const MAX_IN_FLIGHT = 64;

/**
 * Unsent bytes after which a client counts as too slow. One event may be larger by itself: it is
 * sent when less than this waits before it.
 */
const MAX_BACKLOG_BYTES = 16 * 1024 * 1024;

/** WebSocket status and reason of a connection that is ended: "try again later", "internal error". */
const ENDINGS = {
  slow: [1013, "slow client"],
  failed: [1011, "events are missing"],
  lost: [1011, "internal error"],
} as const;

/** Time for a slow client to take what waits for it, and its close frame. */
const CLOSE_GRACE_MS = 15_000;

/** A connection as the routes see it. */
export class CometConnection implements EventReceiver, SocketClient {
  private readonly ending: LazySignal;
  private readonly closeCallbacks: (() => void)[] = [];
  private inFlight = 0;
  private isOpen = true;
  /** Called when nothing runs, once no more requests are taken. */
  private onSettled: (() => void) | undefined;

  /** What waits to be sent; unlike the bound of each client, the common one ends the connection. */
  private readonly unsent: Holding;

  constructor(
    private readonly socket: WebSocket,
    private readonly options: {
      readonly routes: Routes;
      readonly large: LargeBatches;
      readonly log: Logger;
      readonly memory: ClientMemory;
      /** Whose what is asked on it is. */
      readonly owner: WorkOwner;
    },
  ) {
    const { log, owner } = options;
    this.ending = new LazySignal(() => owner);
    this.unsent = options.memory.unsent.hold(() => {
      log.warn({ bufferedAmount: socket.bufferedAmount }, "consensus RPC client ended: too slow");
      socket.terminate();
    });
    socket.on("message", (data) => {
      this.onMessage(data).catch((err: unknown) => {
        log.error({ err }, "an answer of the consensus RPC was lost");
        this.cutOff([lostText(null)], "lost");
      });
    });
    socket.on("error", (err) => log.debug({ err }, "WebSocket fault"));
    socket.once("close", () => {
      this.unsent.release();
      this.release();
    });
  }

  push(text: Buffer): "sent" | "slow" | "closed" {
    if (!this.isOpen) return "closed";
    if (this.socket.bufferedAmount > MAX_BACKLOG_BYTES) return "slow";
    this.socket.send(text, { binary: false }, this.onSent);
    this.unsent.update(this.socket.bufferedAmount);
    return "sent";
  }

  cutOff(texts: readonly string[], cause: keyof typeof ENDINGS): void {
    if (!this.isOpen) return;
    const { bufferedAmount } = this.socket;
    const [status, reason] = ENDINGS[cause];
    this.options.log.warn({ bufferedAmount }, `consensus RPC subscriber dropped: ${reason}`);
    for (const text of texts) this.socket.send(text);
    // A paused socket would never see the client's close frame.
    this.socket.resume();
    this.socket.close(status, reason);
    const timer = setTimeout(() => this.socket.terminate(), CLOSE_GRACE_MS);
    this.socket.once("close", () => clearTimeout(timer));
    this.release();
  }

  onClose(callback: () => void): void {
    this.closeCallbacks.push(callback);
  }

  settle(): Promise<void> {
    return new Promise((resolve) => {
      this.onSettled = resolve;
      if (this.inFlight === 0) resolve();
    });
  }

  private readonly onSent = (): void => {
    if (this.socket.readyState !== this.socket.CLOSED) {
      this.unsent.update(this.socket.bufferedAmount);
    }
    this.updateReading();
  };

  private async onMessage(data: RawData): Promise<void> {
    // Asked before it knew that it is cut off: what it subscribed to now would outlive it.
    if (!this.takesRequests()) return;
    const body = messageBytes(data);
    const { routes, large, log, memory } = this.options;
    const done = holdMessage(memory.unread, body.length, () => this.socket.terminate());
    if (done === undefined) return;
    this.inFlight += 1;
    this.updateReading();
    const { ending } = this;
    let answer: Answer | undefined;
    try {
      answer = await answerBody(body, {
        routes,
        large,
        log,
        ending,
        client: (requestId) => ({ requestId, connection: this }),
      });
    } finally {
      this.inFlight -= 1;
      done();
    }
    if (this.isOpen && answer !== undefined) {
      const { pieces } = answer;
      const [only] = pieces;
      const message =
        pieces.length === 1 && only !== undefined
          ? only
          : Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
      this.socket.send(message, { binary: false }, this.onSent);
      this.unsent.update(this.socket.bufferedAmount);
    }
    this.updateReading();
    if (this.inFlight === 0) this.onSettled?.();
  }

  /** Not behind a close frame, nor when one comes soon: there would be no answer. */
  private takesRequests(): boolean {
    const { readyState, OPEN } = this.socket;
    return this.isOpen && readyState === OPEN && this.onSettled === undefined;
  }

  /** Requests are read only as fast as they are answered and their answers are taken. */
  private updateReading(): void {
    const isBusy = this.inFlight >= MAX_IN_FLIGHT || this.socket.bufferedAmount > MAX_BACKLOG_BYTES;
    if (isBusy && this.isOpen && !this.socket.isPaused) this.socket.pause();
    if (!isBusy && this.socket.isPaused) this.socket.resume();
  }

  private release(): void {
    this.isOpen = false;
    this.ending.abort();
    for (const callback of this.closeCallbacks.splice(0)) callback();
  }
}
