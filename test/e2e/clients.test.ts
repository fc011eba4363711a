/** Unchanged clients against the running kit: cast, ethers, viem, web3, hardhat. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  Contract,
  ContractFactory,
  JsonRpcProvider,
  Transaction,
  Wallet,
  WebSocketProvider,
} from "ethers";
import { createPublicClient, createWalletClient, defineChain, http, webSocket } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { Web3 } from "web3";
import { WebSocket } from "ws";
import { kitOffset, type RunningKit, startKit } from "../helpers/kit.js";
import { compileSolidity } from "../helpers/contracts/solidity.js";
import { PATIENCE_MS, until } from "../helpers/until.js";

const run = promisify(execFile);
const CAST = path.join(process.cwd(), "node_modules/@foundry-rs/cast-linux-amd64/bin/cast");
const TOKEN_SOURCE = `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract TestToken is ERC20 {
  constructor(uint256 supply) ERC20("Test", "TST") { _mint(msg.sender, supply); }
}`;
/** Viem over HTTP, which by itself gives an answer ten seconds. */
const patient = (url?: string) => http(url, { timeout: PATIENCE_MS });

const payee = (n: number): `0x${string}` => `0x${n.toString(16).padStart(40, "4")}`;

describe("real clients", () => {
  let kit: RunningKit;
  let rpc = "";
  let ws = "";
  let provider: JsonRpcProvider;
  const compiled = compileSolidity({ "TestToken.sol": TOKEN_SOURCE })["TestToken"];
  if (compiled === undefined) throw new Error("the token did not compile");

  beforeAll(async () => {
    kit = await startKit({ portOffset: kitOffset(0) });
    rpc = kit.url("jsonRpc");
    ws = `ws://127.0.0.1:${kit.port("webSocket")}`;
    // Without this ethers gives a nonce that it read before the last block.
    provider = new JsonRpcProvider(rpc, undefined, { cacheTimeout: -1 });
    provider.pollingInterval = 100;
  });
  afterAll(async () => {
    provider?.destroy();
    expect(await kit?.stop()).toBe(0);
    kit?.remove();
  });

  const faucet = () => new Wallet(kit.key("faucet.key"), provider);

  it("cast sends and reads", async () => {
    if (!fs.existsSync(CAST)) {
      console.log("cast is not installed on this platform: its part is left out");
      return;
    }
    const cast = async (...args: string[]) => (await run(CAST, [...args, "--rpc-url", rpc])).stdout;
    const key = kit.key("faucet.key");
    const sent = JSON.parse(
      await cast("send", "--legacy", "--json", "--private-key", key, payee(1), "--value", "1ether"),
    );
    expect(sent.status).toBe("0x1");
    expect(sent.type).toBe("0x0");
    expect((await cast("balance", payee(1))).trim()).toBe("1000000000000000000");
    const receipt = JSON.parse(await cast("receipt", "--json", sent.transactionHash));
    expect(receipt.blockHash).toBe(sent.blockHash);
    const block = JSON.parse(await cast("block", "--json", String(BigInt(sent.blockNumber))));
    expect(block.hash).toBe(sent.blockHash);
    expect(block.transactions).toContain(sent.transactionHash);
    expect(JSON.parse(await cast("logs", "--json", "--from-block", "0"))).toEqual(
      expect.any(Array),
    );
    const { status } = JSON.parse(
      await cast("send", "--legacy", "--sync", "--json", "--private-key", key, payee(1)),
    );
    expect(status).toBe("0x1");
    expect((await cast("chain-id")).trim()).toBe("6940");
    expect((await cast("nonce", faucet().address)).trim()).not.toBe("");
  });

  it("ethers sends, deploys a token, reads logs and subscribes", async () => {
    const wallet = faucet();
    const transfer = await wallet.sendTransaction({ to: payee(2), value: 5n });
    expect(transfer.type).toBe(0);
    expect((await transfer.wait())?.status).toBe(1);
    expect(await provider.getBalance(payee(2))).toBe(5n);
    const factory = new ContractFactory(JSON.stringify(compiled.abi), compiled.bytecode, wallet);
    const deployed = await factory.deploy(1_000_000n);
    await deployed.waitForDeployment();
    const token = new Contract(await deployed.getAddress(), JSON.stringify(compiled.abi), wallet);
    const socket = new WebSocketProvider(ws);
    const heads: number[] = [];
    const logs: string[] = [];
    await socket.on("block", (height: number) => heads.push(height));
    await socket.on({ address: await token.getAddress() }, (log: { transactionHash: string }) =>
      logs.push(log.transactionHash),
    );
    // One socket answers in order: both subscriptions stand before anything is paid.
    await socket.send("eth_chainId", []);
    const paid = await token.getFunction("transfer")(payee(3), 250n);
    const receipt = await paid.wait();
    expect(receipt.status).toBe(1);
    expect(await token.getFunction("balanceOf")(payee(3))).toBe(250n);
    const found = await provider.getLogs({ address: await token.getAddress(), fromBlock: 0 });
    expect(found.map((log) => log.transactionHash)).toContain(receipt.hash);
    await until(() => logs.includes(receipt.hash) && heads.length >= 2, { timeoutMs: 10_000 });
    await socket.destroy();
    await expect(token.getFunction("transfer").staticCall(payee(3), 10n ** 30n)).rejects.toThrow(
      /reverted|ERC20InsufficientBalance/,
    );
    await expect(
      new Wallet(`0x${"09".repeat(32)}`, provider).sendTransaction({ to: payee(2), value: 1n }),
    ).rejects.toMatchObject({ code: "INSUFFICIENT_FUNDS" });
  });

  it("viem sends, reads and watches blocks", async () => {
    const chain = defineChain({
      id: 6940,
      name: "causeway",
      nativeCurrency: { name: "TOKEN", symbol: "TOKEN", decimals: 18 },
      rpcUrls: { default: { http: [rpc], webSocket: [ws] } },
    });
    const account = privateKeyToAccount(kit.key("faucet.key") as `0x${string}`);
    const wallet = createWalletClient({ account, chain, transport: patient() });
    const reader = createPublicClient({ chain, transport: patient(), pollingInterval: 100 });
    const hash = await wallet.sendTransaction({ to: payee(4), value: 9n });
    const receipt = await reader.waitForTransactionReceipt({ hash });
    expect(receipt.status).toBe("success");
    expect(receipt.type).toBe("legacy");
    expect(await reader.getBalance({ address: payee(4) })).toBe(9n);
    const block = await reader.getBlock({
      blockHash: receipt.blockHash,
      includeTransactions: true,
    });
    expect(block.transactions.map((tx) => tx.hash)).toContain(hash);
    expect(block.baseFeePerGas).toBeNull();
    const live = createPublicClient({
      chain,
      transport: webSocket(undefined, { timeout: PATIENCE_MS }),
    });
    const seen: bigint[] = [];
    const stop = live.watchBlockNumber({ onBlockNumber: (height) => seen.push(height) });
    await until(() => seen.length >= 2, { timeoutMs: 10_000 });
    stop();
    (await live.transport.getRpcClient()).close();
    const proof = await reader.getProof({ address: payee(4), storageKeys: [] });
    expect(proof.balance).toBe(9n);
    const history = await reader.getFeeHistory({ blockCount: 3, rewardPercentiles: [50] });
    expect(history.baseFeePerGas).toEqual([0n, 0n, 0n, 0n]);
  });

  it("viem simulates what is sent afterwards, and who waits for its receipt is told", async () => {
    const account = privateKeyToAccount(kit.key("faucet.key") as `0x${string}`);
    const reader = createPublicClient({ transport: patient(rpc) });
    const transfer = { to: payee(9), value: 10n ** 15n };
    const [block] = await reader.simulateBlocks({
      blocks: [
        {
          calls: [
            { account, ...transfer },
            { account, ...transfer },
          ],
        },
      ],
      traceTransfers: true,
    });
    const gasUsed = block?.calls.map((call) => call.gasUsed);
    expect(gasUsed).toEqual([21_000n, 21_000n]);
    const raw = await faucet().signTransaction(await faucet().populateTransaction(transfer));
    const { hash } = Transaction.from(raw);
    const socket = new WebSocket(ws);
    await once(socket, "open");
    const params = ["transactionReceipts", { transactionHashes: [hash] }];
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params }));
    await once(socket, "message");
    const told = once(socket, "message");
    await provider.broadcastTransaction(raw);
    const mined = await provider.waitForTransaction(hash ?? "");
    const [notification] = await told;
    expect(JSON.parse(String(notification))).toMatchObject({
      params: { result: [{ transactionHash: hash, gasUsed: "0x5208" }] },
    });
    socket.terminate();
    const wallet = createWalletClient({ account, transport: patient(rpc) });
    // As long as the node waits at most, where viem would say five seconds.
    const asked = { ...transfer, chain: null, type: "legacy", timeout: 25_000 } as const;
    const sync = await wallet.sendTransactionSync(asked);
    expect(sync).toMatchObject({ status: "success", gasUsed: 21_000n });
    const header = await provider.getBlock(mined?.blockNumber ?? 0);
    expect(await provider.send("eth_coinbase", [])).toBe(header?.miner.toLowerCase());
    const { head, state } = await provider.send("eth_capabilities", []);
    expect(Number(head.number)).toBeGreaterThanOrEqual(mined?.blockNumber ?? Infinity);
    expect(state).toEqual({ disabled: false, oldestBlock: "0x0" });
    expect((await provider.send("eth_config", [])).current.chainId).toBe("0x1b1c");
    expect(await provider.send("debug_getBadBlocks", [])).toEqual([]);
  });

  it("web3 sends a legacy transaction and reads it", async () => {
    const web3 = new Web3(rpc);
    web3.eth.transactionPollingInterval = 100;
    const account = web3.eth.accounts.wallet.add(kit.key("faucet.key")).get(0);
    if (account === undefined) throw new Error("no account");
    const receipt = await web3.eth.sendTransaction({
      from: account.address,
      to: payee(5),
      value: "7",
      type: "0x0",
      gas: 21_000,
      gasPrice: await web3.eth.getGasPrice(),
    });
    expect(receipt.status).toBe(1n);
    expect(await web3.eth.getBalance(payee(5))).toBe(7n);
    expect(await web3.eth.net.getId()).toBe(6940n);
  });

  it("hardhat's network provider sends through the node", async () => {
    const project = fs.mkdtempSync(path.join(kit.home, "hardhat-"));
    fs.writeFileSync(path.join(project, "package.json"), "{}");
    fs.writeFileSync(
      path.join(project, "hardhat.config.cjs"),
      `module.exports = { solidity: "0.8.26", networks: { kit: { url: "${rpc}", accounts: ["${kit.key("faucet.key")}"] } } };`,
    );
    fs.writeFileSync(
      path.join(project, "send.cjs"),
      `const hre = require("${path.join(process.cwd(), "node_modules/hardhat")}");
       const wait = (ms) => new Promise((done) => setTimeout(done, ms));
       (async () => {
         const send = (method, params) => hre.network.provider.send(method, params);
         const [from] = await send("eth_accounts", []);
         const hash = await send("eth_sendTransaction", [{ from, to: "${payee(6)}", value: "0xb" }]);
         let receipt = null;
         while (receipt === null) {
           await wait(100);
           receipt = await send("eth_getTransactionReceipt", [hash]);
         }
         console.log(JSON.stringify({ receipt, balance: await send("eth_getBalance", ["${payee(6)}", "latest"]) }));
       })();`,
    );
    const { stdout } = await run(process.execPath, [path.join(project, "send.cjs")], {
      cwd: project,
      env: {
        ...process.env,
        HARDHAT_NETWORK: "kit",
        HARDHAT_CONFIG: path.join(project, "hardhat.config.cjs"),
        HARDHAT_DISABLE_TELEMETRY_PROMPT: "true",
      },
    });
    const { receipt, balance } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "{}");
    expect(receipt.status).toBe("0x1");
    expect(balance).toBe("0xb");
  });
});
