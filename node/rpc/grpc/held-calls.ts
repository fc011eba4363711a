/**
 * What stands between the library and the calls of gRPC's clients. What they keep in memory is counted
 * with that of all other servers: requests that have not come whole or are being answered, and answers
 * that are not taken. The library bounds neither over its connections. And a status that cannot be sent
 * costs its call alone.
 */
import { Duplex } from "node:stream";
import {
  Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type ServerListener,
  ServerListenerBuilder,
} from "@grpc/grpc-js";
import { COUNTED_BYTES, type Holding } from "../../../runtime/http/held-bytes.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { type ClientMemory, holdMessage, PIECE_BYTES } from "../client-memory.js";
import { GRPC_CODES } from "../cosmos/errors.js";

/** What messages may come in: as they are. */
const ENCODING = "identity";
const ENCODINGS_HEADER = "grpc-accept-encoding";

/**
 * Longest text of a status, in UTF-16 units. It is sent as a header, each unit in nine bytes at most, and
 * common clients refuse headers beyond 8 KiB. Of 200 kB the caller heard nothing at all.
 */
const MAX_DETAILS = 800;

/**
 * Counts what each call holds; who is let go loses the call. Answers have to come as bytes. A call whose
 * messages may come packed is refused before anything of them is read: the library unpacks each before
 * anybody sees it, to the thousandfold, and to the end also where the call is gone.
 */
export function holdCalls({ unread, unsent }: ClientMemory, log: Logger): ServerInterceptor {
  return ({ requestStream: isStream }, call) => {
    if (isPacked(call)) return refusePacked(call);
    const stream = streamOf(call);
    const letGo = () => void stream.destroy();
    const [asked, answered] = [unread.hold(letGo), unsent.hold(letGo)];
    /** Ends of what is held of the messages that have no answer yet, in their order. */
    const unanswered: (() => void)[] = [];
    stream.once("close", () => {
      asked.release();
      answered.release();
      for (const end of unanswered.splice(0)) end();
    });
    let sizeBytes = 0;
    // Before the library looks at it: what it completes has to be counted by then.
    stream.prependListener("data", (chunk: Uint8Array) => {
      sizeBytes += PIECE_BYTES + chunk.length;
      if (sizeBytes > COUNTED_BYTES) asked.update(sizeBytes);
    });
    const listener = new ServerListenerBuilder()
      .withOnReceiveMessage((message, next) => {
        // One question alone is worked on when it is ended: a client that does not may be let go.
        if (!isStream) {
          next(message);
          return;
        }
        asked.release();
        const end = holdMessage(unread, sizeBytes, letGo);
        sizeBytes = 0;
        if (end === undefined) return;
        unanswered.push(end);
        next(message);
      })
      .withOnReceiveHalfClose((next) => {
        if (!isStream) asked.pin();
        next();
      })
      .build();
    const onAnswer = () => {
      if (isStream) unanswered.shift()?.();
      else asked.release();
    };
    const onUnsent = (err: unknown) => {
      log.error({ err }, "the status of a call could not be sent");
      letGo();
    };
    return new HeldCall(call, { listener, answered, onAnswer, onUnsent });
  };
}

type Status = Parameters<ServerInterceptingCallInterface["sendStatus"]>[0];

interface HeldParts {
  readonly listener: ServerListener;
  readonly answered: Holding;
  readonly onAnswer: () => void;
  /** The call ends without a status. */
  readonly onUnsent: (error: unknown) => void;
}

/** A call whose answers count until they are taken. */
class HeldCall extends ServerInterceptingCall {
  private readonly parts: HeldParts;

  constructor(call: ServerInterceptingCallInterface, parts: HeldParts) {
    super(call, new ResponderBuilder().withStart((next) => next(parts.listener)).build());
    this.parts = parts;
  }

  override sendMetadata(metadata: Metadata): void {
    // The library offers to unpack.
    metadata.set(ENCODINGS_HEADER, ENCODING);
    super.sendMetadata(metadata);
  }

  override sendMessage(message: Uint8Array, taken: () => void): void {
    // A stream of questions may stay open for ever: each is held until it has its own answer.
    const { answered, onAnswer } = this.parts;
    onAnswer();
    if (message.length > COUNTED_BYTES) answered.update(message.length);
    super.sendMessage(message, () => {
      answered.release();
      taken();
    });
  }

  /**
   * Never throws: what answers a call has nobody left whom it could tell. A text that repeats what a
   * client sent may end inside a character, of which the library makes no header.
   */
  override sendStatus(status: Status): void {
    try {
      const details = status.details.slice(0, MAX_DETAILS).toWellFormed();
      super.sendStatus({ ...status, details });
    } catch (error) {
      this.parts.onUnsent(error);
    }
  }
}

/** Whether a call's messages may come packed, which the library does not tell. */
function isPacked(call: object): boolean {
  if ("incomingEncoding" in call) return call.incomingEncoding !== ENCODING;
  throw new RangeError("gRPC does not show how the messages of a call are encoded");
}

/** As gRPC wants it of a server that does not unpack (its document "Compression"). */
function refusePacked(call: ServerInterceptingCallInterface): ServerInterceptingCall {
  const metadata = new Metadata();
  metadata.set(ENCODINGS_HEADER, ENCODING);
  const details = "requests are taken as they are, without a grpc-encoding";
  const status = { code: GRPC_CODES.UNIMPLEMENTED, details, metadata };
  const responder = new ResponderBuilder().withStart(() => call.sendStatus(status)).build();
  return new ServerInterceptingCall(call, responder);
}

/** The HTTP/2 stream of a call, which the library does not offer. */
function streamOf(call: object): Duplex {
  if ("stream" in call && call.stream instanceof Duplex) return call.stream;
  throw new RangeError("gRPC does not show the stream of a call");
}
