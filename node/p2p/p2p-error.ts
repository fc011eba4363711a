/** Faults of the peer-to-peer network. */
import { AppError } from "../../chain/errors.js";

/** Codes of faults of the network. */
export type P2pErrorCode =
  /** `node_key.json` cannot be read, is no ed25519 key in CometBFT's shape, or cannot be made. */
  | "NODE_KEY_INVALID"
  /** A peer's address is not `<node_id>@<host>:<port>`, or a seed's not `<host>:<port>`. */
  | "PEER_ADDRESS_INVALID"
  /** The listen address cannot be used. */
  | "LISTEN_FAILED"
  | "PORT_TAKEN"
  /** Nobody answered at the address, or the handshake failed. */
  | "PEER_UNREACHABLE"
  /** Who answered has another key than the dialled node id names. */
  | "WRONG_NODE_ID"
  /** The peer is banned, connected already, or there is no room for it. */
  | "PEER_REFUSED"
  /** The peer is of another chain. */
  | "WRONG_NETWORK"
  /** The peer sent something that its protocol does not allow. */
  | "PEER_PROTOCOL"
  /** The connection ended. */
  | "PEER_GONE";

/** A fault of the network. */
export class P2pError extends AppError<P2pErrorCode> {}
