/** One connection with one peer. */
import type { Connection } from "@libp2p/interface";
import { errorMessage } from "../../chain/errors.js";
import type { Clock } from "../../runtime/clock.js";
import { Channel } from "./channel.js";
import type { NodeId } from "./node-key.js";
import { P2pError } from "./p2p-error.js";
import type { TrafficMeter } from "./traffic-meter.js";

/** What a link is made of. */
export interface PeerLinkOptions {
  readonly nodeId: NodeId;
  readonly connection: Connection;
  readonly meter: TrafficMeter;
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
  private readonly closed = new AbortController();
  private reason: string | undefined;

  constructor(private readonly options: PeerLinkOptions) {
    const { nodeId, connection, meter, clock } = options;
    this.nodeId = nodeId;
    this.direction = connection.direction;
    this.meter = meter;
    this.connectedAtMs = clock.monotonicMs();
    const ip = connection.remoteAddr.getComponents().find(({ name }) => /^ip[46]$/.test(name));
    this.remoteIp = ip?.value ?? "";
    connection.addEventListener("close", ({ error }) => {
      this.end(error === undefined ? "closed by the peer" : errorMessage(error));
    });
  }

  /** Fires when the connection has ended. */
  get signal(): AbortSignal {
    return this.closed.signal;
  }

  /** The peer's name for libp2p. */
  get peerName(): string {
    return this.options.connection.remotePeer.toString();
  }

  /** Whether gossip can reach the peer: its router's stream is up. */
  get hasGossip(): boolean {
    return this.options.connection.streams.some(
      ({ protocol, direction, status }) =>
        direction === "outbound" && status === "open" && protocol.startsWith("/meshsub/"),
    );
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

  /** Ends the connection at once. */
  close(reason: string): void {
    this.end(reason);
    this.options.connection.abort(new Error(reason));
  }

  private end(reason: string): void {
    this.reason ??= reason;
    this.closed.abort(new P2pError("PEER_GONE", this.reason, { retriable: true }));
  }
}
