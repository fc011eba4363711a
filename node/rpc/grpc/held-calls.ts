/**
 * What the calls of gRPC's clients keep in memory, counted with that of all other servers: requests
 * that have not come whole or are being answered, and answers that are not taken. The library bounds
 * neither over its connections.
 */
import { Duplex } from "node:stream";
import {
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type ServerListener,
  ServerListenerBuilder,
} from "@grpc/grpc-js";
import { COUNTED_BYTES, type Holding } from "../../../runtime/http/held-bytes.js";
import { type ClientMemory, holdMessage, PIECE_BYTES } from "../client-memory.js";

/** What gzip and deflate make of a byte at most: the library unpacks a message before anybody sees it. */
const MOST_UNPACKED = 1_032;

/**
 * Counts what each call holds; who is let go loses the call. Answers have to come as bytes.
 * @param maxMessageBytes of a request, unpacked
 */
export function holdCalls(
  { unread, unsent }: ClientMemory,
  maxMessageBytes: number,
): ServerInterceptor {
  return (_method, call) => {
    const stream = streamOf(call);
    const unpacked = isPacked(call) ? MOST_UNPACKED : 0;
    const letGo = () => void stream.destroy();
    const [asked, answered] = [unread.hold(letGo), unsent.hold(letGo)];
    /** Ends of what is held of the messages that have no answer yet, in their order. */
    const unanswered: (() => void)[] = [];
    stream.once("close", () => {
      asked.release();
      answered.release();
      for (const end of unanswered.splice(0)) end();
    });
    let [sizeBytes, unpackedBytes] = [0, 0];
    // Before the library looks at it: what it completes has to be counted by then.
    stream.prependListener("data", (chunk: Uint8Array) => {
      sizeBytes += PIECE_BYTES + chunk.length;
      unpackedBytes = Math.min(unpackedBytes + unpacked * chunk.length, maxMessageBytes);
      const heldBytes = sizeBytes + unpackedBytes;
      if (heldBytes > COUNTED_BYTES) asked.update(heldBytes);
    });
    const listener = new ServerListenerBuilder()
      .withOnReceiveMessage((message, next) => {
        asked.release();
        if (message instanceof Uint8Array) unpackedBytes = message.length;
        const end = holdMessage(unread, Math.max(sizeBytes, unpackedBytes), letGo);
        [sizeBytes, unpackedBytes] = [0, 0];
        if (end === undefined) return;
        unanswered.push(end);
        next(message);
      })
      .build();
    return new HeldCall(call, { listener, answered, onAnswer: () => unanswered.shift()?.() });
  };
}

/** A call whose answers count until they are taken. */
class HeldCall extends ServerInterceptingCall {
  private readonly answered: Holding;

  private readonly onAnswer: () => void;

  constructor(
    call: ServerInterceptingCallInterface,
    parts: {
      readonly listener: ServerListener;
      readonly answered: Holding;
      readonly onAnswer: () => void;
    },
  ) {
    super(call, new ResponderBuilder().withStart((next) => next(parts.listener)).build());
    this.answered = parts.answered;
    this.onAnswer = parts.onAnswer;
  }

  override sendMessage(message: Uint8Array, taken: () => void): void {
    // A stream of questions may stay open for ever: each is held until it has its own answer.
    this.onAnswer();
    if (message.length > COUNTED_BYTES) this.answered.update(message.length);
    super.sendMessage(message, () => {
      this.answered.release();
      taken();
    });
  }
}

/** Whether a call's messages may come packed, which the library does not tell either. */
function isPacked(call: object): boolean {
  if ("incomingEncoding" in call) return call.incomingEncoding !== "identity";
  throw new RangeError("gRPC does not show how the messages of a call are encoded");
}

/** The HTTP/2 stream of a call, which the library does not offer. */
function streamOf(call: object): Duplex {
  if ("stream" in call && call.stream instanceof Duplex) return call.stream;
  throw new RangeError("gRPC does not show the stream of a call");
}
