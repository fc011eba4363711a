/** What a node says of itself: reach, rules, the filled-in transaction, refused blocks. */
import { beforeEach, describe, expect, it } from "@jest/globals";
import { readFileSync } from "node:fs";
import { crc32 } from "node:zlib";
import { keccak256, Transaction } from "ethers";
import { parseHash32, parseHexBytes, ZERO_HASH } from "../../../../chain/hex.js";
import { parseAddress } from "../../../../chain/address.js";
import { USUAL_ACCOUNTS } from "../../../../chain/chain-accounts.js";
import { ZERO_TIME_NS } from "../../../../chain/consensus/block-id.js";
import { COMMIT_FLAG } from "../../../../chain/consensus/commit.js";
import {
  decodeConsensusBlock,
  encodeConsensusBlock,
} from "../../../../chain/consensus/consensus-block.js";
import { encodeSdkTransaction } from "../../../../chain/consensus/sdk-transaction.js";
import { decodeTransaction } from "../../../../chain/transaction.js";
import { RefusedBlocks } from "../../../../node/consensus/proposals/refused-blocks.js";
import type { RefusedBlock } from "../../../../node/consensus/consensus-ports.js";
import { ALICE, BOB, BURNER, createTestNode, MINER, signLegacy } from "./fixture.js";

let node: ReturnType<typeof createTestNode>;
beforeEach(() => {
  node = createTestNode();
});

describe("eth_capabilities", () => {
  it("names the head and the oldest block of each kind of data", async () => {
    node.chain.add([]);
    node.chain.oldest = () => ({ block: 3, journal: 4, state: 5, proof: 6 });
    const { head, stateproofs, ...others } =
      await node.call<Record<string, object>>("eth_capabilities");
    expect(head).toEqual({ number: "0x1", hash: node.chain.head().hash });
    expect(stateproofs).toEqual({
      disabled: false,
      oldestBlock: "0x6",
      deleteStrategy: { type: "window", retentionBlocks: "0x400" },
    });
    const blocks = { disabled: false, oldestBlock: "0x3" };
    expect(others).toEqual({
      state: { disabled: false, oldestBlock: "0x5" },
      tx: blocks,
      logs: blocks,
      receipts: blocks,
      blocks,
      transactionGas: "0x3d0900",
      minimumGasPrice: "0x1e8480",
      chainAccounts: { ...USUAL_ACCOUNTS, burnAddress: BURNER },
    });
  });
});

it("docs/json-rpc.md names every method that is served, and no other", () => {
  const text = readFileSync(new URL("../../../../docs/json-rpc.md", import.meta.url), "utf8");
  const table = text.slice(text.indexOf("| namespace |"), text.indexOf("`latest`, `safe`"));
  const topics = ["newHeads", "logs", "transactionReceipts", "newPendingTransactions"];
  const namespaces = ["eth", "net", "web3", "rpc", "debug", "txpool", "causeway"];
  const documented = [...table.matchAll(/`(\w+)`/g)]
    .map(([, name = ""]) => name.replace(/^eth_/, ""))
    .filter((name) => !topics.includes(name) && !namespaces.includes(name));
  const served = node.api.dispatcher.names().map((name) => name.replace(/^[a-z0-9]+_/, ""));
  expect([...new Set(documented)].toSorted()).toEqual([...new Set(served)].toSorted());
});

describe("eth_config", () => {
  it("has EIP-7910's members; all rules are those of genesis", async () => {
    const { current, next, last } =
      await node.call<Record<string, Record<string, unknown>>>("eth_config");
    expect([next, last]).toEqual([null, null]);
    expect(current).toMatchObject({ activationTime: 0, chainId: "0x1b1c", systemContracts: {} });
    expect(current?.["blobSchedule"]).toMatchObject({ max: 0, target: 0 });
    const genesis = parseHexBytes(node.chain.genesis().block.hash);
    expect(Number(current?.["forkId"])).toBe(crc32(genesis));
    expect(current?.["precompiles"]).toMatchObject({
      ECREC: `0x${"00".repeat(19)}01`,
      BLAKE2F: `0x${"00".repeat(19)}09`,
    });
  });

  it("works the fork id out as go-ethereum does", () => {
    const file = new URL("../../../fixtures/execution/geth-answers.json", import.meta.url);
    const { genesis } = JSON.parse(readFileSync(file, "utf8")) as {
      genesis: { hash: string; forkId: string };
    };
    expect(crc32(parseHexBytes(genesis.hash))).toBe(Number(genesis.forkId));
  });
});

it("eth_coinbase and the fees that there are not", async () => {
  expect(await node.call("eth_coinbase")).toBe(MINER);
  expect(await node.call("eth_baseFee")).toBe("0x0");
  expect(await node.call("eth_blobBaseFee")).toBe("0x1");
});

describe("eth_getStorageValues", () => {
  it("reads slots of several accounts at once", async () => {
    const slot = parseHash32(`0x${"00".repeat(31)}02`);
    node.chain.slots.set(parseAddress(BOB.address) + slot, 7n);
    const wanted = { [BOB.address]: [slot, ZERO_HASH], [ALICE.address]: [slot] };
    expect(await node.call("eth_getStorageValues", wanted, "latest")).toEqual({
      [BOB.address.toLowerCase()]: [`0x${"00".repeat(31)}07`, ZERO_HASH],
      [ALICE.address.toLowerCase()]: [ZERO_HASH],
    });
  });

  it("bounds what is asked", async () => {
    const error = async (wanted: object) => (await node.ask("eth_getStorageValues", wanted)).error;
    expect(await error({})).toEqual({ code: -32602, message: "empty request" });
    expect(await error({ [BOB.address]: Array.from({ length: 1_025 }, () => ZERO_HASH) })).toEqual({
      code: -38026,
      message: "too many slots (max 1024)",
    });
  });
});

describe("eth_fillTransaction", () => {
  const fill = (fields: object) =>
    node.call<{ raw: string; tx: Record<string, unknown> }>("eth_fillTransaction", {
      from: ALICE.address,
      ...fields,
    });

  it("answers a type 0 that only has to be signed", async () => {
    node.pool.nonce = 7n;
    const { raw, tx } = await fill({ to: BOB.address, value: "0x5" });
    expect(tx).toMatchObject({
      type: "0x0",
      chainId: "0x1b1c",
      nonce: "0x7",
      gas: "0x5208",
      gasPrice: "0x17d7840",
      value: "0x5",
      from: ALICE.address.toLowerCase(),
      to: BOB.address.toLowerCase(),
      input: "0x",
      v: "0x0",
      r: "0x0",
      s: "0x0",
    });
    expect(tx).not.toHaveProperty("maxFeePerGas");
    expect(raw).toMatch(/808080$/);
    expect(node.calls.last?.request).toMatchObject({ gasPriceAtoken: 25_000_000n });
  });

  it("has go-ethereum's bytes and hash", async () => {
    // Answer of go-ethereum 1.16.7 to the same request.
    const to = `0x${"b0".repeat(20)}`;
    const fields = { to, gas: "0x5208", gasPrice: "0x5", value: "0x1", nonce: "0x0" };
    const { raw, tx } = await fill(fields);
    expect(raw).toBe("0xdf800582520894b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b00180808080");
    expect(tx["hash"]).toBe("0x02c93d96f80a4d36a18f050a2bb641b128984aee499cfa8efcfff37a1fb304c8");
  });

  it("keeps what was named, and the type that it stands for", async () => {
    const named = { to: BOB.address, gas: "0x9999", nonce: "0x3" };
    expect((await fill({ ...named, gasPrice: "0x9" })).tx).toMatchObject({
      type: "0x0",
      gas: "0x9999",
      nonce: "0x3",
      gasPrice: "0x9",
    });
    const fees = { maxFeePerGas: "0x64", maxPriorityFeePerGas: "0x5" };
    const dynamic = await fill({ ...named, ...fees });
    expect(dynamic.tx).toMatchObject({ type: "0x2", ...fees, accessList: [] });
    expect(Transaction.from(dynamic.raw)).toMatchObject({ type: 2, nonce: 3, maxFeePerGas: 100n });
    expect(dynamic.tx["hash"]).toBe(keccak256(dynamic.raw));
    expect((await fill({ ...named, maxFeePerGas: "0x64" })).tx).toMatchObject({
      type: "0x2",
      maxFeePerGas: "0x64",
      maxPriorityFeePerGas: "0x64",
    });
    expect((await fill({ ...named, type: "0x2" })).tx).toMatchObject({
      type: "0x2",
      maxFeePerGas: "0x17d7840",
      maxPriorityFeePerGas: "0x17d7840",
    });
    const accessList = [{ address: BOB.address.toLowerCase(), storageKeys: [ZERO_HASH] }];
    const listed = await fill({ ...named, accessList });
    expect(listed.tx).toMatchObject({ type: "0x1", accessList, gasPrice: "0x17d7840" });
    expect(listed.tx["hash"]).toBe(keccak256(listed.raw));
  });

  it("estimates with the very fees that it fills in", async () => {
    const fees = (maxFeePerGasAtoken: bigint, maxPriorityFeePerGasAtoken: bigint) => ({
      gasPriceAtoken: maxPriorityFeePerGasAtoken,
      dynamicFees: { maxFeePerGasAtoken, maxPriorityFeePerGasAtoken },
    });
    const cases = [
      [{ maxPriorityFeePerGas: "0x5" }, fees(5n, 5n)],
      [{ maxFeePerGas: "0x64" }, fees(100n, 100n)],
      [{ maxFeePerGas: "0x64", maxPriorityFeePerGas: "0x5" }, fees(100n, 5n)],
      [{ type: "0x2" }, fees(25_000_000n, 25_000_000n)],
      [{ gasPrice: "0x9" }, fees(9n, 9n)],
    ] as const;
    for (const [named, estimated] of cases) {
      await fill({ to: BOB.address, ...named });
      expect([named, node.calls.last?.request]).toMatchObject([named, estimated]);
    }
  });

  it("refuses what cannot be sent, and tells why gas cannot be estimated", async () => {
    const error = async (fields: object) => (await node.ask("eth_fillTransaction", fields)).error;
    expect(await error({ from: ALICE.address })).toEqual({
      code: -32000,
      message: "contract creation without any data provided",
    });
    expect(await error({ to: BOB.address, type: "0x3" })).toMatchObject({
      message: "transaction type not supported",
    });
    node.calls.result = { outcome: "revert", returnData: Uint8Array.of(1), gasUsed: 1n };
    expect(await error({ to: BOB.address })).toMatchObject({ code: 3, data: "0x01" });
  });
});

describe("debug_getBadBlocks", () => {
  it("is empty where nothing was bad", async () => {
    expect(await node.call("debug_getBadBlocks")).toEqual([]);
  });

  it("shows refused blocks with their reason and what can be read of them", async () => {
    const raw = parseHexBytes(await signLegacy(ALICE, { nonce: 4, to: BOB.address }));
    const tx = decodeTransaction(raw);
    const good = encodeSdkTransaction(tx, parseAddress(ALICE.address));
    node.state.refusedBlocks = [refused([good, Uint8Array.of(1, 2)], "nonce too high")];
    const [bad] = await node.call<Record<string, Record<string, unknown>>[]>("debug_getBadBlocks");
    expect(bad?.["reason"]).toBe("nonce too high");
    expect(bad?.["hash"]).toMatch(/^0x[0-9a-f]{64}$/);
    expect(bad?.["rlp"]).toContain(Buffer.from(raw).toString("hex"));
    expect(bad?.["block"]).toMatchObject({
      hash: bad?.["hash"],
      number: "0x9",
      miner: MINER,
      parentHash: `0x${"aa".repeat(32)}`,
      transactions: [{ hash: tx.hash, from: ALICE.address.toLowerCase() }],
    });
  });

  it("shows one of a time before 1970 among the others", async () => {
    // Go's zero time is what a program writes that forgot to set it.
    const early = refused([], "its time is not that of its commit", ZERO_TIME_NS);
    node.state.refusedBlocks = [early, refused([], "nonce too high")];
    const bad = await node.call<Record<string, Record<string, unknown>>[]>("debug_getBadBlocks");
    expect(bad.map(({ reason, block }) => [reason, block?.["timestamp"]])).toEqual([
      ["its time is not that of its commit", "0x0"],
      ["nonce too high", "0x684ee180"],
    ]);
  });

  it("keeps the last ten, the newest first, and no large ones whole", () => {
    const list = new RefusedBlocks();
    for (let count = 1; count <= 12; count++) list.add(refused([]).block, `${count}`);
    expect(list.list().map(({ reason }) => reason)).toEqual([
      "12",
      "11",
      "10",
      "9",
      "8",
      "7",
      "6",
      "5",
      "4",
      "3",
    ]);
    list.add(refused([new Uint8Array(64 * 1024 + 1)]).block, "large");
    expect(list.list()[0]?.block.transactions).toEqual([]);
  });

  it("holds of a block that came in nothing but what it keeps", () => {
    const { block } = refused([new Uint8Array(100), new Uint8Array(5_000)]);
    const validatorAddress = block.header.proposerAddress;
    const signature = new Uint8Array(64).fill(7);
    const signed = { flag: COMMIT_FLAG.commit, validatorAddress, timeNs: 1n, signature };
    const signatures = [signed, { flag: COMMIT_FLAG.absent }];
    const whole = { ...block, lastCommit: { ...block.lastCommit, signatures } };
    const received = decodeConsensusBlock(encodeConsensusBlock(whole));
    const list = new RefusedBlocks();
    list.add(received, "small");
    const [kept] = list.list();
    expect(kept?.block).toEqual({ ...received, evidence: [] });
    const [first] = kept?.block.lastCommit.signatures ?? [];
    const views = [...(kept?.block.transactions ?? []), Object(first).signature];
    expect(views.map(({ buffer }) => buffer.byteLength)).toEqual([100, 5_000, 64]);
  });
});

function refused(
  transactions: readonly Uint8Array[],
  reason = "",
  timeNs = 1_750_000_000_000_000_000n,
): RefusedBlock {
  const hash = ZERO_HASH;
  const blockId = { hash, parts: { total: 1, hash } };
  const header = {
    blockVersion: 11,
    appVersion: 1,
    chainId: "chain_6940-1",
    height: 9,
    timeNs,
    lastBlockId: blockId,
    lastCommitHash: hash,
    dataHash: hash,
    validatorsHash: hash,
    nextValidatorsHash: hash,
    consensusHash: hash,
    appHash: parseHash32(`0x${"aa".repeat(32)}`),
    lastResultsHash: hash,
    evidenceHash: hash,
    proposerAddress: MINER,
  };
  const lastCommit = { height: 8, round: 0, blockId, signatures: [] };
  return { block: { header, transactions, evidence: [], lastCommit }, reason };
}
