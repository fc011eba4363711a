/** The section `p2p` of config.toml, with the key names of CometBFT. */
import type { ListenAddress, TextRule } from "../../runtime/config/config-values.js";
import { field } from "../../runtime/config/config.js";
import { readDialAddress } from "../../runtime/config/dial-address.js";

/** A host and a port behind what may stand before them. */
function addressBehind(prefix: RegExp): TextRule {
  return {
    test(text) {
      const [found] = prefix.exec(text) ?? [];
      return found !== undefined && readDialAddress(text.slice(found.length)) !== undefined;
    },
  };
}

const KNOWN_PEER = addressBehind(/^(tcp:\/\/)?[0-9a-fA-F]{40}@/);
const SEED = addressBehind(/^(tcp:\/\/)?([0-9a-fA-F]{40}@)?/);
const NODE_ID = /^[0-9a-fA-F]{40}$/;
const OWN_ADDRESS = addressBehind(/^(tcp:\/\/)?/);
const OPTIONAL_ADDRESS: TextRule = { test: (text) => text === "" || OWN_ADDRESS.test(text) };

/** What a port may be, as the settings say it. */
const PORTS = "ports 1 to 65535";

/** Keys of the section `p2p`. */
export const P2P_SECTION = {
  laddr: field.listenAddress({
    default: "127.0.0.1:26656",
    scheme: "tcp://",
    help: "Where other nodes connect to this one.",
  }),
  external_address: field.string({
    default: "",
    pattern: OPTIONAL_ADDRESS,
    allowed: `host:port, or empty; ${PORTS}`,
    help: "Address that peers are told, where it is another one than laddr.",
  }),
  persistent_peers: field.list({
    default: [],
    style: "comma",
    pattern: KNOWN_PEER,
    allowed: `a list of <node_id>@<host>:<port>, separated by commas; ${PORTS}`,
    help: "Nodes that this one keeps connected with; dialled again for ever.",
  }),
  seeds: field.list({
    default: [],
    style: "comma",
    pattern: SEED,
    allowed: `a list of <host>:<port>, separated by commas; ${PORTS}`,
    help:
      "Nodes that are asked for addresses when nobody is connected, or nobody else is left to dial. " +
      "Used only with pex.",
  }),
  pex: field.boolean({
    default: true,
    help:
      "Whether peers beyond persistent_peers are looked for. Who asks this node for addresses " +
      "gets those of its peers either way; private_peer_ids keeps some back.",
  }),
  seed_mode: field.boolean({
    default: false,
    help: "Whether this node only collects and gives out addresses.",
  }),
  max_num_inbound_peers: field.integer({
    default: 40,
    min: 0,
    max: 1_000,
    help: "Most peers that connected to this node; persistent peers do not count.",
  }),
  max_num_outbound_peers: field.integer({
    default: 10,
    min: 0,
    max: 1_000,
    help: "Most peers that this node looks for; persistent peers do not count.",
  }),
  unconditional_peer_ids: field.list({
    default: [],
    style: "comma",
    pattern: NODE_ID,
    allowed: "a list of node ids of 40 hex digits, separated by commas",
    help: "Nodes that may connect, and be connected to, beyond the two limits above.",
  }),
  private_peer_ids: field.list({
    default: [],
    style: "comma",
    pattern: NODE_ID,
    allowed: "a list of node ids of 40 hex digits, separated by commas",
    help:
      "Nodes whose addresses this one tells nobody and looks for nowhere, such as the validator " +
      "behind a sentry.",
  }),
} as const;

/** Values of the section. */
export interface P2pSettings {
  readonly laddr: ListenAddress;
  readonly external_address: string;
  readonly persistent_peers: readonly string[];
  readonly seeds: readonly string[];
  readonly pex: boolean;
  readonly seed_mode: boolean;
  readonly max_num_inbound_peers: number;
  readonly max_num_outbound_peers: number;
  readonly unconditional_peer_ids: readonly string[];
  readonly private_peer_ids: readonly string[];
}
