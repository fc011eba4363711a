/**
 * Reads calldata and logs by signatures that are known, or by a contract's own ABI. Whatever does not
 * fit exactly is shown as bytes: a wrong decoding would be believed.
 */
import { isWordType, selectorOf } from "../../chain/evm/abi/abi-types.js";
import { WORD_BYTES } from "../../chain/evm/abi/abi-words.js";
import { type Hash32, type Hex, hexToBytes } from "../../chain/hex.js";
import { decodeParameters, decodeWord, type NamedValue } from "./abi-codec.js";
import { type AbiItem, readSignature } from "./abi-items.js";

/** A decoded call, log or error. */
export interface Decoded {
  readonly name: string;
  readonly values: readonly NamedValue[];
}

/** Functions that wallets and exchanges meet: ERC-20, ERC-721, ERC-1155, WETH9, Uniswap V2. */
const FUNCTIONS = [
  "transfer(address to, uint256 value)",
  "approve(address spender, uint256 value)",
  "transferFrom(address from, address to, uint256 value)",
  "safeTransferFrom(address from, address to, uint256 id)",
  "setApprovalForAll(address operator, bool approved)",
  "mint(address to, uint256 value)",
  "burn(uint256 value)",
  "deposit()",
  "withdraw(uint256 value)",
  "addLiquidity(address tokenA, address tokenB, uint256 desiredA, " +
    "uint256 desiredB, uint256 minA, uint256 minB, address to, uint256 deadline)",
  "addLiquidityETH(address token, uint256 desired, uint256 minToken, " +
    "uint256 minCoins, address to, uint256 deadline)",
  "removeLiquidity(address tokenA, address tokenB, uint256 liquidity, " +
    "uint256 minA, uint256 minB, address to, uint256 deadline)",
  "removeLiquidityETH(address token, uint256 liquidity, uint256 minToken, " +
    "uint256 minCoins, address to, uint256 deadline)",
  "swapExactTokensForTokens(uint256 amountIn, uint256 minOut, address[] path, " +
    "address to, uint256 deadline)",
  "swapTokensForExactTokens(uint256 amountOut, uint256 maxIn, address[] path, " +
    "address to, uint256 deadline)",
  "swapExactETHForTokens(uint256 minOut, address[] path, address to, uint256 deadline)",
  "swapExactTokensForETH(uint256 amountIn, uint256 minOut, address[] path, " +
    "address to, uint256 deadline)",
  "swapETHForExactTokens(uint256 amountOut, address[] path, address to, uint256 deadline)",
  "swapTokensForExactETH(uint256 amountOut, uint256 maxIn, address[] path, " +
    "address to, uint256 deadline)",
  "createPair(address tokenA, address tokenB)",
].map((text) => readSignature("function", text));

/** Events of the same contracts. Some share a hash and differ in what is indexed. */
const EVENTS = [
  "Transfer(address indexed from, address indexed to, uint256 value)",
  "Transfer(address indexed from, address indexed to, uint256 indexed id)",
  "Approval(address indexed owner, address indexed spender, uint256 value)",
  "Approval(address indexed owner, address indexed approved, uint256 indexed id)",
  "ApprovalForAll(address indexed owner, address indexed operator, bool approved)",
  "TransferSingle(address indexed operator, address indexed from, " +
    "address indexed to, uint256 id, uint256 value)",
  "Deposit(address indexed to, uint256 value)",
  "Withdrawal(address indexed from, uint256 value)",
  "PairCreated(address indexed token0, address indexed token1, address pair, uint256 count)",
  "Mint(address indexed sender, uint256 amount0, uint256 amount1)",
  "Burn(address indexed sender, uint256 amount0, uint256 amount1, address indexed to)",
  "Swap(address indexed sender, uint256 amount0In, uint256 amount1In, " +
    "uint256 amount0Out, uint256 amount1Out, address indexed to)",
  "Sync(uint112 reserve0, uint112 reserve1)",
  "OwnershipTransferred(address indexed previousOwner, address indexed newOwner)",
].map((text) => readSignature("event", text));

/** A call by its data, by the functions of an ABI; undefined where none fits. */
export function decodeCall(data: Hex, abi: readonly AbiItem[] = FUNCTIONS): Decoded | undefined {
  return decodeSelected("function", data, abi);
}

/** What a call that failed gave back, by the errors of an ABI; undefined where none fits. */
export function decodeError(data: Hex, abi: readonly AbiItem[]): Decoded | undefined {
  return decodeSelected("error", data, abi);
}

/** A log by its topics and data, by the events of an ABI; undefined where none fits. */
export function decodeLog(
  topics: readonly Hash32[],
  data: Hex,
  abi: readonly AbiItem[] = EVENTS,
): Decoded | undefined {
  for (const { kind, name, inputs, hash, isAnonymous } of abi) {
    if (kind !== "event" || isAnonymous || topics[0] !== hash) continue;
    const indexed = inputs.filter(({ isIndexed }) => isIndexed);
    if (topics.length !== indexed.length + 1) continue;
    const fromTopics = indexed.map(({ type }, index) => {
      const topic = topics[index + 1] ?? "0x";
      // Of a text or a list the topic is the hash: that is all that there is.
      if (!isWordType(type)) return { kind: "text" as const, text: topic };
      return decodeWord(type, hexToBytes(topic));
    });
    const plain = inputs.filter(({ isIndexed }) => !isIndexed);
    const fromData = decodeParameters(plain, hexToBytes(data));
    if (fromData === undefined || fromTopics.includes(undefined)) continue;
    const values = inputs.flatMap((parameter) => {
      const value = parameter.isIndexed
        ? fromTopics[indexed.indexOf(parameter)]
        : fromData[plain.indexOf(parameter)]?.value;
      return value === undefined ? [] : [{ name: parameter.name, value }];
    });
    return { name, values };
  }
  return undefined;
}

/** A string that a call gave back, also as the bytes32 of old tokens; undefined for anything else. */
export function decodeText(answer: Hex): string | undefined {
  const bytes = hexToBytes(answer);
  if (bytes.length === WORD_BYTES) return textOf(bytes.subarray(0, endOfText(bytes)));
  const text = { name: "", type: { kind: "string" }, isIndexed: false } as const;
  const [value] = decodeParameters([text], bytes) ?? [];
  return value?.value.kind === "text" ? value.value.text : undefined;
}

function decodeSelected(
  wanted: "function" | "error",
  data: Hex,
  abi: readonly AbiItem[],
): Decoded | undefined {
  if (data.length < 10) return undefined;
  const selector = data.slice(0, 10);
  const known = abi.find((item) => item.kind === wanted && selectorOf(item.hash) === selector);
  if (known === undefined) return undefined;
  const values = decodeParameters(known.inputs, hexToBytes(`0x${data.slice(10)}`));
  return values === undefined ? undefined : { name: known.name, values };
}

function endOfText(bytes: Uint8Array): number {
  const end = bytes.indexOf(0);
  return end < 0 ? bytes.length : end;
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}
