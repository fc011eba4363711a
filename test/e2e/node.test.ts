/**
 * What the node serves recomputes from the data alone: block hash, roots, bloom, proofs; and
 * nothing that a client asks delays a block.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createMPT, createMPTFromProof } from "@ethereumjs/mpt";
import {
  encodeRlp,
  getBytes,
  JsonRpcProvider,
  keccak256,
  toBeHex,
  toBigInt,
  toQuantity,
  Wallet,
} from "ethers";
import { kitOffset, readyStatus, type RunningKit, runCauseway, startKit } from "../helpers/kit.js";
import { compileFixture } from "../helpers/contracts/solidity.js";
import { until } from "../helpers/until.js";

/** Blocks as JSON-RPC writes them. */
type Json = Record<string, string> & { transactions: Json[]; logs: Json[]; topics: string[] };

const integer = (quantity: string) => (BigInt(quantity) === 0n ? "0x" : toBeHex(BigInt(quantity)));

/** keccak256(rlp(header)) from the fields that eth_getBlockByNumber shows. */
function recomputeHash(block: Json): string {
  return keccak256(
    encodeRlp([
      block.parentHash,
      block.sha3Uncles,
      block.miner,
      block.stateRoot,
      block.transactionsRoot,
      block.receiptsRoot,
      block.logsBloom,
      integer(block.difficulty ?? ""),
      integer(block.number ?? ""),
      integer(block.gasLimit ?? ""),
      integer(block.gasUsed ?? ""),
      integer(block.timestamp ?? ""),
      block.extraData,
      block.mixHash,
      block.nonce,
    ] as string[]),
  );
}

/** Root of an ordered trie by @ethereumjs/mpt. */
async function orderedRoot(values: readonly string[]): Promise<string> {
  const trie = await createMPT();
  for (const [index, value] of values.entries()) {
    await trie.put(getBytes(encodeRlp(index === 0 ? "0x" : toBeHex(index))), getBytes(value));
  }
  return `0x${Buffer.from(trie.root()).toString("hex")}`;
}

/** Consensus encoding of a receipt from its JSON. */
function receiptRlp(receipt: Json): string {
  const logs = receipt.logs.map((log) => [log.address, log.topics, log.data] as string[]);
  const body = encodeRlp([
    integer(receipt.status ?? ""),
    integer(receipt.cumulativeGasUsed ?? ""),
    receipt.logsBloom ?? "",
    logs,
  ]);
  return receipt.type === "0x0" ? body : `0x0${receipt.type?.slice(2)}${body.slice(2)}`;
}

describe("the node in a kit", () => {
  let kit: RunningKit;
  let provider: JsonRpcProvider;
  let faucet: Wallet;
  let payer = "";
  const fixture = compileFixture("Payments.sol")["Payer"];
  if (fixture === undefined) throw new Error("the fixture did not compile");

  beforeAll(async () => {
    kit = await startKit({ portOffset: kitOffset(0) });
    provider = new JsonRpcProvider(kit.url("jsonRpc"));
    provider.pollingInterval = 100;
    faucet = new Wallet(kit.key("faucet.key"), provider);
    const deployment = await faucet.sendTransaction({
      data: `${fixture.bytecode}${"00".repeat(32)}`,
      gasLimit: 3_000_000n,
    });
    payer = (await deployment.wait())?.contractAddress ?? "";
  });
  afterAll(async () => {
    provider?.destroy();
    await kit?.stop();
    kit?.remove();
  });

  it("serves blocks whose hash, roots and bloom follow from what it shows", async () => {
    const nonce = await faucet.getNonce();
    const sent = await Promise.all(
      [0, 1, 2, 3].map((n) =>
        faucet.sendTransaction({
          nonce: nonce + n,
          to: n === 2 ? payer : `0x${"66".repeat(20)}`,
          value: BigInt(n),
          gasLimit: 100_000n,
          type: n === 3 ? 1 : 0,
        }),
      ),
    );
    const receipts = await Promise.all(sent.map((transaction) => transaction.wait()));
    const heights = new Set(receipts.map((receipt) => receipt?.blockNumber ?? 0));
    for (const height of [...heights, 0, 1]) {
      const tag = toQuantity(height);
      const block: Json = await provider.send("eth_getBlockByNumber", [tag, true]);
      expect(recomputeHash(block)).toBe(block.hash);
      const parent: Json | null = await provider.send("eth_getBlockByHash", [
        block.parentHash,
        false,
      ]);
      if (height > 0) expect(parent?.number).toBe(toQuantity(height - 1));
      const raws: string[] = await Promise.all(
        block.transactions.map(({ hash }) => provider.send("debug_getRawTransaction", [hash])),
      );
      expect(await orderedRoot(raws)).toBe(block.transactionsRoot);
      const blockReceipts: Json[] = await provider.send("eth_getBlockReceipts", [tag]);
      expect(await orderedRoot(blockReceipts.map(receiptRlp))).toBe(block.receiptsRoot);
      const bloom = blockReceipts.reduce(
        (sum, { logsBloom }) => sum | toBigInt(logsBloom ?? "0x"),
        0n,
      );
      expect(bloom).toBe(toBigInt(block.logsBloom ?? "0x"));
    }
  });

  it("proves balances against the state root of a block", async () => {
    const tag = await provider.send("eth_blockNumber", []);
    const block: Json = await provider.send("eth_getBlockByNumber", [tag, false]);
    const address = `0x${"66".repeat(20)}`;
    const proof = await provider.send("eth_getProof", [address, [], tag]);
    const nodes = proof.accountProof.map((node: string) => getBytes(node));
    const trie = await createMPTFromProof(nodes, { root: getBytes(block.stateRoot ?? "0x") });
    const value = await trie.get(getBytes(keccak256(address)));
    const account = encodeRlp([
      integer(proof.nonce),
      integer(proof.balance),
      proof.storageHash,
      proof.codeHash,
    ]);
    expect(`0x${Buffer.from(value ?? Buffer.of()).toString("hex")}`).toBe(account);
    expect(await provider.getBalance(address, tag)).toBe(BigInt(proof.balance));
  });

  it("goes on making blocks while calls burn their gas cap", async () => {
    const { id } = await import("ethers");
    const data = id("burnGas()").slice(0, 10);
    const body = {
      jsonrpc: "2.0",
      id: 1,
      method: "eth_call",
      params: [{ to: payer, data }, "latest"],
    };
    const call = async () => {
      const answer = await fetch(kit.url("jsonRpc"), {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
      return answer.text();
    };
    const before = await provider.getBlockNumber();
    const ending = new AbortController();
    const outcomes: string[] = [];
    // On a fast machine they are answered within one block: there are three at any time.
    const calls = Array.from({ length: 3 }, async () => {
      do outcomes.push(await call());
      while (!ending.signal.aborted);
    });
    try {
      await until(async () => (await provider.getBlockNumber()) >= before + 3, {
        timeoutMs: 60_000,
        what: "three blocks pass while calls run",
      });
      for (let height = before; height <= before + 3; height++) {
        const block: Json = await provider.send("eth_getBlockByNumber", [
          toQuantity(height),
          false,
        ]);
        const journal: Json = await provider.send("causeway_getBlockJournal", [block.hash]);
        expect(journal.blockNumber).toBe(toQuantity(height));
      }
    } finally {
      ending.abort();
    }
    await Promise.all(calls);
    for (const outcome of outcomes) expect(outcome).toMatch(/out of (compute|gas)|timed out/);
  });

  it("answers status, and its books agree with the chain", async () => {
    const status = await readyStatus(kit);
    expect(status.stderr).toBe("");
    expect(JSON.parse(status.stdout)).toMatchObject({ ready: true });
    const reconcile = await runCauseway(kit, ["reconcile", "--json"]);
    expect([reconcile.code, reconcile.stderr]).toEqual([0, ""]);
  });
});
