/**
 * ERC-20 on the wire: selectors, event signatures, and the calldata of the calls that Causeway makes
 * or reads. Source: ERC-20; Deposit and Withdrawal: WETH9.
 */
import { type Address, addressToBytes, bytesToAddress } from "../address.js";
import { cleanForeignText } from "./foreign-text.js";
import { bigintToWord, bytesToBigint, bytesToHex, type Hex, hexToBytes } from "../hex.js";

/** First four bytes of keccak-256 of each signature, as hex. */
export const ERC20_SELECTORS = {
  /** `balanceOf(address)` */
  balanceOf: "0x70a08231",
  /** `decimals()` */
  decimals: "0x313ce567",
  /** `name()` */
  name: "0x06fdde03",
  /** `symbol()` */
  symbol: "0x95d89b41",
  /** `totalSupply()` */
  totalSupply: "0x18160ddd",
  /** `transfer(address,uint256)` */
  transfer: "0xa9059cbb",
} as const satisfies Record<string, Hex>;

/** The same of Uniswap V2's pairs, which are tokens, too. */
export const PAIR_SELECTORS = {
  /** `factory()` */
  factory: "0xc45a0155",
  /** `token0()` */
  token0: "0x0dfe1681",
  /** `token1()` */
  token1: "0xd21220a7",
  /** `getReserves()` */
  reserves: "0x0902f1ac",
} as const satisfies Record<string, Hex>;

/** keccak-256 of each event's signature: its first topic. */
export const ERC20_TOPICS = {
  /** `Transfer(address,address,uint256)` */
  transfer: "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
  /** `Deposit(address,uint256)`: WETH9 and its kind log it for a mint. */
  deposit: "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c",
  /** `Withdrawal(address,uint256)`: the same for a burn. */
  withdrawal: "0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65",
} as const satisfies Record<string, Hex>;

/** The same for ERC-1155, whose transfers tell of other tokens at the same addresses. */
export const ERC1155_TOPICS = {
  /** `TransferSingle(address,address,address,uint256,uint256)` */
  transferSingle: "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62",
  /** `TransferBatch(address,address,address,uint256[],uint256[])` */
  transferBatch: "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb",
} as const satisfies Record<string, Hex>;

/** Bytes of a selector, and of one word. */
const SELECTOR_BYTES = 4;
const WORD_BYTES = 32;

/** Characters of one word as hex with its prefix. */
const WORD_CHARACTERS = 2 + 2 * WORD_BYTES;

/** Selector, recipient, amount. */
const TRANSFER_BYTES = SELECTOR_BYTES + 2 * WORD_BYTES;

/** Zeros before an address in its word. */
const ADDRESS_PADDING_BYTES = 12;

/**
 * Gas that a transfer takes beside an estimate of it where the receiver has something of the token
 * then, and nothing by the time it is mined: it may be collected, or give all of its own away. A
 * slot of storage costs 22,100 to fill and 5,000 to change (EIP-2929, EIP-3529).
 */
export const EMPTY_RECEIVER_GAS = 17_100n;

/** Recipient and amount of a transfer; the amount is in the token's smallest unit. */
export interface TokenTransfer {
  readonly to: Address;
  readonly amountUnits: bigint;
}

/** Calldata of `balanceOf(account)`. */
export function encodeBalanceOf(account: Address): Hex {
  const padding = "00".repeat(ADDRESS_PADDING_BYTES);
  return `${ERC20_SELECTORS.balanceOf}${padding}${account.slice(2)}`;
}

/** Calldata of ERC-1155's `balanceOf(account, id)`. */
export function encodeErc1155BalanceOf(account: Address, id: bigint): Hex {
  const padding = "00".repeat(ADDRESS_PADDING_BYTES);
  return `${ERC1155_BALANCE_OF}${padding}${account.slice(2)}${id.toString(16).padStart(64, "0")}`;
}

/** Selector of `balanceOf(address,uint256)`. */
const ERC1155_BALANCE_OF: Hex = "0x00fdd58e";

/** Calldata of `transfer(to, amountUnits)`. */
export function encodeTransfer({ to, amountUnits }: TokenTransfer): Hex {
  const padding = new Uint8Array(ADDRESS_PADDING_BYTES);
  return bytesToHex(
    Buffer.concat([
      hexToBytes(ERC20_SELECTORS.transfer),
      padding,
      addressToBytes(to),
      bigintToWord(amountUnits),
    ]),
  );
}

/**
 * The transfer that calldata is, read strictly: undefined unless `encodeTransfer` would give these
 * very bytes, so also where bytes follow or the address' word is dirty.
 */
export function decodeTransfer(data: Hex): TokenTransfer | undefined {
  if (!data.startsWith(ERC20_SELECTORS.transfer)) return undefined;
  const bytes = hexToBytes(data);
  if (bytes.length !== TRANSFER_BYTES) return undefined;
  const addressStart = SELECTOR_BYTES + ADDRESS_PADDING_BYTES;
  if (bytes.subarray(SELECTOR_BYTES, addressStart).some((byte) => byte !== 0)) return undefined;
  const amountStart = SELECTOR_BYTES + WORD_BYTES;
  return {
    to: bytesToAddress(bytes.subarray(addressStart, amountStart)),
    amountUnits: bytesToBigint(bytes.subarray(amountStart)),
  };
}

/** The amount that a view answered: exactly one word, else undefined. */
export function decodeUnits(answer: Hex): bigint | undefined {
  return answer.length === WORD_CHARACTERS ? BigInt(answer) : undefined;
}

/** Most bytes of one character in UTF-8. */
const CHARACTER_BYTES = 4;

/**
 * A name or symbol that a view answered: ABI `string`, or the `bytes32` of tokens from before it;
 * cleaned and cut to `maxCharacters`. Undefined where it is neither.
 */
export function decodeForeignText(bytes: Uint8Array, maxCharacters: number): string | undefined {
  const clean = (text: Uint8Array) => {
    const start = text.subarray(0, CHARACTER_BYTES * maxCharacters);
    return cleanForeignText(Buffer.from(start).toString("utf8"), maxCharacters);
  };
  if (bytes.length === WORD_BYTES) {
    const end = bytes.indexOf(0);
    return clean(bytes.subarray(0, end === -1 ? WORD_BYTES : end));
  }
  const lengthEnd = 2 * WORD_BYTES;
  if (bytes.length < lengthEnd || bytesToBigint(bytes.subarray(0, WORD_BYTES)) !== 32n) {
    return undefined;
  }
  const length = bytesToBigint(bytes.subarray(WORD_BYTES, lengthEnd));
  if (length > BigInt(bytes.length - lengthEnd)) return undefined;
  return clean(bytes.subarray(lengthEnd, lengthEnd + Number(length)));
}

/** Some units of one id of an ERC-1155 contract. */
export interface Erc1155Part {
  readonly id: bigint;
  readonly units: bigint;
}

/**
 * What the data of `TransferSingle` or `TransferBatch` moved; undefined where it is not as the
 * standard has it. A batch has as many entries as its data has room for, and no more.
 */
export function decodeErc1155(signature: string, data: Hex): readonly Erc1155Part[] | undefined {
  const bytes = hexToBytes(data);
  const word = (index: number) => {
    const end = (index + 1) * WORD_BYTES;
    return end <= bytes.length ? bytesToBigint(bytes.subarray(end - WORD_BYTES, end)) : undefined;
  };
  if (signature === ERC1155_TOPICS.transferSingle) {
    const [id, units] = [word(0), word(1)];
    return id === undefined || units === undefined ? undefined : [{ id, units }];
  }
  const list = (offset: bigint | undefined) => {
    if (offset === undefined || offset % 32n !== 0n || offset >= BigInt(bytes.length))
      return undefined;
    const start = Number(offset / 32n);
    const count = word(start);
    // Logs end where whoever makes them likes: what is left may be no whole word.
    const room = Math.floor(bytes.length / WORD_BYTES) - start - 1;
    if (count === undefined || count > BigInt(room)) return undefined;
    return Array.from({ length: Number(count) }, (_, index) => word(start + 1 + index) ?? 0n);
  };
  const [ids, units] = [list(word(0)), list(word(1))];
  if (ids === undefined || units === undefined || ids.length !== units.length) return undefined;
  return ids.map((id, index) => ({ id, units: units[index] ?? 0n }));
}
