/**
 * The custodians' guide, run as it stands: the offline half by the real offline process in a
 * network namespace without interfaces, the other half against a running kit.
 */
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  Contract,
  ContractFactory,
  getCreateAddress,
  Interface,
  JsonRpcProvider,
  parseEther,
  SigningKey,
  Transaction,
  type TransactionRequest,
  Wallet,
} from "ethers";
import { parseAddress } from "../../chain/address.js";
import { bytesToHex, parseHexBytes } from "../../chain/hex.js";
import { signLegacy } from "../../chain/transaction.js";
import {
  CAN_ISOLATE,
  guideFiles,
  layOut,
  outputOf,
  temporaryFolders,
  withoutNetwork,
} from "../helpers/processes/guide.js";
import { compiledFolder } from "../helpers/services/services.js";
import { freePort } from "../helpers/ports.js";
import { kitOffset, type RunningKit, runCauseway, startKit } from "../helpers/kit.js";
import { compileSolidity } from "../helpers/contracts/solidity.js";
import { until } from "../helpers/until.js";

const GUIDE = guideFiles("custodians.md");

/** Fixed keys, so that the token's address is known before the chain exists. */
const CUSTODIAN = new Wallet(`0x${"c1".repeat(32)}`);
const ISSUER = new Wallet(`0x${"15".repeat(32)}`);
const GOLD_ADDRESS = getCreateAddress({ from: ISSUER.address, nonce: 0 });
const GOLD = { symbol: "GOLD", decimals: 6, metadata: { contractAddress: GOLD_ADDRESS } };

const GOLD_SOURCE = `// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract Gold is ERC20 {
  constructor(address holder) ERC20("Gold", "GOLD") { _mint(holder, 1000e6); }
  function decimals() public pure override returns (uint8) { return 6; }
}`;

/**
 * The guide's transfer by the custodian with nonce 0, as `cast mktx --legacy` 1.7.1 signed it; the
 * gas limit is 21,000 + 9 x 16 and a fifth more.
 */
const RECORDED =
  "0xf8768084017d784082631d94fb6916095ca1df60bb79ce92ce3ea74c37c5d3598803782dace9d9" +
  "000089696e766f696365203782365ca06edb631a6da22456b0c27f5268cb42ecf43fd216627ba16d" +
  "7028ac984dd29a01a003568b84162d147688648bb625edf0b24eb640c0674e3738eefdad0be3a359" +
  "a6";

/**
 * Runs in the namespace: shows that there is no way out, starts the offline server, runs one
 * program of the guide, and stops the server.
 */
const OFFLINE_RUN = `
import { spawn, spawnSync } from "node:child_process";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
const [main, home, port, program, kitPort] = process.argv.slice(1);
if (process.env.ISOLATED === "1") {
  const others = Object.keys(networkInterfaces()).filter((name) => name !== "lo");
  if (others.length > 0) throw new Error("interfaces: " + others);
  for (const [host, to] of [["127.0.0.1", Number(kitPort)], ["192.0.2.1", 80]]) {
    const outcome = await new Promise((resolve) => {
      const socket = connect(to, host, () => resolve("connected"));
      socket.on("error", (error) => resolve(error.code));
    });
    if (outcome === "connected") throw new Error("reached " + host);
  }
}
const server = spawn(process.execPath, [main, "--home", home], {
  stdio: ["ignore", "pipe", "inherit"],
  env: { ...process.env, CAUSEWAY_SIDECAR_OFFLINE_LISTEN: "127.0.0.1:" + port },
});
await new Promise((resolve, reject) => {
  server.once("exit", (code) => reject(new Error("the offline server ended with " + code)));
  server.stdout.on("data", (chunk) => String(chunk).includes('"ready":true') && resolve());
});
server.removeAllListeners("exit");
const { status } = spawnSync(process.execPath, [program], { stdio: "inherit" });
const gone = new Promise((resolve) => server.once("exit", resolve));
server.kill("SIGTERM");
await gone;
process.exitCode = status ?? 1;
`;

let kit: RunningKit;
let provider: JsonRpcProvider;
let offlineHome: string;
const folders = temporaryFolders();

beforeAll(async () => {
  const home = folders.make("custodians");
  fs.chmodSync(home, 0o755);
  const portOffset = kitOffset(0);
  const init = ["init", "--block-interval-ms", "500", "--port-offset", String(portOffset)];
  expect(await runCauseway({ home }, init)).toMatchObject({ code: 0 });
  const add = ["tokens", "add", "--address", GOLD_ADDRESS, "--symbol", "GOLD", "--decimals", "6"];
  expect(await runCauseway({ home }, add)).toMatchObject({ code: 0 });
  kit = await startKit({ home, portOffset });
  const settings = { staticNetwork: true, cacheTimeout: -1, pollingInterval: 100 };
  provider = new JsonRpcProvider(kit.url("jsonRpc"), 6940, settings);
  offlineHome = folders.make("offline");
  fs.mkdirSync(path.join(offlineHome, "config"));
  for (const file of ["sidecar.toml", "tokens.json"]) {
    fs.copyFileSync(path.join(home, "config", file), path.join(offlineHome, "config", file));
  }
  await fund();
});

afterAll(async () => {
  provider?.destroy();
  await kit?.stop();
  folders.removeAll();
});

/** Coins for both, and tokens for the custodian. */
async function fund(): Promise<void> {
  const faucet = new Wallet(kit.key("faucet.key"), provider);
  const nonce = await faucet.getNonce();
  const payments = [CUSTODIAN, ISSUER].map(({ address }, index) =>
    faucet.sendTransaction({ to: address, value: parseEther("1"), nonce: nonce + index }),
  );
  for (const payment of await Promise.all(payments)) await payment.wait();
  const { abi, bytecode } = compileSolidity({ "Gold.sol": GOLD_SOURCE })["Gold"] ?? {
    abi: [],
    bytecode: "0x",
  };
  const factory = new ContractFactory([...abi], bytecode, ISSUER.connect(provider));
  const contract = await factory.deploy(CUSTODIAN.address);
  await contract.waitForDeployment();
  expect(await contract.getAddress()).toBe(GOLD_ADDRESS);
}

/** A folder with the guide's programs and the custodian's keys. */
function openSession(wish?: Record<string, unknown>): string {
  const folder = folders.make("session");
  layOut(folder, GUIDE);
  if (wish !== undefined) fs.writeFileSync(path.join(folder, "wish.json"), JSON.stringify(wish));
  const key = new SigningKey(CUSTODIAN.privateKey);
  fs.writeFileSync(path.join(folder, "public-key.txt"), key.compressedPublicKey.slice(2));
  fs.writeFileSync(path.join(folder, "private-key.txt"), CUSTODIAN.privateKey);
  return folder;
}

const read = (folder: string, name: string) =>
  JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));

const online = (folder: string, program: string) =>
  outputOf([process.execPath, program], folder, { ONLINE: kit.url("sidecarOnline") });

async function offline(folder: string, program: string): Promise<string> {
  const main = path.join(await compiledFolder(), "sidecar", "main-offline.js");
  const kitPort = String(kit.port("sidecarOnline"));
  const evaluate = [process.execPath, "--input-type=module", "--eval", OFFLINE_RUN];
  // One of its own: where there is no namespace, the kit's offline server has the usual one.
  const port = String(await freePort());
  const run = [...evaluate, main, offlineHome, port, program, kitPort];
  return outputOf(withoutNetwork(run), folder, {
    OFFLINE: `http://127.0.0.1:${port}`,
    ISOLATED: CAN_ISOLATE ? "1" : "0",
  });
}

async function session(folder: string): Promise<{ settled: string; block: number }> {
  await offline(folder, "prepare.mjs");
  await online(folder, "facts.mjs");
  await offline(folder, "sign.mjs");
  return JSON.parse(await online(folder, "send.mjs"));
}

describe("the custodians' guide", () => {
  if (!CAN_ISOLATE) {
    process.stdout.write("no network namespaces here: the offline half runs beside the network\n");
  }

  it("moves coins from derive to settled, as ethers would have signed it", async () => {
    const folder = openSession();
    const { settled, block } = await session(folder);
    const receipt = await provider.getTransactionReceipt(settled);
    expect(receipt).toMatchObject({ status: 1, blockNumber: block, from: CUSTODIAN.address });
    const wish = read(folder, "wish.json");
    expect(await provider.getBalance(wish.to)).toBe(BigInt(wish.value));
    const { signed_transaction: raw } = read(folder, "signed.json");
    expect(raw).toBe(RECORDED);
    const { signature: _signature, ...fields } = Transaction.from(raw).toJSON();
    expect(await CUSTODIAN.signTransaction(fields)).toBe(raw);
    expect(Buffer.from(Transaction.from(raw).data.slice(2), "hex").toString()).toBe("invoice 7");
    // The bytes may come again, long after they are mined.
    expect(JSON.parse(await online(folder, "send.mjs"))).toEqual({ settled, block });
  });

  it("moves ERC-20 tokens, whose fee is paid in coins", async () => {
    const to = Wallet.createRandom().address;
    const wish = { to, value: "1250000", currency: GOLD, metadata: { max_fee: "10000000000000" } };
    const folder = openSession(wish);
    const { settled } = await session(folder);
    const gold = new Contract(
      GOLD_ADDRESS,
      ["function balanceOf(address) view returns (uint256)"],
      provider,
    );
    expect(await gold.getFunction("balanceOf")(to)).toBe(1_250_000n);
    expect(await provider.getTransactionReceipt(settled)).toMatchObject({
      status: 1,
      to: GOLD_ADDRESS,
    });
  });

  it("calls a contract without coins", async () => {
    const gold = new Interface([
      "function approve(address, uint256)",
      "function allowance(address, address) view returns (uint256)",
    ]);
    const spender = Wallet.createRandom().address;
    const data = gold.encodeFunctionData("approve", [spender, 7n]);
    const currency = { symbol: "TOKEN", decimals: 18 };
    const metadata = { max_fee: "10000000000000", data };
    const folder = openSession({ to: GOLD_ADDRESS, value: "0", currency, metadata });
    const { settled } = await session(folder);
    expect(await provider.getTransactionReceipt(settled)).toMatchObject({ status: 1 });
    const contract = new Contract(GOLD_ADDRESS, gold, provider);
    const allowance = contract.getFunction("allowance");
    expect(await allowance(CUSTODIAN.address, spender)).toBe(7n);
  });

  it("moves stake, also where another account than the signer's comes first", async () => {
    const asked = await runCauseway(kit, ["query", "staking", "validators", "--output", "json"]);
    const validator = JSON.parse(asked.stdout).validators[0].operator_address;
    const sub = (address: string, name: string, metadata?: object) => ({
      address,
      sub_account: { address: name, ...(metadata === undefined ? {} : { metadata }) },
    });
    // Without their checksums, as people write them.
    const holder = CUSTODIAN.address.toLowerCase();
    const stake = sub(`0x${"0800".padStart(40, "0")}`, "stake", { validator });
    const coin = { symbol: "TOKEN", decimals: 18 };
    const claim = { symbol: "TOKEN_CLAIM", decimals: 18, metadata: { claim: "TOKEN" } };
    const shares = { symbol: "TOKEN_SHARE", decimals: 36, metadata: { validator } };
    const amount = 10n ** 16n;
    const intents: readonly [string, ...(readonly [object, bigint, object])[]][] = [
      ["DELEGATE", [{ address: holder }, -amount, coin], [stake, amount, claim]],
      ["CLAIM", [sub(holder, "staked"), 0n, shares]],
      ["UNDELEGATE", [stake, -amount, claim], [sub(holder, "unbonding"), amount, claim]],
    ];
    for (const [type, ...sides] of intents) {
      const operations = sides.map(([account, value, currency], index) => ({
        operation_identifier: { index },
        ...(index === 0 ? {} : { related_operations: [{ index: 0 }] }),
        type,
        account,
        amount: { value: value.toString(), currency },
      }));
      const folder = openSession({ operations, metadata: { max_fee: "100000000000000" } });
      const { settled } = await session(folder);
      const receipt = await provider.getTransactionReceipt(settled);
      expect({ type, receipt }).toMatchObject({
        type,
        receipt: { status: 1, from: CUSTODIAN.address },
      });
    }
  });

  it("refuses tokens that are not there, naming the currency", async () => {
    const wish = { to: ISSUER.address, value: "999999999999", currency: GOLD };
    const folder = openSession(wish);
    await offline(folder, "prepare.mjs");
    await expect(online(folder, "facts.mjs")).rejects.toThrow(/314 insufficient funds .*GOLD/);
  });

  it("does not sign what the connected machine changed", async () => {
    const folder = openSession();
    await offline(folder, "prepare.mjs");
    await online(folder, "facts.mjs");
    const facts = read(folder, "facts.json");
    const dear = { ...facts, metadata: { ...facts.metadata, gas_price: "25000000000000" } };
    fs.writeFileSync(path.join(folder, "facts.json"), JSON.stringify(dear));
    await expect(offline(folder, "sign.mjs")).rejects.toThrow(/fee of \d+ atoken is too high/);
    const other = { ...facts, metadata: { ...facts.metadata, data: "0x00ff" } };
    fs.writeFileSync(path.join(folder, "facts.json"), JSON.stringify(other));
    await expect(offline(folder, "sign.mjs")).rejects.toThrow(/AssertionError/);
  });

  it("signs no call, nonce, price or gas that nobody approved", async () => {
    const to = Wallet.createRandom().address;
    // Gas for the call that is slipped in below, too: less is refused before anybody could sign it.
    const chosen = { nonce: "7", gas_price: "30000000", gas_limit: "30000" };
    const metadata = { max_fee: "10000000000000", ...chosen };
    const currency = { symbol: "TOKEN", decimals: 18 };
    // No memo: nothing else tells a payment from a call of a contract.
    const folder = openSession({ to, value: "1", currency, metadata });
    await offline(folder, "prepare.mjs");
    await online(folder, "facts.mjs");
    const facts = read(folder, "facts.json");
    expect(facts.metadata).toMatchObject(chosen);
    const changes = { data: "0x8f283970", nonce: "8", gas_price: "30000001", gas_limit: "30001" };
    for (const [name, value] of Object.entries(changes)) {
      const changed = { ...facts, metadata: { ...facts.metadata, [name]: value } };
      fs.writeFileSync(path.join(folder, "facts.json"), JSON.stringify(changed));
      const outcome = await offline(folder, "sign.mjs").catch(String);
      expect({ name, outcome }).toEqual({ name, outcome: expect.stringMatching(/AssertionError/) });
      expect({ name, isSigned: fs.existsSync(path.join(folder, "signed.json")) }).toEqual({
        name,
        isSigned: false,
      });
    }
    fs.writeFileSync(path.join(folder, "facts.json"), JSON.stringify(facts));
    await offline(folder, "sign.mjs");
    const { signed_transaction: raw } = read(folder, "signed.json");
    expect(Transaction.from(raw)).toMatchObject({ nonce: 7, data: "0x", gasLimit: 30_000n });
  });
});

describe("a running node's refusals", () => {
  const ask = async (endpoint: string, fields: Record<string, unknown>) => {
    const reply = await fetch(`${kit.url("sidecarOnline")}/construction/${endpoint}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        network_identifier: { blockchain: "token", network: "testnet" },
        ...fields,
      }),
    });
    return (await reply.json()) as Record<string, unknown>;
  };

  /** Signs with a wallet that has used nonce 0 and 1 TOKEN, submits, and gives the reply. */
  const submit = async (more: TransactionRequest) => {
    const usual = { type: 0, chainId: 6940, nonce: 1, gasLimit: 21_000n, gasPrice: 25_000_000n };
    const payment = { to: CUSTODIAN.address, value: 1n };
    const signed_transaction = await ISSUER.signTransaction({ ...usual, ...payment, ...more });
    return ask("submit", { signed_transaction });
  };

  it("have each its own code, and the same bytes are taken twice", async () => {
    const refusals: readonly (readonly [string, TransactionRequest, number])[] = [
      ["a used nonce", { nonce: 0 }, 401],
      ["too low a price", { gasPrice: 0n }, 404],
      ["too little gas", { gasLimit: 20_999n }, 405],
      ["more gas than the chain has", { gasLimit: 10n ** 12n }, 406],
      ["more coins than there are", { value: parseEther("2") }, 314],
      ["another chain", { chainId: 1 }, 307],
    ];
    for (const [what, more, code] of refusals) {
      const reply = await submit(more);
      expect({ what, reply }).toMatchObject({ what, reply: { code } });
    }
    // The one nonce that can never be used (EIP-2681) is beyond what ethers signs.
    const last = { chainId: 6940n, nonce: 2n ** 64n - 1n, to: parseAddress(GOLD_ADDRESS) };
    const free = { valueAtoken: 0n, data: new Uint8Array() };
    const signed_transaction = bytesToHex(
      signLegacy(
        { ...last, ...free, gasPriceAtoken: 25_000_000n, gasLimit: 21_000n },
        parseHexBytes(ISSUER.privateKey),
      ),
    );
    expect(await ask("submit", { signed_transaction })).toMatchObject({ code: 402 });
    // Two nonces ahead waits in the pool, so that it can be replaced.
    const waiting = await submit({ nonce: 3 });
    expect(waiting).toHaveProperty("transaction_identifier");
    expect(await submit({ nonce: 3 })).toEqual(waiting);
    expect(await submit({ nonce: 3, value: 2n })).toMatchObject({ code: 403 });
  });

  it("tell a call that reverts by the contract's own reason", async () => {
    const operation = (index: number, address: string) => ({
      operation_identifier: { index },
      type: "CALL",
      account: { address },
      amount: { value: "0", currency: { symbol: "TOKEN", decimals: 18 } },
    });
    const gold = new Interface(["function transferFrom(address, address, uint256)"]);
    const data = gold.encodeFunctionData("transferFrom", [CUSTODIAN.address, ISSUER.address, 1n]);
    const operations = [operation(0, ISSUER.address), operation(1, GOLD_ADDRESS)];
    const { options } = await ask("preprocess", { operations, metadata: { data } });
    // ERC20InsufficientAllowance(address,uint256,uint256), OpenZeppelin 5.
    expect(await ask("metadata", { options })).toMatchObject({
      code: 315,
      details: { data: expect.stringMatching(/^0xfb8f41b2/) },
    });
  });
});

describe("causeway tokens beside a running kit", () => {
  it("checks the list against contract and sidecar, and says that a new token needs a restart", async () => {
    let checked: { tokens?: { sidecar: { state: string } }[] } = {};
    // A sidecar that a busy machine does not let answer in 5 s says nothing.
    await until(
      async () => {
        checked = JSON.parse((await runCauseway(kit, ["tokens", "check", "--json"])).stdout);
        return checked.tokens?.[0]?.sidecar.state !== "unknown";
      },
      { timeoutMs: 60_000, what: "the sidecar tells how the token stands" },
    );
    expect(checked).toMatchObject({
      ok: true,
      tokens: [
        {
          verdict: "ok",
          contract: { symbol: "GOLD", decimals: 6, totalSupply: "1000000000" },
          sidecar: { state: "followed" },
        },
      ],
    });
    const address = `0x${"51".repeat(20)}`;
    const add = ["tokens", "add", "--address", address, "--symbol", "LATE", "--decimals", "0"];
    expect((await runCauseway(kit, add)).stdout).toContain("Restart the kit");
    const again = await runCauseway(kit, ["tokens", "check"]);
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining("no contract is at")]);
    expect(again.stdout).toContain("restart the kit: the sidecar has an older list");
  });
});
