/**
 * Uniswap V2 from its published artifacts, router and wrapped coin included: what the index says of
 * pairs, swaps and candles against what ethers reads from the chain's logs and contracts alone.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  Contract,
  getCreate2Address,
  Interface,
  JsonRpcProvider,
  keccak256,
  type Log,
} from "ethers";
import { IndexerSource } from "../../../explorer/sources/indexer-source.js";
import { parseAddress } from "../../../chain/address.js";
import { call, IndexerStage, type Json, type Message } from "../../helpers/indexer/indexer.js";
import { freePort } from "../../helpers/ports.js";
import { compileSolidity } from "../../helpers/contracts/solidity.js";

const artifact = (part: string, name: string) =>
  JSON.parse(readFileSync(`node_modules/@uniswap/v2-${part}/build/${name}.json`, "utf8"));
const artifacts = {
  factory: artifact("core", "UniswapV2Factory"),
  pair: artifact("core", "UniswapV2Pair"),
  weth: artifact("periphery", "WETH9"),
  router: artifact("periphery", "UniswapV2Router02"),
  token: artifact("periphery", "ERC20"),
};
const codeOf = ({ bytecode }: { bytecode: string }) => `0x${bytecode.replace(/^0x/, "")}`;
const abiOf = ({ abi }: { abi: never }) => new Interface(abi);
const [factoryAbi, pairAbi, routerAbi, tokenAbi, wethAbi] = [
  abiOf(artifacts.factory),
  abiOf(artifacts.pair),
  abiOf(artifacts.router),
  abiOf(artifacts.token),
  abiOf(artifacts.weth),
];

/** Says that it is a pair of a factory that does not know it, and logs pairs of others. */
const IMPOSTOR = `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
contract Impostor {
  address public factory; address public token0; address public token1;
  event PairCreated(address indexed token0, address indexed token1, address pair, uint256 n);
  constructor(address f, address a, address b) { factory = f; token0 = a; token1 = b; }
  function log(address pair) external { emit PairCreated(token0, token1, pair, 1); }
}`;
const impostor = compileSolidity({ "I.sol": IMPOSTOR })["Impostor"];
const impostorAbi = new Interface(impostor?.abi as never);

const DEADLINE = 4_000_000_000n;
const SUPPLY = 10n ** 30n;
const GAS = 10_000_000n;
const ONE = 10n ** 18n;

let stage: IndexerStage;
let provider: JsonRpcProvider;
const at = { factory: "", weth: "", router: "", left: "", right: "", impostor: "" };
const me = () => stage.faucet.address;
let pairs: { readonly wide: string; readonly coin: string };

const swapFor = (amount: bigint, path: readonly string[], isOut = false): Message => {
  const method = isOut ? "swapTokensForExactTokens" : "swapExactTokensForTokens";
  const bounds = isOut ? [amount, SUPPLY] : [amount, 0n];
  return { ...call(at.router, routerAbi, method, ...bounds, path, me(), DEADLINE), gasLimit: GAS };
};

beforeAll(async () => {
  stage = await IndexerStage.open();
  provider = new JsonRpcProvider(stage.chain.url, 6940, { staticNetwork: true });
  const port = await freePort();
  stage.url = `http://127.0.0.1:${port}`;
  stage.launch(port);
  const deploy = (json: { bytecode: string; abi: never }, ...args: unknown[]) =>
    stage.deploy(`${codeOf(json)}${abiOf(json).encodeDeploy(args).slice(2)}`, GAS);
  at.factory = await deploy(artifacts.factory, me());
  at.weth = await deploy(artifacts.weth);
  at.router = await deploy(artifacts.router, at.factory, at.weth);
  at.left = await deploy(artifacts.token, SUPPLY);
  at.right = await deploy(artifacts.token, SUPPLY);
  const wide = getCreate2Address(
    at.factory,
    keccak256(`0x${[at.left, at.right].toSorted(compareHex).join("").replaceAll("0x", "")}`),
    keccak256(codeOf(artifacts.pair)),
  );
  // Somebody logs the pair before it is there, and himself as one of the real factory's.
  const claims = impostorAbi.encodeDeploy([at.factory, at.left, at.right]).slice(2);
  at.impostor = await stage.deploy(`${impostor?.bytecode}${claims}`);
  await stage.mine(
    call(at.impostor, impostorAbi, "log", wide),
    call(at.impostor, impostorAbi, "log", at.impostor),
  );
  await stage.indexed();
  const early = await stage.all("/dex/pairs");
  expect(early.map(({ isConfirmed }) => isConfirmed)).toEqual([false, false]);

  const approve = [at.left, at.right].map((token) =>
    call(token, tokenAbi, "approve", at.router, SUPPLY),
  );
  await stage.mine(...approve);
  const add = [at.left, at.right, 1_000n * ONE, 4_000n * ONE, 0n, 0n, me(), DEADLINE];
  const addCoin = [at.right, 500n * ONE, 0n, 0n, me(), DEADLINE];
  expect(
    await stage.mine(
      { ...call(at.router, routerAbi, "addLiquidity", ...add), gasLimit: GAS },
      {
        ...call(at.router, routerAbi, "addLiquidityETH", ...addCoin),
        value: 50n * ONE,
        gasLimit: GAS,
      },
    ),
  ).toEqual([1, 1]);
  const factory = new Contract(at.factory, factoryAbi, provider);
  const coin: string = await factory["getPair"]?.(at.weth, at.right);
  expect(await factory["getPair"]?.(at.left, at.right)).toBe(wide);
  pairs = { wide, coin };
  // More than a minute of blocks, both directions, two in a block, over two pairs, with coins.
  const back = [at.right, at.left];
  for (let round = 1n; round <= 36n; round++) {
    const messages: Message[] = [];
    if (round % 3n !== 0n) messages.push(swapFor(round * ONE, [at.left, at.right]));
    if (round % 4n === 0n) messages.push(swapFor(ONE, back), swapFor(2n * ONE, back, true));
    if (round % 9n === 0n) messages.push(swapFor(ONE, [at.left, at.right, at.weth]));
    if (round === 20n) {
      const path = [at.weth, at.right];
      const bought = call(at.router, routerAbi, "swapExactETHForTokens", 0n, path, me(), DEADLINE);
      messages.push({ ...bought, value: ONE, gasLimit: GAS });
    }
    expect(new Set(await stage.mine(...messages))).toEqual(
      new Set(messages.length === 0 ? [] : [1]),
    );
  }
  const lp = await new Contract(wide, pairAbi, provider)["balanceOf"]?.(me());
  const remove = [at.left, at.right, lp / 3n, 0n, 0n, me(), DEADLINE];
  expect(
    await stage.mine(call(wide, pairAbi, "approve", at.router, SUPPLY), {
      ...call(at.router, routerAbi, "removeLiquidity", ...remove),
      gasLimit: GAS,
    }),
  ).toEqual([1, 1]);
  // Coins that nobody announced: a Sync without a swap.
  await stage.mine(call(at.left, tokenAbi, "transfer", wide, ONE), call(wide, pairAbi, "sync"));
  await stage.indexed();
});

afterAll(async () => {
  provider.destroy();
  await stage.close();
});

function compareHex(left: string, right: string): number {
  return left < right ? -1 : 1;
}

/** Logs of an event of a pair, as the chain has them. */
async function logsOf(pair: string, event: string): Promise<{ log: Log; args: readonly Json[] }[]> {
  const topic = pairAbi.getEvent(event)?.topicHash ?? "";
  const filter = { address: pair, topics: [topic], fromBlock: 0, toBlock: "latest" };
  const logs = await provider.getLogs(filter);
  return logs.map((log) => ({ log, args: [...(pairAbi.parseLog(log)?.args ?? [])] }));
}

describe("Uniswap V2 in the index", () => {
  it("has reserves, shares, volumes and prices as the contracts have them", async () => {
    for (const address of [pairs.wide, pairs.coin]) {
      const contract = new Contract(address, pairAbi, provider);
      const [reserve0, reserve1]: bigint[] = (await contract["getReserves"]?.()) ?? [];
      const swaps = await logsOf(address, "Swap");
      const sum = (...indexes: number[]) =>
        String(
          swaps.reduce((all, { args }) => indexes.reduce((n: bigint, i) => n + args[i], all), 0n),
        );
      const { pair } = await stage.get(`/dex/pairs/${address}`);
      expect(pair).toMatchObject({
        factory: at.factory,
        token0: { address: String(await contract["token0"]?.()).toLowerCase(), decimals: 18 },
        token1: { address: String(await contract["token1"]?.()).toLowerCase(), decimals: 18 },
        reserve0: String(reserve0),
        reserve1: String(reserve1),
        lpSupply: String(await contract["totalSupply"]?.()),
        swaps: swaps.length,
        volume0: sum(1, 3),
        volume1: sum(2, 4),
        volume0Day: sum(1, 3),
        isConfirmed: true,
        price0: decimal((reserve1 ?? 0n) * ONE, reserve0 ?? 1n),
        price1: decimal((reserve0 ?? 0n) * ONE, reserve1 ?? 1n),
      });
    }
    const impostors = (await stage.all("/dex/pairs")).filter(({ isConfirmed }) => !isConfirmed);
    expect(impostors.map(({ address }) => address)).toEqual([at.impostor]);
    const ofToken = await stage.all(`/dex/pairs?token=${at.weth}`);
    expect(ofToken.map(({ address }) => address)).toEqual([pairs.coin.toLowerCase()]);
  });

  it("has every swap and every change of liquidity that was logged", async () => {
    for (const address of [pairs.wide, pairs.coin]) {
      const chain = (await logsOf(address, "Swap")).map(({ log, args }) => ({
        id: `${log.blockNumber}-${log.index}`,
        txHash: log.transactionHash,
        sender: String(args[0]).toLowerCase(),
        to: String(args[5]).toLowerCase(),
        amounts: [args[1], args[2], args[3], args[4]].map(String),
      }));
      const index = await stage.all(`/dex/pairs/${address}/swaps?order=asc`);
      expect(
        index.map((one) => ({
          id: one.id,
          txHash: one.txHash,
          sender: one.sender,
          to: one.to,
          amounts: [one.amount0In, one.amount1In, one.amount0Out, one.amount1Out],
        })),
      ).toEqual(chain);
      const changes = [
        ...(await logsOf(address, "Mint")).map(({ log, args }) => ({ kind: "mint", log, args })),
        ...(await logsOf(address, "Burn")).map(({ log, args }) => ({ kind: "burn", log, args })),
      ].map(({ kind, log, args }) => [kind, log.blockNumber, String(args[1]), String(args[2])]);
      const liquidity = await stage.all(`/dex/pairs/${address}/liquidity?order=asc`);
      expect(
        liquidity.map(({ kind, height, amount0, amount1 }) => [kind, height, amount0, amount1]),
      ).toEqual(changes);
    }
    const ofWide = await stage.all(`/dex/pairs/${pairs.wide}/swaps`);
    expect(new Set(ofWide.map(({ isConfirmed }) => isConfirmed))).toEqual(new Set([true]));
    const both = await stage.all(`/dex/swaps?account=${me()}`);
    expect(both).toHaveLength(
      (await logsOf(pairs.wide, "Swap")).length + (await logsOf(pairs.coin, "Swap")).length,
    );
  });

  it("has candles equal to those that the logs alone give", async () => {
    for (const [interval, seconds] of [
      ["1m", 60],
      ["1h", 3_600],
    ] as const) {
      const expected = await candlesFromLogs(pairs.wide, seconds);
      if (interval === "1m") expect(expected.length).toBeGreaterThan(1);
      const found = await stage.all(`/dex/pairs/${pairs.wide}/candles?interval=${interval}`, 1);
      expect(found.toReversed()).toEqual(expected);
      const source = new IndexerSource({ url: stage.url, timeoutMs: 30_000 });
      const { signal } = new AbortController();
      const pair = parseAddress(pairs.wide.toLowerCase());
      const shown = (await source.candles(pair, interval, signal)).items;
      expect(shown.map(({ close }) => close)).toEqual(expected.map(({ close }) => close));
      const [asked] = (await source.pair(pair, signal)).items;
      expect(asked).toMatchObject({ isConfirmed: true, decimals0: 18, decimals1: 18 });
    }
  });

  it("has wrapped coins as the contract has them, which logs no transfer of them", async () => {
    const weth = new Contract(at.weth, wethAbi, provider);
    const held = await stage.all(`/tokens/${at.weth}/holders`);
    expect(held.length).toBeGreaterThan(0);
    for (const { address, amount, method } of held) {
      expect({ amount, method }).toEqual({
        amount: String(await weth["balanceOf"]?.(address)),
        method: "logs",
      });
    }
  });
});

/** A quotient of two numbers with so many places, cut off. */
function decimal(scaled: bigint, denominator: bigint, places = 18): string {
  const digits = (scaled / denominator).toString().padStart(places + 1, "0");
  const text = `${digits.slice(0, -places)}.${digits.slice(-places)}`;
  return text.replace(/\.?0+$/, "");
}

/** By hand: price of a swap is what moved of token1 for one token0. */
async function candlesFromLogs(pair: string, seconds: number): Promise<Json[]> {
  const bins = new Map<number, { prices: bigint[]; volume0: bigint; volume1: bigint }>();
  const times = new Map<number, number>();
  for (const { log, args } of await logsOf(pair, "Swap")) {
    const height = log.blockNumber;
    const time = times.get(height) ?? (await provider.getBlock(height))?.timestamp ?? 0;
    times.set(height, time);
    const start = time - (time % seconds);
    const bin = bins.get(start) ?? { prices: [], volume0: 0n, volume1: 0n };
    bins.set(start, bin);
    const [in0, in1, out0, out1]: readonly [bigint, bigint, bigint, bigint] = [
      args[1],
      args[2],
      args[3],
      args[4],
    ];
    bin.prices.push(((out1 - in1) * 10n ** 36n) / (in0 - out0));
    bin.volume0 += in0 + out0;
    bin.volume1 += in1 + out1;
  }
  return [...bins].map(([start, { prices, volume0, volume1 }]) => {
    const text = (price: bigint | undefined) => decimal(price ?? 0n, 1n, 36);
    const sorted = prices.toSorted((a, b) => (a < b ? -1 : 1));
    return {
      time: new Date(start * 1_000).toISOString(),
      open: text(prices[0]),
      high: text(sorted.at(-1)),
      low: text(sorted[0]),
      close: text(prices.at(-1)),
      volume0: volume0.toString(),
      volume1: volume1.toString(),
      swaps: prices.length,
    };
  });
}
