/**
 * A whole node that prunes blocks and states: what each method answers about what is gone, restarts,
 * SIGKILL in the middle of a deletion, a full node that finds nobody with its next block, the end
 * at halt-height.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { DEFAULT_PORTS } from "../../../chain/networks.js";
import { createTestnet } from "../../../cli/home/network/testnet.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { endedBy, endOf } from "../../helpers/processes/endings.js";
import { kitOffset, readyDoctor } from "../../helpers/kit.js";
import { type NodeProcess, startNodeProcess } from "../../helpers/processes/node-process.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { until } from "../../helpers/until.js";

/**
 * The full node lies 100 behind, at the place of another worker's kits: 2 is far enough from what those
 * add to theirs (0, 4, 9) that none of a node's ports (1, 3 and 4 apart) meet.
 */
const OFFSET = kitOffset(1) + 2;
const FULL_OFFSET = OFFSET + 100;
const TIMEOUT_MS = 600_000;
const RETAINED_BLOCKS = 20;

interface Answer {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

async function post(port: number, method: string, params: unknown): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${port}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  return (await response.json()) as Answer;
}

const evm = (method: string, ...params: unknown[]) =>
  post(DEFAULT_PORTS.jsonRpc + OFFSET, method, params);
const comet = (method: string, params: Record<string, unknown> = {}) =>
  post(DEFAULT_PORTS.cometRpc + OFFSET, method, params);

interface SyncInfo {
  readonly latest: number;
  readonly earliest: number;
}

async function syncInfo(offset = OFFSET): Promise<SyncInfo | undefined> {
  const answer = await post(DEFAULT_PORTS.cometRpc + offset, "status", {}).catch(() => undefined);
  if (answer === undefined) return undefined; // Not listening yet.
  const { sync_info: info } = answer.result as {
    sync_info: { latest_block_height: string; earliest_block_height: string };
  };
  return {
    latest: Number(info.latest_block_height),
    earliest: Number(info.earliest_block_height),
  };
}

const hex = (height: number) => `0x${height.toString(16)}`;

describe("a node that prunes", () => {
  let out = "";
  let home = "";
  let node: NodeProcess;
  let faucet: Wallet;
  /** Of the block with the transaction, which is pruned later. */
  let early: { height: number; block: string; tx: string; sdk: string; consensus: string };
  const running: NodeProcess[] = [];

  async function start(
    where: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<NodeProcess> {
    const started = await startNodeProcess(where, [], env);
    running.push(started);
    return started;
  }

  const untilBase = (base: number) =>
    until(
      async () => {
        if (node.process.exitCode !== null) throw new Error(`it ended: ${node.errors()}`);
        return ((await syncInfo())?.earliest ?? 0) >= base;
      },
      { timeoutMs: 60_000, what: `a base of ${base}` },
    );

  function setApp(values: Readonly<Record<string, string>>): void {
    const file = path.join(home, "config", "app.toml");
    let text = fs.readFileSync(file, "utf8");
    for (const [key, value] of Object.entries(values)) {
      const next = text.replace(new RegExp(`^${key} = .*$`, "m"), `${key} = ${value}`);
      expect([key, next === text]).toEqual([key, false]);
      text = next;
    }
    fs.writeFileSync(file, text);
  }

  beforeAll(async () => {
    await compiledFolder();
    out = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-pruned-"));
    const testnet = await createTestnet({
      out: path.join(out, "net"),
      validators: 1,
      fullNodes: 1,
      portOffset: OFFSET,
      blockIntervalMs: 100,
      clock: systemClock,
    });
    home = path.join(out, "net", "node0");
    faucet = new Wallet(fs.readFileSync(testnet.faucetKeyFile, "utf8").trim());
    for (const { home: one } of testnet.nodes) {
      const file = path.join(one, "config", "genesis.json");
      const genesis = JSON.parse(fs.readFileSync(file, "utf8")) as { params: object };
      Object.assign(genesis.params, { evidenceMaxAgeBlocks: 5, evidenceMaxAgeMs: 500 });
      fs.writeFileSync(file, JSON.stringify(genesis));
    }
    node = await start(home);
    await until(async () => ((await syncInfo())?.latest ?? 0) >= 1, { timeoutMs: 60_000 });
    const raw = await faucet.signTransaction({
      type: 0,
      chainId: 6940,
      nonce: 0,
      gasPrice: 25_000_000n,
      gasLimit: 21_000n,
      to: `0x${"77".repeat(20)}`,
      value: 5n,
    });
    const tx = (await evm("eth_sendRawTransaction", raw)).result as string;
    await until(async () => (await evm("eth_getTransactionReceipt", tx)).result !== null, {
      timeoutMs: 60_000,
    });
    const receipt = (await evm("eth_getTransactionReceipt", tx)).result as Record<string, string>;
    const height = Number(receipt["blockNumber"]);
    const block = (await comet("block", { height: String(height) })).result as {
      block_id: { hash: string };
      block: { data: { txs: string[] } };
    };
    const bytes = Buffer.from(block.block.data.txs[0] ?? "", "base64");
    const digest = await crypto.subtle.digest("SHA-256", bytes);
    early = {
      height,
      block: receipt["blockHash"] ?? "",
      tx,
      sdk: Buffer.from(digest).toString("base64"),
      consensus: block.block_id.hash,
    };
    expect((await comet("tx", { hash: early.sdk })).error).toBeUndefined();
    // Not before: what is pruned is sooner gone than a busy machine reads it.
    node.process.kill("SIGTERM");
    expect(await endOf(node)).toEqual(endedBy(0));
    setApp({ pruning: '"everything"', "min-retain-blocks": String(RETAINED_BLOCKS) });
    node = await start(home);
    await untilBase(height + 5);
  }, TIMEOUT_MS);

  afterAll(async () => {
    for (const one of running) {
      one.process.kill("SIGKILL");
      await one.ended;
    }
    fs.rmSync(out, { recursive: true, force: true });
  }, TIMEOUT_MS);

  it("keeps as many blocks as it was told, and its own genesis", async () => {
    const kept = async () => {
      const info = await syncInfo();
      return (info?.latest ?? 0) - (info?.earliest ?? 0);
    };
    expect(await kept()).toBeGreaterThanOrEqual(RETAINED_BLOCKS);
    await until(async () => (await kept()) < RETAINED_BLOCKS + 40, {
      timeoutMs: 60_000,
      what: "nothing more is kept",
    });
    expect(await kept()).toBeGreaterThanOrEqual(RETAINED_BLOCKS);
    const genesis = (await evm("eth_getBlockByNumber", "0x0", false)).result;
    expect(genesis).toMatchObject({ number: "0x0" });
    expect(await evm("eth_getBlockByNumber", "earliest", false)).toMatchObject({ result: genesis });
    expect((await comet("genesis")).result).toMatchObject({
      genesis: { chain_id: "chain_6940-1" },
    });
    expect((await evm("eth_getBalance", faucet.address, "latest")).error).toBeUndefined();
  });

  it("answers 4444 to every EVM method that names a pruned height", async () => {
    const at = hex(early.height);
    const { address } = faucet;
    const transfer = { from: address, to: `0x${"77".repeat(20)}`, value: "0x1" };
    const calls: readonly (readonly [string, ...unknown[]])[] = [
      ["eth_getBlockByNumber", at, true],
      ["eth_getHeaderByNumber", at],
      ["eth_getBlockReceipts", at],
      ["eth_getBlockTransactionCountByNumber", at],
      ["eth_getUncleCountByBlockNumber", at],
      ["eth_getTransactionByBlockNumberAndIndex", at, "0x0"],
      ["eth_getRawTransactionByBlockNumberAndIndex", at, "0x0"],
      ["eth_getBalance", address, at],
      ["eth_getBalance", address, "earliest"],
      ["eth_getTransactionCount", address, at],
      ["eth_getCode", address, at],
      ["eth_getStorageAt", address, "0x0", at],
      ["eth_getProof", address, [], at],
      ["eth_call", transfer, at],
      ["eth_estimateGas", transfer, at],
      ["eth_createAccessList", transfer, at],
      ["eth_getLogs", { fromBlock: at, toBlock: at }],
      ["eth_getLogs", { fromBlock: "earliest", toBlock: "latest" }],
      ["eth_feeHistory", "0x1", at, []],
      ["debug_traceBlockByNumber", at],
      ["debug_traceCall", transfer, at],
      ["debug_getRawBlock", at],
      ["debug_getRawHeader", at],
      ["debug_getRawReceipts", at],
      ["causeway_getAccountJournal", address, "0x1", at],
      ["causeway_getAccountJournal", address, "0x0", "0x7fffffff"],
      ["causeway_getAccountHeights", address, "0x1", at],
    ];
    const pruned = { code: 4444, message: "pruned history unavailable" };
    for (const [method, ...params] of calls) {
      const { error } = await evm(method, ...params);
      expect([method, params, error]).toEqual([method, params, pruned]);
    }
  });

  it("begins a history of fees at the oldest block that it has", async () => {
    const before = (await syncInfo())?.earliest ?? 0;
    const { result } = await evm("eth_feeHistory", "0x3e8", "latest", []);
    const { oldestBlock } = result as { oldestBlock: string };
    expect(Number(oldestBlock)).toBeGreaterThanOrEqual(before);
    expect(before).toBeGreaterThan(early.height);
  });

  it("does not know the hashes of what is pruned", async () => {
    const calls: readonly (readonly [string, unknown[], unknown])[] = [
      ["eth_getBlockByHash", [early.block, true], null],
      ["eth_getHeaderByHash", [early.block], null],
      ["eth_getBlockReceipts", [early.block], null],
      ["eth_getBlockTransactionCountByHash", [early.block], null],
      ["eth_getUncleCountByBlockHash", [early.block], null],
      ["eth_getTransactionByBlockHashAndIndex", [early.block, "0x0"], null],
      ["eth_getRawTransactionByBlockHashAndIndex", [early.block, "0x0"], null],
      ["eth_getTransactionByHash", [early.tx], null],
      ["eth_getTransactionReceipt", [early.tx], null],
      ["eth_getRawTransactionByHash", [early.tx], null],
      ["causeway_getBlockJournal", [early.block], null],
      ["debug_getRawTransaction", [early.tx], "0x"],
      ["causeway_getTransactionStatus", [early.tx], { status: "unknown" }],
      ["eth_getBalance", [faucet.address, { blockHash: early.block }], "header not found"],
      ["eth_getLogs", [{ blockHash: early.block }], "unknown block"],
      ["debug_traceTransaction", [early.tx], "transaction not found"],
      ["debug_traceBlockByHash", [early.block], `block ${early.block} not found`],
    ];
    for (const [method, params, expected] of calls) {
      const { result, error } = await evm(method, ...params);
      expect([method, error === undefined ? result : error.message]).toEqual([method, expected]);
    }
  });

  it("answers the consensus RPC in CometBFT's words, naming the lowest height", async () => {
    const height = String(early.height);
    const refusal = /^height [0-9]+ is not available, lowest height is [0-9]+$/;
    const refused: readonly (readonly [string, Record<string, unknown>])[] = [
      ["block", { height }],
      ["header", { height }],
      ["commit", { height }],
      ["block_results", { height }],
      ["validators", { height }],
      ["consensus_params", { height }],
      ["tx_search", { query: "tx.height>0" }],
      ["tx_search", { query: `tx.height=${height}` }],
      ["block_search", { query: "block.height>0" }],
    ];
    for (const [method, params] of refused) {
      const { error } = await comet(method, params);
      expect([method, params, error?.code]).toEqual([method, params, -32603]);
      expect(String(error?.data)).toMatch(refusal);
    }
    expect((await comet("blockchain", { minHeight: "1", maxHeight: height })).error).toMatchObject({
      code: -32603,
      data: expect.stringMatching(/^min height [0-9]+ can't be greater than max height/),
    });
    expect((await comet("blockchain", {})).error).toBeUndefined();
    const hash = Buffer.from(early.consensus, "hex").toString("base64");
    expect((await comet("block_by_hash", { hash })).result).toMatchObject({ block: null });
    expect((await comet("header_by_hash", { hash: early.consensus })).result).toEqual({
      header: null,
    });
    expect((await comet("tx", { hash: early.sdk })).error?.data).toMatch(/^tx \(.*\) not found$/);
    // From the newest height on: the next time it may be pruned by the time that a busy node is asked.
    for (const [method, what] of [
      ["tx_search", "tx.height"],
      ["block_search", "block.height"],
    ] as const) {
      const search = async () => {
        const from = (await syncInfo())?.latest;
        const { error } = await comet(method, { query: `${what}>=${from}` });
        return error === undefined;
      };
      await until(search, { timeoutMs: 60_000, what: `an answer of ${method}` });
    }
    // Nobody has taken it: whoever does is found in the blocks that are here, so no height has to be named.
    const untaken = `tx.acc_seq='addr144zj4skevw884v0pa0d5tg9vpl9qm6e8sa4xqr/7'`;
    expect((await comet("tx_search", { query: untaken })).result).toMatchObject({
      total_count: "0",
    });
    const block = await comet("abci_query", {
      path: "/cosmos.base.tendermint.v1beta1.Service/GetBlockByHeight",
      data: Buffer.from(Uint8Array.of(8, early.height)).toString("hex"),
    });
    expect((block.result as { response: { log: string } }).response.log).toMatch(
      /NotFound desc = height [0-9]+ is not available, lowest height is [0-9]+: key not found$/,
    );
    const { response } = (
      await comet("abci_query", {
        path: "/cosmos.bank.v1beta1.Query/TotalSupply",
        data: "",
        height,
      })
    ).result as { response: { code: number; codespace: string; log: string } };
    expect(response).toMatchObject({ code: 38, codespace: "sdk" });
    expect(response.log).toMatch(/^failed to load state at height .*: not found$/);
  });

  it("is told by the doctor, with what is pruned", async () => {
    const { code, stdout } = await readyDoctor({ home }, ["--json"]);
    const { checks } = JSON.parse(stdout) as {
      checks: { id: string; severity: string; value: string }[];
    };
    const failed = checks.filter(({ severity }) => severity === "fail");
    expect(failed).toEqual([]);
    expect(code).toBe(0);
    const history = checks.find(({ id }) => id === "history");
    expect(history?.value).toMatch(/^blocks from [0-9]+ on; pruning = "everything", min-retain/);
  });

  it("serves nobody who needs older blocks, and he is told what to do", async () => {
    const full = await start(path.join(out, "net", "full0"));
    await until(() => full.output().includes("no peer has the next block any more"), {
      timeoutMs: 120_000,
      what: "the advice of the node that finds no blocks",
    });
    expect(await syncInfo(FULL_OFFSET)).toMatchObject({ latest: 0 });
    full.process.kill("SIGTERM");
    expect(await endOf(full)).toEqual(endedBy(0));
  });

  it("goes on after a restart and after SIGKILL in the middle of a deletion", async () => {
    node.process.kill("SIGTERM");
    expect(await endOf(node)).toEqual(endedBy(0));
    node = await start(home, { CAUSEWAY_FAILPOINT: "pruner.after-write:15" });
    expect(await node.ended).toBe("SIGKILL");
    node = await start(home);
    await until(async () => (await syncInfo()) !== undefined, { timeoutMs: 60_000 });
    const base = (await syncInfo())?.earliest ?? 0;
    expect(base).toBeGreaterThan(early.height);
    await untilBase(base + 10);
    // Linked and whole from the base on, which moves on meanwhile: sooner than slow answers come.
    let parent: unknown;
    let height = (await syncInfo())?.earliest ?? 0;
    for (let whole = 0; whole < RETAINED_BLOCKS; ) {
      await until(async () => ((await syncInfo())?.latest ?? 0) >= height, { timeoutMs: 60_000 });
      const answer = await evm("eth_getBlockByNumber", hex(height), false);
      const results = await comet("block_results", { height: String(height) });
      const { earliest = 0 } = (await syncInfo()) ?? {};
      if (earliest > height) {
        parent = undefined;
        height = earliest;
        continue;
      }
      const { hash, parentHash } = answer.result as { hash: string; parentHash: string };
      if (parent !== undefined) expect([height, parentHash]).toEqual([height, parent]);
      expect([height, results.error]).toEqual([height, undefined]);
      parent = hash;
      whole++;
      height++;
    }
  });

  it("ends with code 0 at halt-height, and does not start above it", async () => {
    node.process.kill("SIGTERM");
    expect(await endOf(node)).toEqual(endedBy(0));
    const committed = node.output().match(/"height":([0-9]+)[^\n]*"block committed"/g) ?? [];
    const last = Number(/"height":([0-9]+)/.exec(committed.at(-1) ?? "")?.[1]);
    const haltHeight = last + 15;
    setApp({ "halt-height": String(haltHeight) });
    node = await start(home);
    expect(await endOf(node)).toEqual(endedBy(0));
    const told = () => node.output().match(/"height":[0-9]+[^\n]*halt-height of app.toml/)?.[0];
    expect(told()).toContain(`"height":${haltHeight},`);
    node = await start(home);
    expect(await endOf(node)).toEqual(endedBy(0));
    expect(told()).toContain(`"height":${haltHeight},`);
    expect(node.output()).not.toContain("block committed");
  });
});
