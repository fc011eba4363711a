/** The section `p2p` of config.toml as the options of a network. */
import type { P2pSettings } from "../settings/p2p-config.js";
import type { NetworkOptions } from "./network.js";
import { parseNodeId } from "./node-key.js";
import { parseKnownPeerAddress, parsePeerAddress } from "./peers/peer-address.js";

/** The network's options that come from the section. Throws PEER_ADDRESS_INVALID. */
export function networkSettings(
  settings: P2pSettings,
): Pick<
  NetworkOptions,
  | "listen"
  | "externalAddress"
  | "persistentPeers"
  | "seeds"
  | "pex"
  | "seedMode"
  | "maxInboundPeers"
  | "maxOutboundPeers"
  | "unconditionalPeerIds"
  | "privatePeerIds"
> {
  return {
    listen: settings.laddr,
    externalAddress: settings.external_address,
    persistentPeers: settings.persistent_peers.map(parseKnownPeerAddress),
    seeds: settings.seeds.map(parsePeerAddress),
    pex: settings.pex || settings.seed_mode,
    seedMode: settings.seed_mode,
    maxInboundPeers: settings.max_num_inbound_peers,
    maxOutboundPeers: settings.max_num_outbound_peers,
    unconditionalPeerIds: settings.unconditional_peer_ids.map(parseNodeId),
    privatePeerIds: settings.private_peer_ids.map(parseNodeId),
  };
}
