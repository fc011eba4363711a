/** Blocks, headers, transactions and receipts as JSON: shapes, and hashes that recompute. */
import { beforeAll, describe, expect, it } from "@jest/globals";
import { encodeRlp, keccak256, Transaction, Wallet } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { ZERO_HASH } from "../../../../chain/hex.js";
import { read } from "../../chain/cosmos/signed.js";
import { ALICE, BOB, createTestNode, signLegacy } from "./fixture.js";

type Json = Record<string, unknown>;

const node = createTestNode();
let raws: string[] = [];

beforeAll(async () => {
  raws = [
    await signLegacy(ALICE, { nonce: 0, to: BOB.address, value: 10n ** 18n }),
    await typed({
      type: 1,
      nonce: 1,
      to: BOB.address,
      gasPrice: 26_000_000n,
      accessList: [{ address: BOB.address, storageKeys: [ZERO_HASH] }],
    }),
    await typed({
      type: 2,
      nonce: 2,
      to: null,
      data: "0x6000",
      maxFeePerGas: 50_000_000n,
      maxPriorityFeePerGas: 30_000_000n,
    }),
  ];
  const log = { address: parseAddress(BOB.address), topics: [ZERO_HASH], data: Uint8Array.of(1) };
  node.chain.add(
    raws.map((raw, index) => ({
      raw,
      logs: index === 0 ? [] : [log],
      contractAddress: index === 2 ? parseAddress(BOB.address) : undefined,
    })),
  );
});

function typed(fields: object): Promise<string> {
  return ALICE.signTransaction({ chainId: 6940, gasLimit: 50_000, ...fields });
}

describe("blocks", () => {
  it("recomputes the block hash from the served header", async () => {
    const block = await node.call<Json>("eth_getBlockByNumber", "0x1", false);
    const quantity = (name: string) => {
      const hex = String(block[name]);
      return hex === "0x0" ? "0x" : hex.length % 2 === 0 ? hex : `0x0${hex.slice(2)}`;
    };
    const fields = [
      block["parentHash"],
      block["sha3Uncles"],
      block["miner"],
      block["stateRoot"],
      block["transactionsRoot"],
      block["receiptsRoot"],
      block["logsBloom"],
      quantity("difficulty"),
      quantity("number"),
      quantity("gasLimit"),
      quantity("gasUsed"),
      quantity("timestamp"),
      block["extraData"],
      block["mixHash"],
      block["nonce"],
    ].map(String);
    expect(keccak256(encodeRlp(fields))).toBe(block["hash"]);
  });

  it("has the size of its own raw encoding", async () => {
    for (const height of ["0x0", "0x1"]) {
      const block = await node.call<Json>("eth_getBlockByNumber", height, false);
      const raw = await node.call<string>("debug_getRawBlock", height);
      expect([height, Number(block["size"])]).toEqual([height, (raw.length - 2) / 2]);
    }
  });

  it("leaves out base fee, blob and withdrawal fields, so that clients send legacy", async () => {
    const block = await node.call<Json>("eth_getBlockByNumber", "latest", true);
    expect(Object.keys(block).toSorted()).toEqual(
      [
        "difficulty",
        "extraData",
        "gasLimit",
        "gasUsed",
        "hash",
        "logsBloom",
        "miner",
        "mixHash",
        "nonce",
        "number",
        "parentHash",
        "receiptsRoot",
        "sha3Uncles",
        "size",
        "stateRoot",
        "timestamp",
        "transactions",
        "transactionsRoot",
        "uncles",
      ].toSorted(),
    );
    expect(block["uncles"]).toEqual([]);
  });

  it("gives the same block by number, hash and tag, and null for an unknown one", async () => {
    const byNumber = await node.call<Json>("eth_getBlockByNumber", "0x1", false);
    for (const tag of ["latest", "safe", "finalized", "pending"]) {
      expect(await node.call("eth_getBlockByNumber", tag, false)).toEqual(byNumber);
    }
    expect(await node.call("eth_getBlockByHash", byNumber["hash"], false)).toEqual(byNumber);
    expect(await node.call("eth_getBlockByNumber", "0x99", false)).toBeNull();
    expect(await node.call("eth_getBlockByHash", ZERO_HASH, false)).toBeNull();
    expect(await node.call("eth_getBlockByNumber", "0xffffffffffffffff", false)).toBeNull();
    const genesis = await node.call<Json>("eth_getBlockByNumber", "earliest", false);
    expect(genesis["number"]).toBe("0x0");
  });

  it("counts transactions, and has no uncles", async () => {
    const { hash } = node.chain.head();
    expect(await node.call("eth_getBlockTransactionCountByNumber", "0x1")).toBe("0x3");
    expect(await node.call("eth_getBlockTransactionCountByHash", hash)).toBe("0x3");
    expect(await node.call("eth_getUncleCountByBlockNumber", "0x1")).toBe("0x0");
    expect(await node.call("eth_getUncleCountByBlockHash", ZERO_HASH)).toBeNull();
    expect(await node.call("eth_getUncleByBlockHashAndIndex", hash, "0x0")).toBeNull();
  });

  it("serves headers as blocks without transactions, size and uncles", async () => {
    const { transactions, size, uncles, ...rest } = await node.call<Json>(
      "eth_getBlockByNumber",
      "0x1",
      false,
    );
    expect([transactions, size, uncles].includes(undefined)).toBe(false);
    expect(await node.call("eth_getHeaderByNumber", "0x1")).toEqual(rest);
    expect(await node.call("eth_getHeaderByHash", rest["hash"])).toEqual(rest);
    const raw = await node.call<string>("debug_getRawHeader", "0x1");
    expect(keccak256(raw)).toBe(rest["hash"]);
  });
});

describe("transactions", () => {
  it("gives every field of each type as ethers decodes it", async () => {
    for (const [index, raw] of raws.entries()) {
      const wanted = Transaction.from(raw);
      const got = await node.call<Json>("eth_getTransactionByHash", wanted.hash);
      const label = `type ${wanted.type}`;
      expect([label, got["type"], BigInt(String(got["nonce"])), got["input"]]).toEqual([
        label,
        `0x${wanted.type}`,
        BigInt(wanted.nonce),
        wanted.data,
      ]);
      expect(got["from"]).toBe(ALICE.address.toLowerCase());
      expect(got["to"]).toBe(wanted.to === null ? null : wanted.to.toLowerCase());
      expect(BigInt(String(got["r"]))).toBe(BigInt(wanted.signature?.r ?? 0));
      expect(BigInt(String(got["s"]))).toBe(BigInt(wanted.signature?.s ?? 0));
      expect(got["chainId"]).toBe("0x1b1c");
      expect([got["transactionIndex"], got["blockNumber"]]).toEqual([`0x${index}`, "0x1"]);
      expect(got["blockTimestamp"]).toBe(`0x${(1_700_000_002).toString(16)}`);
      expect("yParity" in got).toBe(wanted.type !== 0);
      expect("accessList" in got).toBe(wanted.type !== 0);
      expect("maxFeePerGas" in got).toBe(wanted.type === 2);
    }
    const dynamic = await node.call<Json>("eth_getTransactionByBlockNumberAndIndex", "0x1", "0x2");
    expect(dynamic["gasPrice"]).toBe(`0x${(30_000_000).toString(16)}`);
  });

  it("gives the same object by hash, by place and inside the block", async () => {
    const block = await node.call<{ transactions: Json[]; hash: string }>(
      "eth_getBlockByNumber",
      "0x1",
      true,
    );
    for (const [index, tx] of block.transactions.entries()) {
      const at = `0x${index}`;
      expect(await node.call("eth_getTransactionByHash", tx["hash"])).toEqual(tx);
      expect(await node.call("eth_getTransactionByBlockNumberAndIndex", "0x1", at)).toEqual(tx);
      expect(await node.call("eth_getTransactionByBlockHashAndIndex", block.hash, at)).toEqual(tx);
      expect(await node.call("debug_getRawTransaction", tx["hash"])).toBe(raws[index]);
      expect(await node.call("eth_getRawTransactionByHash", tx["hash"])).toBe(raws[index]);
    }
    expect(await node.call("eth_getTransactionByBlockNumberAndIndex", "0x1", "0x3")).toBeNull();
    expect(await node.call("eth_getTransactionByHash", ZERO_HASH)).toBeNull();
  });

  it("shows a pool transaction with null places until it is mined", async () => {
    const raw = await signLegacy(Wallet.createRandom() as unknown as Wallet, {
      nonce: 0,
      to: BOB.address,
    });
    const wanted = Transaction.from(raw);
    const source = createTestNode();
    const { block } = source.chain.add([{ raw }]);
    const mined = block.transactions[0];
    if (mined === undefined) throw new Error("not mined");
    node.pool.pending.set(mined.tx.hash, mined);
    const pending = await node.call<Json>("eth_getTransactionByHash", wanted.hash);
    expect(pending["hash"]).toBe(wanted.hash);
    expect(
      ["blockHash", "blockNumber", "blockTimestamp", "transactionIndex"].map((key) => pending[key]),
    ).toEqual([null, null, null, null]);
    expect(await node.call("txpool_status")).toEqual({ pending: "0x1", queued: "0x2" });
    const content = await node.call<{ pending: Record<string, Json> }>("txpool_content");
    expect(content.pending[wanted.from ?? ""]?.["0"]).toEqual(pending);
    const inspected = await node.call<{ pending: Record<string, Json> }>("txpool_inspect");
    expect(inspected.pending[wanted.from ?? ""]?.["0"]).toBe(
      `${BOB.address}: 0 wei + 21000 gas × 25000000 wei`,
    );
    for (const method of ["eth_getRawTransactionByHash", "debug_getRawTransaction"]) {
      expect(await node.call(method, wanted.hash)).toBe(raw);
    }
    node.pool.pending.clear();
  });

  it("knows no Cosmos transaction of the pool, in any form", async () => {
    const tx = read();
    node.pool.pending.set(tx.hash, { tx, from: parseAddress(BOB.address) });
    for (const method of ["eth_getTransactionByHash", "eth_getRawTransactionByHash"]) {
      expect(await node.call(method, tx.hash)).toBeNull();
    }
    expect(await node.call("debug_getRawTransaction", tx.hash)).toBe("0x");
    node.pool.pending.clear();
  });
});

describe("receipts", () => {
  it("counts log indexes through the block and agrees between single and block form", async () => {
    const all = await node.call<Json[]>("eth_getBlockReceipts", "0x1");
    expect(all.map((receipt) => (receipt["logs"] as Json[]).map((log) => log["logIndex"]))).toEqual(
      [[], ["0x0"], ["0x1"]],
    );
    for (const receipt of all) {
      expect(await node.call("eth_getTransactionLogs", receipt["transactionHash"])).toEqual(
        receipt["logs"],
      );
      expect(await node.call("eth_getTransactionReceipt", receipt["transactionHash"])).toEqual(
        receipt,
      );
    }
    expect(all.map((receipt) => receipt["cumulativeGasUsed"])).toEqual([
      "0x5208",
      "0xa410",
      "0xf618",
    ]);
    expect(all.map((receipt) => receipt["contractAddress"])).toEqual([
      null,
      null,
      BOB.address.toLowerCase(),
    ]);
    expect(all[2]?.["to"]).toBeNull();
    expect(all[2]?.["effectiveGasPrice"]).toBe(`0x${(30_000_000).toString(16)}`);
    const [log] = (all[1]?.["logs"] ?? []) as Json[];
    expect(log).toMatchObject({ removed: false, data: "0x01", blockNumber: "0x1" });
    expect(log?.["blockTimestamp"]).toBe(`0x${(1_700_000_002).toString(16)}`);
    expect(all[0]).not.toHaveProperty("blockTimestamp");
  });

  it("is null for a transaction that is not mined", async () => {
    expect(await node.call("eth_getTransactionReceipt", ZERO_HASH)).toBeNull();
    expect(await node.call("eth_getTransactionLogs", ZERO_HASH)).toBeNull();
    expect(await node.call("eth_getBlockReceipts", "0x99")).toBeNull();
  });
});
