/**
 * Registered contracts that want to stop the index, or to make two servers tell different things:
 * on a real chain, beside coins and a token that have nothing to do with them.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { getCreateAddress, Interface, Wallet } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { compileFixture } from "../../helpers/contracts/solidity.js";
import { type Online, onlineServer } from "../../unit/sidecar/servers.js";

const faucet = new Wallet(`0x${"11".repeat(32)}`);

/** Modes of the contract `Beast`, in the order of creation, and whether they are believed. */
const BEASTS = [
  ["honest", true],
  ["takes all gas", false],
  ["answers 31 bytes", false],
  ["answers 33 bytes", false],
  ["answers 64 bytes", false],
  ["answers 150,000 bytes", false],
  // The zero address asks, whose number is 0.
  ["differs by caller", true],
  ["differs by time", false],
  ["differs by the gas that is left", false],
  // Whether it is caught is up to the hashes; that two indexes come to the same is shown below.
  ["differs by a block's hash", undefined],
  // A call may do that; nothing of it stays.
  ["writes and enters itself again", true],
  ["is honest and takes all gas but a little", true],
  ["reverts with text", false],
  ["differs by origin, price and number", false],
] as const;

const HONEST = 0;
const DEAR = 11;
const MAYFLY = BEASTS.length;

const addressOf = (index: number): Address =>
  parseAddress(getCreateAddress({ from: faucet.address, nonce: index }).toLowerCase());

const entries = [...BEASTS.keys(), MAYFLY].map((index) => ({
  contractAddress: addressOf(index),
  symbol: `B${index}`,
  decimals: 18,
}));

const abi = new Interface([
  "constructor(uint256)",
  "function log(address,address,uint256)",
  "function spray(uint160,uint160)",
  "function poke()",
]);

let chain: ServedChain;
let live: Online;
let nonce = 0;
let tip = 0;

interface Message {
  readonly to?: string;
  readonly data: string;
  readonly gasLimit?: bigint;
}

/** Mines a block, and waits until the live server has it: it judges at the head, block by block. */
async function mine(...messages: readonly Message[]): Promise<void> {
  const raws: string[] = [];
  for (const message of messages) {
    const common = { type: 0, chainId: 6940, gasPrice: 25_000_000n, gasLimit: 3_900_000n };
    raws.push(await faucet.signTransaction({ ...common, nonce, ...message }));
    nonce += 1;
  }
  const { committed } = await chain.mine(raws);
  expect(committed.receipts.map(({ status }) => status)).toEqual(raws.map(() => 1));
  tip = committed.block.header.height;
  await live.indexed(tip);
}

const send = (index: number, method: string, ...values: unknown[]): Message => ({
  to: addressOf(index),
  data: abi.encodeFunctionData(method, values),
});

const account = (nth: number) => `0x${(0xacc_0000 + nth).toString(16).padStart(40, "0")}`;

const textOf = async (online: Online, height: number) =>
  (await online.index.blocks.block(height)).body.toString("utf8");

beforeAll(async () => {
  chain = await ServedChain.open(testGenesis(faucet.address));
  live = onlineServer(chain.url, { registry: new TokenRegistry(entries) });
  const { Beast, Mayfly } = compileFixture("Beasts.sol");
  await mine(
    ...BEASTS.map((_, mode) => ({
      data: `${Beast?.bytecode ?? ""}${abi.encodeDeploy([mode]).slice(2)}`,
      gasLimit: 1_500_000n,
    })),
    { data: Mayfly?.bytecode ?? "0x", gasLimit: 200_000n },
  );
  // To and from the token's own address, too.
  await mine(
    ...BEASTS.map((_, index) => send(index, "log", faucet.address, account(1), 3n)),
    send(HONEST, "log", addressOf(HONEST), addressOf(HONEST), 7n),
  );
  await mine(...BEASTS.map((_, index) => send(index, "poke")));
  // As dear as can be asked of a node: many accounts, and much work for each.
  await mine(send(DEAR, "spray", account(0), 150));
  await mine(send(HONEST, "log", faucet.address, account(2), 1n));
});

afterAll(async () => {
  await live.rpc.close();
  await chain.close();
});

describe("registered contracts that do what they like", () => {
  it("are believed as long as they answer, and never keep the index from going on", async () => {
    const believed = BEASTS.map(([name, isCertain], index) => {
      const isBelieved = live.index.blocks.quarantineOf(addressOf(index)) === undefined;
      return [name, isCertain === undefined ? undefined : isBelieved];
    });
    expect(believed).toEqual(BEASTS.map((beast) => [...beast]));
    expect(live.index.blocks.quarantineOf(addressOf(MAYFLY))?.height).toBe(1);
    const at = { contract: addressOf(HONEST), account: parseAddress(account(2)) };
    expect(await live.index.blocks.tokenBalance(at, tip)).toBe(1n);
  });

  it("are told in the same bytes by a server that begins later with another order", async () => {
    const registry = new TokenRegistry(entries.toReversed());
    const other = onlineServer(chain.url, { registry });
    await other.indexed(tip);
    for (let height = 0; height <= tip; height += 1) {
      const texts = await Promise.all([textOf(live, height), textOf(other, height)]);
      expect({ height, same: texts[0] === texts[1] }).toEqual({ height, same: true });
    }
    await other.rpc.close();
  });
});
