/** Logs as contracts write them, well and badly; known answers are encoded by ethers. */
import { describe, expect, it } from "@jest/globals";
import { AbiCoder, id, Interface, zeroPadValue } from "ethers";
import type { Address } from "../../../chain/address.js";
import type { Hash32, Hex } from "../../../chain/hex.js";
import { logsToBloom } from "../../../chain/receipt.js";
import { RpcError } from "../../../rpc-client/errors.js";
import type { RpcCall, RpcOutcome } from "../../../rpc-client/json-rpc.js";
import {
  type TransferLog,
  transferLogCalls,
  transferOf,
} from "../../../rpc-client/tokens/transfer-logs.js";

const from = `0x${"a1".repeat(20)}`;
const to = `0x${"b2".repeat(20)}`;
const { signal } = new AbortController();

const erc20 = new Interface(["event Transfer(address indexed,address indexed,uint256)"]);
const erc721 = new Interface(["event Transfer(address indexed,address indexed,uint256 indexed)"]);
const bare = new Interface(["event Transfer(address,address,uint256)"]);
const erc1155 = new Interface([
  "event TransferSingle(address indexed,address indexed,address indexed,uint256,uint256)",
  "event TransferBatch(address indexed,address indexed,address indexed,uint256[],uint256[])",
]);

function read(abi: Interface, event: string, values: readonly unknown[]) {
  const { topics, data } = abi.encodeEventLog(event, values);
  return transferOf(topics as Hash32[], data as Hex);
}

describe("a transfer's log", () => {
  it("is read by the standard that its topics are of", () => {
    const sides = { from, to, isStandard: true };
    expect(read(erc20, "Transfer", [from, to, 7n])).toEqual({
      standard: "erc20",
      value: 7n,
      ...sides,
    });
    expect(read(erc721, "Transfer", [from, to, 9n])).toEqual({
      standard: "erc721",
      value: 9n,
      ...sides,
    });
    expect(read(erc1155, "TransferSingle", [from, from, to, 3n, 4n])).toEqual({
      standard: "erc1155",
      value: 3n,
      ...sides,
    });
    expect(read(erc1155, "TransferBatch", [from, from, to, [3n, 4n], [1n, 1n]])).toEqual({
      standard: "erc1155",
      value: undefined,
      ...sides,
    });
    expect(read(erc20, "Transfer", [`0x${"00".repeat(20)}`, to, 7n])).toMatchObject({
      from: undefined,
      to,
    });
  });

  it("is no standard one with fewer topics, more data or an account of more than 20 bytes", () => {
    expect(read(bare, "Transfer", [from, to, 7n])).toEqual({
      standard: "erc20",
      from,
      to,
      value: 7n,
      isStandard: false,
    });
    const signature = id("Transfer(address,address,uint256)") as Hash32;
    const words = [from, to].map((account) => zeroPadValue(account, 32)) as Hash32[];
    const data = AbiCoder.defaultAbiCoder().encode(["uint256", "uint256"], [7n, 8n]) as Hex;
    expect(transferOf([signature, ...words], data)).toMatchObject({ to, isStandard: false });
    const dirty = `0x${"ff".repeat(12)}${to.slice(2)}` as Hash32;
    const word = data.slice(0, 66) as Hex;
    expect(transferOf([signature, words[0] ?? dirty, dirty], word)).toMatchObject({
      to,
      isStandard: false,
    });
  });
});

/** A node whose `eth_getLogs` takes so many blocks at most, with a log in every block. */
function nodeOf(blocksAtOnce: number, head: number) {
  const asked: string[] = [];
  const logAt = (height: number) => {
    const { topics, data } = erc20.encodeEventLog("Transfer", [from, to, BigInt(height)]);
    const number = `0x${height.toString(16)}`;
    return {
      address: `0x${"c3".repeat(20)}`,
      topics,
      data,
      logIndex: "0x0",
      blockNumber: number,
      blockHash: id(number),
      transactionHash: id(`tx ${number}`),
      transactionIndex: "0x0",
    };
  };
  const answer = ({ method, params }: RpcCall): unknown => {
    const [first] = params;
    asked.push(method);
    if (method === "eth_getBlockByNumber") {
      return Number(first) > head ? null : { hash: id(String(first)) };
    }
    if (method === "eth_getBlockReceipts") return [{ logs: [logAt(Number(first))] }];
    const { fromBlock, toBlock } = Object(first) as Record<string, string>;
    const [low, high] = [Number(fromBlock), Number(toBlock)];
    if (high - low + 1 > blocksAtOnce) {
      throw new RpcError("query returned more than 10000 results", { rpcCode: -32602, method });
    }
    return Array.from({ length: high - low + 1 }, (_, index) => logAt(low + index));
  };
  const outcomeOf = (call: RpcCall): RpcOutcome => {
    try {
      return { ok: true, result: answer(call) };
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      return { ok: false, error };
    }
  };
  const calls = transferLogCalls({
    request: async (method, params) => answer({ method, params }),
    batch: async (list) => list.map(outcomeOf),
    close: () => undefined,
  });
  return { asked, calls };
}

describe("transfers of a range", () => {
  it("are all found where a node takes less at once, down to one block by its receipts", async () => {
    for (const blocksAtOnce of [100, 3, 1, 0]) {
      const { calls, asked } = nodeOf(blocksAtOnce, 50);
      const logs = await calls.transferLogs({ from: 10, to: 20 }, { signal });
      expect([blocksAtOnce, logs.map(({ value }) => Number(value))]).toEqual([
        blocksAtOnce,
        Array.from({ length: 11 }, (_, index) => 10 + index),
      ]);
      expect(asked.includes("eth_getBlockReceipts")).toBe(blocksAtOnce === 0);
    }
  });

  it("may be more than fit on a stack, and only those that are wanted are kept", async () => {
    const { topics, data } = erc20.encodeEventLog("Transfer", [from, to, 1n]);
    const place = { blockHash: id("5"), transactionHash: id("tx"), transactionIndex: "0x0" };
    const common = { address: `0x${"c3".repeat(20)}`, topics, data, blockNumber: "0x5", ...place };
    const found = Array.from({ length: 150_000 }, (_, index) => {
      return { ...common, logIndex: `0x${index.toString(16)}` };
    });
    const calls = transferLogCalls({
      request: () => Promise.reject(new Error("nothing else is asked")),
      batch: async (list) =>
        list.map(({ method }): RpcOutcome => {
          return { ok: true, result: method === "eth_getLogs" ? found : { hash: id("5") } };
        }),
      close: () => undefined,
    });
    const range = { from: 5, to: 5 };
    expect((await calls.transferLogs(range, { signal })).length).toBe(150_000);
    const isWanted = ({ logIndex }: TransferLog) => logIndex % 50_000 === 7;
    const wanted = await calls.transferLogs(range, { signal, isWanted });
    expect(wanted.map(({ logIndex }) => logIndex)).toEqual([7, 50_007, 100_007]);
  });

  it("are not none where the node is behind, or on another block", async () => {
    const { calls } = nodeOf(100, 15);
    await expect(calls.transferLogs({ from: 10, to: 20 }, { signal })).rejects.toMatchObject({
      code: "BAD_ANSWER",
    });
    const lastHash = id("another") as Hash32;
    await expect(
      calls.transferLogs({ from: 10, to: 12 }, { signal, lastHash }),
    ).rejects.toMatchObject({ code: "BAD_ANSWER" });
  });

  it("are read of receipts where a node tells of none, and a bloom names a followed contract", async () => {
    const [contract, other] = ["c3", "c4"].map((digits) => `0x${digits.repeat(20)}` as Address);
    if (contract === undefined || other === undefined) throw new Error("no address");
    const logAt = (height: number, address: Address) => {
      const { topics, data } = erc20.encodeEventLog("Transfer", [from, to, BigInt(height)]);
      return { address, topics: topics as Hash32[], data: new Uint8Array(32), text: data };
    };
    const logs = new Map([
      [11, logAt(11, contract)],
      [12, logAt(12, other)],
      [13, logAt(13, contract)],
    ]);
    const asked: unknown[] = [];
    const receiptsOf = (height: number) => {
      const { text, ...log } = logs.get(height) ?? logAt(height, contract);
      const place = { blockHash: id(`${height}`), transactionHash: id(`tx ${height}`) };
      const numbers = { blockNumber: `0x${height.toString(16)}`, logIndex: "0x0" };
      return [{ logs: [{ ...log, data: text, ...place, ...numbers, transactionIndex: "0x0" }] }];
    };
    const calls = transferLogCalls({
      request: async (method, [first]) => {
        asked.push([method, Number(first)]);
        return receiptsOf(Number(first));
      },
      batch: async (list) =>
        list.map(({ method, params: [first] }): RpcOutcome => {
          if (method === "eth_getLogs") return { ok: true, result: [] };
          const height = Number(first);
          const log = logs.get(height);
          const bloom = logsToBloom(log === undefined ? [] : [log]);
          const logsBloom = `0x${Buffer.from(bloom).toString("hex")}`;
          return { ok: true, result: { hash: id(`${height}`), logsBloom } };
        }),
      close: () => undefined,
    });
    const told = async (range: { from: number; to: number }, atLeast?: readonly Address[]) => {
      const options = { signal, ...(atLeast === undefined ? {} : { atLeast }) };
      const found = await calls.transferLogs(range, options);
      return [found.map(({ value }) => value), asked.splice(0)];
    };
    const receipts = (height: number) => ["eth_getBlockReceipts", height];
    const both = [
      [11n, 13n],
      [receipts(11), receipts(13)],
    ];
    expect(await told({ from: 10, to: 13 }, [contract])).toEqual(both);
    expect(await told({ from: 13, to: 13 }, [contract])).toEqual([[13n], [receipts(13)]]);
    expect(await told({ from: 12, to: 12 }, [contract])).toEqual([[], []]);
    // Nobody's money hangs on it.
    expect(await told({ from: 10, to: 13 }, [])).toEqual([[], []]);
    expect(await told({ from: 10, to: 13 })).toEqual([[], []]);
  });

  /** A node that refuses logs and receipts with one error. */
  function refusing(rpcCode: number, text: string) {
    const asked: string[] = [];
    const refusal = (method: string) => new RpcError(text, { rpcCode, method });
    const calls = transferLogCalls({
      request: async (method) => {
        asked.push(method);
        throw refusal(method);
      },
      batch: async (list) =>
        list.map(({ method }): RpcOutcome => {
          asked.push(method);
          return method === "eth_getLogs"
            ? { ok: false, error: refusal(method) }
            : { ok: true, result: { hash: id("5") } };
        }),
      close: () => undefined,
    });
    return { asked, calls };
  }

  it.each([
    [-32005, "too many large answers are asked for at once"],
    [-32005, "daily request count exceeded, request rate limited"],
    [-32000, "header not found"],
    [-32000, "execution aborted (timeout = 5s)"],
  ])("are no few because a node refuses now: %s %s", async (rpcCode, text) => {
    const { asked, calls } = refusing(rpcCode, text);
    const left: number[] = [];
    const options = { signal, atLeast: [], onLeftOut: (height: number) => void left.push(height) };
    await expect(calls.transferLogs({ from: 4, to: 5 }, options)).rejects.toMatchObject({
      code: "RPC_ERROR",
      nodeMessage: text,
    });
    expect([asked.includes("eth_getBlockReceipts"), left]).toEqual([false, []]);
  });

  it.each([
    [-32005, "query returned more than 10000 results"],
    [-32602, "Log response size exceeded"],
    [-32000, "block range greater than 2000 max"],
    [-32000, "too many logs"],
    [-32003, "response too large"],
  ])("are told to be left out where a block has too many: %s %s", async (rpcCode, text) => {
    const { calls } = refusing(rpcCode, text);
    const left: number[] = [];
    const options = { signal, atLeast: [], onLeftOut: (height: number) => void left.push(height) };
    expect(await calls.transferLogs({ from: 4, to: 5 }, options)).toEqual([]);
    expect(left).toEqual([4, 5]);
  });

  it("of wanted contracts come by single receipts where a block has more than all else gives", async () => {
    const hashes = Array.from({ length: 7 }, (_, index) => id(`tx ${index}`));
    const logOf = (index: number) => {
      const { topics, data } = erc20.encodeEventLog("Transfer", [from, to, BigInt(index)]);
      const place = { blockNumber: "0x5", blockHash: id("5"), transactionHash: hashes[index] };
      const own = { address: `0x${"c3".repeat(20)}`, logIndex: `0x${index.toString(16)}` };
      return { ...place, ...own, transactionIndex: own.logIndex, topics, data };
    };
    const tooMuch = (method: string) => {
      return new RpcError("response too large", { rpcCode: -32003, method });
    };
    const receipt = (hash: unknown) => ({ logs: [logOf(hashes.indexOf(String(hash)))] });
    /** Gives `most` receipts in one batch, and one that is asked for by itself. */
    const callsOf = (most: number) =>
      transferLogCalls({
        request: async (method, [first]) => {
          if (method === "eth_getTransactionReceipt") return receipt(first);
          if (method !== "eth_getBlockByNumber") throw tooMuch(method);
          return { hash: id("5"), transactions: hashes };
        },
        batch: async (list) =>
          list.map(({ method, params: [first] }, index): RpcOutcome => {
            if (method === "eth_getBlockByNumber") return { ok: true, result: { hash: id("5") } };
            const isGiven = method === "eth_getTransactionReceipt" && index < most;
            return isGiven
              ? { ok: true, result: receipt(first) }
              : { ok: false, error: tooMuch(method) };
          }),
        close: () => undefined,
      });
    const contracts = [`0x${"c3".repeat(20)}` as Address];
    for (const most of [7, 3, 1, 0]) {
      const options = { signal, contracts, lastHash: id("5") as Hash32 };
      const logs = await callsOf(most).transferLogs({ from: 5, to: 5 }, options);
      expect([most, logs.map(({ value }) => Number(value))]).toEqual([most, [0, 1, 2, 3, 4, 5, 6]]);
    }
    const other = { signal, contracts, lastHash: id("another") as Hash32 };
    await expect(callsOf(7).transferLogs({ from: 5, to: 5 }, other)).rejects.toMatchObject({
      code: "BAD_ANSWER",
    });
  });
});
