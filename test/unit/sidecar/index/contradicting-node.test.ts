/** The index over a node that has another chain, lacks blocks or is behind: halted, named, mended. */
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { Transaction, Wallet } from "ethers";
import { until } from "../../../helpers/until.js";
import { ALICE, BOB, hashOf, journals } from "../../../helpers/chains/journal-chain.js";
import { RpcFault } from "../../../helpers/chains/fake-node.js";
import { CURRENCY } from "../../../helpers/chains/known-tokens.js";
import { call } from "../servers.js";
import {
  newFolder,
  startNode,
  start,
  extend,
  callsOver,
  journalReads,
  block,
  ready,
  closeAll,
} from "./index-bench.js";

afterEach(closeAll);

/** Blocks of another chain from the first on. */
const foreign = () =>
  journals().map((journal) => ({
    ...journal,
    blockHash: hashOf(`foreign ${String(journal["blockNumber"])}`),
  }));

/** Level and code of each line of a log. */
const told = (logLines: readonly string[]) =>
  logLines.map((line) => {
    const { level, code } = JSON.parse(line) as { level: string; code: string };
    return `${level} ${code}`;
  });

describe("a node that has deleted the state before the next block", () => {
  it("halts the index with the reason on /ready, as one that has deleted the block", async () => {
    const blocks = journals();
    const node = await startNode({}, blocks);
    const online = start(node);
    await online.indexed(2);
    extend(blocks, 1);
    // What the block did to claims cannot be told any more.
    const last = blocks.at(-1);
    blocks.splice(-1, 1, { ...last, claims: null });
    await until(() => online.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    const { ready: isReady, reason } = await ready(online);
    expect(isReady).toBe(false);
    expect(reason).toMatch(
      /^block 3 is the next .* deleted it or its state: connect a node that keeps all/,
    );
    expect((await block(online, 3)).body.code).toBe(106);
  });
});

describe("a node that lacks blocks of the index", () => {
  it("does not say for good that the chain has no block of a hash", async () => {
    const blocks = journals();
    const node = await startNode({}, blocks);
    const online = start(node);
    await online.indexed(2);
    const hash = hashOf("a block to come");
    const ask = async () => {
      const { body } = await call(online.server, "/block", { block_identifier: { hash } });
      return [body.code, body.retriable];
    };
    expect(await ask()).toEqual([201, false]);
    const [last = {}] = blocks.splice(2, 1);
    expect(await ask()).toEqual([103, true]);
    blocks.push(last);
    expect(await ask()).toEqual([201, false]);
  });
});

describe("a node whose journal does not add up to what it says was minted", () => {
  it("stops the index, and the log tells it as a fault for people", async () => {
    const blocks = journals();
    const logLines: string[] = [];
    const online = start(await startNode({}, blocks), { logLines });
    await online.indexed(2);
    extend(blocks, 1);
    blocks.splice(-1, 1, { ...blocks.at(-1), minted: "0x6" });
    await until(() => online.index.follower.fault() !== undefined, { timeoutMs: 10_000 });
    expect(told(logLines)).toEqual(["error JOURNAL_INCONSISTENT"]);
    expect(online.index.blocks.tip()?.index).toBe(2);
  });
});

describe("a node that cannot serve the next block, and was away before", () => {
  it("is told in the log, though it words that as any refusal", async () => {
    const blocks = journals();
    const logLines: string[] = [];
    const node = await startNode({}, blocks);
    const online = start(node, { logLines });
    await online.indexed(2);
    const failing = (method: string, code: number, text: string) =>
      node.methods.set(method, () => {
        throw new RpcFault(code, text);
      });
    const heads = node.methods.get("eth_getBlockByNumber");
    failing("eth_getBlockByNumber", -32_005, "not yet");
    await until(() => told(logLines).length > 0, { timeoutMs: 10_000 });
    failing("causeway_getBlockJournal", -32_603, "the block is not served");
    extend(blocks, 1);
    node.methods.set("eth_getBlockByNumber", heads ?? (() => undefined));
    await until(() => told(logLines).length > 1, { timeoutMs: 10_000 });
    expect(told(logLines)).toEqual(["warn NODE_BUSY", "error NODE_REFUSED"]);
  });
});

describe("a node that contradicts the index", () => {
  it("halts it with the reason on /ready; nothing is overwritten, and the right node mends it", async () => {
    const blocks = journals();
    const node = await startNode({}, blocks);
    const online = start(node);
    await online.indexed(2);
    const known = await block(online, 2);
    const other = blocks.slice(0, 2);
    extend(other, 2, "other");
    const own = blocks.splice(2, 1, ...other.slice(2));
    await until(() => online.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    expect((await ready(online)).reason).toContain("blocks are final");
    expect((await block(online, 2)).text).toBe(known.text);
    const tip = await call(online.server, "/block", { block_identifier: {} });
    expect([tip.status, tip.body.code]).toEqual([500, 106]);
    expect((await block(online, 3)).body.code).toBe(106);
    // How far it stays behind is told all the while.
    extend(blocks, 20, "other");
    await until(() => online.index.follower.nodeHead() === 23, { timeoutMs: 10_000 });
    blocks.splice(2, blocks.length, ...own);
    await until(() => online.index.follower.halted() === undefined, { timeoutMs: 10_000 });
    expect((await call(online.server, "/block", { block_identifier: {} })).text).toBe(known.text);
  });

  it("gives no state of its own under a block of the index, whether halted or not yet met", async () => {
    const folder = newFolder();
    const first = start(await startNode({}, journals()), { folder });
    await first.indexed(2);
    await first.rpc.close();
    const blocks = journals().slice(0, 2);
    extend(blocks, 3, "other");
    const node = await startNode(callsOver(blocks), blocks);
    const second = start(node, { folder });
    const balance = (index: number) =>
      call(second.server, "/account/balance", {
        account_identifier: { address: ALICE },
        block_identifier: { index },
      });
    const ethCall = (index: number) =>
      call(second.server, "/call", { method: "eth_call", parameters: { to: ALICE, index } });
    const answers = async () => {
      const asked = [balance(1), ethCall(1), balance(2), ethCall(2)];
      return (await Promise.all(asked)).map(({ status, body }) => body.code ?? status);
    };
    expect(await answers()).toEqual([200, 200, 106, 106]);
    await until(() => second.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    expect(await answers()).toEqual([200, 200, 106, 106]);
  });

  it("is not taken for the right one before it was compared, at a start or behind an outage", async () => {
    const folder = newFolder();
    const first = start(await startNode({}, journals()), { folder });
    await first.indexed(2);
    await first.rpc.close();
    const blocks = journals();
    const node = await startNode({ eth_getTransactionCount: () => "0x7" }, blocks);
    const whole = node.methods.get("eth_getBlockByNumber");
    // It answers, and what it would be compared by not yet.
    const hold = () =>
      node.methods.set("eth_getBlockByNumber", () => {
        throw new RpcFault(-32_005, "not yet");
      });
    const release = () => node.methods.set("eth_getBlockByNumber", whole ?? (() => undefined));
    hold();
    const second = start(node, { folder });
    const options = { from: ALICE, to: BOB, value: "1", currency: CURRENCY, data: "0x" };
    const codes = async () => {
      const asked = [
        call(second.server, "/block", { block_identifier: {} }),
        call(second.server, "/network/status"),
        call(second.server, "/construction/metadata", { options }),
      ];
      const answers = await Promise.all(asked);
      return answers.map(({ status, body }) => (status === 200 ? status : body.code));
    };
    expect(await codes()).toEqual([104, 104, 104]);
    // What the index has by its own is there all the same.
    expect((await block(second, 2)).status).toBe(200);
    release();
    await until(() => second.index.follower.fault() === undefined, { timeoutMs: 10_000 });
    expect(await codes()).toEqual([200, 200, 200]);
    hold();
    await until(() => second.index.follower.fault() !== undefined, { timeoutMs: 10_000 });
    expect(await codes()).toEqual([104, 104, 104]);
    // Another chain is behind the same address when it is there again.
    const other = blocks.slice(0, 2);
    extend(other, 1, "other");
    blocks.splice(2, 1, ...other.slice(2));
    release();
    expect(await codes()).toEqual([106, 106, 106]);
    expect(second.index.follower.halted()).toContain("blocks are final");
  });

  it("is asked for no nonce, pool or receipt of its chain, and is sent nothing", async () => {
    const folder = newFolder();
    const first = start(await startNode({}, journals()), { folder });
    await first.indexed(2);
    await first.rpc.close();
    const blocks = journals().slice(0, 2);
    extend(blocks, 3, "other");
    const wallet = new Wallet(`0x${"11".repeat(32)}`);
    const signed_transaction = await wallet.signTransaction({
      type: 0,
      chainId: 6940,
      to: BOB,
      value: 1n,
      nonce: 5,
      gasLimit: 21_000n,
      gasPrice: 25_000_000n,
    });
    const { hash } = Transaction.from(signed_transaction);
    const node = await startNode(
      {
        eth_getTransactionCount: () => "0x0",
        eth_getTransactionReceipt: () => ({ transactionHash: hash, status: "0x1" }),
        eth_sendRawTransaction: () => hash,
      },
      blocks,
    );
    const second = start(node, { folder });
    await until(() => second.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    const options = { from: ALICE, to: BOB, value: "1", currency: CURRENCY, data: "0x" };
    const receipt = { method: "eth_getTransactionReceipt", parameters: { tx_hash: hash } };
    for (const [path, fields] of [
      ["/construction/metadata", { options }],
      ["/construction/submit", { signed_transaction }],
      ["/call", receipt],
      ["/mempool", {}],
    ] as const) {
      const { status, body } = await call(second.server, path, fields);
      expect([path, status, body.code]).toEqual([path, 500, 106]);
      expect(JSON.stringify(body.details)).toContain("blocks are final");
    }
    const asked = node.calls.map(({ method }) => method);
    expect(asked).not.toContain("eth_getTransactionCount");
    expect(asked).not.toContain("eth_sendRawTransaction");
  });

  it("halts it when it has deleted the next block, and says what to do; an archive mends it", async () => {
    const blocks = journals();
    extend(blocks, 20);
    const folder = newFolder();
    const first = start(await startNode({}, blocks.slice(0, 5)), { folder });
    await first.indexed(4);
    await first.rpc.close();
    const node = await startNode({}, blocks);
    const whole = node.methods.get("eth_getBlockByNumber");
    let base = 9;
    node.methods.set("eth_getBlockByNumber", (params) => {
      const height = String(params[0]).startsWith("0x") ? Number(params[0]) : undefined;
      const isGone = height !== undefined && height > 0 && height < base;
      if (isGone) throw new RpcFault(4444, "pruned history unavailable");
      return whole?.(params);
    });
    const second = start(node, { folder });
    await until(() => second.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    const { reason } = await ready(second);
    expect(reason).toContain("block 5 is the next that the index in");
    expect(reason).toContain("connect a node that keeps all blocks and states");
    expect(reason).toContain("min-retain-blocks = 0");
    // What is indexed is served all the same; what is missing is never just "not there yet".
    expect((await block(second, 4)).status).toBe(200);
    expect((await block(second, 6)).body.code).toBe(106);
    expect((await call(second.server, "/network/status")).body.code).toBe(106);
    // It is of the same chain: what it says of prices and balances is true.
    const facts = { nonce: "1", gas_limit: "21000", data: "0x" };
    const options = { from: ALICE, to: BOB, value: "1", currency: CURRENCY, ...facts };
    const built = await call(second.server, "/construction/metadata", { options });
    expect(built.status).toBe(200);
    base = 5;
    await second.indexed(22);
    expect(second.index.follower.halted()).toBeUndefined();
    const { body } = await call(second.server, "/network/status");
    expect(body).toMatchObject({ oldest_block_identifier: { index: 0 } });
  });

  it("halts it when the node keeps no journal, and says what to connect", async () => {
    const node = await startNode({}, journals());
    node.methods.delete("causeway_getBlockJournal");
    const server = start(node, { folder: newFolder() });
    await until(() => server.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    const { reason } = await ready(server);
    expect(reason).toContain("the node behind node.url has no causeway_getBlockJournal");
    expect(reason).toContain("connect one");
  });

  it("halts it when a new block has another parent", async () => {
    const blocks = journals();
    const node = await startNode({}, blocks);
    const online = start(node);
    await online.indexed(2);
    extend(blocks, 1);
    Object.assign(blocks[3] ?? {}, { parentHash: hashOf("somebody else") });
    await until(() => online.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    expect(online.index.follower.halted()).toContain("block 3");
    const attempts = journalReads(node);
    // It tries again in case the node is mended, and is halted all the while.
    let wasMended = false;
    await until(
      () => {
        wasMended ||= online.index.follower.halted() === undefined;
        return journalReads(node) >= attempts + 2;
      },
      { timeoutMs: 20_000 },
    );
    expect(wasMended).toBe(false);
    expect(online.index.blocks.tip()?.index).toBe(2);
  });

  it("is of another genesis behind an outage: nothing is served, also not what was before", async () => {
    const blocks = journals();
    const node = await startNode({}, blocks);
    const online = start(node);
    await online.indexed(2);
    expect((await block(online, 1)).status).toBe(200);
    const whole = node.methods.get("eth_getBlockByNumber");
    node.methods.set("eth_getBlockByNumber", () => {
      throw new RpcFault(-32_005, "not yet");
    });
    await until(() => online.index.follower.fault() !== undefined, { timeoutMs: 10_000 });
    blocks.splice(0, blocks.length, ...foreign());
    node.methods.set("eth_getBlockByNumber", whole ?? (() => undefined));
    await until(() => online.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    // The same bytes as before, and others that mean the same.
    for (const block_identifier of [{ index: 1 }, { index: 1, hash: hashOf("block 1") }]) {
      const { body } = await call(online.server, "/block", { block_identifier });
      expect({ block_identifier, code: body.code }).toEqual({ block_identifier, code: 106 });
    }
  });

  it("is told in the log where it comes back behind an outage, once, as a fault for people", async () => {
    const blocks = journals();
    const node = await startNode({}, blocks);
    const logLines: string[] = [];
    const online = start(node, { logLines });
    await online.indexed(2);
    const latest = node.methods.get("eth_getBlockByNumber");
    node.methods.set("eth_getBlockByNumber", () => {
      throw new RpcFault(-32_005, "not yet");
    });
    await until(() => online.index.follower.fault() !== undefined, { timeoutMs: 10_000 });
    blocks.splice(0, blocks.length, ...foreign());
    node.methods.set("eth_getBlockByNumber", latest ?? (() => undefined));
    await until(() => online.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    // It goes on looking, and finds the same.
    const looks = () => node.calls.filter(({ method }) => method === "eth_getBlockByNumber").length;
    const before = looks();
    await until(
      () => {
        online.index.follower.wake();
        return looks() > before + 2;
      },
      { timeoutMs: 20_000 },
    );
    expect(told(logLines)).toEqual(["warn NODE_BUSY", "error INDEX_FOREIGN"]);
  });

  it("is refused where it is of another genesis, with the remedy", async () => {
    const folder = newFolder();
    const first = start(await startNode(), { folder });
    await first.indexed(2);
    await first.rpc.close();
    const second = start(await startNode({}, foreign()), { folder });
    await until(() => second.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    const { reason } = await ready(second);
    expect(reason).toContain("belongs to another chain");
    expect(reason).toContain(join(folder, "sidecar"));
    expect((await block(second, 0)).body.code).toBe(106);
  });

  it("is of another chain id: nothing is indexed of it, and the right node mends it", async () => {
    const node = await startNode({ eth_chainId: () => "0x1b1d" }, journals());
    const online = start(node);
    const asks = [
      ["/network/status", {}],
      ["/block", { block_identifier: { index: 0 } }],
      ["/mempool", {}],
    ] as const;
    const answers = () =>
      Promise.all(
        asks.map(async ([path, fields]) => {
          const { status, body } = await call(online.server, path, fields);
          return [path, status, body.code];
        }),
      );
    // Those that come before the node was met wait for it, and those behind it are told at once.
    const refused = asks.map(([path]) => [path, 500, 105]);
    expect(await answers()).toEqual(refused);
    await until(() => online.index.follower.halted() !== undefined, { timeoutMs: 10_000 });
    expect(await answers()).toEqual(refused);
    expect(online.index.follower.halted()).toContain("serves chain 6941");
    expect(online.index.blocks.tip()).toBeUndefined();
    expect(journalReads(node)).toBe(0);
    node.methods.set("eth_chainId", () => "0x1b1c");
    await online.indexed(2);
    const status = await call(online.server, "/network/status");
    expect(status.body).toMatchObject({ current_block_identifier: { index: 2 } });
    expect((await block(online, 0)).status).toBe(200);
  });

  it("is waited for while it is behind", async () => {
    const folder = newFolder();
    const first = start(await startNode(), { folder });
    await first.indexed(2);
    await first.rpc.close();
    const blocks = journals().slice(0, 2);
    const second = start(await startNode(callsOver(blocks), blocks), { folder });
    const { body } = await call(second.server, "/network/status");
    expect(body).toMatchObject({ current_block_identifier: { index: 2 } });
    expect((await ready(second)).reason).toBe("the node is at block 1, the index already at 2");
    expect((await block(second, 2)).status).toBe(200);
    for (const block_identifier of [{}, { index: 2 }, { hash: hashOf("block 2") }]) {
      const { body: refusal } = await call(second.server, "/account/balance", {
        account_identifier: { address: ALICE },
        block_identifier,
      });
      const { code, retriable } = refusal;
      expect({ block_identifier, code, retriable }).toEqual({
        block_identifier,
        code: 103,
        retriable: true,
      });
    }
    const parameters = { to: ALICE, index: 2 };
    const asked = await call(second.server, "/call", { method: "eth_call", parameters });
    expect([asked.body.code, asked.body.retriable]).toEqual([103, true]);
    // Nonces that it calls free were used in blocks that it lacks, and receipts are there.
    const options = { from: ALICE, to: BOB, value: "1", currency: CURRENCY, data: "0x" };
    const receipt = { method: "eth_getTransactionReceipt", parameters: { tx_hash: hashOf("x") } };
    for (const [path, fields] of [
      ["/construction/metadata", { options }],
      ["/call", receipt],
      ["/mempool", {}],
    ] as const) {
      const { body: refusal } = await call(second.server, path, fields);
      const { code, retriable } = refusal;
      expect({ path, code, retriable }).toEqual({ path, code: 103, retriable: true });
    }
  });
});
