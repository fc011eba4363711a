/** What servers and metrics may ask about the network. */

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
}

/** Totals since the start. */
export interface NetworkStats {
  readonly peers: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

/** The network as the servers see it. */
export interface NetworkView {
  /** As CometBFT's `net_info` shows where this node listens; none when it only dials. */
  listeners(): readonly string[];
  peers(): readonly NetworkPeer[];
  stats(): NetworkStats;
  /** Whether the node is still catching up with its peers. */
  isCatchingUp(): boolean;
}
