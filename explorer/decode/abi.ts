/**
 * Reads calldata and logs by signatures that are known. Whatever does not fit exactly is shown as
 * bytes: a wrong decoding would be believed. Source: Solidity's contract ABI specification.
 */
import { type Address, bytesToAddress } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { bytesToBigint, bytesToHex, type Hash32, type Hex, hexToBytes } from "../../chain/hex.js";

/** A value of a call or log. */
export type AbiValue =
  | { readonly kind: "address"; readonly address: Address }
  | { readonly kind: "number"; readonly number: bigint }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "list"; readonly items: readonly AbiValue[] };

/** A decoded call or log. */
export interface Decoded {
  readonly name: string;
  readonly values: readonly { readonly name: string; readonly value: AbiValue }[];
}

/** One parameter of a signature. */
interface Parameter {
  readonly type: string;
  readonly name: string;
  readonly isIndexed: boolean;
}

/** A signature taken apart. */
interface Signature {
  readonly name: string;
  readonly parameters: readonly Parameter[];
  /** keccak-256 of the canonical form. */
  readonly hash: Hash32;
}

const WORD = 32;

/** Items of a list that are read. */
const MAX_ITEMS = 32;

/** Bytes of a text or of bytes that are read. */
const MAX_BYTES = 1_024;

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
].map(readSignature);

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
].map(readSignature);

/** A call by its data; undefined where no known function fits. */
export function decodeCall(data: Hex): Decoded | undefined {
  const selector = data.slice(0, 10);
  const known = FUNCTIONS.find(({ hash }) => hash.slice(0, 10) === selector);
  if (known === undefined || data.length < 10) return undefined;
  const values = decodeValues(known.parameters, hexToBytes(`0x${data.slice(10)}`));
  return values === undefined ? undefined : { name: known.name, values };
}

/** A log by its topics and data; undefined where no known event fits. */
export function decodeLog(topics: readonly Hash32[], data: Hex): Decoded | undefined {
  for (const { name, parameters, hash } of EVENTS) {
    const indexed = parameters.filter(({ isIndexed }) => isIndexed);
    if (topics[0] !== hash || topics.length !== indexed.length + 1) continue;
    const fromTopics = indexed.map((parameter, index) =>
      decodeWord(parameter.type, hexToBytes(topics[index + 1] ?? "0x")),
    );
    const plain = parameters.filter(({ isIndexed }) => !isIndexed);
    const fromData = decodeValues(plain, hexToBytes(data));
    if (fromData === undefined || fromTopics.includes(undefined)) continue;
    const values = parameters.flatMap((parameter) => {
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
  if (bytes.length === WORD) return textOf(bytes.subarray(0, endOfText(bytes)));
  const [value] = decodeValues([{ type: "string", name: "", isIndexed: false }], bytes) ?? [];
  return value?.value.kind === "text" ? value.value.text : undefined;
}

function endOfText(bytes: Uint8Array): number {
  const end = bytes.indexOf(0);
  return end < 0 ? bytes.length : end;
}

function decodeValues(
  parameters: readonly Parameter[],
  bytes: Uint8Array,
): Decoded["values"] | undefined {
  const values: Decoded["values"][number][] = [];
  for (const [index, { name, type }] of parameters.entries()) {
    const head = bytes.subarray(index * WORD, (index + 1) * WORD);
    const value = isDynamic(type) ? decodeDynamic(type, head, bytes) : decodeWord(type, head);
    if (value === undefined) return undefined;
    values.push({ name, value });
  }
  return values;
}

function isDynamic(type: string): boolean {
  return type.endsWith("[]") || type === "string" || type === "bytes";
}

function decodeDynamic(type: string, head: Uint8Array, bytes: Uint8Array): AbiValue | undefined {
  const start = offsetOf(head, bytes.length);
  const length = start === undefined ? undefined : offsetOf(bytes.subarray(start, start + WORD));
  if (start === undefined || length === undefined) return undefined;
  const body = bytes.subarray(start + WORD);
  if (!type.endsWith("[]")) {
    if (length > body.length) return undefined;
    const content = body.subarray(0, Math.min(length, MAX_BYTES));
    return { kind: "text", text: type === "string" ? textOf(content) : bytesToHex(content) };
  }
  if (length * WORD > body.length) return undefined;
  const items: AbiValue[] = [];
  for (let index = 0; index < Math.min(length, MAX_ITEMS); index++) {
    const word = body.subarray(index * WORD, (index + 1) * WORD);
    const item = decodeWord(type.slice(0, -2), word);
    if (item === undefined) return undefined;
    items.push(item);
  }
  return { kind: "list", items };
}

/** A length or an offset; undefined where it lies beyond any use. */
function offsetOf(word: Uint8Array, most = Number.MAX_SAFE_INTEGER): number | undefined {
  if (word.length !== WORD) return undefined;
  const value = bytesToBigint(word);
  return value <= BigInt(Math.min(most, 2 ** 32)) ? Number(value) : undefined;
}

/** One word; undefined where it cannot be of the type. */
function decodeWord(type: string, word: Uint8Array): AbiValue | undefined {
  if (word.length !== WORD) return undefined;
  const number = bytesToBigint(word);
  switch (type) {
    case "address":
      if (number >> 160n !== 0n) return undefined;
      return { kind: "address", address: bytesToAddress(word.subarray(12)) };
    case "bool":
      return number > 1n ? undefined : { kind: "text", text: String(number === 1n) };
    case "uint112":
      return number >> 112n === 0n ? { kind: "number", number } : undefined;
    default:
      return { kind: "number", number };
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}

/** "name(type indexed name, ...)". */
function readSignature(text: string): Signature {
  const open = text.indexOf("(");
  const name = text.slice(0, open);
  const list = text.slice(open + 1, -1);
  const parameters = (list === "" ? [] : list.split(", ")).map((item) => {
    const words = item.split(" ");
    const isIndexed = words[1] === "indexed";
    return { type: words[0] ?? "", name: words.at(-1) ?? "", isIndexed };
  });
  const canonical = `${name}(${parameters.map(({ type }) => type).join(",")})`;
  return { name, parameters, hash: keccak256Hex(Buffer.from(canonical, "ascii")) };
}
