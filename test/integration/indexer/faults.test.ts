/**
 * What the indexer makes of a contract that logs anything, of parameters and cursors that were made
 * up, of a node and a database that go away, and of a rebuild in the middle of reads.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Interface, Wallet } from "ethers";
import { parse } from "yaml";
import { rebuildIndex, verifyIndex } from "../../../indexer/maintenance/commands.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { call, IndexerStage, type Json } from "../../helpers/indexer/indexer.js";
import { freePort } from "../../helpers/ports.js";
import { compileSolidity } from "../../helpers/contracts/solidity.js";
import { until } from "../../helpers/until.js";
import { parseAddress, toBech32 } from "../../../chain/address.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const cosmonaut = Wallet.fromPhrase(MNEMONIC);
const bob = new Wallet(`0x${"22".repeat(32)}`);

/** Every event that the index reads, with the largest numbers, in forms that nobody should log. */
const SOURCE = `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
contract Hostile {
  event Transfer(address indexed from, address indexed to, uint256 value);
  event TransferSingle(address indexed op, address indexed from, address indexed to, uint256 id, uint256 value);
  event TransferBatch(address indexed op, address indexed from, address indexed to, uint256[] ids, uint256[] values);
  event Deposit(address indexed to, uint256 value);
  event Withdrawal(address indexed from, uint256 value);
  event PairCreated(address indexed token0, address indexed token1, address pair, uint256 n);
  event Swap(address indexed sender, uint256 a, uint256 b, uint256 c, uint256 d, address indexed to);
  event Mint(address indexed sender, uint256 a, uint256 b);
  event Burn(address indexed sender, uint256 a, uint256 b, address indexed to);
  string public constant symbol = unicode"\\u0000\\u202E\\\\x41\\t\\n<b>\\u2028";
  uint256 public constant decimals = 300;
  function name() external pure returns (bytes memory) { return new bytes(60000); }
  function totalSupply() external pure returns (uint256) { return type(uint256).max; }
  function balanceOf(address) external pure returns (uint256) { revert("no"); }
  function factory() external view returns (address) { return address(this); }
  function token0() external view returns (address) { return address(this); }
  function token1() external view returns (address) { return address(this); }
  function getPair(address, address) external view returns (address) { return address(this); }
  function claim(address victim) external {
    uint256 max = type(uint256).max;
    uint256[] memory none = new uint256[](0); uint256[] memory two = new uint256[](2);
    two[0] = max; two[1] = max;
    for (uint256 i = 0; i < 3; i++) emit Transfer(victim, address(0), max);
    emit Transfer(victim, victim, max); emit Transfer(address(0), address(0), max);
    emit Deposit(victim, max); emit Withdrawal(msg.sender, max);
    emit TransferSingle(msg.sender, victim, msg.sender, max, max);
    emit TransferBatch(msg.sender, victim, msg.sender, two, two);
    emit TransferBatch(msg.sender, victim, msg.sender, two, none);
    emit PairCreated(address(this), address(this), address(this), max);
    emit Swap(victim, max, 0, 0, max, msg.sender); emit Swap(victim, 0, 0, 0, 0, victim);
    emit Swap(victim, 1, 0, 0, max, victim); emit Swap(victim, max, 0, 0, 1, victim);
    emit Mint(victim, max, max); emit Burn(victim, max, max, victim);
    bytes32 sync = keccak256("Sync(uint112,uint112)"); bytes32 sent = keccak256("Transfer(address,address,uint256)");
    bytes32 batch = keccak256("TransferBatch(address,address,address,uint256[],uint256[])");
    assembly {
      mstore(0, 0) mstore(32, 0) log4(0, 33, batch, 1, 2, 3) log4(0, 63, batch, 1, 2, 3)
      mstore(0, not(0)) mstore(32, not(0))
      log1(0, 64, sync) log1(0, 63, sync) log0(0, 64) log4(0, 0, sent, not(0), not(0), not(0)) log3(0, 32, sent, not(0), not(0)) log1(0, 96, sent)
    }
  }
}`;

const compiled = compileSolidity({ "H.sol": SOURCE })["Hostile"];
const abi = new Interface(compiled?.abi as never);

let stage: IndexerStage;
let hostile = "";
let port = 0;

beforeAll(async () => {
  stage = await IndexerStage.open();
  port = await freePort();
  stage.url = `http://127.0.0.1:${port}`;
  stage.launch(port);
  hostile = await stage.deploy(compiled?.bytecode ?? "0x");
});

afterAll(async () => {
  await stage.close();
});

describe("a contract that logs anything", () => {
  it("is kept, and breaks no read of anybody", async () => {
    expect(await stage.mine(call(hostile, abi, "claim", bob.address))).toEqual([1]);
    await stage.mine(
      { to: bob.address, value: 5n },
      { to: cosmonaut.address, value: 10n ** 18n },
      call(hostile, abi, "claim", bob.address),
    );
    // A memo that looks like bytes, and is longer than one line.
    const fromAddress = toBech32(parseAddress(cosmonaut.address));
    const memo = "0x12\t\\.\n\\N\u0007\0é\u{1f600}";
    const [sent] = signWithCosmJs(MNEMONIC, [
      {
        chainId: "chain_6940-1",
        gas: 70_000,
        fee: [{ denom: "atoken", amount: "4000" }],
        memo,
        messages: [
          {
            typeUrl: "/cosmos.bank.v1beta1.MsgSend",
            value: {
              fromAddress,
              toAddress: fromAddress,
              amount: [{ denom: "atoken", amount: "1" }],
            },
          },
        ],
      },
    ]);
    await stage.mineWith([sent?.raw ?? Buffer.alloc(0)]);
    await stage.indexed();
    const { hash } = (await stage.get("/transactions?limit=1")).items[0];
    const { transaction } = await stage.get(`/transactions/${hash}`);
    expect(transaction.memo).toBe(memo.replace(/\p{Cc}/gu, "\ufffd"));
    const token = (await stage.get(`/tokens/${hostile}`)).token;
    expect(token).toMatchObject({ decimals: null, totalSupply: String(2n ** 256n - 1n) });
    expect(token.symbol).not.toMatch(/[\p{Cc}\u202e\u2028]/u);
    const of = parsePaths().filter(({ method }) => method === "get");
    const ids: Readonly<Record<string, readonly string[]>> = {
      id: ["0", "latest"],
      hash: [hash],
      address: [hostile, bob.address, stage.faucet.address, cosmonaut.address],
      token: [hostile],
      pair: [hostile],
    };
    const needed: Readonly<Record<string, string>> = {
      "/blocks/by-time": "?t=2100-01-01T00:00:00Z",
    };
    const asked: string[] = [];
    for (const { path } of of) {
      const name = /\{(\w+)\}/.exec(path)?.[1];
      if (path === "/stream" || path.startsWith("/exports")) continue;
      for (const id of name === undefined ? [""] : (ids[name] ?? [])) {
        const pathname = path.replace(/\{\w+\}/, id) + (needed[path] ?? "");
        await stage.get(pathname);
        asked.push(path);
      }
    }
    // Exports and the stream have tests of their own (indexer.test.ts).
    expect(new Set(asked).size).toBe(of.length - 3);
    for (const query of ["?interval=1m", "?interval=1w"]) {
      await stage.get(`/dex/pairs/${hostile}/candles${query}`);
      await stage.get(`/addresses/${bob.address}/balance-history${query}&asset=${hostile}`);
    }
    await stage.get(`/addresses/${bob.address}/statement?asset=${hostile}`);
    const all: Json = await lookup([hash, `0x${"00".repeat(32)}`]);
    expect(all.items.map((item: Json) => item?.hash ?? null)).toEqual([hash, null]);
  });
});

describe("a token that ends in the transaction that makes it", () => {
  it("is kept as its logs have it, without what nobody can be asked for", async () => {
    // Logs Transfer(nobody, bob, 5) while it is made, and gives itself up.
    const topic = abi.getEvent("Transfer")?.topicHash.slice(2);
    const to = bob.address.slice(2).toLowerCase();
    const gone = await stage.deploy(`0x600560005273${to}60007f${topic}60206000a373${to}ff`);
    await stage.indexed();
    const { token } = await stage.get(`/tokens/${gone}`);
    const unknown = { name: null, symbol: null, decimals: null, totalSupply: null };
    expect(token).toMatchObject({ standard: "erc20", transfers: 1, holders: 1, ...unknown });
    const held = (await stage.all(`/addresses/${bob.address}/balances`)).filter(
      ({ asset }) => asset === gone,
    );
    expect(held).toMatchObject([{ amount: "5", method: "logs", verifiedAtHeight: null }]);
    expect((await stage.get(`/addresses/${gone}`)).address.isContract).toBe(false);
  });
});

describe("a verification", () => {
  it("counts what the live indexer looked at, and apart from that what no contract told", async () => {
    await stage.indexed();
    const report = await verifyIndex(stage.commandOptions());
    const { rows } = await stage.sql.query(
      `SELECT count(*) FILTER (WHERE verified_at IS NOT NULL)::integer AS checked,
         count(*) FILTER (WHERE verified_at IS NULL)::integer AS unanswered FROM indexer.balance`,
    );
    expect(rows[0].unanswered).toBeGreaterThan(0);
    expect(report).toEqual({ height: stage.height, corrected: 0, ...rows[0] });
  });
});

async function lookup(hashes: readonly string[]): Promise<Json> {
  const reply = await fetch(`${stage.url}/v1/transactions/lookup`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ hashes }),
  });
  expect(reply.status).toBe(200);
  return reply.json();
}

function parsePaths(): { readonly path: string; readonly method: string }[] {
  const { paths } = parse(readFileSync("openapi/indexer.yaml", "utf8")) as {
    paths: Record<string, Record<string, unknown>>;
  };
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => ({ path: path.replace(/^\/v1/, ""), method })),
  );
}

describe("requests that were made up", () => {
  it("are refused with a reason, and never the server's fault", async () => {
    await stage.indexed();
    const lists = [
      "/blocks",
      "/transactions",
      "/tokens",
      "/dex/pairs",
      "/dex/swaps",
      `/addresses/${bob.address}/balances`,
      `/addresses/${bob.address}/transfers`,
      `/addresses/${bob.address}/balance-history`,
      `/tokens/${hostile}/holders`,
      `/dex/pairs/${hostile}/candles`,
    ];
    const values: readonly unknown[] = [
      ["x"],
      [1e15],
      [-1],
      [1, 2, 3, 4],
      [],
      ["zz", "9".repeat(400)],
      ["\u0000"],
    ];
    for (const list of lists) {
      const first = await stage.get(`${list}?limit=1`);
      const { next } = first;
      const [version, name, , ceiling] =
        next === null
          ? [1, "nothing", {}, 1]
          : JSON.parse(Buffer.from(next, "base64url").toString());
      for (const after of values) {
        for (const filters of [{}, { interval: "x" }, { at: -5 }, { min: "x" }, { sort: 7 }]) {
          const text = JSON.stringify([version, name, filters, ceiling, after]);
          const cursor = Buffer.from(text).toString("base64url");
          const { status } = await stage.refusal(`${list}?cursor=${cursor}`);
          expect({ list, text, isFault: status >= 500 }).toEqual({ list, text, isFault: false });
        }
      }
    }
    for (const [pathname, status] of [
      ["/tokens?search=%00", 400],
      ["/tokens?search=%F0%9F%92%A9", 200],
      ["/tokens?sort=name", 422],
      ["/blocks?limit=0", 422],
      ["/blocks?limit=1e3", 422],
      ["/blocks?limit=Infinity", 422],
      ["/blocks?limit=1e999", 422],
      ["/blocks?limit=100000000000000000000", 422],
      ["/blocks?cursor=", 422],
      ["/blocks?nothing=1", 422],
      ["/blocks/99999999999", 422],
      ["/blocks/4294967296", 404],
      ["/blocks/-1", 422],
      ["/blocks/by-time?t=9999-12-31T23:59:59-23:59", 200],
      ["/blocks/by-time?t=0000-01-01", 404],
      // Days and hours that there are not, which would be taken for others: March, the next day.
      ["/blocks/by-time?t=2027-02-30", 422],
      ["/blocks/by-time?t=2027-02-29T00:00:00Z", 422],
      ["/blocks/by-time?t=2027-01-31T24:00Z", 422],
      ["/blocks/by-time?t=2028-02-29T23:59:59.5Z", 200],
      [`/addresses/${bob.address}/statement?to=2027-04-31`, 422],
      [`/addresses/${bob.address}/transfers?fromBlock=99999999999999999`, 200],
      [`/addresses/${bob.address}/transfers?fromBlock=${"9".repeat(19)}`, 422],
      [`/addresses/${bob.address}/transfers?fromBlock=99999999999999999&toBlock=1`, 422],
      [`/addresses/${bob.address}/transfers?min=${"9".repeat(78)}`, 200],
      [`/addresses/${bob.address}/transfers?min=-1`, 422],
      [`/addresses/${bob.address}/transfers?asset=${"x".repeat(20)}`, 422],
      [`/addresses/${bob.address}/balances?at=9007199254740993`, 404],
      ["/addresses/%00/balances", 400],
      ["/tokens/0x00", 422],
      [`/transactions/${"g".repeat(64)}`, 422],
      ["/exports/unknown", 422],
      [`/exports/${"0".repeat(32)}`, 404],
      [`/exports/${"0".repeat(32)}/file`, 404],
      ["/nowhere", 404],
    ] as const) {
      const found = await stage.refusal(pathname);
      expect({ pathname, status: found.status }).toEqual({ pathname, status });
    }
  });
});

describe("the indexer without what it needs", () => {
  it("serves what it has while the node is away, and goes on where it was", async () => {
    await stage.indexed();
    const before = await stage.get("/blocks/latest");
    await stage.withoutNode(async () => {
      await until(async () => (await fetch(`${stage.url}/ready`)).status === 503, {
        timeoutMs: 30_000,
      });
      expect((await stage.get("/blocks/latest")).block).toEqual(before.block);
      const lines = await stage.get(`/addresses/${bob.address}/statement`);
      expect(lines.items[0]).toMatchObject({ stateBalance: null, reconciled: false });
      expect(await stage.refusal(`/transactions/0x${"ab".repeat(32)}`)).toMatchObject({
        status: 404,
        body: { pending: null },
      });
    });
    await stage.mine({ to: bob.address, value: 1n });
    await stage.indexed();
    await until(async () => (await fetch(`${stage.url}/ready`)).status === 200, {
      timeoutMs: 30_000,
    });
    await expectWhole();
  });

  it("answers 503 while the database is away, ends for nothing, and goes on where it was", async () => {
    await stage.withoutDatabase(async () => {
      await until(async () => (await stage.refusal("/blocks/latest")).status === 503, {
        timeoutMs: 30_000,
      });
      await stage.mine({ to: bob.address, value: 1n });
      await until(async () => (await fetch(`${stage.url}/ready`)).status === 503, {
        timeoutMs: 30_000,
      });
      expect((await fetch(`${stage.url}/health`)).status).toBe(200);
    });
    await stage.indexed();
    await expectWhole();
  });
});

/** No gap, no double, and every balance as state has it. */
async function expectWhole(): Promise<void> {
  const { rows } = await stage.sql.query(
    `SELECT count(*)::integer AS blocks, max(height) AS top,
       (SELECT count(*)::integer FROM indexer.transaction) AS transactions,
       (SELECT sum(transactions)::integer FROM indexer.block) AS counted,
       (SELECT count(*)::integer FROM indexer.correction WHERE asset = ''::bytea) AS wrong
     FROM indexer.block`,
  );
  const [{ blocks, top, transactions, counted, wrong }] = rows;
  expect({ blocks, top, wrong }).toEqual({ blocks: stage.height + 1, top: stage.height, wrong: 0 });
  expect(transactions).toBe(counted);
  const { rows: keys } = await stage.sql.query(
    `SELECT count(*)::integer AS n FROM pg_indexes
     WHERE schemaname = 'indexer' AND indexname IN ('transfer_sender', 'transaction_hash')`,
  );
  expect(keys).toEqual([{ n: 2 }]);
}

describe("a rebuild", () => {
  it("takes the live tables' place while reads and the writer go on, without one that fails", async () => {
    await stage.indexed();
    const reading = new AbortController();
    const seen: { status: number; height: number }[] = [];
    const readers = ["/status", "/blocks?limit=3", "/tokens?limit=1", "/supply"].map(
      async (path) => {
        let height = 0;
        while (!reading.signal.aborted) {
          const { status, body } = await stage.refusal(path);
          if (body.meta.indexedHeight < height || status !== 200) seen.push({ status, height });
          height = body.meta.indexedHeight;
          if (path.startsWith("/blocks")) expect(body.items[0].height).toBe(height);
        }
      },
    );
    const mining = (async () => {
      // As many as pass while it is built; for ever it would be a race.
      for (let count = 0; count < 15; count++) {
        await stage.mine({ to: bob.address, value: 1n });
        await stage.indexed();
      }
    })();
    const tables = async () =>
      (await stage.sql.query("SELECT 'indexer.block'::regclass::oid AS id")).rows[0].id;
    const before = await tables();
    const report = await rebuildIndex(stage.commandOptions());
    expect(report.height).toBeGreaterThan(5);
    expect(await tables()).not.toBe(before);
    await mining;
    const top = stage.height;
    await stage.mine({ to: bob.address, value: 1n });
    await until(async () => (await stage.get("/status")).meta.indexedHeight > top, {
      timeoutMs: 30_000,
    });
    reading.abort();
    await Promise.all(readers);
    expect(seen).toEqual([]);
    await stage.indexed();
    await expectWhole();
    const { rows } = await stage.sql.query(
      "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'indexer%'",
    );
    expect(rows).toEqual([{ nspname: "indexer" }]);
  });
});
