/** The exchange of the benchmarks: Uniswap V2 from its published artifacts, with one pair of two tokens. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { Interface, type InterfaceAbi, MaxUint256 } from "ethers";
import type { Address } from "../../chain/address.js";
import { contractAddressOf } from "../../chain/evm/contract-address.js";
import { hexToBytes } from "../../chain/hex.js";
import { cloneFolder } from "../../cli/home/home.js";
import { HOLDERS_PER_MINT, MINT_GAS_LIMIT, mintDatas, tokenBytecode } from "./bench-token.js";
import type { Payment, Sender } from "./senders.js";

/** Gas of the largest deployment, rounded up: the router, and a pair with its first liquidity. */
const DEPLOY_GAS_LIMIT = 6_000_000n;
const APPROVAL_GAS_LIMIT = 60_000n;
/** Gas of a swap between tokens that both have holders, rounded up. */
const SWAP_GAS_LIMIT = 160_000n;

/** What a swap gives; far less than a holder has, and enough to get something for it. */
const SWAP_UNITS = 1_000_000n;
const DEADLINE = 4_000_000_000n;

interface Artifact {
  readonly abi: InterfaceAbi;
  readonly bytecode: string;
}

/** An exchange that somebody is to make: its addresses follow from the nonces. */
export interface Exchange {
  readonly router: Address;
  /** The pair: swaps give the first and take the second. */
  readonly tokens: readonly [Address, Address];
  /** Transactions of its owner that make it, in order. */
  readonly payments: readonly Payment[];
}

/** Plans an exchange that the owner makes with its next transactions. */
export function planExchange({
  address,
  nextNonce,
}: Pick<Sender, "address" | "nextNonce">): Exchange {
  const payments: Payment[] = [];
  const add = (to: Address | undefined, data: Uint8Array, gasLimit: bigint): Address => {
    payments.push({ to, data, gasLimit, valueAtoken: 0n });
    return contractAddressOf(address, nextNonce + BigInt(payments.length - 1));
  };
  const deploy = (artifact: Artifact, args: readonly unknown[]): Address => {
    const parameters = new Interface(artifact.abi).encodeDeploy([...args]).slice(2);
    const code = artifact.bytecode.replace(/^0x/, "");
    return add(undefined, hexToBytes(`0x${code}${parameters}`), DEPLOY_GAS_LIMIT);
  };
  const factory = deploy(artifactOf("core", "UniswapV2Factory"), [address]);
  const weth = deploy(artifactOf("periphery", "WETH9"), []);
  const router = deploy(artifactOf("periphery", "UniswapV2Router02"), [factory, weth]);
  const token = () => add(undefined, tokenBytecode(), DEPLOY_GAS_LIMIT);
  const tokens = [token(), token()] as const;
  for (const of of tokens) {
    for (const data of mintDatas(Array.from({ length: HOLDERS_PER_MINT }, () => address))) {
      add(of, data, MINT_GAS_LIMIT);
    }
    add(of, approvalData(router), APPROVAL_GAS_LIMIT);
  }
  // A mint gives each named holder one token.
  const depth = BigInt(HOLDERS_PER_MINT) * 10n ** 18n;
  const liquidity = [...tokens, depth, depth, 0, 0, address, DEADLINE];
  add(router, routerCall("addLiquidity", liquidity), DEPLOY_GAS_LIMIT);
  return { router, tokens, payments };
}

/** Lets the exchange take what its sender has of a token. */
export function approval(token: Address, router: Address): Payment {
  const data = approvalData(router);
  return { to: token, data, gasLimit: APPROVAL_GAS_LIMIT, valueAtoken: 0n };
}

/** Swaps some of the first token for the second; somebody gets it. */
export function swap({ router, tokens }: Exchange, to: Address): Payment {
  const data = routerCall("swapExactTokensForTokens", [SWAP_UNITS, 0, tokens, to, DEADLINE]);
  return { to: router, data, gasLimit: SWAP_GAS_LIMIT, valueAtoken: 0n };
}

let routerInterface: Interface | undefined;

function routerCall(name: string, args: readonly unknown[]): Uint8Array {
  routerInterface ??= new Interface(artifactOf("periphery", "UniswapV2Router02").abi);
  return hexToBytes(routerInterface.encodeFunctionData(name, args));
}

function approvalData(router: Address): Uint8Array {
  const erc20 = new Interface(["function approve(address, uint256)"]);
  return hexToBytes(erc20.encodeFunctionData("approve", [router, MaxUint256]));
}

function artifactOf(part: "core" | "periphery", name: string): Artifact {
  const folder = path.join(cloneFolder(), "node_modules", "@uniswap", `v2-${part}`, "build");
  return JSON.parse(readFileSync(path.join(folder, `${name}.json`), "utf8")) as Artifact;
}
