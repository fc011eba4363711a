/**
 * New heads over WebSocket, reconnecting for ever. Only a hint to look earlier than the next poll:
 * heads may be missed or come twice, so nothing may depend on them.
 */
import { WebSocket, type RawData } from "ws";
import type { Hash32, Height } from "../chain/hex.js";
import { createWakeup, quietly, sleep } from "../runtime/process/task.js";
import { readHash, readObject, readSafeQuantity } from "./answer-fields.js";
import { badAnswer } from "./errors.js";

/** A block that the node announced. */
export interface NewHead {
  readonly height: Height;
  readonly hash: Hash32;
}

/** Settings of a subscription. */
export interface NewHeadsOptions {
  /** ws or wss. */
  readonly url: string;
  /** Ends the iteration; it then finishes without an error. */
  readonly signal: AbortSignal;
  /** Delay after a lost connection, doubled up to `maxDelayMs`; defaults 250 ms and 10 s. */
  readonly minDelayMs?: number;
  readonly maxDelayMs?: number;
  /** Silence after which a ping is sent, and after twice of which the connection is given up. */
  readonly heartbeatMs?: number;
  /** Told each time a connection ended, with what ended it; for a log or metric. */
  readonly onDisconnect?: (reason: string) => void;
}

/** A header with its bloom is about 2 KiB; anything near this bound is not a head. */
const MAX_MESSAGE_BYTES = 1024 * 1024;

/** Time for TCP, TLS and the upgrade together. */
const HANDSHAKE_TIMEOUT_MS = 5_000;

/** The wait only ends by a wake-up or the signal; this is how often it looks nevertheless. */
const IDLE_WAIT_MS = 60_000;

/**
 * Heads as they are announced. A reader that is slow sees only the newest (nothing queues up).
 */
export async function* subscribeNewHeads(options: NewHeadsOptions): AsyncGenerator<NewHead, void> {
  const inner = new AbortController();
  const onAbort = () => inner.abort(options.signal.reason);
  if (options.signal.aborted) return;
  options.signal.addEventListener("abort", onAbort, { once: true });
  const wakeup = createWakeup();
  let newest: NewHead | undefined;
  const connections = keepConnected(options, inner.signal, (head) => {
    newest = head;
    wakeup.wake();
  });
  try {
    while (!inner.signal.aborted) {
      await quietly(wakeup.wait({ signal: inner.signal, timeoutMs: IDLE_WAIT_MS }));
      const head = newest;
      newest = undefined;
      if (head !== undefined && !inner.signal.aborted) yield head;
    }
  } finally {
    options.signal.removeEventListener("abort", onAbort);
    inner.abort();
    await connections;
  }
}

async function keepConnected(
  options: NewHeadsOptions,
  signal: AbortSignal,
  onHead: (head: NewHead) => void,
): Promise<void> {
  const minDelayMs = options.minDelayMs ?? 250;
  const maxDelayMs = options.maxDelayMs ?? 10_000;
  let delayMs = minDelayMs;
  while (!signal.aborted) {
    const reason = await runConnection(options, signal, (head) => {
      delayMs = minDelayMs;
      onHead(head);
    });
    if (signal.aborted) return;
    options.onDisconnect?.(reason);
    await quietly(sleep(delayMs, { signal }));
    delayMs = Math.min(delayMs * 2, maxDelayMs);
  }
}

/** Lives as long as one connection; resolves with what ended it. */
function runConnection(
  options: NewHeadsOptions,
  signal: AbortSignal,
  onHead: (head: NewHead) => void,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = new WebSocket(options.url, {
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      maxPayload: MAX_MESSAGE_BYTES,
      perMessageDeflate: false,
    });
    let reason = "closed";
    let isSilent = false;
    const end = (why: string) => {
      reason = why;
      socket.terminate();
    };
    const onAbort = () => end("stopped");
    signal.addEventListener("abort", onAbort, { once: true });
    const heartbeat = setInterval(() => {
      if (isSilent) return end("no sign of life");
      isSilent = true;
      if (socket.readyState === WebSocket.OPEN) socket.ping();
    }, options.heartbeatMs ?? 15_000);
    socket.on("open", () => {
      const request = { jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] };
      socket.send(JSON.stringify(request));
    });
    socket.on("pong", () => {
      isSilent = false;
    });
    socket.on("message", (data: RawData) => {
      isSilent = false;
      try {
        const head = parseMessage(rawText(data));
        if (head !== undefined) onHead(head);
      } catch {
        end("malformed message");
      }
    });
    socket.on("error", (error) => {
      reason = error.message;
    });
    socket.on("close", () => {
      clearInterval(heartbeat);
      signal.removeEventListener("abort", onAbort);
      resolve(reason);
    });
  });
}

function rawText(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString("utf8");
  return Buffer.from(data instanceof ArrayBuffer ? new Uint8Array(data) : data).toString("utf8");
}

/** The head of a notification; undefined for the answer to the subscription. */
function parseMessage(text: string): NewHead | undefined {
  const message = readObject(JSON.parse(text), "message");
  if (message["method"] !== "eth_subscription") {
    if (typeof message["result"] === "string") return undefined;
    throw badAnswer("the subscription was refused");
  }
  const head = readObject(readObject(message["params"], "params")["result"], "head");
  return {
    height: readSafeQuantity(head["number"], "number"),
    hash: readHash(head["hash"], "hash"),
  };
}
