/**
 * Decided blocks on request: how far a peer is, and ranges of blocks. Each request is a stream of
 * its own that ends with the answer.
 */
import { encodeConsensusBlock } from "../../../chain/consensus/consensus-block.js";
import { decodeCommitSteps, encodeCommit } from "../../../chain/consensus/commit.js";
import { invalidMessage, ProtoReader, ProtoWriter } from "../../../chain/protobuf/wire.js";
import type { Height } from "../../../chain/hex.js";
import type { Steps } from "../../../chain/steps/steps.js";
import { Slices } from "../../../runtime/process/slices.js";
import {
  type BlockArchive,
  type ReceivedBlock,
  type UnreadBlock,
} from "../../consensus/consensus-ports.js";
import { type Channel, framedBytes } from "../channel.js";
import type { ProtocolHandler } from "../host.js";
import { P2pError } from "../p2p-error.js";
import { AnswerLimit, answerTimeMs, MAX_BLOCK_MESSAGE_BYTES } from "./answer-patience.js";
import type { PeerLink } from "../peers/peer-link.js";
import { UntakenAnswers } from "./untaken-answers.js";

/** Blocks that a peer can give. */
export interface ArchiveRange {
  readonly base: Height;
  readonly height: Height;
}

/** One peer, asked for blocks. */
export interface BlockSource {
  /** Throws PEER_PROTOCOL, PEER_GONE, or the signal's reason. */
  range(signal: AbortSignal): Promise<ArchiveRange>;
  /**
   * The blocks from `from` on, in order, each handed over as it comes. The peer may end before
   * `count`: an answer is bounded in bytes.
   * @returns how many came
   * @throws PEER_PROTOCOL, PEER_GONE, or the signal's reason
   */
  blocks(
    request: { readonly from: Height; readonly count: number },
    options: {
      readonly signal: AbortSignal;
      readonly onBlock: (received: ReceivedBlock, sizeBytes: number) => void;
      /**
       * So much came, if only a part of a block. Negative where it turns out that what was told
       * was word that a block comes later: that is nothing of one.
       */
      readonly onBytes?: (sizeBytes: number) => void;
      /** The peer has too much to do now: the next block comes later. */
      readonly onLater?: () => void;
    },
  ): Promise<number>;
}

const PROTOCOL = "/causeway/blocks/1";

/** Most blocks in one answer. */
export const MAX_BLOCKS_PER_REQUEST = 64;

/** An answer ends when it has come to this size; the first block is sent whatever its size. */
const ANSWER_BYTES = 4 * 1024 * 1024;

/** A request is a few numbers. */
const MAX_REQUEST_BYTES = 64;

/** Requests of one peer that are answered at once. */
const MAX_REQUESTS_PER_PEER = 8;

/** Time for a peer to say what it wants. */
const REQUEST_TIMEOUT_MS = 5_000;

/** Time for a peer to take the first of an answer; what it takes gives it more. */
const FIRST_TAKEN_MS = 30_000;

/** Whoever waits for its turn is told so often that it does. */
const LATER_INTERVAL_MS = 1_000;

/**
 * Serves this node's archive to peers.
 * @param options `requestMs`: time for a peer to say what it wants; `laterMs`: how often one that
 * waits for its turn is told so; `firstTakenMs`: time for a peer to begin to take an answer
 */
export function blockHandler(
  archive: BlockArchive,
  options: {
    readonly requestMs?: number;
    readonly laterMs?: number;
    readonly firstTakenMs?: number;
  } = {},
): ProtocolHandler {
  const { requestMs = REQUEST_TIMEOUT_MS, laterMs = LATER_INTERVAL_MS } = options;
  const { firstTakenMs = FIRST_TAKEN_MS } = options;
  const untaken = new UntakenAnswers();
  return {
    protocol: PROTOCOL,
    maxMessageBytes: MAX_REQUEST_BYTES,
    maxInboundStreams: MAX_REQUESTS_PER_PEER,
    async serve(link, channel) {
      const request = parseRequest(
        await channel.readRequest({ timeoutMs: requestMs, signal: link.signal }),
      );
      const sent = { sizeBytes: 0 };
      // Whoever opens streams and gives them up must not leave more behind than he may have open. With the
      // connection they end as well: its signal with this one would keep a trace of each answer.
      const limit = new AnswerLimit([channel.signal], () =>
        answerTimeMs(firstTakenMs, Math.max(0, sent.sizeBytes - channel.unsentBytes)),
      );
      const { signal } = limit;
      try {
        await answer(archive, { link, channel, request, laterMs, untaken, sent, signal });
      } finally {
        limit.release();
      }
    },
  };
}

/** Asks the peer at the other end of a connection. */
export function blockSource(link: PeerLink): BlockSource {
  return {
    async range(signal) {
      const channel = await open(link, { request: { from: 0, count: 0 }, signal });
      try {
        const bytes = await channel.read(signal);
        if (bytes === undefined) throw new P2pError("PEER_GONE", "no answer");
        return parsed(() => decodeRange(bytes));
      } finally {
        channel.abort(new Error("done"));
      }
    },
    async blocks(request, { signal, onBlock, onBytes, onLater }) {
      const channel = await open(link, { request, signal });
      if (onBytes !== undefined) channel.onBytes(onBytes);
      try {
        let count = 0;
        while (count < request.count) {
          const bytes = await channel.read(signal);
          if (bytes === undefined) break;
          if (isLater(bytes)) {
            onBytes?.(-framedBytes(LATER.length));
            onLater?.();
            continue;
          }
          const received = await readDecided(bytes);
          if (received.commit.height !== request.from + count) {
            throw new P2pError("PEER_PROTOCOL", "a block that nobody asked for");
          }
          count++;
          onBlock(received, bytes.length);
        }
        return count;
      } finally {
        channel.abort(new Error("done"));
      }
    },
  };
}

async function open(
  link: PeerLink,
  options: {
    readonly request: { readonly from: Height; readonly count: number };
    readonly signal: AbortSignal;
  },
): Promise<Channel> {
  const { request, signal } = options;
  const maxUnreadBytes = ANSWER_BYTES + framedBytes(MAX_BLOCK_MESSAGE_BYTES);
  // What was asked for does not count as unasked traffic.
  link.meter.expect(request.count === 0 ? MAX_REQUEST_BYTES : ANSWER_BYTES);
  const channel = await link.open(PROTOCOL, {
    maxMessageBytes: MAX_BLOCK_MESSAGE_BYTES,
    maxUnreadBytes,
    signal,
  });
  channel.send(new ProtoWriter().integer(1, request.from).integer(2, request.count).finish());
  return channel;
}

/** One request, and who asks. */
interface AnswerOptions {
  readonly link: PeerLink;
  readonly channel: Channel;
  readonly request: { readonly from: Height; readonly count: number };
  readonly laterMs: number;
  readonly untaken: UntakenAnswers;
  /** What the peer was given so far. */
  readonly sent: { sizeBytes: number };
  readonly signal: AbortSignal;
}

async function answer(archive: BlockArchive, options: AnswerOptions): Promise<void> {
  const { link, channel, request, untaken, sent, signal } = options;
  if (request.count === 0) {
    await channel.write(encodeRange({ base: archive.base(), height: archive.height() }), signal);
    return channel.close(signal);
  }
  const last = Math.min(request.from + request.count - 1, archive.height());
  for (let height = request.from; height <= last && sent.sizeBytes < ANSWER_BYTES; height++) {
    const bytes = await nextBlock(archive, height, options);
    if (bytes === undefined) break;
    try {
      if (sent.sizeBytes > 0 && sent.sizeBytes + bytes.length > ANSWER_BYTES) break;
      sent.sizeBytes += bytes.length;
      await channel.write(bytes, signal);
    } finally {
      untaken.taken(link, bytes.length);
    }
  }
  await channel.close(signal);
}

/** A block for the peer, once it is its turn and it has taken what it was given; it counts as untaken. */
async function nextBlock(
  archive: BlockArchive,
  height: Height,
  options: AnswerOptions,
): Promise<Uint8Array | undefined> {
  const { link, request, untaken, signal } = options;
  await told(options, () => untaken.begin(link, signal, request.count === 1));
  let sizeBytes = 0;
  try {
    await told(options, () => link.load.turn(link.nodeId, signal));
    const bytes = await link.load.serveSteps(link.nodeId, encodedSteps(archive, height));
    sizeBytes = bytes?.length ?? 0;
    return bytes;
  } finally {
    untaken.made(link, sizeBytes);
  }
}

/** Waits for something that the peer waits for, too; it is told that it does, for else it seems forgotten. */
async function told(
  { channel, laterMs }: Pick<AnswerOptions, "channel" | "laterMs">,
  wait: () => Promise<void>,
): Promise<void> {
  const telling = setInterval(() => {
    // Who does not read what it is told need not be told more.
    if (channel.unsentBytes === 0) channel.send(LATER);
  }, laterMs);
  try {
    await wait();
  } finally {
    clearInterval(telling);
  }
}

/** Instead of a block: it comes later. */
const LATER = new ProtoWriter().integer(3, 1).finish();

function isLater(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes, LATER) === 0;
}

function encodeRange({ base, height }: ArchiveRange): Buffer {
  // Heights are one more on the wire: an empty message would be no answer.
  return new ProtoWriter()
    .integer(1, base + 1)
    .integer(2, height + 1)
    .finish();
}

function decodeRange(bytes: Uint8Array): ArchiveRange {
  const reader = new ProtoReader(bytes, [1, 2]);
  const [base, height] = [reader.count(1) - 1, reader.count(2) - 1];
  if (base < 0 || height < 0) throw invalidMessage("a range without heights");
  return { base, height };
}

/** A block and its commit; undefined where there is none of that height. */
function* encodedSteps(archive: BlockArchive, height: Height): Steps<Buffer | undefined> {
  const decided = yield* archive.loadSteps(height);
  if (decided === undefined) return undefined;
  const blockBytes = encodeConsensusBlock(decided.block);
  yield;
  return new ProtoWriter().message(1, blockBytes).message(2, encodeCommit(decided.commit)).finish();
}

/** The commit alone is read: it tells whether anything of the block is worth reading. */
async function readDecided(bytes: Uint8Array): Promise<UnreadBlock> {
  const { blockBytes, commitBytes } = parsed(() => {
    const reader = new ProtoReader(bytes, [1, 2]);
    return { blockBytes: reader.bytes(1), commitBytes: reader.bytes(2) };
  });
  try {
    return { blockBytes, commit: await new Slices().run(decodeCommitSteps(commitBytes)) };
  } catch (cause) {
    throw unreadable(cause);
  }
}

function parseRequest(bytes: Uint8Array): { from: Height; count: number } {
  return parsed(() => {
    const reader = new ProtoReader(bytes, [1, 2]);
    const [from, count] = [reader.count(1), reader.count(2)];
    if (count > MAX_BLOCKS_PER_REQUEST) throw invalidMessage("too many blocks");
    return { from, count };
  });
}

function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw unreadable(cause);
  }
}

function unreadable(cause: unknown): P2pError {
  return new P2pError("PEER_PROTOCOL", "an unreadable message", { cause });
}
