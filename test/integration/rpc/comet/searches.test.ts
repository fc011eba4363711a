/** Searches of the consensus RPC: what is there, whole or an error. */
import { describe, expect, it } from "@jest/globals";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import { blockEvents } from "../../../../chain/abci-event.js";
import { parseHexBytes } from "../../../../chain/hex.js";
import { decodeTransaction } from "../../../../chain/transaction.js";
import {
  searchBlocks,
  searchTransactions,
  transactionValueSteps,
} from "../../../../node/rpc/comet/search/event-search.js";
import { parseQuery } from "../../../../node/rpc/comet/search/query.js";
import { eventValues, matchesQuery } from "../../../../node/rpc/comet/search/query-match.js";
import { executedTransaction } from "../../../helpers/executed-transaction.js";
import { allAtOnce } from "../../../../chain/steps/steps.js";
import { cafe, faucet, send, serverForTests, shop } from "./asked-server.js";

const server = serverForTests();
const { get, call } = server;

describe("searches", () => {
  const QUERIES = [
    `transfer.recipient='${toBech32(shop)}'`,
    `transfer.recipient='${toBech32(cafe)}' AND transfer.amount='7atoken'`,
    `message.sender='${faucet.address}'`,
    "transfer.amount='5atoken'",
    "transfer.amount=9",
    "transfer.amount>6 AND tx.height>1",
    "tx.fee EXISTS AND tx.height<=3",
    "tx_log EXISTS",
    "message.module='bank'",
    "message.action CONTAINS 'EthereumTx' & tx.height>=4",
    "ethereum_tx.ethereumTxFailed EXISTS",
    "tm.event='Tx'",
    "tx.height=3",
    "tx.height>3 AND tx.height<3",
    "fee_burn EXISTS",
    "burn.amount EXISTS",
    "nothing.at.all='x'",
    "transfer.sender='addr1nonsense'",
    `tx.hash='${"AB".repeat(32)}'`,
    "transfer.amount='0atoken'",
    "transfer.amount='05atoken'",
  ];

  /** What a search without any index finds. */
  function byHand(text: string): string[] {
    const query = parseQuery(text);
    const found: string[] = [];
    for (let height = 1; height <= server.chain.consensus.height(); height++) {
      const committed = server.chain.chain.view.block(height);
      for (const index of committed?.block.transactions.keys() ?? []) {
        if (committed === undefined) continue;
        const executed = executedTransaction(committed, index);
        if (matchesQuery(query, allAtOnce(transactionValueSteps(height, executed)))) {
          found.push(`${height}/${index}`);
        }
      }
    }
    return found;
  }

  it("find through the index exactly what is there", async () => {
    let hits = 0;
    for (const text of QUERIES) {
      const { result } = await call("tx_search", { query: text, per_page: "100" });
      const { txs } = result as { txs: { height: string; index: number }[] };
      const found = txs.map(({ height, index }) => `${height}/${index}`);
      expect([text, found]).toEqual([text, byHand(text)]);
      hits += found.length;
    }
    expect(hits).toBeGreaterThan(40);
  });

  it("hold all conditions on one type of event against one event", async () => {
    const found = async (text: string) => {
      const { result } = await call("tx_search", { query: text });
      return Number((result as { total_count: string }).total_count);
    };
    const to = `transfer.recipient='${toBech32(cafe)}'`;
    const from = `message.sender='${toBech32(parseAddress(faucet.address))}'`;
    const fee = `coin_spent.spender='${toBech32(parseAddress(faucet.address))}' AND coin_spent.amount`;
    expect(await found(`${to} AND transfer.amount='7atoken' AND tm.event='Tx'`)).toBeGreaterThan(0);
    // The fee of the same transaction goes to another.
    expect(await found(`${fee}='525000000000atoken' AND ${to}`)).toBeGreaterThan(0);
    expect(await found(`transfer.amount='525000000000atoken' AND ${to}`)).toBe(0);
    expect(await found(`${fee}='5atoken' AND coin_spent.amount>5`)).toBe(0);
    // Each of these is one event of the SDK's.
    expect(await found(`message.action CONTAINS 'MsgEthereumTx' AND ${from}`)).toBeGreaterThan(0);
    for (const module of ["evm", "bank"]) {
      expect(await found(`message.module='${module}' AND ${from}`)).toBeGreaterThan(0);
    }
  });

  it("find blocks by what happened at their ends", async () => {
    for (const text of [
      "fee_burn EXISTS",
      "mint EXISTS AND block.height>2 AND block.height<=4",
      "block.height=5",
      "coinbase.amount>0",
      "tm.event='NewBlock'",
      "transfer.amount='5atoken'",
    ]) {
      const query = parseQuery(text);
      const heights = Array.from(
        { length: server.chain.consensus.height() },
        (_, index) => index + 1,
      );
      const expected = heights.filter((height) => {
        const committed = server.chain.chain.view.block(height);
        if (committed === undefined) return false;
        const added = { "block.height": `${height}`, "tm.event": "NewBlock" };
        return matchesQuery(query, eventValues(blockEvents(committed.journal), added));
      });
      const { result } = await call("block_search", { query: text, order_by: "asc" });
      const { blocks } = result as { blocks: { block: { header: { height: string } } }[] };
      const found = blocks.map(({ block }) => Number(block.header.height));
      expect([text, found]).toEqual([text, expected]);
    }
  });

  it("find one transaction by either of its hashes", async () => {
    const raw = await send(3, { value: 9n });
    const { hash } = decodeTransaction(parseHexBytes(raw));
    const byEvm = await get(`tx_search?query="ethereum_tx.ethereumTxHash='${hash}'"&prove=true`);
    expect(byEvm.result).toMatchObject({ total_count: "1", txs: [{ height: "3", index: 1 }] });
    const { txs } = byEvm.result as { txs: { hash: string; proof: object }[] };
    const bySdk = await get(`tx?hash=0x${txs[0]?.hash ?? ""}&prove=true`);
    expect(bySdk.result).toEqual(txs[0]);
    // In either case of its digits, as CometBFT, which reads them as bytes.
    for (const digits of [txs[0]?.hash ?? "", txs[0]?.hash.toLowerCase() ?? ""]) {
      const found = await get(`tx_search?query="tx.hash='${digits}'"&prove=true`);
      expect([digits, found.result]).toEqual([digits, { txs, total_count: "1" }]);
    }
    const wrong = await get(
      `tx_search?query="tx.hash='${txs[0]?.hash ?? ""}'%20AND%20tx.height=4"`,
    );
    expect(wrong.result).toEqual({ txs: [], total_count: "0" });
  });

  it("put a query together again that a raw & split", async () => {
    const path = `tx_search?query="transfer.recipient='${toBech32(shop)}'&transfer.amount=9"&page=1`;
    expect((await get(path)).result).toMatchObject({ total_count: "1" });
  });

  it("are complete or an error", async () => {
    const { signal } = new AbortController();
    const all = parseQuery("tm.event='Tx'");
    const limits = { results: 100, blocks: 100, transactions: 100 };
    expect(await searchTransactions(server.chain.ports, all, signal, limits)).toHaveLength(8);
    for (const [limit, text] of [
      [{ results: 7 }, "more than 7 results"],
      [{ blocks: 5 }, "more than 5 blocks"],
      [{ transactions: 7 }, "or 7 transactions: narrow it by tx.height"],
    ] as const) {
      const search = searchTransactions(server.chain.ports, all, signal, { ...limits, ...limit });
      await expect(search).rejects.toThrow(text);
    }
    const every = parseQuery("block.height>0");
    await expect(
      searchBlocks(server.chain.ports, every, signal, { ...limits, blocks: 6 }),
    ).rejects.toThrow("narrow it by block.height");
  });
});
