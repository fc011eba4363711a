/**
 * Room for what peers sent and nobody has judged yet. Keys are free, and only its judgement says what it was
 * worth: a peer alone may have all of the room, and whoever has less than another takes it from the one that
 * has most, whose last call goes.
 */
import { present } from "../../../chain/errors.js";
import type { Load } from "../../mempool/admission/ways.js";
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

interface Call extends Load {
  readonly from: NodeId;
  readonly ended: AbortController;
}

/** What several calls come to. */
interface Sum {
  count: number;
  sizeBytes: number;
}

/** What one peer has of the room. */
interface Share extends Sum {
  /** Calls that are not looked at yet, in order. */
  readonly waiting: Call[];
}

/** One room for all peers. */
export class PeerRoom {
  /** Shares of the peers that hold something, and of no other. */
  private readonly shares = new Map<NodeId, Share>();
  private readonly held = new Set<Call>();
  private readonly total: Sum = { count: 0, sizeBytes: 0 };

  /**
   * @param room most that all peers together have
   * @param full why a call is not looked at that others took the place of
   */
  constructor(
    private readonly room: Load,
    private readonly full: Error,
  ) {}

  /** Whether a peer may have that much more: there is room, or what others have more than it makes room. */
  fits(from: NodeId, load: Load): boolean {
    if (this.hasRoom(load)) return true;
    const left = { ...this.total };
    const most = this.partWith(from, load);
    for (const { count, sizeBytes, waiting } of this.shares.values()) {
      const share = { count, sizeBytes };
      for (let at = waiting.length - 1; this.partOf(share) > most; at--) {
        const call = waiting[at];
        if (call === undefined) break;
        add(share, call, -1);
        add(left, call, -1);
        if (this.hasRoom(load, left)) return true;
      }
    }
    return false;
  }

  /** A place for what a peer sent; undefined where it does not fit, and nobody's call is ended. */
  enter(from: NodeId, { count, sizeBytes }: Load): Place | undefined {
    const call: Call = { from, count, sizeBytes, ended: new AbortController() };
    if (!this.fits(from, call)) return undefined;
    while (!this.hasRoom(call)) {
      this.end(present(this.lastOfLargest(from, call), "call that goes for another"), this.full);
    }
    const share = this.shares.get(from) ?? { count: 0, sizeBytes: 0, waiting: [] };
    this.shares.set(from, share);
    share.waiting.push(call);
    this.held.add(call);
    add(share, call);
    add(this.total, call);
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

  private hasRoom({ count, sizeBytes }: Load, beside: Load = this.total): boolean {
    const { room } = this;
    return beside.count + count <= room.count && beside.sizeBytes + sizeBytes <= room.sizeBytes;
  }

  /** The last call of who has most of those that wait, where that is more than the peer would have. */
  private lastOfLargest(from: NodeId, load: Load): Call | undefined {
    let most = this.partWith(from, load);
    let last: Call | undefined;
    for (const share of this.shares.values()) {
      const part = this.partOf(share);
      if (share.waiting.length === 0 || part <= most) continue;
      most = part;
      last = share.waiting.at(-1);
    }
    return last;
  }

  /** What a peer's part would be. */
  private partWith(from: NodeId, { count, sizeBytes }: Load): number {
    const own = this.shares.get(from) ?? { count: 0, sizeBytes: 0 };
    return this.partOf({ count: own.count + count, sizeBytes: own.sizeBytes + sizeBytes });
  }

  private partOf({ count, sizeBytes }: Load): number {
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
    add(share, call, -1);
    add(this.total, call, -1);
    if (share.count === 0) this.shares.delete(call.from);
  }
}

/** @param sign -1 takes it out again */
function add(sum: Sum, { count, sizeBytes }: Load, sign: 1 | -1 = 1): void {
  sum.count += sign * count;
  sum.sizeBytes += sign * sizeBytes;
}
