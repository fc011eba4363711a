/**
 * Snapshots on request: which ones a peer has, their manifests and chunks. Each request is a
 * stream of its own that ends with the answer; a stream that ends without one means "not here".
 */
import { readHash } from "../../../chain/consensus/block-id.js";
import { invalidMessage, ProtoReader, ProtoWriter } from "../../../chain/protobuf/wire.js";
import { type Hash32, hexToBytes, ZERO_HASH } from "../../../chain/hex.js";
import { withTimeout } from "../../../runtime/process/task.js";
import type { Channel } from "../../p2p/channel.js";
import type { ProtocolHandler } from "../../p2p/host.js";
import { P2pError } from "../../p2p/p2p-error.js";
import type { PeerLink } from "../../p2p/peers/peer-link.js";
import { MS_PER_BYTE } from "../../p2p/peers/peer-load.js";
import { MAX_LISTED_SNAPSHOTS, type SnapshotLibrary } from "./snapshot-folder.js";
import { MAX_CHUNK_BYTES, MAX_CHUNKS, MAX_MANIFEST_BYTES } from "./snapshot-manifest.js";
import type { SnapshotOffer, SnapshotSource } from "../statesync-ports.js";

const PROTOCOL = "/causeway/snapshots/1";

/** What is asked for; the number is on the wire. */
const REQUEST = { list: 1, manifest: 2, chunk: 3 } as const;

/** A request is a few numbers and a hash. */
const MAX_REQUEST_BYTES = 64;

/** Ten offers of some 60 bytes. */
const MAX_LIST_BYTES = 2_048;

/** Requests of one peer that are answered at once: each holds one chunk in memory. */
const MAX_REQUESTS_PER_PEER = 4;

/** Time for a peer to say what it wants. */
const REQUEST_TIMEOUT_MS = 5_000;

/** Time for a peer to take one answer. */
const ANSWER_TIMEOUT_MS = 30_000;

/** What an answer costs beside its bytes: a file is read. */
const REQUEST_MS = 0.3;

interface Request {
  readonly kind: (typeof REQUEST)[keyof typeof REQUEST];
  readonly height: number;
  readonly id: Hash32;
  readonly index: number;
}

/** Serves this node's snapshots to peers. */
export function snapshotHandler(library: SnapshotLibrary): ProtocolHandler {
  return {
    protocol: PROTOCOL,
    maxMessageBytes: MAX_REQUEST_BYTES,
    maxInboundStreams: MAX_REQUESTS_PER_PEER,
    async serve(link, channel) {
      const limits = { timeoutMs: REQUEST_TIMEOUT_MS, signal: link.signal };
      const bytes = await channel.readRequest(limits);
      const request = parsed(() => decodeRequest(bytes));
      await withTimeout((inner) => answer(library, { link, channel, request, signal: inner }), {
        timeoutMs: ANSWER_TIMEOUT_MS,
        // As with blocks: what was given up is not waited for, nor what ended with its connection.
        signal: channel.signal,
        what: "answer",
      });
    },
  };
}

/** Asks the peer at the other end of a connection; the caller sets the time limits. */
export function snapshotSource(link: PeerLink): SnapshotSource {
  const asked = (offer: SnapshotOffer) => ({ height: offer.height, id: offer.id, index: 0 });
  return {
    async list(signal) {
      const request = { kind: REQUEST.list, height: 0, id: ZERO_HASH, index: 0 };
      const bytes = await ask(link, request, { maxBytes: MAX_LIST_BYTES, signal });
      if (bytes === undefined) throw new P2pError("PEER_GONE", "no answer", { retriable: true });
      return parsed(() => decodeList(bytes));
    },
    manifest: (offer, signal) => {
      const request = { ...asked(offer), kind: REQUEST.manifest };
      return ask(link, request, { maxBytes: MAX_MANIFEST_BYTES, signal });
    },
    chunk: (offer, index, signal) => {
      const request = { ...asked(offer), kind: REQUEST.chunk, index };
      return ask(link, request, { maxBytes: MAX_CHUNK_BYTES, signal });
    },
  };
}

async function ask(
  link: PeerLink,
  request: Request,
  options: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<Uint8Array | undefined> {
  const { maxBytes, signal } = options;
  // What was asked for does not count as unasked traffic.
  link.meter.expect(maxBytes);
  const channel = await link.open(PROTOCOL, { maxMessageBytes: maxBytes, signal });
  try {
    channel.send(encodeRequest(request));
    return await channel.read(signal);
  } finally {
    channel.abort(new Error("done"));
  }
}

async function answer(
  library: SnapshotLibrary,
  options: {
    readonly link: PeerLink;
    readonly channel: Channel;
    readonly request: Request;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { link, channel, request, signal } = options;
  await link.load.turn(link.nodeId, signal);
  const bytes = await answerTo(library, request);
  link.load.served(link.nodeId, REQUEST_MS + (bytes?.length ?? 0) * MS_PER_BYTE);
  if (bytes !== undefined) await channel.write(bytes, signal);
  await channel.close(signal);
}

async function answerTo(
  library: SnapshotLibrary,
  { kind, height, id, index }: Request,
): Promise<Uint8Array | undefined> {
  if (kind === REQUEST.list) return encodeList(library.list());
  if (kind === REQUEST.manifest) return library.manifest(height, id);
  return library.chunk(height, id, index);
}

function encodeRequest({ kind, height, id, index }: Request): Buffer {
  const writer = new ProtoWriter().integer(1, kind).integer(2, height);
  if (kind !== REQUEST.list) writer.bytes(3, hexToBytes(id));
  return writer.integer(4, index).finish();
}

function decodeRequest(bytes: Uint8Array): Request {
  const reader = new ProtoReader(bytes, [1, 2, 3, 4]);
  const wanted = reader.count(1);
  const kind = Object.values(REQUEST).find((known) => known === wanted);
  if (kind === undefined) throw invalidMessage("a request of an unknown kind");
  const id = kind === REQUEST.list ? ZERO_HASH : readHash(reader, 3);
  return { kind, height: reader.count(2), id, index: reader.count(4) };
}

/** The first field makes an empty list a message. */
function encodeList(offers: readonly SnapshotOffer[]): Buffer {
  const writer = new ProtoWriter().integer(1, 1);
  for (const { height, format, chunks, id } of offers) {
    const offer = new ProtoWriter()
      .integer(1, height)
      .integer(2, format)
      .integer(3, chunks)
      .bytes(4, hexToBytes(id));
    writer.message(2, offer.finish());
  }
  return writer.finish();
}

function decodeList(bytes: Uint8Array): SnapshotOffer[] {
  return new ProtoReader(bytes, [1], { 2: MAX_LISTED_SNAPSHOTS }).repeated(2).map((one) => {
    const reader = new ProtoReader(one, [1, 2, 3, 4]);
    const [height, format, chunks] = [reader.count(1), reader.count(2), reader.count(3)];
    if (height === 0 || chunks === 0 || chunks > MAX_CHUNKS) {
      throw invalidMessage("an offer that cannot be kept");
    }
    return { height, format, chunks, id: readHash(reader, 4) };
  });
}

function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw new P2pError("PEER_PROTOCOL", "an unreadable message", { cause });
  }
}
