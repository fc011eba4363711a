/**
 * Tokens that behave and tokens that lie, on a real chain: what the sidecar serves adds up to
 * `balanceOf` as ethers reads it, and what does not add up is left out from the right block on.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Contract, getAddress, getCreateAddress, Interface, JsonRpcProvider, Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { type CompiledContract, compileSolidity } from "../../helpers/contracts/solidity.js";
import { call, type Online, onlineServer } from "../../unit/sidecar/servers.js";

const faucet = new Wallet(`0x${"11".repeat(32)}`);
const alice = new Wallet(`0x${"22".repeat(32)}`);
const bob = getAddress(`0x${"b0".repeat(20)}`);
const FEE_TAKER = "0x0000000000000000000000000000000000000FEE";

/** Contracts in the order of their creation, and the block from which each is not believed. */
const TOKENS = [
  ["HonestToken", undefined],
  ["WrappedToken", undefined],
  ["HonestFeeToken", undefined],
  ["FeeOnTransferToken", "transfer"],
  ["RebasingToken", "rebase"],
  ["LyingToken", "transfer"],
  ["SilentToken", "creation"],
] as const;

type TokenName = (typeof TOKENS)[number][0];

/** Nonce of the first creation: one transaction comes before. */
const FIRST_NONCE = 1;

const contracts = new Map<TokenName, string>(
  TOKENS.map(([name], index) => [
    name,
    getCreateAddress({ from: faucet.address, nonce: FIRST_NONCE + index }),
  ]),
);

const addressOf = (name: TokenName): string => contracts.get(name) ?? "";

const registry = new TokenRegistry([
  ...TOKENS.map(([name], index) => ({
    contractAddress: parseAddress(addressOf(name).toLowerCase()),
    symbol: name.slice(0, 10),
    decimals: index,
  })),
  { contractAddress: parseAddress(`0x${"ee".repeat(20)}`), symbol: "NEVER", decimals: 18 },
]);

const currencyOf = (name: TokenName) =>
  registry.byAddress(parseAddress(addressOf(name).toLowerCase()))?.currency;

let chain: ServedChain;
let online: Online;
let provider: JsonRpcProvider;
let compiled: Record<string, CompiledContract>;
let folder: string;
const nonces = new Map<Wallet, number>();
/** Height after which something happened, by name. */
const heights = new Map<string, number>();

interface Message {
  readonly to?: string;
  readonly data?: string;
  readonly value?: bigint;
}

function sign(from: Wallet, message: Message): Promise<string> {
  const nonce = nonces.get(from) ?? 0;
  nonces.set(from, nonce + 1);
  const common = { type: 0, chainId: 6940, gasPrice: 25_000_000n, gasLimit: 3_000_000n };
  return from.signTransaction({ ...common, nonce, ...message });
}

async function mine(name: string, ...messages: readonly (readonly [Wallet, Message])[]) {
  const raws: string[] = [];
  for (const [from, message] of messages) raws.push(await sign(from, message));
  const { committed } = await chain.mine(raws);
  expect(committed.receipts.map(({ status }) => status)).toEqual(raws.map(() => 1));
  heights.set(name, committed.block.header.height);
}

const abi = new Interface([
  "function mint(address,uint256)",
  "function burn(uint256)",
  "function transfer(address,uint256)",
  "function transferAndUndo(address,uint256)",
  "function deposit() payable",
  "function withdraw(uint256)",
  "function rebase()",
]);

function send(name: TokenName, method: string, values: unknown[], value = 0n): Message {
  return { to: addressOf(name), data: abi.encodeFunctionData(method, values), value };
}

/** Everything that the tokens do; each block has a name. */
async function play(): Promise<void> {
  // Coins reach a token's address before there is a contract.
  await mine("before", [faucet, { to: addressOf("HonestToken"), value: 5n }]);
  await mine(
    "creation",
    ...TOKENS.map(([name]): readonly [Wallet, Message] => {
      const data = compiled[name]?.bytecode ?? "0x";
      return [faucet, { data }];
    }),
    [faucet, { to: alice.address, value: 10n ** 21n }],
  );
  await mine(
    "mint",
    [faucet, send("HonestToken", "mint", [alice.address, 1_000n])],
    [alice, send("WrappedToken", "deposit", [], 700n)],
  );
  await mine(
    "transfer",
    [alice, send("HonestToken", "transfer", [bob, 10n])],
    [alice, send("HonestToken", "transfer", [alice.address, 20n])],
    [alice, send("HonestToken", "transfer", [bob, 0n])],
    [alice, send("HonestToken", "transferAndUndo", [bob, 5n])],
    [alice, send("WrappedToken", "transfer", [bob, 100n])],
    [alice, send("WrappedToken", "withdraw", [50n])],
    [faucet, send("HonestFeeToken", "transfer", [bob, 1_000n])],
    [faucet, send("FeeOnTransferToken", "transfer", [bob, 1_000n])],
    [faucet, send("LyingToken", "transfer", [bob, 1_000n])],
    [faucet, send("RebasingToken", "transfer", [bob, 1_000n])],
    [faucet, send("SilentToken", "transfer", [bob, 1_000n])],
  );
  await mine("rebase", [faucet, send("RebasingToken", "rebase", [])]);
  await mine(
    "after",
    [alice, send("HonestToken", "burn", [30n])],
    [faucet, send("RebasingToken", "transfer", [bob, 2_000n])],
    [faucet, send("LyingToken", "transfer", [bob, 2_000n])],
    [faucet, send("FeeOnTransferToken", "transfer", [bob, 1_000n])],
    [faucet, { to: addressOf("WrappedToken"), value: 9n }],
  );
}

beforeAll(async () => {
  const source = path.join(process.cwd(), "test", "mesh", "contracts", "Tokens.sol");
  compiled = compileSolidity({ "Tokens.sol": fs.readFileSync(source, "utf8") });
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-tokens-"));
  chain = await ServedChain.open(testGenesis(faucet.address.toLowerCase()));
  online = onlineServer(chain.url, { registry, folder });
  provider = new JsonRpcProvider(chain.url, 6940, { staticNetwork: true, batchMaxCount: 1 });
  await play();
  await online.indexed(heights.get("after") ?? 0);
});

afterAll(async () => {
  provider.destroy();
  await online.rpc.close();
  await chain.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

const ACCOUNTS = [faucet.address, alice.address, bob, FEE_TAKER];

const tipHeight = () => heights.get("after") ?? 0;

/** Sums of the served operations up to each height: `sums[height]["contract account"]`. */
async function servedSums(server = online): Promise<Map<string, bigint>[]> {
  const sums: Map<string, bigint>[] = [];
  for (let index = 0; index <= tipHeight(); index++) {
    const { status, body } = await call(server.server, "/block", { block_identifier: { index } });
    expect(status).toBe(200);
    const next = new Map(sums.at(-1));
    for (const { operations } of body.block.transactions) {
      for (const { account, amount, type } of operations) {
        const contract = amount?.currency.metadata?.contractAddress;
        if (contract === undefined) continue;
        expect(type).toMatch(/^ERC20_/);
        const key = `${contract} ${account.address}`;
        next.set(key, (next.get(key) ?? 0n) + BigInt(amount?.value ?? "0"));
      }
    }
    sums.push(next);
  }
  return sums;
}

function balanceOf(name: TokenName, account: string, at: number): Promise<bigint> {
  const contract = new Contract(
    addressOf(name),
    ["function balanceOf(address) view returns (uint256)"],
    provider,
  );
  return contract.getFunction("balanceOf")(account, { blockTag: at }) as Promise<bigint>;
}

async function servedBalance(name: TokenName, account: string, at: number): Promise<bigint> {
  const { status, body } = await call(online.server, "/account/balance", {
    account_identifier: { address: account },
    block_identifier: { index: at },
    currencies: [currencyOf(name)],
  });
  expect(status).toBe(200);
  return BigInt(body.balances[0]?.value ?? "-1");
}

describe("tokens", () => {
  it("have operations that add up to balanceOf until they lie, and to nothing more after", async () => {
    const sums = await servedSums();
    for (const [name, lie] of TOKENS) {
      const from = lie === undefined ? Infinity : (heights.get(lie) ?? -1);
      for (let height = heights.get("creation") ?? 0; height <= tipHeight(); height++) {
        for (const account of ACCOUNTS) {
          const told = sums[Math.min(height, from - 1)]?.get(`${addressOf(name)} ${account}`) ?? 0n;
          const now = sums[height]?.get(`${addressOf(name)} ${account}`) ?? 0n;
          const served = await servedBalance(name, account, height);
          const really = height < from ? await balanceOf(name, account, height) : told;
          const figures = { name, height, account, now, served };
          expect(figures).toEqual({ name, height, account, now: really, served: really });
        }
      }
    }
  });

  it("are named in the metadata of each block that leaves their operations out", async () => {
    const quarantinedAt = async (index: number) => {
      const { body } = await call(online.server, "/block", { block_identifier: { index } });
      return body.block.metadata.quarantined ?? [];
    };
    expect(await quarantinedAt(heights.get("before") ?? 0)).toEqual([]);
    expect(await quarantinedAt(heights.get("creation") ?? 0)).toEqual([addressOf("SilentToken")]);
    expect(await quarantinedAt(heights.get("mint") ?? 0)).toEqual([]);
    expect(await quarantinedAt(heights.get("transfer") ?? 0)).toEqual(
      (["FeeOnTransferToken", "LyingToken", "SilentToken"] as const)
        .map(addressOf)
        .toSorted((left, right) => (left.toLowerCase() < right.toLowerCase() ? -1 : 1)),
    );
    expect(await quarantinedAt(heights.get("rebase") ?? 0)).toEqual([addressOf("RebasingToken")]);
  });

  it("show their state by /call, with the height and the reason", async () => {
    const state = async (name: TokenName) => {
      const { body } = await call(online.server, "/call", {
        method: "token_status",
        parameters: { contract_address: addressOf(name) },
      });
      return JSON.stringify(body);
    };
    expect(await state("RebasingToken")).toContain("its logs add up to");
    expect(await state("HonestToken")).not.toContain("its logs add up to");
  });

  it("are all listed of an account when no currency is named, as of the height", async () => {
    const listed = async (index: number) => {
      const { body } = await call(online.server, "/account/balance", {
        account_identifier: { address: bob },
        block_identifier: { index },
      });
      return body.balances.map(({ currency }) => currency.symbol);
    };
    expect(await listed(heights.get("mint") ?? 0)).toEqual(["TOKEN"]);
    expect(await listed(tipHeight())).toEqual([
      "TOKEN",
      "HonestToke",
      "WrappedTok",
      "HonestFeeT",
      "RebasingTo",
    ]);
  });

  it("come in the order in which they are asked for", async () => {
    const currencies = [
      currencyOf("WrappedToken"),
      { symbol: "TOKEN", decimals: 18 },
      currencyOf("HonestToken"),
    ];
    const { body } = await call(online.server, "/account/balance", {
      account_identifier: { address: alice.address },
      currencies,
    });
    expect(body.balances.map(({ currency }) => currency)).toEqual(currencies);
    expect(body.balances[0]?.value).toBe("550");
    expect(body.balances[2]?.value).toBe("960");
    expect(body.balances[1]?.value).toBe(String(await provider.getBalance(alice.address)));
  });

  it("are told in the same bytes by an index that begins anew and keeps no reply", async () => {
    const other = onlineServer(chain.url, { registry, storedBlocksBytes: 1, cacheBytes: 1 });
    await other.indexed(tipHeight());
    for (let index = 0; index <= tipHeight(); index++) {
      const fields = { block_identifier: { index } };
      const [first, again] = await Promise.all([
        call(online.server, "/block", fields),
        call(other.server, "/block", fields),
      ]);
      expect({ index, same: again.text === first.text }).toEqual({ index, same: true });
    }
    await other.rpc.close();
  });
});
