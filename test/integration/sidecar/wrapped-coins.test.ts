/** Tokens that hold coins, and whoever makes their logs look like others: each is believed for what it does. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { getCreateAddress, Interface, Wallet } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { compileFixture } from "../../helpers/contracts/solidity.js";
import { type Online, onlineServer } from "../../unit/sidecar/servers.js";

const faucet = new Wallet(`0x${"11".repeat(32)}`);
const addressOf = (nonce: number): Address =>
  parseAddress(getCreateAddress({ from: faucet.address, nonce }).toLowerCase());
const [plain, echoing, struck, ambiguous] = [0, 1, 2, 3].map(addressOf) as [
  Address,
  Address,
  Address,
  Address,
];
const registry = new TokenRegistry(
  [plain, echoing, struck].map((contractAddress, index) => {
    return { contractAddress, symbol: `W${index}`, decimals: 18 };
  }),
);
const abi = new Interface([
  "function deposit() payable",
  "function withdraw(uint256)",
  "function transfer(address,uint256)",
  "function prepare(address) payable",
  "function strike(address)",
]);

let chain: ServedChain;
let live: Online;
let nonce = 0;
let tip = 0;

async function mine(...messages: readonly { to?: Address; data: string; value?: bigint }[]) {
  const raws: string[] = [];
  for (const message of messages) {
    const common = { type: 0, chainId: 6940, gasPrice: 25_000_000n, gasLimit: 2_000_000n };
    raws.push(await faucet.signTransaction({ ...common, nonce, ...message }));
    nonce += 1;
  }
  const { committed } = await chain.mine(raws);
  expect(committed.receipts.map(({ status }) => status)).toEqual(raws.map(() => 1));
  tip = committed.block.header.height;
  await live.indexed(tip);
}

const call = (to: Address, method: string, values: readonly unknown[] = [], value = 0n) => ({
  to,
  data: abi.encodeFunctionData(method, values),
  value,
});

const typesAt = async (height: number) => {
  const text = (await live.index.blocks.block(height)).body.toString("utf8");
  return text.match(/ERC20_[A-Z]+/g) ?? [];
};

beforeAll(async () => {
  chain = await ServedChain.open(testGenesis(faucet.address));
  live = onlineServer(chain.url, { registry });
  const { Wrapper, EchoingWrapper, Ambiguous } = compileFixture("WrappedCoins.sol");
  await mine(
    ...[Wrapper, EchoingWrapper, Wrapper, Ambiguous].map((made) => ({
      data: made?.bytecode ?? "",
    })),
  );
});

afterAll(async () => {
  await live.rpc.close();
  await chain.close();
});

it("are told once, whether Transfers come with Deposits and Withdrawals or not", async () => {
  for (const token of [plain, echoing]) {
    await mine(call(token, "deposit", [], 10n), call(token, "withdraw", [4n]));
    expect(await typesAt(tip)).toEqual(["ERC20_MINT", "ERC20_BURN"]);
  }
});

it("are not made liars by a Withdrawal beside as much that is sent to nobody", async () => {
  for (const token of [plain, struck]) {
    await mine(call(ambiguous, "prepare", [token], 5n));
    await mine(call(ambiguous, "strike", [token]));
    expect(await typesAt(tip)).toEqual(["ERC20_BURN", "ERC20_BURN"]);
    const held = { contract: token, account: ambiguous };
    expect(await live.index.blocks.tokenBalance(held, tip)).toBe(3n);
  }
  for (const token of [plain, echoing, struck]) {
    expect(live.index.blocks.quarantineOf(token)).toBeUndefined();
  }
});

it("are told the same by a server that begins later", async () => {
  const other = onlineServer(chain.url, { registry });
  await other.indexed(tip);
  for (let height = 0; height <= tip; height += 1) {
    const [own, late] = await Promise.all(
      [live, other].map(async ({ index }) =>
        (await index.blocks.block(height)).body.toString("utf8"),
      ),
    );
    expect(late).toBe(own);
  }
  await other.rpc.close();
});
