/**
 * The sections `memory` and `store` of app.toml: how much each cache of the node may take, and how
 * the store lies on disk. Sizes of objects in memory are estimates, from measurements.
 */
import { field, type ValuesOf } from "../../runtime/config/config.js";

const MIB = 1024 * 1024;

function cacheMib(defaultMib: number, help: string) {
  return field.integer({ default: defaultMib, min: 1, max: 65_536, unit: "MiB", help });
}

/** Keys of the section `memory`. */
export const MEMORY_SECTION = {
  "trie-cache": cacheMib(64, "Nodes of the state tries; each block reads those near the roots."),
  "state-cache": cacheMib(32, "Accounts, storage slots and code at the head."),
  "block-cache": cacheMib(32, "The newest blocks, decoded: every client asks for them at once."),
  "rpc-cache": cacheMib(
    48,
    "Answers about committed blocks as JSON: two thirds for the EVM JSON-RPC, the rest for the " +
      "consensus RPC.",
  ),
  "store-cache": cacheMib(16, "Parts of the store's files, uncompressed."),
  "store-write-buffer": cacheMib(
    128,
    "What was written last, before it becomes a file; twice as much while one is being made.",
  ),
} as const;

/** Keys of the section `store`. */
export const STORE_SECTION = {
  "file-size": field.integer({
    default: 64,
    min: 1,
    max: 1_024,
    unit: "MiB",
    help: "Size of the store's files. Larger ones are fewer; files that are there keep theirs.",
  }),
  "open-files": field.integer({
    default: 10_000,
    min: 64,
    max: 50_000,
    help:
      "Files that the store keeps open. At most half of what the system allows the process " +
      "(ulimit -n) is taken.",
  }),
} as const;

type MemoryValues = ValuesOf<{ memory: typeof MEMORY_SECTION }>["memory"];
type StoreValues = ValuesOf<{ store: typeof STORE_SECTION }>["store"];

/** Part of `rpc-cache` that the EVM JSON-RPC has. */
const EVM_SHARE = 2 / 3;

/** The bounds in bytes, for whom they are set. */
export function memoryBytes(memory: MemoryValues) {
  const rpcBytes = memory["rpc-cache"] * MIB;
  return {
    trieBytes: memory["trie-cache"] * MIB,
    stateBytes: memory["state-cache"] * MIB,
    recentBlockBytes: memory["block-cache"] * MIB,
    evmRpcBytes: Math.floor(rpcBytes * EVM_SHARE),
    cometRpcBytes: Math.floor(rpcBytes * (1 - EVM_SHARE)),
  };
}

/** How the store is opened. */
export function databaseSettings(memory: MemoryValues, store: StoreValues) {
  return {
    cacheBytes: memory["store-cache"] * MIB,
    writeBufferBytes: memory["store-write-buffer"] * MIB,
    fileBytes: store["file-size"] * MIB,
    openFiles: store["open-files"],
  };
}
