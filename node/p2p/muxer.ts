/**
 * yamux with bounds that it lacks: a frame is kept until the last byte of the length that it announces,
 * four gigabytes at most, and what answers a peer's frames waits without end for one that does not read.
 */
import type { MessageStream, StreamMuxer, StreamMuxerFactory } from "@libp2p/interface";
import { yamux } from "@libp2p/yamux";

/** Streams that one peer may have open in all, as many as honest ones come near. */
const MAX_STREAMS_PER_PEER = 64;

/**
 * Bytes that a stream lets through before they are read; libp2p's default is 16 MiB. No frame has more: a
 * peer sends no more than it was let.
 */
const MAX_STREAM_WINDOW_BYTES = 4 * 1024 * 1024;

/**
 * Frames that wait for a peer at once. Streams wait by themselves; answers do not, and each frame that
 * comes, of twelve bytes at least, may need one. Honest peers read within seconds, and send a thousand frames
 * in one.
 */
const MAX_UNSENT_FRAMES = 16_384;

/** Version, type, flags, stream, length (yamux specification, "Framing"). */
const HEADER_BYTES = 12;
const TYPE_AT = 1;
const LENGTH_AT = 8;
const DATA = 0;

/** The multiplexer of all connections, for libp2p. */
export function boundedMuxer(): () => StreamMuxerFactory {
  const factory = yamux({
    maxInboundStreams: MAX_STREAMS_PER_PEER,
    maxOutboundStreams: MAX_STREAMS_PER_PEER,
    streamOptions: { maxStreamWindowSize: MAX_STREAM_WINDOW_BYTES },
  })();
  const createStreamMuxer = (connection: MessageStream): StreamMuxer => {
    // Before the multiplexer listens: it is told of nothing that is too long.
    boundFrames(connection);
    boundAnswers(connection);
    return factory.createStreamMuxer(connection);
  };
  return () => ({ protocol: factory.protocol, createStreamMuxer });
}

/** Ends a connection on which a frame is announced that is longer than any may be. */
function boundFrames(connection: MessageStream): void {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerBytes = 0;
  let bodyBytes = 0;
  connection.addEventListener("message", ({ data }) => {
    const bytes = data instanceof Uint8Array ? data : data.subarray();
    let at = 0;
    while (at < bytes.length) {
      const skipped = Math.min(bodyBytes, bytes.length - at);
      bodyBytes -= skipped;
      at += skipped;
      const part = bytes.subarray(at, at + HEADER_BYTES - headerBytes);
      header.set(part, headerBytes);
      headerBytes += part.length;
      at += part.length;
      if (headerBytes < HEADER_BYTES) return;
      headerBytes = 0;
      // Of other types the same field is a number.
      bodyBytes = header[TYPE_AT] === DATA ? header.readUInt32BE(LENGTH_AT) : 0;
      if (bodyBytes > MAX_STREAM_WINDOW_BYTES)
        return connection.abort(new Error("too long a frame"));
    }
  });
}

/** Ends a connection on which too much waits for a peer that does not read. */
function boundAnswers(connection: MessageStream): void {
  const send = connection.send.bind(connection);
  let unsentFrames = 0;
  connection.send = (data) => {
    const hasRoom = send(data);
    unsentFrames = connection.writeBufferLength === 0 ? 0 : unsentFrames + 1;
    if (unsentFrames > MAX_UNSENT_FRAMES) connection.abort(new Error("does not read"));
    return hasRoom;
  };
}
