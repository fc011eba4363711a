/** What servers and metrics may ask about the network. */
import type { Height } from "../../chain/hex.js";
import type { RoundStatus } from "../consensus/consensus-ports.js";
import type { FlowStatus } from "./peers/flow-monitor.js";

/** A connected peer, as `net_info` shows it. */
export interface NetworkPeer {
  readonly nodeId: string;
  readonly moniker: string;
  /** Chain id. */
  readonly network: string;
  readonly version: string;
  /** As the peer says itself; "" for none. */
  readonly listenAddress: string;
  readonly rpcAddress: string;
  readonly isOutbound: boolean;
  readonly remoteIp: string;
  readonly connectedMs: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly receiving: FlowStatus;
  readonly sending: FlowStatus;
  /** Bytes that the peer has not taken yet, and how many may wait. */
  readonly unsentBytes: number;
  readonly maxUnsentBytes: number;
  readonly round: PeerRound;
}

/** What a peer said of the height that it is deciding, and gave this node of it. */
export interface PeerRound {
  /** Undefined until it says something. */
  readonly status: RoundStatus | undefined;
  /** When it was first heard to be at the height, Unix milliseconds. */
  readonly sinceMs: number;
  /** Votes and parts that were new here, since it connected. */
  readonly voteCount: number;
  readonly partCount: number;
}

/** Totals since the start. */
export interface NetworkStats {
  readonly peers: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  /** What peers cost the node's thread, milliseconds. */
  readonly peersMs: number;
}

/** The network as the servers see it. */
export interface NetworkView {
  /** As CometBFT's `net_info` shows where this node listens; none when it only dials. */
  listeners(): readonly string[];
  peers(): readonly NetworkPeer[];
  stats(): NetworkStats;
  /** Whether the node is still catching up with its peers. */
  isCatchingUp(): boolean;
  /** The greatest height that a peer claims to have, as far as was asked; 0 where none has. */
  peerHeight(): Height;
  /** The height that half of the peers say they have, whatever this node does; 0 where none says. */
  networkHeight(): Height;
}
