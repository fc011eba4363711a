/** First parts of the names of JSON-RPC methods, as `[json-rpc] api` of app.toml names them. */
import { METHOD_NAMESPACES } from "../../chain/evm/method-namespaces.js";
import { field } from "../../runtime/config/config.js";

/** Of methods that other clients and EVM chains have, and this node has not: a file may name them. */
const FOREIGN_NAMESPACES: readonly string[] = [
  "admin",
  "clique",
  "engine",
  "erigon",
  "les",
  "miner",
  "ots",
  "parity",
  "personal",
  "trace",
];

const TAKEN: ReadonlySet<string> = new Set([...METHOD_NAMESPACES, ...FOREIGN_NAMESPACES]);

/** The key `api`: names that nobody knows are refused, since they would leave out what was meant. */
export const NAMESPACES_FIELD = field.list({
  default: [],
  style: "comma",
  pattern: { test: (name) => TAKEN.has(name) },
  allowed:
    "names of methods' first parts (eth, net, web3, txpool, debug) with commas between; of other clients' " +
    `${FOREIGN_NAMESPACES.join(", ")} are taken, without effect`,
  help:
    "Which methods are served, by what stands before the _ of their names: eth, net, web3, txpool, " +
    "debug. Empty serves all. causeway_* and rpc_* always are, for the kit's own services.",
});

/** Names of the list that have no effect here, as a warning says them. */
export function foreignNamespaces(names: readonly string[]): readonly string[] {
  return FOREIGN_NAMESPACES.filter((name) => names.includes(name));
}
