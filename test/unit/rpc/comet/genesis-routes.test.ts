/** The genesis is written as JSON once, and not at each request: it may have megabytes. */
import { describe, expect, it } from "@jest/globals";
import type { ConsensusParams } from "../../../../chain/consensus/consensus-params.js";
import type { Hash32 } from "../../../../chain/hex.js";
import { urlArguments } from "../../../../node/rpc/comet/arguments.js";
import { JsonPieces } from "../../../../node/rpc/comet/json/json-pieces.js";
import type { CometChain, CometGenesis } from "../../../../node/rpc/comet/ports.js";
import { nodeRoutes } from "../../../../node/rpc/comet/routes/node-routes.js";

/** Bytes of a chunk as CometBFT cuts them. */
const CHUNK_BYTES = 16 * 1024 * 1024;

const PARAMS: ConsensusParams = {
  blockMaxBytes: 1_000_000,
  blockMaxGas: -1n,
  evidenceMaxAgeBlocks: 1,
  evidenceMaxAgeNs: 1n,
  evidenceMaxBytes: 1,
};

function genesisOf(appState: object): CometGenesis {
  return {
    timeMs: 1_700_000_000_000,
    chainId: "chain_6940-1",
    validators: [],
    appHash: `0x${"ab".repeat(32)}` as Hash32,
    appVersion: 1,
    appState: JSON.stringify(appState),
  };
}

function routesFor(appState: object) {
  const chain: unknown = { genesis: genesisOf(appState), consensus: { params: () => PARAMS } };
  const routes = new Map(nodeRoutes(chain as CometChain));
  const { signal } = new AbortController();
  return (name: string, query = ""): unknown => {
    const route = routes.get(name);
    if (route === undefined) throw new Error(`no route ${name}`);
    const context = { signal, clientAddress: "", client: undefined };
    return route.run(urlArguments(query, route.parameters), context);
  };
}

/** The bytes that two answers have in common, which therefore nobody made a second time. */
function sharedBytes(one: unknown, other: unknown): number {
  if (!(one instanceof JsonPieces && other instanceof JsonPieces)) return 0;
  const buffers = new Set(one.pieces.filter((piece) => Buffer.isBuffer(piece)));
  const shared = other.pieces.filter((piece) => Buffer.isBuffer(piece) && buffers.has(piece));
  return shared.reduce((sum, { length }) => sum + length, 0);
}

describe("the genesis", () => {
  it("is the same bytes for everybody who asks, whole or in chunks", () => {
    const ask = routesFor({ note: 'é "quoted" \u2028', list: "x".repeat(100_000) });
    const [whole, again] = [ask("genesis"), ask("genesis")];
    expect(sharedBytes(whole, again)).toBeGreaterThan(100_000);
    const [chunk, same] = [ask("genesis_chunked", "chunk=0"), ask("genesis_chunked")];
    expect(sharedBytes(chunk, same)).toBeGreaterThan(100_000);
    const { genesis } = JSON.parse(String(whole));
    expect(genesis).toMatchObject({
      chain_id: "chain_6940-1",
      initial_height: "1",
      app_state: { note: 'é "quoted" \u2028' },
    });
    const { data, ...place } = JSON.parse(String(chunk));
    expect(place).toEqual({ chunk: "0", total: "1" });
    expect(JSON.parse(Buffer.from(data, "base64").toString())).toEqual(genesis);
  });

  it("is refused whole where it has more than a chunk", () => {
    const ask = routesFor({ list: "x".repeat(CHUNK_BYTES) });
    expect(() => ask("genesis")).toThrow("please use the genesis_chunked API instead");
    const chunks = [0, 1].map((index) =>
      JSON.parse(String(ask("genesis_chunked", `chunk=${index}`))),
    );
    expect(chunks.map(({ chunk, total }) => [chunk, total])).toEqual([
      ["0", "2"],
      ["1", "2"],
    ]);
    const bytes = Buffer.concat(chunks.map(({ data }) => Buffer.from(data, "base64")));
    expect(JSON.parse(bytes.toString()).app_state.list).toHaveLength(CHUNK_BYTES);
    expect(() => ask("genesis_chunked", "chunk=2")).toThrow("there are 1 chunks, 2 is invalid");
  });
});
