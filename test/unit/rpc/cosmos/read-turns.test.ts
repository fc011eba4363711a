/**
 * Transactions of full blocks, many at once or with a proof, are read in slices, and no more of a block
 * than is asked for: one request of one client does not keep the thread from deciding blocks.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { AbiCoder, Wallet } from "ethers";
import { transactionEventSteps } from "../../../../chain/abci-event.js";
import {
  encodeSdkTransaction,
  sdkTransactionHash,
} from "../../../../chain/consensus/sdk-transaction.js";
import { MessageReader } from "../../../../chain/protobuf/values.js";
import { Arguments } from "../../../../node/rpc/comet/arguments.js";
import { executedAt } from "../../../../node/rpc/comet/chain-reads.js";
import { transactionRoutes } from "../../../../node/rpc/comet/routes/transaction-routes.js";
import { createSdkTransactions } from "../../../../node/rpc/comet/sdk-transactions.js";
import { txQueries } from "../../../../node/rpc/cosmos/modules/tx.js";
import type { QuerySources } from "../../../../node/rpc/cosmos/sources.js";
import { CometTestChain } from "../../../helpers/chains/comet-chain.js";
import { turnsOf } from "../../../helpers/effort/turns.js";
import { ALICE, signLegacy } from "../evm/fixture.js";
import { allAtOnce } from "../../../../chain/steps/steps.js";

const COUNT = 150;
const SIGNAL = new AbortController().signal;
const GET_TXS = "/cosmos.tx.v1beta1.Service/GetTxsEvent";
const GET_BLOCK = "/cosmos.base.tendermint.v1beta1.Service/GetBlockByHeight";

/** Creates nothing; the gas of its code is an odd number. */
const ODD_GAS_CODE = "0x60005f5f";

let chain: CometTestChain;

beforeAll(async () => {
  chain = await CometTestChain.open(ALICE.address);
  const raws: string[] = [];
  for (let nonce = 0; nonce < COUNT; nonce++) {
    const fields = { nonce, gasPrice: 25_000_001n, gasLimit: 100_000n };
    const { address: to } = new Wallet(AbiCoder.defaultAbiCoder().encode(["uint256"], [nonce + 1]));
    const kind = nonce % 2 === 0 ? { to, value: 1n } : { data: ODD_GAS_CODE };
    raws.push(await signLegacy(ALICE, { ...fields, ...kind }));
  }
  await chain.mine(raws);
});

afterAll(() => chain.close());

afterEach(() => void jest.restoreAllMocks());

it("the fees of a block are added up once, for all that are asked for one by one", async () => {
  const { view } = chain.chain;
  const pages = jest.spyOn(view, "pages");
  const burned: string[] = [];
  for (let index = 0; index < COUNT; index++) {
    const events = allAtOnce(
      transactionEventSteps(await executedAt({ view }, { height: 1, index })),
    );
    const split = events.find(({ type }) => type === "fee_burn")?.attributes;
    burned.push(split?.map(({ key, value }) => `${key} ${value}`).join() ?? "");
  }
  expect(pages.mock.calls.length).toBeLessThanOrEqual(1);
  // Of odd fees the first, third ... burn one more than they give.
  const sides = burned.map((text) => {
    const [, up = "0", down = "0"] =
      /burned ([0-9]+)atoken.*treasury ([0-9]+)atoken/.exec(text) ?? [];
    return Number(BigInt(up) - BigInt(down));
  });
  expect(sides).toEqual(
    Array.from({ length: COUNT }, (_, index) => (index % 2 === 0 ? 0 : index % 4 === 1 ? 1 : -1)),
  );
});

describe("others get their turns", () => {
  it("between the transactions of a page that a search has found", async () => {
    const ports = createSdkTransactions(chain.ports);
    const all = Array.from({ length: COUNT }, (_, index) => ({ height: 1, index }));
    const { types } = chain.queries;
    const transactions = { ...ports, search: async () => all };
    const sources = { types, transactions, chain: chain.ports } as unknown as QuerySources;
    const run = txQueries(sources)[GET_TXS];
    const request = new MessageReader({ query: "tx.height=1", limit: BigInt(COUNT) });
    let answer: unknown;
    const turns = await turnsOf(async () => {
      answer = await run?.(request, {
        height: 1,
        signal: SIGNAL,
        client: "",
        tellHeight: () => undefined,
      });
    });
    expect(answer).toMatchObject({ total: BigInt(COUNT) });
    expect(turns).toBeGreaterThan(COUNT / 4);
  });

  it("while the proof of a transaction is worked out", async () => {
    const route = new Map(transactionRoutes(chain.ports, chain.queries, "")).get("tx");
    const { block } = chain.chain.view.block(1) ?? chain.chain.view.genesis();
    const mined = block.transactions[7];
    if (mined === undefined || route === undefined) throw new Error("nothing to ask for");
    const digits = sdkTransactionHash(mined.tx, mined.from).slice(2);
    const hash = Buffer.from(digits, "hex").toString("base64");
    const values = new Arguments({
      form: "json",
      values: new Map(Object.entries({ hash, prove: true })),
    });
    let answer: unknown;
    const turns = await turnsOf(async () => {
      answer = await route.run(values, { signal: SIGNAL, clientAddress: "", client: undefined });
    });
    const proof = { proof: { total: `${COUNT}`, index: "7" } };
    expect(JSON.parse(String(answer))).toMatchObject({ proof });
    expect(turns).toBeGreaterThan(COUNT / 4);
  });
});

it("a block is read without what execution made of it, which a synced node may not have", async () => {
  const { stores } = chain.chain;
  await stores.base.advance({ journalBase: 2 }, []);
  const served = chain.queries.find(GET_BLOCK);
  const context = { height: 1, signal: SIGNAL, client: "" };
  const { answer } = (await served?.run({ height: 1n }, context)) ?? {};
  const { transactions } = chain.chain.view.block(1)?.block ?? { transactions: [] };
  const txs = transactions.map(({ tx, from }) => Buffer.from(encodeSdkTransaction(tx, from)));
  expect(answer).toMatchObject({ block: { data: { txs } } });
  expect(txs).toHaveLength(COUNT);
});
