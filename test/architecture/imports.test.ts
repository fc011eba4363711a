/** Holds the sources against docs/architecture.md: who may import whom, no cycles, one owner per library. */
import { describe, expect, it } from "@jest/globals";
import { productSources, readSource, type SourceFile } from "../helpers/sources/source-tree.js";

const sources = productSources();

/** Folder -> folders it may import beside itself. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  chain: [],
  runtime: ["chain"],
  "rpc-client": ["chain", "runtime"],
  ledger: ["chain", "runtime"],
  node: ["chain", "runtime", "openapi"],
  sidecar: ["chain", "runtime", "rpc-client", "openapi"],
  web: ["chain", "runtime"],
  explorer: ["chain", "runtime", "rpc-client", "openapi", "web"],
  console: ["chain", "runtime", "rpc-client", "openapi", "web"],
  "deposit-watcher": ["chain", "runtime", "rpc-client", "ledger", "openapi"],
  "withdrawal-worker": ["chain", "runtime", "rpc-client", "ledger", "openapi"],
  indexer: ["chain", "runtime", "rpc-client", "openapi"],
  cli: ["chain", "runtime", "rpc-client", "ledger"],
};

/**
 * The CLI also reads every process' settings schema, the node's genesis, the block 0 that it makes, and keys;
 * it starts a node, and makes the users of the console.
 */
const CLI_ALSO = [
  /^(sidecar|explorer|console|indexer|deposit-watcher|withdrawal-worker)\/config\.ts$/,
  /^console\/users\/(roles|sealed-key|user-files)\.ts$/,
  /^indexer\/maintenance\/commands\.ts$/,
  /^node\/settings\//,
  /^node\/blocks\/genesis-block\.ts$/,
  /^node\/compose\/process\.ts$/,
  /^node\/statesync\/light\/light-json\.ts$/,
  /^node\/consensus\/signing\/validator-key\.ts$/,
];

/** Layers of folders with several rooms: a file imports from its own or an earlier one. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  chain: [
    "steps",
    "encoding",
    "protobuf",
    "derivation",
    "evm",
    "signing",
    "staking",
    "consensus",
    "cosmos",
    "records",
  ],
  node: [
    "settings",
    "view",
    "store",
    "state",
    "modules",
    "execution",
    "blocks",
    "mempool",
    "consensus",
    "p2p",
    "rpc",
    "statesync",
    "compose",
  ],
  ledger: [
    "migrations",
    "guard",
    "access",
    "tamper",
    "webhooks",
    "kill-switch",
    "journal",
    "watch",
    "deposits",
    "assets",
    "wallets",
    "requests",
    "policy",
    "withdrawals",
    "treasury",
    "blocks",
    "recovery",
    "books",
    "decisions",
  ],
  sidecar: ["rosetta", "index", "data-api", "construction-api"],
  indexer: ["store", "ingest", "maintenance", "api"],
};

/** What the servers below node/rpc may see of the node beside each other. */
const RPC_MAY_SEE = [
  /^node\/rpc\//,
  /^node\/view\//,
  /^node\/modules\/reads\//,
  /^node\/mempool\/pool-port\.ts$/,
  /^node\/execution\/calls\/call-port\.ts$/,
  /^node\/consensus\/consensus-ports\.ts$/,
  /^node\/p2p\/network-port\.ts$/,
];

/** Library -> who may import it. */
const LIBRARY_OWNERS: readonly (readonly [RegExp, readonly RegExp[]])[] = [
  [/^@noble\/curves/, [/^chain\/(crypto|evm\/kzg)\.ts$/]],
  [/^@noble\/hashes/, [/^chain\/derivation\/child-key\.ts$/]],
  [/^(secp256k1|@bitauth\/libauth)$/, [/^chain\/crypto\.ts$/]],
  [/^hash-wasm$/, [/^chain\/hashes\.ts$/]],
  [/^@ethereumjs\/evm$/, [/^node\/execution\//]],
  [/^@ethereumjs\/tx$/, [/^chain\/signing\/legacy-transaction\.ts$/, /^cli\/audit\//]],
  [/^@ethereumjs\/(vm|block|mpt|statemanager)$/, [/^cli\/audit\//]],
  [
    /^@ethereumjs\/(common|util)$/,
    [/^node\/execution\//, /^chain\/signing\/legacy-transaction\.ts$/, /^cli\/audit\//],
  ],
  // Two that begin it break each other.
  [/^rustbn-wasm$/, [/^node\/execution\/precompiles\/bn254\.ts$/]],
  [/^level$/, [/^runtime\/files\/level-store\.ts$/]],
  [/^(@?libp2p|@multiformats)(\/|$)/, [/^node\/p2p\//]],
  [/^@grpc\//, [/^node\/rpc\/grpc\//]],
  [/^(typeorm|pg)$/, [/^runtime\/sql\//, /^ledger\//]],
  [/^pg-copy-streams$/, [/^runtime\/sql\//]],
  [/^(bullmq|ioredis)$/, [/^withdrawal-worker\//]],
  [/^preact(-render-to-string)?$/, [/^web\/html\/element\.ts$/]],
  [/^(express(-openapi-validator)?|ajv(-draft-04)?|yaml)$/, [/^runtime\/http\//]],
];

const folderOf = (file: string) => file.split("/")[0] ?? "";

function mayImport(from: string, to: string): boolean {
  const [source, target] = [folderOf(from), folderOf(to)];
  if (source === target || ALLOWED[source]?.includes(target)) return true;
  return source === "cli" && CLI_ALSO.some((pattern) => pattern.test(to));
}

/** Place of a file's room in the layers of its folder; -1 for files outside every room. */
function layerOf(file: string): number {
  const [folder, room] = file.split("/");
  return LAYERS[folder ?? ""]?.indexOf(room ?? "") ?? -1;
}

/** Strongly connected files; each is a cycle. */
function cycles(files: readonly SourceFile[]): string[][] {
  const graph = new Map(files.map(({ path, imports }) => [path, imports]));
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (file: string): void => {
    index.set(file, index.size);
    low.set(file, index.get(file) ?? 0);
    stack.push(file);
    for (const next of graph.get(file) ?? []) {
      if (!graph.has(next)) continue;
      if (!index.has(next)) visit(next);
      if (stack.includes(next)) {
        low.set(file, Math.min(low.get(file) ?? 0, low.get(next) ?? 0));
      }
    }
    if (low.get(file) !== index.get(file)) return;
    const cycle = stack.splice(stack.indexOf(file));
    if (cycle.length > 1) found.push(cycle);
  };
  for (const { path } of files) if (!index.has(path)) visit(path);
  return found;
}

describe("imports", () => {
  it("reads a tree worth reading", () => {
    expect(sources.length).toBeGreaterThan(50);
    expect(sources.flatMap(({ imports }) => imports).length).toBeGreaterThan(200);
  });

  it("go only the way the architecture allows", () => {
    const wrong = sources.flatMap(({ path, imports }) =>
      imports.filter((to) => !mayImport(path, to)).map((to) => `${path} -> ${to}`),
    );
    expect(wrong).toEqual([]);
  });

  it("inside a folder with layers go only to the left", () => {
    const wrong = sources
      .filter(({ path }) => layerOf(path) >= 0)
      .flatMap(({ path, imports }) =>
        imports
          .filter((to) => folderOf(to) === folderOf(path) && layerOf(to) > layerOf(path))
          .map((to) => `${path} -> ${to}`),
      );
    expect(wrong).toEqual([]);
  });

  it("name rooms that exist, and leave no room of the node out", () => {
    const rooms = (folder: string) =>
      new Set(
        sources
          .filter(({ path }) => path.startsWith(`${folder}/`) && path.split("/").length > 2)
          .map(({ path }) => path.split("/")[1]),
      );
    for (const [folder, layers] of Object.entries(LAYERS)) {
      expect(layers.filter((layer) => !rooms(folder).has(layer))).toEqual([]);
      expect([...rooms(folder)].filter((room) => !layers.includes(room ?? ""))).toEqual([]);
    }
  });

  it("name files that exist, in every exception and for every owner of a library", () => {
    const patterns = [
      ...CLI_ALSO,
      ...RPC_MAY_SEE,
      ...LIBRARY_OWNERS.flatMap(([, owners]) => owners),
    ];
    const idle = patterns.filter((pattern) => !sources.some(({ path }) => pattern.test(path)));
    expect(idle).toEqual([]);
    const libraries = new Set(sources.flatMap(({ packages }) => packages));
    const unused = LIBRARY_OWNERS.filter(
      ([library]) => ![...libraries].some((name) => library.test(name)),
    );
    expect(unused).toEqual([]);
  });

  it("give the node's servers nothing but its ports", () => {
    const wrong = sources
      .filter(({ path }) => path.startsWith("node/rpc/"))
      .flatMap(({ path, imports }) =>
        imports
          .filter((to) => folderOf(to) === "node" && !RPC_MAY_SEE.some((ok) => ok.test(to)))
          .map((to) => `${path} -> ${to}`),
      );
    expect(wrong).toEqual([]);
  });

  it("form no cycle, type imports included", () => {
    expect(cycles(sources)).toEqual([]);
  });

  it("find a cycle where there is one", () => {
    const file = (path: string, imports: string[]) => ({ path, text: "", imports, packages: [] });
    expect(cycles([file("a", ["b"]), file("b", ["c"]), file("c", ["a"])])).toHaveLength(1);
  });

  it("leave each library to its owner", () => {
    const wrong = sources.flatMap(({ path, packages }) =>
      packages
        .filter((name) =>
          LIBRARY_OWNERS.some(
            ([library, owners]) => library.test(name) && !owners.some((owner) => owner.test(path)),
          ),
        )
        .map((name) => `${path} -> ${name}`),
    );
    expect(wrong).toEqual([]);
  });

  it("keep the offline sidecar away from every client", () => {
    const seen = new Set<string>();
    const pending = ["sidecar/main-offline.ts"];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (seen.has(next) || !next.endsWith(".ts")) continue;
      seen.add(next);
      pending.push(...readSource(next).imports);
    }
    expect(seen.size).toBeGreaterThan(5);
    expect([...seen].filter((file) => file.startsWith("rpc-client/"))).toEqual([]);
  });
});
