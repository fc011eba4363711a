/** What is asked of the consensus RPC has turns and places by client, whichever way it comes. */
import { afterAll, beforeAll, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import { WebSocket } from "ws";
import { QueryRegistry } from "../../../../node/rpc/cosmos/registry.js";
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
