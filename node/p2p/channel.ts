/** Messages over one libp2p stream: length in front, bounded, with time limits on both sides. */
import type { Stream } from "@libp2p/interface";
import { lpStream } from "@libp2p/utils";
import { encodeVarint } from "../../chain/protobuf/wire.js";
import { errorMessage } from "../../chain/errors.js";
import { withTimeout } from "../../runtime/process/task.js";
import { P2pError } from "./p2p-error.js";

/** Bytes that may lie unread between two reads; the reader never waits for anything else. */
const READ_SLACK_BYTES = 4 * 1024 * 1024;

/**
 * No more than so many messages of the longest kind, however: whoever may ask for something in a few bytes
 * has no megabytes to say, and what follows a request is never read.
 */
const READ_SLACK_MESSAGES = 64;

/** Length prefix of the longest message. */
const MAX_PREFIX_BYTES = 5;

/** A stream of messages. Faults are P2pErrors; after one the channel is of no use. */
export class Channel {
  private readonly frames;
  private readonly ended = new AbortController();

  /**
   * @param maxMessageBytes a longer message is the peer's fault
   * @param maxUnreadBytes what may arrive before it is read, where that is more than one message
   */
  constructor(
    private readonly stream: Stream,
    maxMessageBytes: number,
    maxUnreadBytes = maxMessageBytes,
  ) {
    const slackBytes = Math.min(READ_SLACK_BYTES, READ_SLACK_MESSAGES * maxMessageBytes);
    this.frames = lpStream(stream, {
      maxDataLength: maxMessageBytes,
      maxBufferSize: Math.max(maxUnreadBytes, maxMessageBytes) + slackBytes,
    });
    const end = () => {
      this.ended.abort(new P2pError("PEER_GONE", "the stream is over", { retriable: true }));
    };
    if (OVER.has(stream.status)) end();
    else stream.addEventListener("close", end, { once: true });
  }

  /**
   * Fires when the stream is over, as each is with its connection: nobody waits any more for what it was
   * opened for.
   */
  get signal(): AbortSignal {
    return this.ended.signal;
  }

  /** Bytes that are waiting to be sent. */
  get unsentBytes(): number {
    return this.stream.writeBufferLength;
  }

  /** Calls the listener whenever bytes come, before they are a whole message. */
  onBytes(listener: (sizeBytes: number) => void): void {
    this.stream.addEventListener("message", ({ data }) => listener(data.byteLength));
  }

  /** Whether the other side can still read what is sent. */
  get isOpen(): boolean {
    return this.stream.status === "open" && this.stream.writeStatus === "writable";
  }

  /**
   * The next message; undefined when the peer has ended the stream.
   * @throws PEER_PROTOCOL for a message that is too long, PEER_GONE, or the signal's reason
   */
  async read(signal: AbortSignal): Promise<Uint8Array | undefined> {
    try {
      return (await this.frames.read({ signal })).subarray();
    } catch (error) {
      signal.throwIfAborted();
      const name = error instanceof Error ? error.name : "";
      if (name === "UnexpectedEOFError") return undefined;
      const isFault = FAULT_NAMES.has(name);
      throw new P2pError(isFault ? "PEER_PROTOCOL" : "PEER_GONE", errorMessage(error), {
        cause: error,
      });
    }
  }

  /**
   * The one message with which a peer says what it wants of this node.
   * @throws PEER_GONE also when the peer ends the stream without it; TIMEOUT, PEER_PROTOCOL, or the
   * signal's reason
   */
  async readRequest(limits: {
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
  }): Promise<Uint8Array> {
    const read = (inner: AbortSignal) => this.read(inner);
    const bytes = await withTimeout(read, { ...limits, what: "request" });
    if (bytes === undefined) throw new P2pError("PEER_GONE", "the peer asked for nothing");
    return bytes;
  }

  /** Sends without waiting: look at `unsentBytes` before. Nothing happens on a closed stream. */
  send(message: Uint8Array): void {
    if (!this.isOpen) return;
    try {
      this.stream.send(Buffer.concat([encodeVarint(message.length), message]));
    } catch (error) {
      // The stream broke between the look and the call; its reader is told.
      this.abort(error);
    }
  }

  /**
   * Sends and waits until the peer takes it.
   * @throws PEER_GONE, or the signal's reason
   */
  async write(message: Uint8Array, signal: AbortSignal): Promise<void> {
    this.send(message);
    while (this.unsentBytes > 0 && this.isOpen) await this.movement(signal);
    if (!this.isOpen) throw new P2pError("PEER_GONE", "the peer closed the stream");
  }

  /**
   * Resolves when the stream takes more or has ended. Not libp2p's `onDrain`: after its first time
   * that resolves at once, and waiting by it would keep the whole process from anything else.
   */
  private movement(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { stream } = this;
    return new Promise((resolve, reject) => {
      const end = () => {
        stream.removeEventListener("drain", onMovement);
        stream.removeEventListener("close", onMovement);
        signal.removeEventListener("abort", onAbort);
      };
      const onMovement = () => {
        end();
        resolve();
      };
      const onAbort = () => {
        end();
        reject(signal.reason);
      };
      stream.addEventListener("drain", onMovement);
      stream.addEventListener("close", onMovement);
      signal.addEventListener("abort", onAbort);
    });
  }

  /** Ends this side's part of the conversation. */
  async close(signal: AbortSignal): Promise<void> {
    await this.stream.close({ signal }).catch((error: unknown) => this.abort(error));
  }

  /** Ends the stream at once. */
  abort(reason: unknown): void {
    this.stream.abort(reason instanceof Error ? reason : new Error("closed"));
  }
}

/** What libp2p says of streams of which nothing more comes. */
const OVER: ReadonlySet<string> = new Set(["closed", "aborted", "reset"]);

const FAULT_NAMES = new Set([
  "InvalidMessageLengthError",
  "InvalidDataLengthError",
  "InvalidDataLengthLengthError",
  "StreamBufferError",
]);

/** Bytes that a message of this size takes on the wire. */
export function framedBytes(sizeBytes: number): number {
  return sizeBytes + MAX_PREFIX_BYTES;
}
