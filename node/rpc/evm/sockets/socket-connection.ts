/** One WebSocket client: its requests, its notifications, and what happens when it is too slow. */
import type { RawData, WebSocket } from "ws";
import type { Holding } from "../../../../runtime/http/held-bytes.js";
import { type ClientMemory, holdMessage } from "../../client-memory.js";
import { messageBytes, type SocketClient } from "../../web-sockets.js";
import type { EvmApi } from "../api.js";
import type { Reply } from "../batch-reply.js";
import { TOO_LARGE_REPLY } from "../dispatcher.js";
import type { Subscriber } from "../method.js";
import { RequestContext } from "../request-context.js";

/** Requests of one connection that run at once; reading pauses above it. */
const MAX_IN_FLIGHT = 64;

/** WebSocket status "try again later": sent to a subscriber that cannot keep up. */
const TOO_SLOW = 1013;

/**
 * WebSocket status "internal error": sent to a client of which a subscription cannot go on. It would
 * wait for ever for what does not come, and subscribes again as after any lost connection.
 */
const FAILED = 1011;

/**
 * WebSocket status "message too big", as at go-ethereum and for what the library does not read: the request
 * has no answer with its id, so that its client would wait for ever.
 */
const TOO_BIG = 1009;

/** What a close frame holds of a reason (RFC 6455, 5.5). */
const REASON_BYTES = 123;

/** Time for a slow client to take its close frame. */
const CLOSE_GRACE_MS = 5_000;

/** Unsent bytes below which a replay goes on. */
const DRAINED_BYTES = 256 * 1024;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

/** A connection as the dispatcher and the subscriptions see it. */
export class SocketConnection implements Subscriber, SocketClient {
  private readonly requests = new Set<RequestContext>();
  private readonly closeCallbacks: (() => void)[] = [];
  private waiters: Waiter[] = [];
  private isOpen = true;
  /** Called when nothing runs, once no more requests are taken. */
  private onSettled: (() => void) | undefined;
  /** What waits to be sent; unlike the bound of each client, the common one ends the connection. */
  private readonly unsent: Holding;

  constructor(
    private readonly socket: WebSocket,
    private readonly api: EvmApi,
    private readonly memory: ClientMemory,
    private readonly peer: { readonly remoteAddress?: string } = {},
  ) {
    this.unsent = memory.unsent.hold(() => {
      const { bufferedAmount } = socket;
      api.log.warn({ bufferedAmount }, "WebSocket client ended: too slow");
      socket.terminate();
    });
    socket.on("message", (data) => this.onMessage(data));
    socket.on("error", (err) => api.log.debug({ err }, "WebSocket fault"));
    socket.once("close", () => this.onClosed());
  }

  notify(text: string): void {
    if (!this.isOpen) return;
    if (this.socket.bufferedAmount > this.api.limits.backlogBytes) {
      this.tooSlow();
      return;
    }
    this.socket.send(text, this.onSent);
    this.unsent.update(this.socket.bufferedAmount);
  }

  tooSlow(): void {
    if (!this.isOpen) return;
    const { bufferedAmount } = this.socket;
    this.api.log.warn({ bufferedAmount }, "WebSocket subscriber dropped: too slow");
    this.close(TOO_SLOW, "subscription backlog exceeded");
  }

  failed(why: string): void {
    if (this.isOpen) this.close(FAILED, closeReason(`subscription ended: ${why}`));
  }

  get isBehind(): boolean {
    return this.socket.bufferedAmount > this.api.limits.backlogBytes / 2;
  }

  drained(): Promise<void> {
    if (!this.isOpen) return Promise.reject(new Error("connection closed"));
    if (this.socket.bufferedAmount <= DRAINED_BYTES) {
      // Gives way, so that a long replay never holds up other clients.
      return new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    return new Promise((resolve, reject) => {
      this.waiters.push({ resolve, reject });
    });
  }

  onClose(callback: () => void): void {
    this.closeCallbacks.push(callback);
  }

  settle(): Promise<void> {
    return new Promise((resolve) => {
      this.onSettled = resolve;
      if (this.requests.size === 0) resolve();
    });
  }

  private readonly onSent = (): void => {
    if (this.socket.readyState !== this.socket.CLOSED) {
      this.unsent.update(this.socket.bufferedAmount);
    }
    if (this.socket.bufferedAmount <= DRAINED_BYTES) {
      const waiters = this.waiters;
      this.waiters = [];
      for (const { resolve } of waiters) resolve();
    }
    this.updateReading();
  };

  private onMessage(data: RawData): void {
    if (!this.takesRequests()) return;
    const body = messageBytes(data);
    const done = holdMessage(this.memory.unread, body.length, () => this.socket.terminate());
    if (done === undefined) return;
    const context = new RequestContext(this.api.limits.requestTimeoutMs, this, this.peer);
    context.afterReply(done);
    if (body.length > this.api.dispatcher.bodyLimitBytes(body)) {
      this.reply(TOO_LARGE_REPLY, context);
      return;
    }
    const reply = this.api.dispatcher.handle(body, context);
    if (!(reply instanceof Promise)) {
      this.reply(reply, context);
      return;
    }
    void this.replyLater(reply, context);
  }

  private async replyLater(pending: Promise<Reply>, context: RequestContext): Promise<void> {
    this.requests.add(context);
    this.updateReading();
    const reply = await pending;
    this.requests.delete(context);
    this.reply(reply, context);
    if (this.requests.size === 0) this.onSettled?.();
  }

  private reply(reply: Reply, context: RequestContext): void {
    if (this.isOpen && reply === TOO_LARGE_REPLY) {
      this.close(TOO_BIG, "request too large");
    } else if (this.isOpen && reply !== undefined) {
      const [only] = reply;
      const message =
        reply.length === 1 && only !== undefined
          ? only
          : Buffer.concat(reply.map((piece) => Buffer.from(piece)));
      this.socket.send(message, { binary: false }, this.onSent);
      this.unsent.update(this.socket.bufferedAmount);
    }
    context.finish();
    this.updateReading();
  }

  /** Not behind a close frame, nor when one comes soon: there would be no answer. */
  private takesRequests(): boolean {
    const { readyState, OPEN } = this.socket;
    return this.isOpen && readyState === OPEN && this.onSettled === undefined;
  }

  /** Requests are read only as fast as they are answered and their answers are taken. */
  private updateReading(): void {
    if (!this.isOpen) return;
    const isBusy =
      this.requests.size >= MAX_IN_FLIGHT ||
      this.socket.bufferedAmount > this.api.limits.backlogBytes;
    if (isBusy && !this.socket.isPaused) this.socket.pause();
    if (!isBusy && this.socket.isPaused) this.socket.resume();
  }

  private close(status: number, reason: string): void {
    this.isOpen = false;
    // A paused socket would never see the client's close frame.
    this.socket.resume();
    this.socket.close(status, reason);
    const timer = setTimeout(() => this.socket.terminate(), CLOSE_GRACE_MS);
    this.socket.once("close", () => clearTimeout(timer));
    this.release();
  }

  private onClosed(): void {
    this.isOpen = false;
    this.unsent.release();
    for (const request of this.requests) request.cancel();
    this.release();
  }

  private release(): void {
    for (const callback of this.closeCallbacks.splice(0)) callback();
    for (const { reject } of this.waiters.splice(0)) reject(new Error("connection closed"));
  }
}

/** As much of a text as a close frame holds, and no part of a character. */
function closeReason(text: string): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(REASON_BYTES));
  return text.slice(0, read);
}
