/** Which blocks are here, which are on their way, and which are to be asked for next. */
import type { Height } from "../../../chain/hex.js";
import { heightOfReceived, type ReceivedBlock } from "../../consensus/consensus-ports.js";
import { type ArchiveRange, MAX_BLOCKS_PER_REQUEST } from "./block-protocol.js";
import type { NodeId } from "../node-key.js";

/** How far ahead of the next block may be asked. */
const WINDOW_BLOCKS = 512;

/** Blocks that are here and wait for their turn; nothing more is asked for beyond that. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/**
 * Blocks that may come of what was asked for before there was so much; beyond that all but the next one
 * is let go, and asked for again. A liar's answer has no end but this.
 */
const MOST_WAITING_BYTES = 4 * MAX_WAITING_BYTES;

/** Blocks of one request: with four at once a peer has at most a quarter of the window. */
const REQUEST_BLOCKS = Math.min(32, MAX_BLOCKS_PER_REQUEST);

/** A block that is here, with its sender. */
export interface WaitingBlock {
  readonly received: ReceivedBlock;
  readonly from: NodeId;
  readonly sizeBytes: number;
  /** How long it came (`BlockPeer.gave`). */
  readonly cameMs: number;
}

/** A range of heights that a peer is asked for. */
export interface BlockRequest {
  readonly from: Height;
  readonly count: number;
}

/** The blocks between the node's height and its peers'. */
export class BlockQueue {
  private readonly waiting = new Map<Height, WaitingBlock>();
  /** Who is asked for a height. */
  private readonly asked = new Map<Height, Set<NodeId>>();
  private waitingBytes = 0;

  /** @param nextHeight the height that is to be applied first */
  constructor(private nextHeight: Height) {}

  /** The block whose turn it is, if it is here. */
  next(): WaitingBlock | undefined {
    return this.waiting.get(this.nextHeight);
  }

  /** The block whose turn it was is applied. */
  advance(): void {
    this.remove(this.nextHeight);
    this.nextHeight++;
  }

  /** Heights that a peer with this range is to be asked for; they count as asked from now on. */
  take(range: ArchiveRange, nodeId: NodeId): BlockRequest | undefined {
    // With much waiting only the block that holds the others up is asked for.
    const isFull = this.waitingBytes >= MAX_WAITING_BYTES;
    const last = Math.min(range.height, this.nextHeight + (isFull ? 0 : WINDOW_BLOCKS - 1));
    let from = Math.max(this.nextHeight, range.base);
    while (from <= last && this.isCovered(from)) from++;
    let count = 0;
    while (count < REQUEST_BLOCKS && from + count <= last && !this.isCovered(from + count)) count++;
    return this.ask({ from, count }, nodeId);
  }

  /**
   * The block that holds up all others, and those after it that are asked for as well: what a peer
   * with this range is to be asked for beside whoever keeps them waiting. Undefined where the block
   * is here, is asked of nobody, or is asked of this peer already.
   */
  takeOverdue(range: ArchiveRange, nodeId: NodeId): BlockRequest | undefined {
    const from = this.nextHeight;
    if (from < range.base) return undefined;
    const isOverdue = (height: Height) => {
      const asked = this.asked.get(height);
      return !this.waiting.has(height) && asked !== undefined && !asked.has(nodeId);
    };
    let count = 0;
    while (count < REQUEST_BLOCKS && from + count <= range.height && isOverdue(from + count)) {
      count++;
    }
    return this.ask({ from, count }, nodeId);
  }

  /** Whether any block of a request has still to come. */
  isWanted({ from, count }: BlockRequest): boolean {
    for (let height = Math.max(from, this.nextHeight); height < from + count; height++) {
      if (!this.waiting.has(height)) return true;
    }
    return false;
  }

  /** A block has come; one that is not wanted any more, or has no room, is let go. */
  put(received: ReceivedBlock, origin: Omit<WaitingBlock, "received">): void {
    const { sizeBytes } = origin;
    const height = heightOfReceived(received);
    const isWanted = height >= this.nextHeight && height < this.nextHeight + WINDOW_BLOCKS;
    if (!isWanted || this.waiting.has(height)) return;
    const hasRoom = this.waitingBytes + sizeBytes <= MOST_WAITING_BYTES;
    if (!hasRoom && height !== this.nextHeight) return;
    this.waiting.set(height, { received, ...origin });
    this.waitingBytes += sizeBytes;
  }

  /** A request is over: what of it did not come is to be asked for again. */
  release({ from, count }: BlockRequest, nodeId: NodeId): void {
    for (let height = from; height < from + count; height++) {
      const asked = this.asked.get(height);
      asked?.delete(nodeId);
      if (asked?.size === 0) this.asked.delete(height);
    }
  }

  /** Lets go of everything that a liar has sent. */
  dropFrom(liar: NodeId): void {
    for (const [height, { from }] of this.waiting) if (from === liar) this.remove(height);
  }

  private ask(request: BlockRequest, nodeId: NodeId): BlockRequest | undefined {
    for (let height = request.from; height < request.from + request.count; height++) {
      const asked = this.asked.get(height) ?? new Set();
      this.asked.set(height, asked.add(nodeId));
    }
    return request.count === 0 ? undefined : request;
  }

  private isCovered(height: Height): boolean {
    return this.waiting.has(height) || this.asked.has(height);
  }

  private remove(height: Height): void {
    const block = this.waiting.get(height);
    if (block === undefined) throw new RangeError(`block ${height} does not wait`);
    this.waitingBytes -= block.sizeBytes;
    this.waiting.delete(height);
  }
}
