/** A transaction that a client of the SDK's interfaces asks for is read in that client's turns. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, jest } from "@jest/globals";
import { MessageReader, type ProtoMessage } from "../../../../chain/protobuf/values.js";
import { executedAt } from "../../../../node/rpc/comet/chain-reads.js";
import { createSdkTransactions } from "../../../../node/rpc/comet/sdk-transactions.js";
import { txQueries } from "../../../../node/rpc/cosmos/modules/tx.js";
import type { QuerySources } from "../../../../node/rpc/cosmos/sources.js";
import { endlessSignal, setOwner } from "../../../../runtime/process/work-owner.js";
import { CometTestChain } from "../../../helpers/chains/comet-chain.js";
import { EndlessWork } from "../../../helpers/effort/endless-work.js";
import { ALICE, signLegacy } from "../evm/fixture.js";

const LOGS = 64;
/** Creates nothing and writes so many logs: some steps for who reads them. */
const LOGGING_CODE = `0x61${LOGS.toString(16).padStart(4, "0")}5b5f5fa06001900380600357`;
const OTHERS = 300;
const OWNER = { client: "10.0.0.2" };
const GET_TX = "/cosmos.tx.v1beta1.Service/GetTx";
const GET_TXS = "/cosmos.tx.v1beta1.Service/GetTxsEvent";

let chain: CometTestChain;
let endless: EndlessWork;
let hash: string;

beforeAll(async () => {
  chain = await CometTestChain.open(ALICE.address);
  const fields = { gasPrice: 25_000_001n, gasLimit: 300_001n, data: LOGGING_CODE };
  const raws = [0, 1, 2].map((nonce) => signLegacy(ALICE, { ...fields, nonce }));
  await chain.mine(await Promise.all(raws));
  hash = chain.chain.view.block(1)?.block.transactions[1]?.tx.hash ?? "";
});

afterAll(() => chain.close());

beforeEach(async () => {
  // Each look at the time takes a millisecond: every third step waits.
  let nowMs = performance.now();
  jest.spyOn(performance, "now").mockImplementation(() => (nowMs += 1));
  endless = new EndlessWork();
  endless.start(OTHERS, { client: "" });
  await endless.begun();
});

afterEach(async () => {
  await endless.end();
  jest.restoreAllMocks();
});

function runs() {
  const place = { height: 1, index: 1 };
  const ports = createSdkTransactions(chain.ports);
  const transactions = { ...ports, search: async () => [place] };
  const { types } = chain.queries;
  const sources = { types, transactions, chain: chain.ports } as unknown as QuerySources;
  return (method: string, fields: ProtoMessage, signal: AbortSignal) =>
    txQueries(sources)[method]?.(new MessageReader(fields), {
      height: 1,
      signal,
      client: OWNER.client,
      tellHeight: () => undefined,
    });
}

it.each([
  ["by its hash", GET_TX, () => ({ hash })],
  ["of a search", GET_TXS, () => ({ query: "tx.height=1", limit: 1n })],
])("one %s does not wait behind those of whom nothing is known", async (_, method, fields) => {
  const run = runs();
  const turns = await endless.during(() => run(method, fields(), endlessSignal(OWNER)));
  // In line with all others it would have one turn in so many.
  expect(turns).toBeLessThan(OTHERS);
});

it("nor do the fees of its block, which are added up for who asks first", async () => {
  const view = Object.create(chain.chain.view) as typeof chain.chain.view;
  const at = { height: 1, index: 1 };
  const turns = await endless.during(() => executedAt({ view }, at, endlessSignal(OWNER)));
  expect(turns).toBeLessThan(OTHERS);
});

it("what nobody waits for any more is not read to its end", async () => {
  const going = new AbortController();
  setOwner(going.signal, OWNER);
  const answer = runs()(GET_TX, { hash }, going.signal);
  going.abort(new Error("the client has gone"));
  await expect(answer).rejects.toThrow("the client has gone");
});
