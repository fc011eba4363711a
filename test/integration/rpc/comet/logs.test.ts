/**
 * Transactions of very many logs in the consensus RPC: whoever asks for one does not hold up a node that
 * makes blocks in the same thread.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { sha256 } from "../../../../chain/hashes.js";
import { allAtOnce } from "../../../../chain/steps/steps.js";
import type { Address } from "../../../../chain/address.js";
import { Arguments } from "../../../../node/rpc/comet/arguments.js";
import { bytesOf, executedAt } from "../../../../node/rpc/comet/chain-reads.js";
import { blockPublications } from "../../../../node/rpc/comet/json/event-data.js";
import type { JsonPieces } from "../../../../node/rpc/comet/json/json-pieces.js";
import {
  resultTextSteps,
  transactionResultSteps,
} from "../../../../node/rpc/comet/json/results.js";
import { MessageReader } from "../../../../chain/protobuf/values.js";
import { createSdkTransactions } from "../../../../node/rpc/comet/sdk-transactions.js";
import { txQueries } from "../../../../node/rpc/cosmos/modules/tx.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";
import { transactionRoutes } from "../../../../node/rpc/comet/routes/transaction-routes.js";
import { OWN_WORK } from "../../../../runtime/process/work-owner.js";
import { ResultTexts } from "../../../../node/rpc/comet/json/result-texts.js";
import type { CometChain } from "../../../../node/rpc/comet/ports.js";
import { searchTransactions } from "../../../../node/rpc/comet/search/event-search.js";
import { parseQuery } from "../../../../node/rpc/comet/search/query.js";
import { EventStore } from "../../../../node/store/blocks/event-store.js";
import { ExecutionChain, testGenesis } from "../../../helpers/chains/execution-chain.js";
import { turnsOf } from "../../../helpers/effort/turns.js";

const GET_TXS = "/cosmos.tx.v1beta1.Service/GetTxsEvent";
const LOGS = 24_000;
const HEIGHT = 2;
/** So many of them are larger together than one answer may be. */
const CALLS = 22;
const CALLS_OF_BLOCK = 3;
/** Each look at the time is a millisecond later, and tens of logs are read, some are written, at once. */
const TURNS_OF_READING = 10;
const TURNS_OF_WRITING = 100;

const wallet = new Wallet(`0x${"33".repeat(32)}`);
/** PUSH2 LOGS; then LOG0 of nothing, as often. */
const LOOP = `61${LOGS.toString(16).padStart(4, "0")}5b5f5fa0600190038060035700`;

let chain: ExecutionChain;

beforeAll(async () => {
  const genesis = testGenesis(wallet.address);
  let made = await ExecutionChain.open(genesis);
  let nonce = 0;
  const sign = (fields: object) =>
    wallet.signTransaction({
      type: 0,
      chainId: 6940,
      gasPrice: 25_000_000n,
      gasLimit: 10_000_000n,
      nonce: nonce++,
      ...fields,
    });
  const sizeBytes = LOOP.length / 2;
  const push = (0x5f + sizeBytes).toString(16);
  const [size, start] = [sizeBytes, 32 - sizeBytes].map((n) => n.toString(16).padStart(2, "0"));
  const creation = await made.mine([
    await sign({ data: `0x${push}${LOOP}5f5260${size}60${start}f3` }),
  ]);
  const to: Address | undefined = creation.committed.receipts[0]?.contractAddress;
  for (let calls = 0; calls < CALLS; calls += CALLS_OF_BLOCK) {
    const raws = [];
    for (let call = 0; call < CALLS_OF_BLOCK; call++) raws.push(await sign({ to }));
    const { committed } = await made.mine(raws);
    expect(new Set(committed.receipts.map(({ logs }) => logs.length))).toEqual(new Set([LOGS]));
  }
  // What is decoded in memory is at hand.
  const { folder } = made;
  await made.close({ keep: true });
  made = await ExecutionChain.open(genesis, { folder });
  chain = made;
});

afterAll(() => chain.close());

/** What a route answers over HTTP. */
async function ask(name: string, values: Readonly<Record<string, unknown>>): Promise<JsonPieces> {
  const route = new Map(transactionRoutes(comet(), {} as never, "")).get(name);
  const source = { form: "json", values: new Map(Object.entries(values)) } as const;
  const { signal } = new AbortController();
  return (await route?.run(new Arguments(source), {
    signal,
    clientAddress: "",
    client: undefined,
  })) as JsonPieces;
}

function comet(): CometChain {
  const outline = () => ({ evidence: [] });
  const height = () => chain.view.head().height;
  const consensus = { height, outline, validators: () => undefined };
  return { view: chain.view, consensus, events: new EventStore(chain.stores.database) } as never;
}

describe("a transaction of thousands of logs", () => {
  it("gives others their turns while it is read", async () => {
    const turns = await turnsOf(() => executedAt(comet(), { height: HEIGHT, index: 0 }));
    expect(turns).toBeGreaterThan(TURNS_OF_READING);
  });

  it("gives others their turns while the results of its block are made", async () => {
    const turns = await turnsOf(() => new ResultTexts(chain.view).of(HEIGHT, OWN_WORK));
    expect(turns).toBeGreaterThan(TURNS_OF_WRITING);
  });

  it("is written in pieces as it would be at a stretch", async () => {
    const executed = await executedAt(comet(), { height: HEIGHT, index: 1 });
    const whole = JSON.stringify(allAtOnce(transactionResultSteps(executed)));
    expect(allAtOnce(resultTextSteps(executed)).join("") === whole).toBe(true);
    const hash = Buffer.from(sha256(bytesOf(executed))).toString("base64");
    const answer = await ask("tx", { hash });
    expect(answer.toString()).toContain(`"index":1,"tx_result":${whole.slice(0, 100)}`);
    expect(JSON.parse(answer.toString())).toMatchObject({ height: `${HEIGHT}`, index: 1 });
    expect(Math.max(...answer.pieces.map(({ length }) => length))).toBeLessThan(20_000);
  });

  it("is told to subscribers in such pieces, too", async () => {
    const committed = await chain.view.load(HEIGHT);
    if (committed === undefined) throw new Error("no block");
    const events = [...blockPublications(comet(), new ResultTexts(chain.view), committed)];
    const told = events.filter(({ kind }) => kind === "Tx");
    expect(told).toHaveLength(CALLS_OF_BLOCK);
    const data = await told[1]?.data();
    const executed = await executedAt(comet(), { height: HEIGHT, index: 1 });
    const tx = Buffer.from(bytesOf(executed)).toString("base64");
    const result = allAtOnce(transactionResultSteps(executed));
    const value = { TxResult: { height: `${HEIGHT}`, index: 1, tx, result } };
    const whole = JSON.stringify({ type: "tendermint/event/Tx", value });
    expect(data?.toString() === whole).toBe(true);
    const lengths = data?.pieces.map(({ length }) => length) ?? [];
    expect(lengths.length).toBeGreaterThan(100);
    expect(Math.max(...lengths)).toBeLessThan(20_000);
  });

  it("stands on a page with as many others as one answer may hold", async () => {
    const query = "tx.height > 1";
    const few = await ask("tx_search", { query, per_page: "2" });
    expect(JSON.parse(few.toString())).toMatchObject({
      txs: [
        { height: "2", index: 0 },
        { height: "2", index: 1 },
      ],
      total_count: `${Math.ceil(CALLS / CALLS_OF_BLOCK) * CALLS_OF_BLOCK}`,
    });
    await expect(ask("tx_search", { query, per_page: "100" })).rejects.toMatchObject({
      message: expect.stringContaining("use a smaller per_page"),
    });
  });

  it("counts for a page of REST and gRPC with all that is told of it", async () => {
    const run = txQueries({
      types: loadDescriptors(),
      transactions: createSdkTransactions(comet()),
      chain: { view: chain.view },
    } as never)[GET_TXS];
    const get = (limit: bigint) =>
      run?.(new MessageReader({ query: "tx.height > 1", limit }), {
        height: 1,
        signal: new AbortController().signal,
        client: "",
        tellHeight: () => undefined,
      });
    await expect(get(2n)).resolves.toMatchObject({ total: expect.anything() });
    await expect(get(100n)).rejects.toMatchObject({
      message: expect.stringContaining("use a smaller limit"),
    });
  });

  it("gives others their turns while it is held against a query", async () => {
    const query = parseQuery(`tx.height = ${HEIGHT} AND tx_log.txLog CONTAINS 'nothing'`);
    const { signal } = new AbortController();
    const turns = await turnsOf(() => searchTransactions(comet(), query, signal));
    expect(turns).toBeGreaterThan(TURNS_OF_WRITING);
  });
});
