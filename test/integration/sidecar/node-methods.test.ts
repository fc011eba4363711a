/** The node's own methods, the pool's endpoints and /call over a real chain; ethers is the oracle. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  ContractFactory,
  getAddress,
  getCreateAddress,
  Interface,
  JsonRpcProvider,
  keccak256,
  Wallet,
} from "ethers";
import { createMPTFromProof } from "@ethereumjs/mpt";
import { parseAddress } from "../../../chain/address.js";
import { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { compileFixture } from "../../helpers/contracts/solidity.js";
import { routeServer, type RouteServer } from "../../unit/sidecar/route-server.js";
import { call } from "../../unit/sidecar/servers.js";

const wallet = new Wallet(`0x${"11".repeat(32)}`);
const sender = parseAddress(wallet.address);
const other = parseAddress(`0x${"b0".repeat(20)}`);
const token = parseAddress(getCreateAddress({ from: wallet.address, nonce: 0 }));
const compiled = compileFixture("Balances.sol")["Balances"];
if (compiled === undefined) throw new Error("fixture did not compile");
const { bytecode } = compiled;
const abi = new Interface(JSON.stringify(compiled.abi));
const { signal } = new AbortController();

type Json = Record<string, unknown>;

const MODES = ["Honest", "Reverts", "BurnsAllGas", "AnswersShort", "AnswersLong", "AnswersHuge"];

function sign(nonce: number, to: string | null, data = "0x", value = 0n): Promise<string> {
  const fields = { type: 0, chainId: 6940, gasPrice: 25_000_000n, gasLimit: 1_000_000n };
  return wallet.signTransaction({ ...fields, nonce, to, data, value });
}

/** Blocks: 1 creates, 2 pays, 3 mints twice, 4 is empty, then one for each mode but the first. */
async function mineAll(served: ServedChain): Promise<void> {
  const deploy = await new ContractFactory(abi, bytecode).getDeployTransaction();
  await served.mine([await sign(0, null, deploy.data)]);
  await served.mine([await sign(1, other, "0x", 5n)]);
  const mint = abi.encodeFunctionData("mint", [other, 77n]);
  await served.mine([await sign(2, token, mint), await sign(3, token, mint)]);
  await served.mine([]);
  for (let mode = 1; mode < MODES.length; mode++) {
    await served.mine([await sign(3 + mode, token, abi.encodeFunctionData("setMode", [mode]))]);
  }
}

describe("over a real chain", () => {
  let served: ServedChain;
  let online: RouteServer;
  let provider: JsonRpcProvider;
  const head = 4 + MODES.length - 1;
  const ask = async (method: string, parameters: Json) => {
    const { status, text } = await call(online.server, "/call", { method, parameters });
    return { status, body: JSON.parse(text) as Json };
  };

  beforeAll(async () => {
    served = await ServedChain.open(testGenesis(wallet.address));
    await mineAll(served);
    const registry = new TokenRegistry([{ contractAddress: token, symbol: "BAL", decimals: 2 }]);
    online = routeServer(served.url, { registry });
    provider = new JsonRpcProvider(served.url, 6940, { staticNetwork: true });
  });
  afterAll(async () => {
    provider.destroy();
    online.close();
    await served.close();
  });

  it("journals the logs that the receipts have", async () => {
    for (let height = 0; height <= head; height++) {
      const header = await online.client.getBlockHeader(height, { signal });
      if (header === undefined) throw new Error(`no block ${height}`);
      const journal = await online.client.blockJournal(header.hash, { signal });
      for (const { hash, logs } of journal?.transactions ?? []) {
        const receipt = await provider.getTransactionReceipt(hash);
        const theirs = receipt?.logs.map(({ address, topics, data }) => ({
          address: address.toLowerCase(),
          topics,
          data,
        }));
        expect({ height, logs }).toEqual({ height, logs: theirs });
      }
      const count = journal?.transactions.flatMap(({ logs }) => logs).length;
      expect({ height, count }).toEqual({ height, count: height === 3 ? 4 : 0 });
    }
  });

  it("names every height at which an account's record changed, storage included", async () => {
    const heights = async (address: string, from: number, to: number) =>
      (await online.client.accountHeights(parseAddress(address), { from, to }, { signal })).heights;
    const modes = Array.from({ length: head - 4 }, (_, index) => index + 5);
    expect(await heights(token, 0, head)).toEqual([1, 3, ...modes]);
    expect(await heights(other, 0, head)).toEqual([2]);
    expect(await heights(sender, 0, head)).toEqual([0, 1, 2, 3, ...modes]);
    expect(await heights(token, 2, 5)).toEqual([3, 5]);
    // Of blocks that it does not have a node knows nothing.
    for (const from of [0, head + 1]) {
      await expect(heights(token, from, 99)).rejects.toMatchObject({ code: "BAD_ANSWER" });
    }
    // What is not named did not change: storage roots by EIP-1186.
    const rootAt = async (height: number) =>
      ((await provider.send("eth_getProof", [token, [], `0x${height.toString(16)}`])) as Json)[
        "storageHash"
      ];
    for (let height = 2; height <= head; height++) {
      const changed = (await rootAt(height)) !== (await rootAt(height - 1));
      expect({ height, changed }).toEqual({ height, changed: height === 3 || height >= 5 });
    }
  });

  it("reads balances at any height, whatever the contract does", async () => {
    const at = (height: number) => ({ token, account: other, at: height });
    const queries = Array.from({ length: head + 1 }, (_, height) => at(height));
    expect(await online.client.tokenBalances(queries, { signal })).toEqual([
      undefined, // No contract yet.
      0n,
      0n,
      154n,
      154n,
      ...MODES.slice(1).map(() => undefined),
    ]);
    const none = { token: other, account: other, at: "latest" as const };
    expect(await online.client.tokenBalances([none], { signal })).toEqual([undefined]);
    // 40 answers of 400,000 bytes do not fit into one reply of the node.
    const huge = Array.from({ length: 40 }, () => at(head));
    const balances = await online.client.tokenBalances([...huge, at(3)], { signal });
    expect(balances).toEqual([...huge.map(() => undefined), 154n]);
  });

  it("refuses to read a balance above the head", async () => {
    const query = { token, account: other, at: head + 1 };
    await expect(online.client.tokenBalances([query], { signal })).rejects.toMatchObject({
      code: "RPC_ERROR",
    });
  });

  it("answers /call as ethers reads the node", async () => {
    const data = abi.encodeFunctionData("balanceOf", [other]);
    expect(await ask("eth_call", { to: token, data, index: 3 })).toEqual({
      status: 200,
      body: { result: { data: abi.encodeFunctionResult("balanceOf", [154n]) }, idempotent: true },
    });
    const reverted = await ask("eth_call", { to: token, data, index: 5 });
    expect(reverted.body).toMatchObject({
      code: 213,
      details: {
        reason: "execution reverted: no answer",
        data: new Interface(["error Error(string)"]).encodeErrorResult("Error", ["no answer"]),
      },
    });
    const halted = await ask("eth_call", { to: token, data, gas: 100_000, index: 6 });
    expect(halted.body).toMatchObject({ code: 213, details: { reason: "out of gas" } });
    const poor = await ask("eth_call", { from: other, to: sender, value: (10n ** 40n).toString() });
    expect(poor.body).toMatchObject({ code: 213 });
    const above = await ask("eth_call", { to: token, data, index: head + 1 });
    expect(above.status).toBe(500);
  });

  it("gives receipts and traces of what is mined", async () => {
    const { transactions } = (await provider.getBlock(3)) ?? { transactions: [] };
    const [hash = ""] = transactions;
    const receipt = await ask("eth_getTransactionReceipt", { tx_hash: hash });
    expect(receipt.body["result"]).toEqual(
      await provider.send("eth_getTransactionReceipt", [hash]),
    );
    const trace = await ask("debug_traceTransaction", { tx_hash: hash, with_log: true });
    expect(trace.body).toMatchObject({
      result: { type: "CALL", from: sender, to: token, logs: [{}, {}] },
      idempotent: true,
    });
    const struct = await ask("debug_traceTransaction", { tx_hash: hash, tracer: "structLogger" });
    expect(struct.body["result"]).toMatchObject({ failed: false, structLogs: expect.any(Array) });
    const before = { tx_hash: hash, tracer: "prestateTracer" };
    expect((await ask("debug_traceTransaction", before)).body["result"]).toHaveProperty(token);
  });

  it("gives proofs that hold against the block's state root", async () => {
    const { body } = await ask("eth_getProof", { address: getAddress(other), index: 3 });
    const proof = body["result"] as { balance: string; accountProof: string[] };
    expect(proof.balance).toBe("0x5");
    const block = (await provider.send("eth_getBlockByNumber", ["0x3", false])) as Json;
    const trie = await createMPTFromProof(
      proof.accountProof.map((node) => Buffer.from(node.slice(2), "hex")),
      { root: Buffer.from(String(block["stateRoot"]).slice(2), "hex"), useKeyHashing: true },
    );
    expect(await trie.get(Buffer.from(other.slice(2), "hex"))).not.toBeNull();
  });

  it("shows the pool until its transactions are mined", async () => {
    const next = await provider.getTransactionCount(wallet.address);
    const transfer = new Interface(["function transfer(address,uint256)"]);
    const raws = [
      await sign(next, token, transfer.encodeFunctionData("transfer", [other, 250n])),
      await sign(next + 1, null, "0x00"),
      await sign(next + 5, other, "0x", 1n),
    ];
    const hashes = raws.map((raw) => keccak256(raw));
    await served.submit(raws);
    const pool = await call(online.server, "/mempool");
    expect(JSON.parse(pool.text)).toEqual({
      transaction_identifiers: hashes.map((hash) => ({ hash })),
    });
    const show = (hash: string) =>
      call(online.server, "/mempool/transaction", { transaction_identifier: { hash } });
    const [tokens, creation, gapped] = await Promise.all(hashes.map(show));
    expect(
      tokens?.body.transaction.operations.map(({ type, amount }) => [type, amount?.value]),
    ).toEqual([
      ["CALL", "0"],
      ["CALL", "0"],
      ["ERC20_TRANSFER", "-250"],
      ["ERC20_TRANSFER", "250"],
    ]);
    const made = getCreateAddress({ from: wallet.address, nonce: next + 1 });
    expect(creation?.body.transaction.operations[1]).toMatchObject({
      type: "CREATE",
      account: { address: made },
    });
    expect(gapped?.body.transaction.metadata).toMatchObject({
      pool_status: "queued",
      missing_nonce: String(next + 2),
    });
    await served.mine(raws.slice(0, 2));
    const after = await Promise.all(hashes.map(show));
    expect(after.map(({ body }) => body.code)).toEqual([210, 210, undefined]);
    const left = await call(online.server, "/mempool");
    expect(JSON.parse(left.text)).toEqual({ transaction_identifiers: [{ hash: hashes[2] }] });
  });
});
