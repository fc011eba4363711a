/**
 * Every read of the indexer, of the past too; tokens of OpenZeppelin's with ids, transactions that
 * CosmJS signed, another chain's blocks, and what the explorer reads out of all that.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Contract, getCreateAddress, Interface, JsonRpcProvider, Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { IndexerSource } from "../../../explorer/sources/indexer-source.js";
import { rebuildIndex } from "../../../indexer/maintenance/commands.js";
import { writeBatch } from "../../../indexer/ingest/batch-write.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { openSqlSession } from "../../../runtime/sql/sql-session.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { call, IndexerStage } from "../../helpers/indexer/indexer.js";
import { freePort } from "../../helpers/ports.js";
import { compileSolidity } from "../../helpers/contracts/solidity.js";
import { until } from "../../helpers/until.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const cosmonaut = Wallet.fromPhrase(MNEMONIC);
const bob = new Wallet(`0x${"22".repeat(32)}`);
const { signal } = new AbortController();

const SOURCE = `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import "@openzeppelin/contracts/token/ERC1155/ERC1155.sol";
contract Coin is ERC20 { constructor() ERC20("Plain coin", "PLAIN") { _mint(msg.sender, 1000); } }
contract Rich is ERC20 { constructor() ERC20("Rich coin", "RICH") { _mint(msg.sender, 10 ** 30); } }
contract Cards is ERC721 { constructor() ERC721("Cards", "CARD") { for (uint256 i = 1; i < 4; i++) _mint(msg.sender, i); } }
contract Quiet {}
contract Maker { constructor() { new Quiet(); } }
contract Items is ERC1155 { constructor() ERC1155("") { _mint(msg.sender, 7, 50, ""); _mint(msg.sender, 8, 60, ""); } }`;
const compiled = compileSolidity({ "A.sol": SOURCE });
const abiOf = (name: string) => new Interface(compiled[name]?.abi as never);
const [coinAbi, cardsAbi, itemsAbi] = [abiOf("Coin"), abiOf("Cards"), abiOf("Items")];

let stage: IndexerStage;
let provider: JsonRpcProvider;
let source: IndexerSource;
let maker: string;
const places = { Coin: "", Cards: "", Items: "" };
const sender = () => stage.faucet.address;

beforeAll(async () => {
  stage = await IndexerStage.open();
  provider = new JsonRpcProvider(stage.chain.url, 6940, { staticNetwork: true });
  const port = await freePort();
  stage.url = `http://127.0.0.1:${port}`;
  stage.launch(port);
  source = new IndexerSource({ url: stage.url, timeoutMs: 30_000 });
  maker = await stage.deploy(compiled["Maker"]?.bytecode ?? "0x");
  for (const name of ["Coin", "Cards", "Items"] as const) {
    places[name] = await stage.deploy(compiled[name]?.bytecode ?? "0x");
  }
  await stage.mine(
    call(places.Coin, coinAbi, "transfer", bob.address, 400),
    call(places.Cards, cardsAbi, "transferFrom", sender(), bob.address, 2),
    call(places.Items, itemsAbi, "safeTransferFrom", sender(), bob.address, 7, 20, "0x"),
    call(places.Items, itemsAbi, "safeBatchTransferFrom", ...batch()),
    { to: cosmonaut.address, value: 10n ** 18n },
  );
  const fromAddress = toBech32(parseAddress(cosmonaut.address));
  const toAddress = toBech32(parseAddress(bob.address));
  const [sent] = signWithCosmJs(MNEMONIC, [
    {
      chainId: "chain_6940-1",
      gas: 70_000,
      fee: [{ denom: "atoken", amount: "4000" }],
      memo: "rent, 1\n2",
      messages: [
        {
          typeUrl: "/cosmos.bank.v1beta1.MsgSend",
          value: { fromAddress, toAddress, amount: [{ denom: "atoken", amount: "77" }] },
        },
      ],
    },
  ]);
  if (sent === undefined) throw new Error("nothing was signed");
  await stage.mineWith([sent.raw], { to: bob.address, value: 5n });
  await stage.indexed();
});

const batch = () => [sender(), bob.address, [7, 8], [1, 2], "0x"];

afterAll(async () => {
  provider.destroy();
  await stage.close();
});

describe("the indexer's answers", () => {
  it("give no empty history of what is counted by id alone, as if nothing had come", async () => {
    for (const list of ["statement", "balance-history"]) {
      const of = `/addresses/${bob.address}/${list}?asset=`;
      const refused = await stage.refusal(`${of}${places.Items}`);
      expect([list, refused.status, refused.code]).toEqual([list, 422, "INVALID_FIELD"]);
      expect((await stage.get(`${of}${places.Cards}`)).items).toHaveLength(1);
      // Nothing of it ever came to this one.
      const other = `/addresses/${places.Coin}/${list}?asset=${places.Items}`;
      expect((await stage.get(other)).items).toEqual([]);
    }
    const csv = `/addresses/${bob.address}/statement?format=csv&asset=${places.Items}`;
    expect((await stage.refusal(csv)).status).toBe(422);
  });

  it("have coins, cards and items as OpenZeppelin's contracts have them", async () => {
    const cards = new Contract(places.Cards, cardsAbi, provider);
    const items = new Contract(places.Items, itemsAbi, provider);
    const held = await stage.all(`/tokens/${places.Cards}/holders`);
    expect(held.map(({ address, amount }) => [address, amount])).toEqual([
      [sender().toLowerCase(), String(await cards["balanceOf"]?.(sender()))],
      [bob.address.toLowerCase(), String(await cards["balanceOf"]?.(bob.address))],
    ]);
    const balances = await stage.all(`/tokens/${places.Items}/holders`);
    expect(balances).toHaveLength(4);
    for (const { address, tokenId, amount, verifiedAtHeight } of balances) {
      const found = String(await items["balanceOf"]?.(address, tokenId));
      expect({ address, tokenId, amount }).toEqual({ address, tokenId, amount: found });
      expect(verifiedAtHeight).not.toBeNull();
    }
    const moved = await stage.all(`/addresses/${bob.address}/transfers?order=asc`);
    const shown = moved
      .filter(({ asset }) => asset !== "TOKEN")
      .map(({ kind, tokenId, amount }) => [kind, tokenId, amount]);
    expect(shown).toEqual([
      ["erc20", null, "400"],
      ["erc721", "2", "1"],
      ["erc1155", "7", "20"],
      ["erc1155", "7", "1"],
      ["erc1155", "8", "2"],
    ]);
    expect((await stage.get(`/tokens/${places.Cards}`)).token).toMatchObject({
      standard: "erc721",
      name: "Cards",
      symbol: "CARD",
      isConsistent: true,
    });
  });

  it("count accounts and contracts, however many ids there are of one", async () => {
    const { token } = await stage.get(`/tokens/${places.Items}`);
    expect(token.holders).toBe(2);
    expect((await stage.get(`/tokens/${places.Cards}`)).token.holders).toBe(2);
    expect((await stage.get(`/addresses/${bob.address}`)).address.tokens).toBe(3);
  });

  it("know a contract that another one made without a word", async () => {
    const made = getCreateAddress({ from: maker, nonce: 1 });
    expect(await provider.getCode(made)).not.toBe("0x");
    for (const [address, isContract] of [
      [made, true],
      [maker, true],
      [bob.address, false],
    ] as const) {
      const found = (await stage.get(`/addresses/${address}`)).address;
      expect({ address, isContract: found.isContract }).toEqual({ address, isContract });
    }
  });

  it("have Cosmos transactions with what they moved and paid", async () => {
    const [cosmos] = await stage.all(`/blocks/latest/transactions`).then((all) => all.slice(1));
    expect(cosmos).toMatchObject({ kind: "cosmos", type: null, to: null, fee: "4000", index: 1 });
    const { transaction } = await stage.get(`/transactions/${cosmos.hash}`);
    expect(transaction).toMatchObject({
      cosmosHash: cosmos.hash,
      from: cosmonaut.address.toLowerCase(),
      gasLimit: "70000",
      messages: ["/cosmos.bank.v1beta1.MsgSend"],
    });
    expect(transaction.memo).toContain("rent");
    expect(transaction.transfers).toContainEqual(
      expect.objectContaining({
        kind: "native",
        to: bob.address.toLowerCase(),
        amount: "77",
        asset: "TOKEN",
        tracePath: null,
      }),
    );
    const [balance] = await stage.all(`/addresses/${cosmonaut.address}/balances`);
    expect(balance.amount).toBe(String(await provider.getBalance(cosmonaut.address)));
    expect(balance.verifiedAtHeight).toBe(stage.height);
    const lines = await stage.all(`/addresses/${cosmonaut.address}/statement`);
    for (const line of lines) expect(line).toMatchObject({ reconciled: true });
  });

  it("are there for every read, with all their parameters", async () => {
    const [hash] = (await stage.all("/transactions?order=asc", 1000)).map((one) => one.hash);
    const { transaction } = await stage.get(`/transactions/${hash.slice(2).toUpperCase()}`);
    expect(transaction).toMatchObject({ hash, kind: "evm", height: 1, status: "success" });
    const found = await stage.get(`/transactions/${transaction.cosmosHash}`);
    expect(found.transaction.hash).toBe(hash);
    const account = `/addresses/${sender()}`;
    for (const pathname of [
      "/blocks",
      "/blocks/0/transactions",
      account,
      `${account}/transactions?fromBlock=1&toBlock=3&order=asc`,
      `${account}/transfers?asset=${places.Coin}&kind=erc20&direction=out&min=1`,
      `${account}/transfers?from=2025-01-01T00:00:00Z&to=2100-01-01T00:00:00%2B02:00`,
      "/tokens?search=100%25",
      "/tokens?sort=firstSeen",
      "/dex/pairs",
      "/dex/swaps",
      "/openapi.json",
    ]) {
      await stage.get(pathname);
    }
    const names = async (query: string) =>
      (await stage.all(`/tokens?${query}`, 1)).map(({ symbol, address }) => symbol ?? address);
    expect(await names("sort=firstSeen")).toEqual([places.Items, "CARD", "PLAIN"]);
    expect(new Set((await names("sort=transfers")).slice(0, 2))).toEqual(
      new Set([places.Items, "CARD"]),
    );
    expect(await names("search=plain%20C")).toEqual(["PLAIN"]);
    expect(await names("search=_")).toEqual([]);
  });

  it("are those of the past where a block or a moment is named", async () => {
    const latest = (await stage.get("/blocks/latest")).block;
    const byTime = (time: string) => stage.get(`/blocks/by-time?t=${time}`);
    expect((await byTime("2100-01-01T00:00:00Z")).block).toEqual(latest);
    expect((await byTime(latest.time)).block).toEqual(latest);
    const before = new Date(Date.parse(latest.time) - 1).toISOString();
    expect((await byTime(before)).block.height).toBe(latest.height - 1);
    expect(await stage.refusal("/blocks/by-time?t=1999-01-01")).toMatchObject({ status: 404 });
    expect(await stage.refusal("/blocks/by-time?t=yesterday")).toMatchObject({ status: 422 });

    expect(await stage.all(`/addresses/${bob.address}/balances?at=3`)).toEqual([]);
    const at = stage.height - 1;
    const coins = await stage.all(`/addresses/${bob.address}/balances?at=${at}`);
    const coin = coins.find(({ asset }) => asset === places.Coin);
    expect(coin).toMatchObject({ amount: "400", symbol: "PLAIN" });
    const [old] = await stage.all(`/addresses/${sender()}/balances?at=2`);
    expect(old.amount).toBe(String(await provider.getBalance(sender(), 2)));
    const first = await stage.all(`/tokens/${places.Coin}/holders?at=2`);
    expect(first.map(({ amount }) => amount)).toEqual(["1000"]);
    for (const token of Object.values(places)) {
      for (let height = 0; height <= stage.height; height++) {
        const held = await stage.all(`/tokens/${token}/holders?at=${height}`, 2);
        const { rows } = await stage.sql.query(
          `SELECT '0x' || encode(address, 'hex') AS address, nullif(token_id, -1)::text AS "tokenId",
             amount::text AS amount
           FROM (SELECT DISTINCT ON (address, token_id) * FROM indexer.balance_history
             WHERE asset = $1 AND height <= $2 ORDER BY address, token_id, height DESC) h
           WHERE h.amount > 0 ORDER BY h.amount DESC, h.address DESC, h.token_id DESC`,
          [Buffer.from(token.slice(2), "hex"), height],
        );
        const shown = held.map(({ address, tokenId, amount }) => ({ address, tokenId, amount }));
        expect({ token, height, shown }).toEqual({ token, height, shown: rows });
      }
    }
    expect(await stage.refusal(`/supply?at=${stage.height + 1}`)).toMatchObject({ status: 404 });

    const history = await stage.all(`/addresses/${sender()}/balance-history?interval=1m`, 1);
    for (const { height, balance } of history) {
      expect(balance).toBe(String(await provider.getBalance(sender(), height)));
    }
    expect(history[0].height).toBe(stage.height);
  });

  it("tell the supply over time as the balances add up to it", async () => {
    const { items } = await stage.get("/supply/history?points=3");
    expect(items).toHaveLength(3);
    expect([items[0].height, items[2].height]).toEqual([0, stage.height]);
    for (const { height, total } of items) {
      expect((await stage.get(`/supply?at=${height}`)).supply.total).toBe(total);
    }
    const { rows } = await stage.sql.query(
      "SELECT sum(amount)::text AS total FROM indexer.balance WHERE asset = ''::bytea",
    );
    expect(items[2].total).toBe(rows[0].total);
  });

  it("are what the explorer reads", async () => {
    const account = parseAddress(bob.address.toLowerCase());
    const token = parseAddress(places.Coin);
    const transfers = await source.transfers(account, undefined, signal);
    expect(transfers.indexedHeight).toBe(stage.height);
    expect(transfers.items).toHaveLength(
      (await stage.all(`/addresses/${account}/transfers`)).length,
    );
    expect(transfers.items[0]).toMatchObject({
      height: stage.height,
      contract: undefined,
      units: 77n,
    });
    expect(transfers.items[0]?.hash).toMatch(/^0x/);
    expect(transfers.items[0]?.timestampSeconds).toBeGreaterThan(1_700_000_000);
    const named = (await source.tokens(undefined, signal, "plain c")).items;
    expect(named.map(({ symbol }) => symbol)).toEqual(["PLAIN"]);
    const balances = await source.balances(account, undefined, signal);
    expect(balances.items).toContainEqual({
      contract: token,
      units: 400n,
      decimals: 18,
      symbol: "PLAIN",
    });
    const coins = balances.items.find(({ contract }) => contract === undefined);
    expect(coins?.units).toBe(await provider.getBalance(account));
    const tokens = await source.tokens(undefined, signal);
    expect(tokens.items.find(({ contract }) => contract === token)).toEqual({
      contract: token,
      name: "Plain coin",
      symbol: "PLAIN",
      decimals: 18,
      totalSupplyUnits: 1000n,
      holders: 2,
    });
    const holders = await source.holders(token, undefined, signal);
    expect(holders.items.map(({ units }) => units)).toEqual([600n, 400n]);
    const moved = await source.tokenTransfers(token, undefined, signal);
    expect(moved.items.map(({ kind, units }) => [kind, units])).toEqual([
      ["erc20", 400n],
      ["erc20", 1000n],
    ]);
    expect((await source.pairs(undefined, signal)).items).toEqual([]);
    expect((await source.candles(token, "1h", signal)).items).toEqual([]);
    const supply = (await source.supply(signal)).items;
    expect([supply[0]?.height, supply.at(-1)?.height]).toEqual([0, stage.height]);
    for (const { totalAtoken, mintedAtoken, burnedAtoken } of supply) {
      expect(totalAtoken).toBe(mintedAtoken - burnedAtoken);
    }
  });

  it("go on with the block that was the latest one, whatever comes meanwhile", async () => {
    const pay = { to: bob.address, value: 1n };
    await stage.mine(pay, pay, pay);
    await stage.indexed();
    const list = "/blocks/latest/transactions";
    const first = await stage.get(`${list}?limit=1`);
    await stage.mine(pay);
    await stage.indexed();
    const rest = await stage.get(`${list}?limit=9&cursor=${first.next}`);
    const read = [...first.items, ...rest.items].map(({ height, index }) => [height, index]);
    expect(read).toEqual([0, 1, 2].map((index) => [stage.height - 1, index]));
    expect(rest.next).toBeNull();
  });
});

describe("a list of which much is asked", () => {
  it.each(["9999999999999999", "999999999999999999"])("goes on up to block %s", async (toBlock) => {
    const list = `/addresses/${bob.address}/transfers`;
    const whole = await stage.all(list);
    expect(whole.length).toBeGreaterThan(2);
    const asked = `${list}?toBlock=${toBlock}`;
    expect(await stage.all(asked, 1)).toEqual(whole);
    const { next } = await stage.get(`${asked}&limit=1`);
    const second = await stage.get(`${asked}&limit=1&cursor=${next}`);
    expect(second.items).toEqual([whole[1]]);
  });

  it("goes on by the cursor that it gave, however many filters are in it", async () => {
    const rich = await stage.deploy(compiled["Rich"]?.bytecode ?? "0x");
    const pay = call(rich, coinAbi, "transfer", bob.address, 10n ** 24n);
    await stage.mine(pay, pay, pay);
    await stage.indexed();
    const asked = new URLSearchParams({
      order: "asc",
      asset: rich,
      kind: "erc20",
      direction: "out",
      min: String(10n ** 24n),
      fromBlock: "0",
      toBlock: "2147483647",
      // As Go writes a moment to the nanosecond.
      from: "2025-01-01T00:00:00.123456789+01:00",
      to: "2100-01-01T00:00:00.123456789+01:00",
    });
    const found = await stage.all(`/addresses/${sender()}/transfers?${asked}`, 1);
    expect(found.map(({ asset, amount }) => [asset, amount])).toEqual(
      Array.from({ length: 3 }, () => [rich, String(10n ** 24n)]),
    );
  });
});

describe("another chain's blocks", () => {
  it("are never written over the index: it halts, serves what it has, and says why", async () => {
    const other = await ServedChain.open(testGenesis(stage.faucet.address));
    const rpc = createJsonRpcClient({ url: other.url, timeoutMs: 30_000 });
    const log = createLogger({ component: "test", level: "silent" });
    const options = { url: stage.databaseUrl, applicationName: "test", log };
    const session = await openSqlSession(options);
    try {
      // The same genesis, and other blocks from the first on.
      for (let height = 0; height <= stage.height; height++) await other.mine([]);
      const from = stage.height + 1;
      const range = { from, to: from, maxBytes: 1_000 };
      const { blocks } = await createEvmClient(rpc).blockRange(range, { signal });
      const latest = (await stage.get("/blocks/latest")).block;
      const tip = { height: latest.height, hash: latest.hash };
      const target = { session, schema: "indexer" } as const;
      await expect(writeBatch(target, tip, blocks)).rejects.toMatchObject({
        code: "CONTRADICTED",
        details: { indexed: latest.hash },
      });
      await stage.mine({ to: bob.address, value: 1n });
      await stage.indexed();
      const before = await stage.get("/blocks/latest");
      await other.mine([]);
      await stage.stopIndexers();
      const port = await freePort();
      stage.url = `http://127.0.0.1:${port}`;
      stage.launch(port, { nodeUrl: other.url });
      await until(
        async () => (await stage.get("/status").catch(() => undefined))?.status.state === "halted",
        { timeoutMs: 30_000 },
      );
      const ready = await fetch(`${stage.url}/ready`);
      expect(ready.status).toBe(503);
      expect(await ready.text()).toContain("blocks are final");
      expect((await stage.get("/blocks/latest")).block).toEqual(before.block);
      // Somebody decides that the node is right: the one that is halted sees it by itself.
      await rebuildIndex(stage.commandOptions(other.url));
      await until(async () => (await fetch(`${stage.url}/ready`)).status === 200, {
        timeoutMs: 30_000,
      });
      expect((await stage.get("/blocks/latest")).block.hash).not.toBe(before.block.hash);
    } finally {
      await session.close();
      rpc.close();
      await other.close();
    }
  });
});
