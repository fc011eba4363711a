/** Addresses of peers as operators write them: `<node_id>@<host>:<port>`, seeds without the id. */
import { isIP } from "node:net";
import { readDialAddress } from "../../../runtime/config/dial-address.js";
import { type NodeId, parseNodeId } from "../node-key.js";
import { P2pError } from "../p2p-error.js";

/** Where a peer can be dialled. */
export interface PeerAddress {
  /** Undefined for a seed whose key nobody wrote down. */
  readonly nodeId: NodeId | undefined;
  /** IP address without brackets, or a name. */
  readonly host: string;
  /** 1 to 65535. */
  readonly port: number;
}

/** The address of a peer that is known by its id. */
export interface KnownPeerAddress extends PeerAddress {
  readonly nodeId: NodeId;
}

/** Id, and what it is reached at. */
const ADDRESS = /^(?:tcp:\/\/)?(?:([0-9a-fA-F]*)@)?(.*)$/;

/**
 * Reads one address; the id is optional, as is a leading "tcp://".
 * @throws PEER_ADDRESS_INVALID
 */
export function parsePeerAddress(text: string): PeerAddress {
  const [, id, place = ""] = ADDRESS.exec(text.trim()) ?? [];
  const address = readDialAddress(place);
  if (address === undefined) {
    throw new P2pError("PEER_ADDRESS_INVALID", "expected <node_id>@<host>:<port>", {
      details: { address: text.slice(0, 100) },
    });
  }
  const nodeId = id === undefined ? undefined : parseNodeId(id);
  return { nodeId, ...address };
}

/** Reads one address with its id. Throws PEER_ADDRESS_INVALID. */
export function parseKnownPeerAddress(text: string): KnownPeerAddress {
  const { nodeId, host, port } = parsePeerAddress(text);
  if (nodeId === undefined) {
    throw new P2pError("PEER_ADDRESS_INVALID", "expected <node_id>@<host>:<port>", {
      details: { address: text.slice(0, 100) },
    });
  }
  return { nodeId, host, port };
}

/** Writes an address as `parsePeerAddress` reads it. */
export function formatPeerAddress({ nodeId, host, port }: PeerAddress): string {
  const id = nodeId === undefined ? "" : `${nodeId}@`;
  return `${id}${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The libp2p form, without a peer id: who answers shows his key in the handshake. */
export function multiaddrTextOf({ host, port }: Omit<PeerAddress, "nodeId">): string {
  const version = isIP(host);
  const protocol = version === 4 ? "ip4" : version === 6 ? "ip6" : "dns";
  return `/${protocol}/${host}/tcp/${port}`;
}
