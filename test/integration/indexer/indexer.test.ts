/**
 * The indexer on a real chain and a real database: what it tells against what the chain alone says,
 * with tokens that lie, pairs of Uniswap's own bytecode, deaths at every step and two at once.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { bech32 } from "@scure/base";
import { Contract, getBytes, Interface, JsonRpcProvider, Wallet } from "ethers";
import { parse } from "yaml";
import {
  type MaintenanceProgress,
  rebuildIndex,
  verifyIndex,
} from "../../../indexer/maintenance/commands.js";
import { call, IndexerStage, type Json } from "../../helpers/indexer/indexer.js";
import { nodeBehind } from "../../helpers/indexer/node-behind.js";
import { freePort } from "../../helpers/ports.js";
import { compileSolidity } from "../../helpers/contracts/solidity.js";
import { until } from "../../helpers/until.js";

const bob = new Wallet(`0x${"22".repeat(32)}`);

const SOURCE = `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
contract Plain {
  string public name; string public symbol; uint8 public decimals = 6; uint256 public totalSupply;
  mapping(address => uint256) internal held; mapping(address => mapping(address => uint256)) public allowance;
  event Transfer(address indexed from, address indexed to, uint256 value);
  event TransferSingle(address indexed op, address indexed from, address indexed to, uint256 id, uint256 value);
  constructor(string memory n) { name = n; symbol = n; _mint(msg.sender, 10 ** 24); }
  function _mint(address to, uint256 v) internal { held[to] += v; totalSupply += v; emit Transfer(address(0), to, v); }
  function balanceOf(address a) public view virtual returns (uint256) { return held[a]; }
  function approve(address s, uint256 v) external returns (bool) { allowance[msg.sender][s] = v; return true; }
  function transfer(address to, uint256 v) external returns (bool) { held[msg.sender] -= v; held[to] += v; emit Transfer(msg.sender, to, v); return true; }
  function many(uint160 first, uint256 n) external { for (uint160 i = 0; i < n; i++) { held[msg.sender] -= 1; held[address(first + i)] += 1; emit Transfer(msg.sender, address(first + i), 1); } }
}
contract Liar is Plain {
  uint256 public factor = 1;
  constructor() Plain("<script>alert(1)</script>") {}
  function rebase(uint256 f) external { factor = f; decimals = uint8(f); }
  function balanceOf(address a) public view override returns (uint256) { return held[a] * factor; }
  function claim(address to, uint256 v) external { emit Transfer(address(0), to, v); }
}`;

const artifact = (name: string) =>
  JSON.parse(readFileSync(`node_modules/@uniswap/v2-core/build/${name}.json`, "utf8"));

let stage: IndexerStage;
let provider: JsonRpcProvider;
const compiled = compileSolidity({ "T.sol": SOURCE });
const plainAbi = new Interface(compiled["Liar"]?.abi as never);
const factoryAbi = new Interface(artifact("UniswapV2Factory").abi);
const pairAbi = new Interface(artifact("UniswapV2Pair").abi);
const places = { AAA: "", BBB: "", liar: "", factory: "" };

const argument = (text: string) =>
  new Interface(["constructor(string)"]).encodeDeploy([text]).slice(2);

beforeAll(async () => {
  stage = await IndexerStage.open();
  provider = new JsonRpcProvider(stage.chain.url, 6940, { staticNetwork: true });
  const plain = compiled["Plain"]?.bytecode ?? "0x";
  for (const name of ["AAA", "BBB"] as const) {
    places[name] = await stage.deploy(`${plain}${argument(name)}`);
  }
  places.liar = await stage.deploy(compiled["Liar"]?.bytecode ?? "0x");
  const factory = `0x${artifact("UniswapV2Factory").bytecode.replace(/^0x/, "")}`;
  places.factory = await stage.deploy(
    `${factory}${stage.faucet.address.slice(2).padStart(64, "0")}`,
  );
  await stage.mine(
    call(places.factory, factoryAbi, "createPair", places.AAA, places.BBB),
    { to: bob.address, value: 10n ** 18n },
    call(places.AAA, plainAbi, "many", 0xacc0000, 40),
  );
});

afterAll(async () => {
  provider.destroy();
  await stage.close();
});

/** Every table of the index as one text, without the order of rows. */
async function contents(): Promise<string> {
  const tables = ["block", "transaction", "log", "transfer", "address"];
  const texts: string[] = [];
  for (const table of [
    ...tables,
    "balance_history",
    "pair",
    "swap",
    "candle",
    "address_transaction",
  ]) {
    const { rows } = await stage.sql.query(
      `SELECT count(*)::text || coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') AS h
       FROM indexer.${table} t`,
    );
    texts.push(`${table} ${rows[0].h}`);
  }
  return texts.join("\n");
}

/** An export that is done, and its file. */
async function exported(fields: Json): Promise<{ state: Json; bytes: Buffer; type: string }> {
  const reply = await fetch(`${stage.url}/v1/exports`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(fields),
  });
  expect(reply.status).toBe(202);
  const created: Json = await reply.json();
  const { id } = created.export;
  let state: Json;
  await until(
    async () => {
      state = (await stage.get(`/exports/${id}`)).export;
      return state.status === "done" || state.status === "failed";
    },
    { timeoutMs: 30_000 },
  );
  const file = await fetch(`${stage.url}/v1/exports/${id}/file`);
  const [type = ""] = file.headers.get("content-type")?.split(";") ?? [];
  return { state, bytes: Buffer.from(await file.arrayBuffer()), type };
}

describe("the indexer", () => {
  it("dies at every step and comes to the same, with no gap and no double", async () => {
    const [first, second] = [await freePort(), await freePort()];
    for (const point of [
      "indexer.after-read",
      "indexer.after-copy",
      "indexer.before-commit",
      "indexer.after-commit",
      "indexer.after-indexes",
      "indexer.before-check-commit",
      "indexer.after-check",
    ]) {
      await stage.mine({ to: bob.address, value: 1n });
      expect({ point, end: await stage.launch(first, { failpoint: point }).exit }).toEqual({
        point,
        end: "SIGKILL",
      });
    }
    stage.url = `http://127.0.0.1:${first}`;
    stage.launch(first);
    await stage.indexed();
    const { rows } = await stage.sql.query(
      "SELECT count(*)::integer AS n, max(height) AS top FROM indexer.block",
    );
    expect(rows[0]).toEqual({ n: stage.height + 1, top: stage.height });
    // A second one serves, and waits for its turn to write.
    stage.launch(second);
    const other = `http://127.0.0.1:${second}`;
    await until(
      async () =>
        (await stage.get("/status", other).catch(() => undefined))?.status.state === "waiting",
      { timeoutMs: 30_000 },
    );
    expect((await fetch(`${other}/ready`)).status).toBe(503);
    expect((await fetch(`${stage.url}/ready`)).status).toBe(200);
    const before = await contents();
    const told: MaintenanceProgress[] = [];
    const onProgress = (progress: MaintenanceProgress) => void told.push(progress);
    const report = await rebuildIndex({ ...stage.commandOptions(), onProgress });
    expect(report).toMatchObject({ height: stage.height, corrected: 0 });
    const { height: nodeHeight } = stage;
    expect(told[0]).toMatchObject({ nodeHeight, looks: 0 });
    expect(told.at(-1)).toMatchObject({ height: nodeHeight, nodeHeight });
    expect(told.at(-1)?.looks).toBeGreaterThanOrEqual(report.checked);
    expect(await contents()).toBe(before);
    await stage.mine({ to: bob.address, value: 1n });
    await stage.indexed();
  });

  it("has balances of coins and tokens equal to state", async () => {
    await stage.indexed();
    const token = new Contract(places.AAA, plainAbi, provider);
    const holders = await stage.all(`/tokens/${places.AAA}/holders`);
    expect(holders.length).toBe(41);
    for (const { address, amount, verifiedAtHeight } of holders) {
      expect({ address, amount }).toEqual({
        address,
        amount: String(await token["balanceOf"]?.(address)),
      });
      expect(verifiedAtHeight).not.toBeNull();
    }
    expect((await stage.get(`/tokens/${places.AAA}`)).token).toMatchObject({
      symbol: "AAA",
      decimals: 6,
      holders: 41,
      isConsistent: true,
    });
    for (const address of [stage.faucet.address, bob.address]) {
      const { balances } = { balances: await stage.all(`/addresses/${address}/balances`) };
      expect(balances[0]).toMatchObject({
        asset: "TOKEN",
        amount: String(await provider.getBalance(address)),
      });
    }
    const { supply } = await stage.get("/supply");
    const { rows } = await stage.sql.query(
      "SELECT sum(amount)::text AS total FROM indexer.balance WHERE asset = ''::bytea",
    );
    expect(rows[0].total).toBe(supply.total);
  });

  it("believes balanceOf, not logs, and records the difference", async () => {
    const { liar } = places;
    await stage.mine(call(liar, plainAbi, "claim", bob.address, 2n ** 256n - 1n));
    await stage.mine(
      call(liar, plainAbi, "claim", bob.address, 5n),
      call(liar, plainAbi, "rebase", 3),
    );
    await stage.indexed();
    await verifyIndex(stage.commandOptions());
    const [row] = await stage.all(`/tokens/${liar}/holders`);
    expect(row).toMatchObject({
      address: stage.faucet.address.toLowerCase(),
      amount: String(3n * 10n ** 24n),
      method: "balanceOf",
    });
    const { token } = await stage.get(`/tokens/${liar}`);
    expect(token).toMatchObject({ isConsistent: false, holders: 1 });
    expect(token.name).toContain("<script>");
  });

  it("counts in a verification what was corrected since it began, whoever corrected it", async () => {
    const { liar } = places;
    /** Of this block, which is the newest: one of before goes to it where nothing has moved since. */
    const corrections = async (): Promise<number> => {
      const { rows } = await stage.sql.query(
        "SELECT count(*)::integer AS count FROM indexer.correction WHERE height = $1",
        [stage.height],
      );
      return rows[0].count;
    };
    const verify = (nodeUrl = stage.chain.url) =>
      verifyIndex({ ...stage.commandOptions(nodeUrl), timeoutMs: 300_000 });
    // Nothing is logged of this; the first round of a verification is full without it.
    await stage.mine(call(liar, plainAbi, "rebase", 5));
    await stage.indexed();
    await stage.sql.query(
      `INSERT INTO indexer.balance
         (address, asset, token_id, amount, method, updated_at, verified_at, checked_at)
       SELECT decode(lpad(to_hex(n), 40, 'e'), 'hex'), ''::bytea, -1, 0, 'journal', 0, 0, 0
         FROM generate_series(4096, 4595) AS n`,
    );
    const before = await corrections();
    let waiting: Promise<void> | undefined;
    const slow = await nodeBehind(stage.chain.url, async (request) => {
      if (!request.includes("eth_getBalance")) return;
      waiting ??= until(async () => (await corrections()) > before, {
        timeoutMs: 60_000,
        what: "the live indexer corrects it",
      });
      await waiting;
    });
    try {
      expect(await verify(slow.url)).toMatchObject({ corrected: 1 });
    } finally {
      await slow.close();
    }
    expect(await verify()).toMatchObject({ height: stage.height, corrected: 0 });
    await stage.sql.query("DELETE FROM indexer.balance WHERE updated_at = 0 AND amount = 0");
    await stage.mine(call(liar, plainAbi, "rebase", 3));
    await stage.indexed();
    expect(await verify()).toMatchObject({ height: stage.height, corrected: 1 });
  });

  it("has statements whose lines are reconciled with state", async () => {
    const lines = await stage.all(`/addresses/${bob.address}/statement`);
    expect(lines.length).toBeGreaterThan(6);
    for (const line of lines) expect(line).toMatchObject({ reconciled: true });
    expect(lines.at(-1).closing).toBe(String(await provider.getBalance(bob.address)));
    const tokenLines = await stage.all(
      `/addresses/${stage.faucet.address}/statement?asset=${places.AAA}`,
    );
    for (const line of tokenLines) expect(line).toMatchObject({ reconciled: true });
  });

  it("has statements as CSV, all lines at once, which add up to the balance", async () => {
    const path = `/addresses/${bob.address}/statement`;
    const reply = await fetch(`${stage.url}/v1${path}?format=csv&limit=2`);
    expect(reply.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(reply.headers.get("content-disposition")).toContain("attachment");
    const [head, ...rows] = (await reply.text()).trimEnd().split("\n");
    const names = (head ?? "").split(",");
    const lines: Json[] = rows.map((row) =>
      Object.fromEntries(row.split(",").map((value, index) => [names[index], value])),
    );
    const pages = await stage.all(path);
    expect(lines.map(({ height, closing }) => [height, closing])).toEqual(
      pages.map(({ height, closing }) => [String(height), closing]),
    );
    let sum = 0n;
    for (const line of lines) {
      expect([BigInt(line.opening), line.reconciled]).toEqual([sum, "true"]);
      sum += BigInt(line.in) - BigInt(line.out) - BigInt(line.fee);
    }
    expect(sum).toBe(await provider.getBalance(bob.address));
    const liar = await fetch(
      `${stage.url}/v1/addresses/${stage.faucet.address}/statement?format=csv&asset=${places.liar}`,
    );
    const told = (await liar.text()).trimEnd().split("\n").at(-1)?.split(",") ?? [];
    expect(told.at(-1)).toBe(String(3n * 10n ** 24n));
    const odd = await fetch(`${stage.url}/v1${path}?format=csv&asset=%0A${places.AAA}%20`);
    expect(odd.status).toBe(200);
    expect((await stage.refusal(`${path}?format=csv&cursor=x`)).status).toBe(422);
    expect((await stage.refusal(`${path}?format=xml`)).status).toBe(422);
  });

  it("pages stay as they are while blocks come", async () => {
    const pathname = `/addresses/${stage.faucet.address}/transfers?order=desc`;
    const whole = await stage.all(pathname, 1000);
    const first = await stage.get(`${pathname}&limit=5`);
    await stage.mine({ to: bob.address, value: 3n }, { to: bob.address, value: 4n });
    await stage.indexed();
    const second = await stage.get(
      `/addresses/${stage.faucet.address}/transfers?limit=5&cursor=${first.next}`,
    );
    const ids = [...first.items, ...second.items].map(({ id }: Json) => id);
    expect(ids).toEqual(whole.slice(0, 10).map(({ id }: Json) => id));
    expect(new Set((await stage.all(pathname, 3)).map(({ id }) => id)).size).toBe(
      (await stage.all(pathname, 1000)).length,
    );
    const other = await stage.refusal(`/addresses/${bob.address}/transfers?cursor=${first.next}`);
    expect(other).toMatchObject({ status: 422, code: "CURSOR_MISMATCH" });
    expect(other.type).toContain("application/problem+json");
    expect(await stage.refusal("/blocks?limit=1001")).toMatchObject({ status: 422 });
    expect(await stage.refusal("/addresses/0x12")).toMatchObject({
      status: 422,
      code: "INVALID_FIELD",
    });
    const reversed = ["fromBlock=5&toBlock=4", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z"];
    for (const range of reversed) {
      expect(await stage.refusal(`${pathname}&${range}`)).toMatchObject({
        status: 422,
        code: "INVALID_FIELD",
      });
    }
    expect((await stage.get(`${pathname}&fromBlock=4&toBlock=4`)).items).toBeDefined();
    const unknown = await stage.refusal(`/transactions/0x${"ab".repeat(32)}`);
    expect(unknown).toMatchObject({
      status: 404,
      body: { indexedHeight: stage.height, pending: false },
    });
  });

  it("shows Uniswap's pairs, reserves and swaps as the chain has them", async () => {
    const factory = new Contract(places.factory, factoryAbi, provider);
    const pair: string = await factory["getPair"]?.(places.AAA, places.BBB);
    const contract = new Contract(pair, pairAbi, provider);
    const token0: string = await contract["token0"]?.();
    const token1: string = await contract["token1"]?.();
    await stage.mine(
      call(token0, plainAbi, "transfer", pair, 10n ** 12n),
      call(token1, plainAbi, "transfer", pair, 4n * 10n ** 12n),
      call(pair, pairAbi, "mint", stage.faucet.address),
    );
    const outs = [10n ** 9n, 3n * 10n ** 9n];
    for (const out of outs) {
      await stage.mine(
        call(token0, plainAbi, "transfer", pair, 10n ** 9n),
        call(pair, pairAbi, "swap", 0n, out, bob.address, "0x"),
      );
    }
    await stage.indexed();
    const [reserve0, reserve1]: bigint[] = (await contract["getReserves"]?.()) ?? [];
    const shown = (await stage.get(`/dex/pairs/${pair}`)).pair;
    expect(shown).toMatchObject({
      token0: { address: token0.toLowerCase() },
      reserve0: String(reserve0),
      reserve1: String(reserve1),
      lpSupply: String(await contract["totalSupply"]?.()),
      swaps: 2,
      volume0: String(2n * 10n ** 9n),
      volume1: String(4n * 10n ** 9n),
      isConfirmed: true,
    });
    const swaps = await stage.all(`/dex/pairs/${pair}/swaps?order=asc`);
    expect(swaps.map(({ price, amount1Out }) => [price, amount1Out])).toEqual([
      ["1", String(outs[0])],
      ["3", String(outs[1])],
    ]);
    expect(await stage.all(`/dex/swaps?account=${bob.address}`)).toHaveLength(2);
    expect(await stage.all(`/dex/pairs/${pair}/liquidity`)).toMatchObject([{ kind: "mint" }]);
    const candles = await stage.all(`/dex/pairs/${pair}/candles?interval=1w`);
    expect(candles).toMatchObject([{ open: "1", high: "3", low: "1", close: "3", swaps: 2 }]);
  });

  it("exports all rows with the hash of the file, of a type that its description names", async () => {
    const { paths } = parse(readFileSync("openapi/indexer.yaml", "utf8"));
    const described = paths["/v1/exports/{id}/file"].get.responses["200"].content;
    for (const format of ["csv", "jsonl"]) {
      const { state, bytes, type } = await exported({ kind: "transfers", format });
      expect(Object.keys(described)).toContain(type);
      const { rows } = await stage.sql.query("SELECT count(*)::integer AS n FROM indexer.transfer");
      expect(state).toMatchObject({ status: "done", rows: rows[0].n });
      expect(createHash("sha256").update(bytes).digest("hex")).toBe(state.sha256);
      const lines = bytes.toString("utf8").trimEnd().split("\n");
      expect(lines).toHaveLength(format === "csv" ? rows[0].n + 1 : rows[0].n);
      if (format === "jsonl") expect(JSON.parse(lines[0] ?? "")).toMatchObject({ asset: "TOKEN" });
    }
  });

  it("exports swaps with what is known of their pair, since anybody can log them", async () => {
    const { bytes } = await exported({ kind: "swaps", format: "jsonl" });
    const lines = bytes.toString("utf8").trimEnd().split("\n");
    const told = lines.map((line) => JSON.parse(line));
    const shown = await stage.all("/dex/swaps?order=asc");
    expect(told.map(({ id, is_confirmed }: Json) => [id, is_confirmed])).toEqual(
      shown.map(({ id, isConfirmed }) => [id, String(isConfirmed)]),
    );
  });

  it("exports nothing but what was asked for", async () => {
    const asset = places.AAA;
    for (const [fields, status] of [
      [{ kind: "transfers", asset, fromBlock: 1 }, 202],
      [{ kind: "balances", asset, toBlock: 3 }, 202],
      [{ kind: "transactions", asset }, 422],
      [{ kind: "swaps", asset }, 422],
      [{ kind: "balances", fromBlock: 1 }, 422],
      // Nor the balances of now for those of a block to come.
      [{ kind: "balances", toBlock: 1_000_000 }, 404],
      [{ kind: "transfers", toBlock: 1_000_000 }, 202],
      [{ kind: "transfers", fromBlock: 3, toBlock: 2 }, 422],
      // Not the newest block instead of one that is not there.
      [{ kind: "transfers", fromBlock: 1_000_000, toBlock: 1_000_001 }, 404],
      [{ kind: "transfers", address: bob.address.slice(2) }, 202],
      [{ kind: "transfers", address: "addr1x" }, 422],
    ] as const) {
      const reply = await fetch(`${stage.url}/v1/exports`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ format: "csv", ...fields }),
      });
      expect({ fields, status: reply.status }).toEqual({ fields, status });
    }
  });

  it("knows an account in every form of its address", async () => {
    const words = bech32.toWords(getBytes(bob.address));
    for (const form of [
      bob.address,
      bob.address.slice(2).toUpperCase(),
      bob.address.toLowerCase(),
      bech32.encode("addr", words),
      bech32.encode("addr", words).toUpperCase(),
      bech32.encode("addrvaloper", words),
    ]) {
      expect((await stage.get(`/addresses/${form}`)).address.evm).toBe(bob.address);
    }
    const mixed = bech32.encode("addr", words).replace("addr1", "Addr1");
    for (const form of [mixed, `${bob.address}0`, bech32.encode("cosmos", words)]) {
      expect((await stage.refusal(`/addresses/${form}`)).status).toBe(422);
    }
  });

  it("tells readers of each block, from where they left off", async () => {
    const ending = new AbortController();
    const reply = await fetch(`${stage.url}/v1/stream`, {
      headers: { "last-event-id": String(stage.height - 1) },
      signal: ending.signal,
    });
    await stage.mine({ to: bob.address, value: 9n });
    let text = "";
    for await (const piece of reply.body ?? []) {
      text += Buffer.from(piece).toString("utf8");
      if (text.includes(`id: ${stage.height}:0x`)) break;
    }
    ending.abort();
    expect(text).toContain(`id: ${stage.height - 1}:0x`);
  });
});
