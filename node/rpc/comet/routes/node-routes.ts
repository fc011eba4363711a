/** What the node says of itself: peers, genesis, the height in progress; and evidence to it. */
import { hashEvidence } from "../../../../chain/consensus/evidence.js";
import { hexToBytes } from "../../../../chain/hex.js";
import { base64 } from "../json/encode.js";
import { refused } from "../errors.js";
import { parseEvidence } from "../json/evidence-json.js";
import { serveGenesis } from "../json/genesis-json.js";
import type { NetworkPeer } from "../../../p2p/network-port.js";
import { connectionJson } from "../json/connection-json.js";
import type { CometChain } from "../ports.js";
import { fullRoundText, simpleRoundJson } from "../json/round-json.js";
import { type Route, route } from "../route.js";
import { newestAppVersion, nodeInfoJson } from "./status.js";

/** The routes of this file. */
export function nodeRoutes(chain: CometChain): readonly (readonly [string, Route])[] {
  const served = serveGenesis(chain.genesis, chain.consensus.params(1));
  const { chainId } = chain.genesis;
  return [
    route("net_info", [], () => {
      const appVersion = newestAppVersion(chain.consensus);
      const peers = chain.network.peers().map((peer) => peerJson(peer, chainId, appVersion));
      const { listeners } = chain.network;
      return { listening: listeners.length > 0, listeners, n_peers: `${peers.length}`, peers };
    }),
    route("genesis", [], () => {
      if (served.whole !== undefined) return served.whole;
      throw refused("genesis response is large, please use the genesis_chunked API instead");
    }),
    route("genesis_chunked", ["chunk"], (values) => {
      const chunk = values.integer("chunk") ?? 0;
      const result = served.chunks[chunk];
      const total = served.chunks.length;
      if (result === undefined) throw refused(`there are ${total - 1} chunks, ${chunk} is invalid`);
      return result;
    }),
    route("consensus_state", [], () => ({
      round_state: simpleRoundJson(chain.consensus.progress()),
    })),
    route("dump_consensus_state", [], (_values, { signal }) =>
      fullRoundText(chain.consensus.progress(), chain.network.peers(), signal),
    ),
    route("broadcast_evidence", ["evidence"], async (values) => {
      const evidence = parseEvidence(values.json("evidence"));
      const reception = await chain.addEvidence(evidence);
      if (reception !== "new") throw refused(`failed to add evidence: it is ${reception}`);
      return { hash: base64(hexToBytes(hashEvidence(evidence))) };
    }),
  ];
}

function peerJson(peer: NetworkPeer, cosmosChainId: string, appVersion: number) {
  const { nodeId, listenAddress, moniker, rpcAddress } = peer;
  const info = nodeInfoJson({
    nodeId,
    listenAddress,
    cosmosChainId,
    moniker,
    rpcAddress,
    appVersion,
  });
  return {
    node_info: { ...info, version: peer.version },
    is_outbound: peer.isOutbound,
    connection_status: connectionJson(peer),
    remote_ip: peer.remoteIp,
  };
}
