/** One connection with one peer. */
import type { Connection, MultiaddrConnection } from "@libp2p/interface";
import { errorMessage } from "../../../chain/errors.js";
import type { Clock } from "../../../runtime/process/clock.js";
import { Channel } from "../channel.js";
import type { NodeId } from "../node-key.js";
import { P2pError } from "../p2p-error.js";
import { ipOf } from "./connection-gate.js";
import type { PeerLoad } from "./peer-load.js";
import type { TrafficMeter } from "./traffic-meter.js";

/** What a link is made of. */
export interface PeerLinkOptions {
  readonly nodeId: NodeId;
  readonly connection: Connection;
  readonly meter: TrafficMeter;
  /** What is under the connection: its bytes can be left with the peer. */
  readonly transport: Pick<MultiaddrConnection, "pause" | "resume" | "status">;
  /** What the peer costs this node. */
  readonly load: PeerLoad;
  readonly clock: Clock;
}

/** A connection that is up until `onClose` says otherwise. */
export class PeerLink {
  readonly nodeId: NodeId;
  readonly direction: "inbound" | "outbound";
  /** Of the other end of the TCP connection; "" where that has no IP address. */
  readonly remoteIp: string;
  readonly connectedAtMs: number;
  readonly meter: TrafficMeter;
  readonly load: PeerLoad;
  private readonly closed = new AbortController();
  private holdUpTimer: NodeJS.Timeout | undefined;
  private isResuming = false;
  private reason: string | undefined;

  constructor(private readonly options: PeerLinkOptions) {
    const { nodeId, connection, meter, load, clock } = options;
    this.nodeId = nodeId;
    this.direction = connection.direction;
    this.meter = meter;
    this.load = load;
    this.connectedAtMs = clock.monotonicMs();
    this.remoteIp = ipOf(connection.remoteAddr);
    connection.addEventListener("close", ({ error }) => {
      this.end(error === undefined ? "closed by the peer" : errorMessage(error));
    });
  }

  /** Fires when the connection has ended. */
  get signal(): AbortSignal {
    return this.closed.signal;
  }

  /** Whether gossip can reach the peer: its router's stream is up. */
  get hasGossip(): boolean {
    return this.options.connection.streams.some(
      ({ protocol, direction, status }) =>
        direction === "outbound" && status === "open" && protocol.startsWith("/meshsub/"),
    );
  }

  /** Whether nothing is read from the peer now. */
  get isHeldUp(): boolean {
    return this.holdUpTimer !== undefined;
  }

  /** Whether this is the link of that connection. */
  isOn(connection: Connection): boolean {
    return this.options.connection.id === connection.id;
  }

  /** Calls the listener once, when the connection ends; at once if it has ended. */
  onClose(listener: (reason: string) => void): void {
    const tell = () => listener(this.reason ?? "closed");
    if (this.signal.aborted) tell();
    else this.signal.addEventListener("abort", tell, { once: true });
  }

  /**
   * Opens a stream for a protocol.
   * @throws PEER_GONE also when the peer does not speak the protocol
   */
  async open(
    protocol: string,
    options: {
      readonly maxMessageBytes: number;
      readonly maxUnreadBytes?: number;
      readonly signal: AbortSignal;
    },
  ): Promise<Channel> {
    const { maxMessageBytes, maxUnreadBytes, signal } = options;
    try {
      const stream = await this.options.connection.newStream(protocol, { signal });
      return new Channel(stream, maxMessageBytes, maxUnreadBytes);
    } catch (cause) {
      signal.throwIfAborted();
      throw new P2pError("PEER_GONE", errorMessage(cause), { cause, retriable: true });
    }
  }

  /**
   * Reads nothing more from the peer for a while: its bytes stay on its side. Does nothing while
   * that is so already; looks again afterwards whether the peer has to wait longer.
   */
  holdUp(durationMs: number): void {
    const { transport, load, clock } = this.options;
    const isBusy = this.holdUpTimer !== undefined || this.isResuming;
    if (isBusy || this.signal.aborted) return;
    if (!changes(transport, () => transport.pause())) return;
    const startMs = clock.monotonicMs();
    this.holdUpTimer = setTimeout(() => {
      this.holdUpTimer = undefined;
      if (this.signal.aborted) return;
      this.resume();
      load.heldUp(this.nodeId, clock.monotonicMs() - startMs);
    }, durationMs);
  }

  /** Ends the connection at once. */
  close(reason: string): void {
    this.end(reason);
    this.options.connection.abort(new Error(reason));
  }

  /**
   * Resuming hands over what had come before; a pause in the middle of that would be undone at its
   * end, and what comes then would pile up until the connection breaks.
   */
  private resume(): void {
    const { transport, load } = this.options;
    this.isResuming = true;
    changes(transport, () => transport.resume());
    this.isResuming = false;
    const waitMs = load.debtMs(this.nodeId);
    if (waitMs > 0) this.holdUp(waitMs);
  }

  private end(reason: string): void {
    clearTimeout(this.holdUpTimer);
    this.reason ??= reason;
    this.closed.abort(new P2pError("PEER_GONE", this.reason, { retriable: true }));
  }
}

/** Pauses or resumes reading; false where the connection is ending, which ends that too. */
function changes({ status }: PeerLinkOptions["transport"], change: () => void): boolean {
  if (status !== "open") return false;
  try {
    change();
    return true;
  } catch {
    return false; // The other side has ended its half.
  }
}
