/** First parts of the names of all JSON-RPC methods that a node has, in the order of their names. */
export const METHOD_NAMESPACES = [
  "causeway",
  "debug",
  "eth",
  "net",
  "rpc",
  "txpool",
  "web3",
] as const;
