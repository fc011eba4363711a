/** What is asked of the consensus RPC has turns and places by client, whichever way it comes. */
import { afterAll, beforeAll, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import { WebSocket } from "ws";
import { type ProtoMessage, MessageReader } from "../../../../chain/protobuf/values.js";
import { SearchLane } from "../../../../node/rpc/comet/search/search-lane.js";
import { txQueries } from "../../../../node/rpc/cosmos/modules/tx.js";
import { QueryRegistry } from "../../../../node/rpc/cosmos/registry.js";
import type { Asker } from "../../../../runtime/turns/resting-lane.js";
import { CometTestChain } from "../../../helpers/chains/comet-chain.js";
import { ALICE } from "../evm/fixture.js";

const PATH = "/cosmos.bank.v1beta1.Query/Params";

let chain: CometTestChain;

beforeAll(async () => {
  chain = await CometTestChain.open(ALICE.address);
  await chain.mine();
});

afterAll(() => chain.close());

it("knows whose a query is that comes as a URL, in a body or over a WebSocket", async () => {
  const bounded = jest.spyOn(QueryRegistry.prototype, "bounded");
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "abci_query",
    params: { path: PATH },
  });
  const socket = new WebSocket(`${chain.url.replace("http", "ws")}/websocket`);
  await once(socket, "open");
  socket.send(body);
  await once(socket, "message");
  socket.terminate();
  const answers = await Promise.all([
    fetch(`${chain.url}/abci_query?path="${PATH}"`),
    fetch(chain.url, { method: "POST", body }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(bounded.mock.calls.map(([, { client }]) => client)).toEqual(Array(3).fill("127.0.0.1"));
});

it.each([
  ["tx_search", "tx.fee='none'"],
  ["block_search", "burn.burner='none'"],
])("knows whose a search is: %s", async (name, query) => {
  const run = jest.spyOn(SearchLane.prototype, "run");
  const url = `${chain.url}/${name}?query=${encodeURIComponent(`"${query}"`)}`;
  expect(await (await fetch(url)).json()).toMatchObject({ result: { total_count: "0" } });
  expect(run.mock.calls.map(([{ client }]) => client)).toEqual(["127.0.0.1"]);
  run.mockRestore();
});

it("hands on whose a search of the SDK's interfaces is, and whose a simulation", async () => {
  const asked: unknown[] = [];
  const note = (_what: unknown, asker: Asker) => {
    asked.push(asker.client);
    throw new Error("noted");
  };
  const transactions = { search: note, simulate: note };
  const queries = txQueries({ types: chain.queries.types, transactions } as never);
  const context = {
    height: 1,
    signal: new AbortController().signal,
    client: "10.0.0.1",
    tellHeight: () => undefined,
  };
  const ask = async (name: string, request: ProtoMessage) =>
    queries[`/cosmos.tx.v1beta1.Service/${name}`]?.(new MessageReader(request), context);
  await expect(ask("GetTxsEvent", { query: "tx.height=1" })).rejects.toThrow("noted");
  await expect(ask("Simulate", { tx_bytes: Uint8Array.of(1) })).rejects.toThrow("noted");
  expect(asked).toEqual(["10.0.0.1", "10.0.0.1"]);
});
