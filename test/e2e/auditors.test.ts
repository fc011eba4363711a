/**
 * The guide's chapters for auditors and integrators, run as they stand against a running kit whose
 * chain has payments out of contracts, undone ones, an honest token and one that lies.
 */
import fs from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Contract, getCreateAddress, hashMessage, Wallet } from "ethers";
import { ExchangeChain, Sender, type TestReceipt } from "../helpers/exchange/chain.js";
import {
  type GuideRun,
  guideFiles,
  layOut,
  outputOf,
  runCommand,
  temporaryFolders,
  withoutNetwork,
} from "../helpers/processes/guide.js";
import { callApi, kitOffset, type RunningKit, startKit } from "../helpers/kit.js";
import { compiledFolder } from "../helpers/services/services.js";
import { type CompiledContract, compileFixture } from "../helpers/contracts/solidity.js";
import { until } from "../helpers/until.js";
import { Web3SignerStub } from "../helpers/keys/web3signer-stub.js";
import { type FaultProxy, type ProxyOperation, startFaultProxy } from "../mesh/fault-proxy.js";
import {
  callRequest,
  compileContracts,
  deployRequest,
  fundWallets,
  homeWithTokens,
  TOKEN,
} from "../mesh/traffic.js";

/** Fixed keys, so that the tokens' addresses are known before the chain exists. */
const ISSUER = new Wallet(`0x${"a1".repeat(32)}`);
const CUSTOMER = new Wallet(`0x${"a2".repeat(32)}`);
const NOBODY = new Wallet(`0x${"a3".repeat(32)}`);
const [HONEST, LIAR, PAYER] = [0, 1, 2].map((nonce) =>
  getCreateAddress({ from: ISSUER.address, nonce }),
) as [string, string, string];

const HON = { symbol: "HON", decimals: 18, metadata: { contractAddress: HONEST } };
const COIN = { symbol: "TOKEN", decimals: 18 };

/** A deposit as the integrators' program prints it. */
interface Printed {
  readonly key: string;
  readonly address: string;
  readonly value: string;
  readonly currency: object;
}

const folders = temporaryFolders();
let kit: RunningKit;
let chain: ExchangeChain;
let faucet: Sender;
let issuer: Sender;
let folder: string;
let proxy: FaultProxy;
/** The honest token's interface, compiled once. */
let honestToken: CompiledContract | undefined;
let deposits: { readonly receipts: readonly TestReceipt[]; readonly expected: Printed[] };

beforeAll(async () => {
  const tokens = [
    { contractAddress: HONEST, symbol: "HON", decimals: 18 },
    { contractAddress: LIAR, symbol: "FOTT", decimals: 18 },
  ];
  // The first blocks are proven however long a busy machine takes to come to that.
  const env = { CAUSEWAY_APP_PRUNING: "nothing" };
  kit = await startKit({ portOffset: kitOffset(0), home: homeWithTokens(tokens), env });
  chain = new ExchangeChain(kit);
  faucet = new Sender(new Wallet(kit.key("faucet.key")), chain);
  proxy = await startFaultProxy(kit.url("sidecarOnline"));
  folder = await openFolder();
  deposits = await play();
});

afterAll(async () => {
  await proxy?.close();
  chain?.provider.destroy();
  await kit?.stop();
  kit?.remove();
  folders.removeAll();
});

/** A folder in which the chapters' files lie and npm finds the kit's own commands. */
async function openFolder(): Promise<string> {
  const made = folders.make("auditors");
  const shared = [...guideFiles("custodians.md")].filter(([name]) => name === "rosetta.mjs");
  layOut(made, new Map([...shared, ...guideFiles("auditors.md"), ...guideFiles("integrators.md")]));
  const compiled = path.join(await compiledFolder(), "cli");
  const scripts = {
    causeway: `exec node ${path.join(compiled, "main.js")}`,
    "mesh-check": `exec node ${path.join(compiled, "mesh-check", "main.js")}`,
  };
  fs.writeFileSync(path.join(made, "package.json"), JSON.stringify({ scripts }));
  return made;
}

/** Everything that an address can be given, and everything that only looks like it. */
async function play() {
  await fundWallets({ chain, faucet }, [ISSUER], 10n * TOKEN);
  issuer = new Sender(ISSUER, chain);
  const customer = new Sender(CUSTOMER, chain);
  const sources = { ...compileContracts("Tokens.sol"), ...compileFixture("Payments.sol") };
  const { HonestToken, FeeOnTransferToken, Payer } = sources;
  honestToken = HonestToken;
  const to = CUSTOMER.address;
  const pay = (name: string, args: readonly unknown[], valueAtoken: bigint) =>
    callRequest(Payer, PAYER, { name, args, valueAtoken });
  const sent = [
    await issuer.send([
      deployRequest(HonestToken),
      deployRequest(FeeOnTransferToken),
      deployRequest(Payer, [`0x${"0".repeat(40)}`]),
      pay("forward", [[to], 7n, 1n], 7n),
      pay("fail", [to], 9n),
      pay("payThenRevertInside", [to, 11n], 12n),
      callRequest(HonestToken, HONEST, { name: "mint", args: [to, 1_000n] }),
      callRequest(HonestToken, HONEST, { name: "mint", args: [ISSUER.address, 500n] }),
      callRequest(HonestToken, HONEST, { name: "transfer", args: [to, 300n] }),
      callRequest(FeeOnTransferToken, LIAR, { name: "transfer", args: [to, 1_000n] }),
    ]),
    await faucet.send([{ to, valueAtoken: TOKEN }]),
  ].flat();
  const receipts = await chain.mined(sent);
  const [itself] = await chain.mined(await customer.send([{ to, valueAtoken: 5n }]));
  // The program reads a block when one more is on top.
  await chain.blocksPass(2);
  const [, , , forward, fail, catching, mint, , transfer, lie, plain] = receipts;
  expect(fail?.isSuccess).toBe(false);
  expect([forward, catching, mint, transfer, lie, plain, itself]).toEqual(
    Array(7).fill(expect.objectContaining({ isSuccess: true })),
  );
  const paid = [
    [forward, "7", COIN],
    [catching, "1", COIN],
    [mint, "1000", HON],
    [transfer, "300", HON],
    [plain, TOKEN.toString(), COIN],
  ] as const;
  const expected = paid.map(([receipt, value, currency]) => ({
    key: `${receipt?.blockNumber}/${receipt?.hash}/${currency === COIN ? "TOKEN" : HONEST}/`,
    address: to,
    value,
    currency,
  }));
  return { receipts: [...receipts, ...(itself === undefined ? [] : [itself])], expected };
}

const environment = () => ({
  ONLINE: kit.url("sidecarOnline"),
  JSON_RPC: kit.url("jsonRpc"),
  CAUSEWAY_HOME: kit.home,
  CONTRACT: LIAR,
});

const shell = (file: string, env: Record<string, string> = {}): Promise<GuideRun> =>
  runCommand(["sh", "-eu", file], folder, { ...environment(), ...env });

const program = (words: readonly string[], env: Record<string, string> = {}): Promise<string> =>
  outputOf([process.execPath, ...words], folder, { ...environment(), ...env });

const read = (name: string) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));

/** The newest block of the Data API; on a busy machine it may be a moment behind the node. */
async function indexedHeight(): Promise<number> {
  const reply = await fetch(`${kit.url("sidecarOnline")}/network/status`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ network_identifier: { blockchain: "token", network: "testnet" } }),
  });
  const status = (await reply.json()) as { current_block_identifier: { index: number } };
  return status.current_block_identifier.index;
}

/** Adds to the first operation that pays the customer. */
function overpay(operations: readonly ProxyOperation[]): void {
  const found = operations.find(
    ({ account, amount }) => account.address === CUSTOMER.address && BigInt(amount.value) > 0n,
  );
  if (found !== undefined) found.amount.value = (BigInt(found.amount.value) + 1n).toString();
}

/** Waits for an answer of an API that says so. */
async function answered(
  name: "depositApi" | "withdrawalApi",
  apiPath: string,
  isThere: (body: Record<string, unknown>) => boolean,
) {
  let last: Record<string, unknown> = {};
  await until(
    async () => {
      last = (await callApi(kit, name, { path: apiPath })).body;
      return isThere(last);
    },
    { timeoutMs: 60_000, what: `${apiPath} is as it should be: ${JSON.stringify(last)}` },
  );
  return last;
}

describe("the auditors' guide", () => {
  it("has the blocks explained, with the node as witness", async () => {
    expect(await shell("walk.sh")).toMatchObject({ code: 0 });
    const walk = read("walk.json");
    expect(walk).toMatchObject({ ok: true, from: 0, faults: [] });
    expect(walk.supplyBlockCount).toBe(walk.to + 1);
    expect(walk.quarantined).toMatchObject([{ contractAddress: LIAR.toLowerCase() }]);
    proxy.plant({
      block: ({ transactions }) => overpay(transactions.flatMap((t) => t.operations)),
    });
    expect(await shell("walk.sh", { ONLINE: proxy.url })).toMatchObject({ code: 1 });
    const codes = new Set(read("walk.json").faults.map(({ code }: { code: string }) => code));
    expect(codes).toContain("BALANCE_AT_BLOCK");
  });

  it("has the blocks executed again, with the same result", async () => {
    expect(await shell("execution.sh")).toMatchObject({ code: 0 });
    const audit = read("execution.json");
    expect(audit).toMatchObject({ ok: true, from: 1, difference: null, isSupplyExact: true });
    expect(audit.lastHash).toBe((await chain.provider.getBlock(audit.to))?.hash);
    expect(audit.transactions).toBeGreaterThanOrEqual(deposits.receipts.length);
  });

  it("proves a balance at a block without a network, and an absent account", async () => {
    for (const address of [CUSTOMER.address, NOBODY.address, PAYER]) {
      const height = (deposits.receipts.at(-2)?.blockNumber ?? 0) - 1;
      const hash = (await program(["evidence.mjs", address, String(height)])).trim();
      expect(hash).toBe((await chain.provider.getBlock(height))?.hash);
      const proven = JSON.parse(
        await outputOf(withoutNetwork([process.execPath, "verify.mjs", hash]), folder, {}),
      );
      const balance = await chain.provider.getBalance(address, height);
      expect(proven).toEqual({ address, block: hash, proven: balance.toString() });
    }
  });

  it("proves a balance from the genesis in one file, checked without a network", async () => {
    const height = (deposits.receipts.at(-2)?.blockNumber ?? 0) - 1;
    for (const address of [CUSTOMER.address, NOBODY.address]) {
      fs.rmSync(path.join(folder, "balance.json"), { force: true });
      const asked = { ACCOUNT: address, HEIGHT: String(height) };
      expect(await shell("balance.sh", asked)).toMatchObject({ code: 0 });
      const check = withoutNetwork(["sh", "-eu", "balance-verified.sh"]);
      await outputOf(check, folder, environment());
      const balance = await chain.provider.getBalance(address, height);
      const nonce = await chain.provider.getTransactionCount(address, height);
      const { hash } = (await chain.provider.getBlock(height)) ?? {};
      const said = { address, height, blockHash: hash, balanceAtoken: balance.toString() };
      expect(read("balance-made.json")).toMatchObject({ ok: true, ...said });
      expect(read("balance-verified.json")).toMatchObject({ ok: true, ...said, nonce: `${nonce}` });
    }
    // A file that is there is evidence: it is never written over.
    expect(await shell("balance.sh", { ACCOUNT: PAYER })).toMatchObject({ code: 2 });
    const file = path.join(folder, "balance.json");
    const text = fs.readFileSync(file, "utf8");
    const forged = text.replace(/("signature":\s*")(..)/, (_all, head: string, first: string) =>
      head.concat(first === "AA" ? "BB" : "AA"),
    );
    fs.writeFileSync(file, forged);
    expect(await shell("balance-verified.sh")).toMatchObject({ code: 1 });
    expect(read("balance-verified.json")).toMatchObject({ ok: false });
  });

  it("believes no balance, header or proof that was changed", async () => {
    const height = await indexedHeight();
    const hash = (await program(["evidence.mjs", CUSTOMER.address, String(height)])).trim();
    const evidence = read("evidence.json");
    const verify = async (changed: object): Promise<GuideRun> => {
      fs.writeFileSync(path.join(folder, "evidence.json"), JSON.stringify(changed));
      return runCommand([process.execPath, "verify.mjs", hash], folder, {});
    };
    const { balance, header, proof } = evidence;
    const [amount] = balance.balances;
    const value = (BigInt(amount.value) + 1n).toString();
    const otherProof = [...proof.accountProof.slice(0, -1), `${proof.accountProof.at(-1)}00`];
    const changes: readonly (readonly [RegExp, object])[] = [
      [/not the state's/, { balance: { ...balance, balances: [{ ...amount, value }] } }],
      [/not the state's/, { balance: { ...balance, metadata: { nonce: "99" } } }],
      [/not of this block/, { header: { ...header, stateRoot: `0x${"11".repeat(32)}` } }],
      [/not the one above it/, { proof: { accountProof: otherProof } }],
      [/ends before/, { proof: { accountProof: proof.accountProof.slice(0, -1) } }],
      // The way to another account leaves the proof, or ends where there is none.
      [/not the one above it|not the state's/, { address: NOBODY.address }],
    ];
    for (const [reason, change] of changes) {
      const { code, stderr } = await verify({ ...evidence, ...change });
      expect({ change, code, stderr }).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(reason),
      });
    }
    expect(await verify(evidence)).toMatchObject({ code: 0 });
  });

  it("adds up the supply, which is what genesis, fees and inflation make it", async () => {
    const total = JSON.parse(await program(["supply.mjs"]));
    expect(total.held).toBe((await supplyAt(total.height)).toString());
    proxy.plant({
      block: ({ transactions }) => overpay(transactions.flatMap((t) => t.operations)),
    });
    await expect(program(["supply.mjs"], { ONLINE: proxy.url })).rejects.toThrow(/does not add up/);
    proxy.plant({
      balance({ account_identifier: { address } }, { balances: [first] }) {
        if (address === CUSTOMER.address && first !== undefined) first.value = "0";
      },
    });
    await expect(program(["supply.mjs"], { ONLINE: proxy.url })).rejects.toThrow(
      /coins are missing/,
    );
  });

  it("names the token that lies, and from when on", async () => {
    const { code, stdout } = await shell("tokens.sh");
    expect(code).toBe(1);
    expect(stdout).toMatch(RegExp(`OK +${HONEST}`));
    expect(stdout).toMatch(RegExp(`FAIL +${LIAR}[^]*quarantined by the sidecar from block`));
    const lie = deposits.receipts[9];
    const status = JSON.parse((await shell("token-status.sh")).stdout);
    expect(status.result).toMatchObject({
      quarantined: true,
      quarantined_from_index: lie?.blockNumber,
      registry_version: expect.stringMatching(/^[0-9a-f]{16}$/),
    });
    const honest = JSON.parse((await shell("token-status.sh", { CONTRACT: HONEST })).stdout);
    expect(honest.result).toMatchObject({ quarantined: false, currency: HON });
  });

  it("reconciles the books with the chain at a block whose balances can be proven", async () => {
    const body = { customerId: "audited" };
    const { address } = (await callApi(kit, "depositApi", { path: "/v1/addresses", body })).body;
    await chain.mined(await faucet.send([{ to: String(address), valueAtoken: 3n * TOKEN }]));
    // The books are compared at the last block that they know, which may lie before this one.
    await answered("depositApi", "/v1/customers/audited/balances", ({ balances }) =>
      (balances as { availableAtoken?: string }[]).some(
        ({ availableAtoken }) => availableAtoken === (3n * TOKEN).toString(),
      ),
    );
    expect(await shell("reconcile.sh")).toMatchObject({ code: 0 });
    const { clean, height, blockHash, lines } = read("reconcile.json");
    expect(clean).toBe(true);
    const ledger = lines.map((line: { ledgerAtoken: string }) => line.ledgerAtoken);
    expect(ledger).toContain((3n * TOKEN).toString());
    await program(["evidence.mjs", String(address), String(height)]);
    const proven = JSON.parse(await program(["verify.mjs", blockHash]));
    expect(proven).toEqual({ address, block: blockHash, proven: (3n * TOKEN).toString() });
  });

  it("proves reserves of a wallet whose key is with Web3Signer", async () => {
    const word = kit.key("hot-wallet.passphrase").trim();
    const hot = await Wallet.fromEncryptedJson(kit.key("hot-wallet.json"), word);
    const signer = await Web3SignerStub.start(hot.privateKey, 6940n);
    const stranger = await Web3SignerStub.start(ISSUER.privateKey, 6940n);
    const env = { NONCE: "auditor's own", WALLET: hot.address, WEB3SIGNER: signer.url };
    try {
      expect(await shell("reserves-draft.sh", env)).toMatchObject({ code: 0 });
      const made = read("draft-made.json");
      expect(made).toMatchObject({ ok: true, unsigned: [hot.address], nonce: env.NONCE });
      const text = fs.readFileSync(path.join(folder, "draft.jsonl.txt"), "utf8");
      expect({ text, digest: made.digest }).toEqual({ text: made.text, digest: hashMessage(text) });
      // Whoever holds the key needs the draft and the genesis.
      await outputOf(withoutNetwork(["sh", "-eu", "reserves-text.sh"]), folder, environment());
      expect(read("draft-text.json")).toMatchObject({ ok: true, text, unsigned: [hot.address] });
      fs.copyFileSync(path.join(folder, "draft.jsonl"), path.join(folder, "reserves.jsonl"));
      expect(await shell("reserves-verified.sh")).toMatchObject({ code: 1 });
      expect(read("reserves-verified.json").reason).toContain(`NOT signed by ${hot.address}`);
      fs.rmSync(path.join(folder, "reserves.jsonl"));
      const foreign = await shell("reserves-signed.sh", { ...env, WEB3SIGNER: stranger.url });
      expect(foreign).toMatchObject({ code: 2, stderr: expect.stringContaining("did not sign") });
      expect(await shell("reserves-signed.sh", env)).toMatchObject({ code: 0 });
      expect(signer.methods).toEqual(["eth_sign"]);
      expect(read("reserves-signed.json")).toMatchObject({ ok: true, unsigned: [], wallets: 1 });
      const check = withoutNetwork(["sh", "-eu", "reserves-verified.sh"]);
      await outputOf(check, folder, environment());
      expect(read("reserves-verified.json")).toMatchObject({ ok: true, nonce: env.NONCE });
      expect(fs.readdirSync(path.join(folder, "customers"))).toContain("TOKEN-audited.json");
    } finally {
      await Promise.all([signer.stop(), stranger.stop()]);
    }
  });
});

describe("the exchange beside them", () => {
  it("takes a listed token in and pays it out, and its books stay even", async () => {
    const body = { customerId: "goldsmith" };
    const { address } = (await callApi(kit, "depositApi", { path: "/v1/addresses", body })).body;
    const hot = `0x${JSON.parse(kit.key("hot-wallet.json")).address.replace(/^0x/, "")}`;
    const mint = (to: unknown, units: bigint) =>
      callRequest(honestToken, HONEST, { name: "mint", args: [to, units] });
    await chain.mined(await issuer.send([mint(address, 500n), mint(hot, 300n)]));
    const balances = "/v1/customers/goldsmith/balances";
    await answered("depositApi", balances, ({ balances: all }) =>
      (all as { asset: string; availableUnits: string }[]).some(
        ({ asset, availableUnits }) => asset === "HON" && availableUnits === "500",
      ),
    );
    const to = NOBODY.address;
    const asked = { customerId: "goldsmith", asset: "HON", to, amountUnits: "200" };
    const accepted = await callApi(kit, "withdrawalApi", {
      path: "/v1/withdrawals",
      body: asked,
      headers: { "Idempotency-Key": "gold-1" },
    });
    expect(accepted).toMatchObject({ status: 201, body: { asset: "HON", amountUnits: "200" } });
    expect(accepted.body["amountAtoken"]).toBeUndefined();
    const one = `/v1/withdrawals/${String(accepted.body["id"])}`;
    await answered("withdrawalApi", one, ({ status }) => status === "settled");
    const abi = ["function balanceOf(address) view returns (uint256)"];
    const balanceOf = new Contract(HONEST, abi, chain.provider).getFunction("balanceOf");
    expect(await balanceOf(to)).toBe(200n);
    expect(await shell("reconcile.sh")).toMatchObject({ code: 0 });
    const { tokens } = read("reconcile.json");
    const gold = tokens.find(({ asset }: { asset: string }) => asset === "HON");
    const sums = gold.lines.map((line: Record<string, string>) => [
      line["account"],
      line["chainUnits"],
      line["differenceUnits"],
    ]);
    expect(sums).toEqual([
      [expect.stringMatching(/^asset:wallet:0x[0-9a-f]{40}$/), "100", "0"],
      ["asset:deposit_addresses", "500", "0"],
    ]);
  });
});

/** The total supply after a block by the chain's rules (D3, D13), from genesis and receipts. */
async function supplyAt(height: number): Promise<bigint> {
  const genesis = JSON.parse(
    fs.readFileSync(path.join(kit.home, "config", "genesis.json"), "utf8"),
  );
  const endowments: { balanceAtoken?: string }[] = Object.values(genesis.alloc);
  const allocated = endowments.reduce(
    (sum, { balanceAtoken }) => sum + BigInt(balanceAtoken ?? 0),
    0n,
  );
  // A validator with an operator has a TOKEN of stake for each unit of power, beside the accounts.
  const stakes: { power: number; operator?: string }[] = genesis.validators;
  const staked = stakes.reduce((sum, { power, operator }) => {
    return sum + (operator === undefined ? 0n : BigInt(power) * 10n ** 18n);
  }, 0n);
  let supply = allocated + staked;
  const heights = Array.from({ length: height }, (_, n) => n + 1);
  const blocks = await Promise.all(heights.map((each) => chain.provider.getBlock(each)));
  for (const block of blocks) {
    const receipts = await chain.mined(block?.transactions ?? []);
    const fees = receipts.reduce((sum, { feeAtoken }) => sum + feeAtoken, 0n);
    supply += (supply * 12n) / (100n * 15_768_000n) - (fees + 1n) / 2n;
  }
  return supply;
}

describe("the integrators' guide", () => {
  const round = async (
    env: Record<string, string> = {},
    address: string = CUSTOMER.address,
  ): Promise<Printed[]> => {
    const text = await program(["deposits.mjs", address], env);
    return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
  };
  /** What was printed in the order of what was expected, which operation of its currency left out. */
  const withoutIndex = (printed: readonly Printed[]) =>
    printed.map(({ key, ...rest }) => ({ ...rest, key: key.replace(/[0-9]+$/, "") }));

  it("finds every deposit once, at any depth and of any token, and goes on where it was", async () => {
    const found = await round();
    expect(withoutIndex(found)).toHaveLength(deposits.expected.length);
    expect(withoutIndex(found)).toEqual(expect.arrayContaining(deposits.expected));
    expect(await round()).toEqual([]);
    const payment = { to: CUSTOMER.address, valueAtoken: 77n };
    const [receipt] = await chain.mined(await faucet.send([payment]));
    await chain.blocksPass(2);
    // Many programs keep addresses in lower case.
    const [next, ...more] = await round({}, CUSTOMER.address.toLowerCase());
    expect(next).toMatchObject({
      key: expect.stringContaining(`${receipt?.blockNumber}/${receipt?.hash}/`),
      value: "77",
    });
    expect(more).toEqual([]);
  });

  it("finds the history of an address, newest first", async () => {
    const lines = (await program(["history.mjs", CUSTOMER.address])).trim().split("\n");
    const heights = lines.map((line) => Number(line.split(" ")[0]));
    expect(heights).toEqual(heights.toSorted((left, right) => right - left));
    for (const { key } of deposits.expected) {
      const [height, hash] = key.split("/");
      expect(lines).toContain(`${height} ${hash}`);
    }
  });

  it("asks again only what may pass later", async () => {
    const refusals: object[] = [];
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(request.url ?? "");
      const refusal = refusals.shift();
      if (refusal !== undefined) {
        response.writeHead(500, { "content-type": "application/json" });
        response.end(JSON.stringify(refusal));
        return;
      }
      const { method = "POST", headers, url = "" } = request;
      const upstream = httpRequest(`${kit.url("sidecarOnline")}${url}`, { method, headers });
      upstream.on("response", (reply) => {
        response.writeHead(reply.statusCode ?? 0, reply.headers);
        reply.pipe(response);
      });
      request.pipe(upstream);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const env = { ONLINE: `http://127.0.0.1:${port}` };
    refusals.push({ code: 101, message: "node unreachable", retriable: true });
    refusals.push({ code: 109, message: "index behind", retriable: true });
    expect(await round(env)).toEqual([]);
    expect(seen.slice(0, 3)).toEqual(Array(3).fill("/events/blocks"));
    seen.length = 0;
    refusals.push({ code: 2, message: "unknown network", retriable: false });
    await expect(round(env)).rejects.toThrow(/2 unknown network/);
    expect(seen).toEqual(["/events/blocks"]);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
});
