/** The token of the benchmarks: OpenZeppelin's ERC-20 that gives coins to whoever is named. */
import type { Address } from "../../chain/address.js";
import { hexToBytes } from "../../chain/hex.js";
import { compileSolidity } from "../helpers/contracts/solidity.js";
import type { Payment } from "./senders.js";

/** Holders of one mint: together they stay below the most gas that a transaction may name. */
export const HOLDERS_PER_MINT = 100;

/** Gas of a mint to that many new holders, rounded up. */
export const MINT_GAS_LIMIT = 3_900_000n;

/** Gas of one transfer between holders, rounded up; measured by `eth_estimateGas`. */
const TRANSFER_GAS_LIMIT = 60_000n;

const SOURCE = `
pragma solidity ^0.8.20;
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract BenchToken is ERC20("Bench", "BENCH") {
  function mint(address[] calldata holders) external {
    for (uint256 i = 0; i < holders.length; i++) _mint(holders[i], 1 ether);
  }
}`;

/** Code that creates the token. */
export function tokenBytecode(): Uint8Array {
  const { BenchToken } = compileSolidity({ "BenchToken.sol": SOURCE });
  if (BenchToken === undefined) throw new Error("the token does not compile");
  return hexToBytes(BenchToken.bytecode);
}

/** Calldata of mints for all holders, HOLDERS_PER_MINT each. */
export function mintDatas(holders: readonly Address[]): Uint8Array[] {
  const word = (value: number) => value.toString(16).padStart(64, "0");
  const datas: Uint8Array[] = [];
  for (let start = 0; start < holders.length; start += HOLDERS_PER_MINT) {
    const part = holders.slice(start, start + HOLDERS_PER_MINT);
    const words = part.map((address) => address.slice(2).padStart(64, "0"));
    // Selector of mint(address[]).
    datas.push(hexToBytes(`0xbd075b84${word(32)}${word(words.length)}${words.join("")}`));
  }
  return datas;
}

/** One unit of the token, to somebody. */
export function tokenTransfer(token: Address, to: Address): Payment {
  return {
    to: token,
    valueAtoken: 0n,
    gasLimit: TRANSFER_GAS_LIMIT,
    // Selector of transfer(address,uint256).
    data: hexToBytes(`0xa9059cbb${to.slice(2).padStart(64, "0")}${"1".padStart(64, "0")}`),
  };
}
