/**
 * Room for what peers sent and nobody has judged yet. Keys are free, and only its judgement says what it was
 * worth: a peer alone may have all of the room, and whoever has less than another takes it from the one that
 * has most, whose last call goes.
 */
import type { Amount } from "../../mempool/admission/ways.js";
import type { NodeId } from "../node-key.js";

/** One call's place. */
export interface Place {
  /** Fires with the reason when the call is not to be looked at any more. */
  readonly signal: AbortSignal;
  /** It is looked at now, and keeps its place until the end. */
  begin(): void;
  /** Gives the place back. */
  leave(): void;
}

interface Call extends Amount {
  readonly from: NodeId;
  readonly ended: AbortController;
}

/** What one peer has of the room. */
interface Share {
  count: number;
  sizeBytes: number;
  /** Calls that are not looked at yet, in order. */
  readonly waiting: Call[];
}

/** One room for all peers. */
export class PeerRoom {
  /** Of those only that have something. */
  private readonly shares = new Map<NodeId, Share>();
  private readonly held = new Set<Call>();
  private count = 0;
  private sizeBytes = 0;

  /**
   * @param room most that all peers together have
   * @param full why a call is not looked at that others took the place of
   */
  constructor(
    private readonly room: Amount,
    private readonly full: Error,
  ) {}

  /** Whether a peer may have that much more. */
  fits(from: NodeId, amount: Amount): boolean {
    return this.hasRoom(amount) || this.lastOfLargest(from, amount) !== undefined;
  }

  /** A place for what a peer sent; undefined where no other has more. */
  enter(from: NodeId, { count, sizeBytes }: Amount): Place | undefined {
    const call: Call = { from, count, sizeBytes, ended: new AbortController() };
    while (!this.hasRoom(call)) {
      const last = this.lastOfLargest(from, call);
      if (last === undefined) return undefined;
      this.end(last, this.full);
    }
    const share = this.shares.get(from) ?? { count: 0, sizeBytes: 0, waiting: [] };
    this.shares.set(from, share);
    share.waiting.push(call);
    this.held.add(call);
    this.add(share, count, sizeBytes);
    return {
      signal: call.ended.signal,
      begin: () => this.noteBegun(call),
      leave: () => this.leave(call),
    };
  }

  /** What a peer has and nobody looks at yet goes. */
  forget(from: NodeId, reason: Error): void {
    for (const call of this.shares.get(from)?.waiting.slice() ?? []) this.end(call, reason);
  }

  private hasRoom({ count, sizeBytes }: Amount): boolean {
    const { room } = this;
    return this.count + count <= room.count && this.sizeBytes + sizeBytes <= room.sizeBytes;
  }

  /** The last call of who has most of those that wait, where that is more than the peer would have. */
  private lastOfLargest(from: NodeId, { count, sizeBytes }: Amount): Call | undefined {
    const own = this.shares.get(from) ?? { count: 0, sizeBytes: 0 };
    let most = this.partOf({ count: own.count + count, sizeBytes: own.sizeBytes + sizeBytes });
    let last: Call | undefined;
    for (const share of this.shares.values()) {
      const part = this.partOf(share);
      if (share.waiting.length === 0 || part <= most) continue;
      most = part;
      last = share.waiting.at(-1);
    }
    return last;
  }

  private partOf({ count, sizeBytes }: Amount): number {
    return Math.max(count / this.room.count, sizeBytes / this.room.sizeBytes);
  }

  private end(call: Call, reason: Error): void {
    this.leave(call);
    call.ended.abort(reason);
  }

  private noteBegun(call: Call): void {
    const waiting = this.shares.get(call.from)?.waiting ?? [];
    const index = waiting.indexOf(call);
    if (index >= 0) waiting.splice(index, 1);
  }

  private leave(call: Call): void {
    const share = this.shares.get(call.from);
    if (share === undefined || !this.held.delete(call)) return;
    this.noteBegun(call);
    this.add(share, -call.count, -call.sizeBytes);
    if (share.count === 0) this.shares.delete(call.from);
  }

  private add(share: Share, count: number, sizeBytes: number): void {
    share.count += count;
    share.sizeBytes += sizeBytes;
    this.count += count;
    this.sizeBytes += sizeBytes;
  }
}
