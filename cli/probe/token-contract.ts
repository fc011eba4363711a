/** What an ERC-20 contract says about itself: untrusted, and read only to be held against a list. */
import { decodeForeignText, ERC20_SELECTORS } from "../../chain/evm/erc20.js";
import type { Address } from "../../chain/address.js";
import { bytesToBigint, hexToBytes, parseHex, toQuantity } from "../../chain/hex.js";
import type { JsonRpcClient, RpcCall, RpcOptions, RpcOutcome } from "../../rpc-client/json-rpc.js";

/** A contract's own words; undefined where it does not answer, or not in the form of ERC-20. */
export interface ContractFacts {
  readonly hasCode: boolean;
  /** Its code may run that of another contract, which can become another one. */
  readonly isDelegating: boolean;
  /** At most `MAX_SYMBOL_LENGTH` characters, cleaned. */
  readonly symbol: string | undefined;
  readonly decimals: number | undefined;
  /** In the token's smallest unit. */
  readonly totalSupplyUnits: bigint | undefined;
}

/** Longest symbol that is shown; contracts may answer megabytes. */
const MAX_SYMBOL_LENGTH = 64;

/** Gas of one view: far more than any honest token takes, and a bound for the others. */
const VIEW_GAS = 500_000n;

const WORD_BYTES = 32;

/** Calls per contract, in the order of `callsOf`. */
const CALLS_PER_CONTRACT = 4;

/**
 * Asks the contracts at the newest block, in the order of the addresses.
 * @throws NodeFault when the node cannot be asked
 */
export async function readContracts(
  rpc: JsonRpcClient,
  contracts: readonly Address[],
  options: RpcOptions,
): Promise<ContractFacts[]> {
  const outcomes = await rpc.batch(contracts.flatMap(callsOf), options);
  return contracts.map((_, index) => {
    const start = index * CALLS_PER_CONTRACT;
    const [code, symbol, decimals, supply] = outcomes
      .slice(start, start + CALLS_PER_CONTRACT)
      .map(bytesOf);
    const places = decimals === undefined ? undefined : decodeWord(decimals);
    return {
      hasCode: code !== undefined && code.length > 0,
      isDelegating: code !== undefined && isDelegating(code),
      symbol: symbol === undefined ? undefined : decodeForeignText(symbol, MAX_SYMBOL_LENGTH),
      decimals: places !== undefined && places <= 255n ? Number(places) : undefined,
      totalSupplyUnits: supply === undefined ? undefined : decodeWord(supply),
    };
  });
}

/** A clone of EIP-1167 runs the code of one contract for ever. */
const CLONE = /^363d3d373d3d3d363d73[0-9a-f]{40}5af43d82803e903d91602b57fd5bf3$/;

const [PUSH1, PUSH32, DELEGATECALL] = [0x60, 0x7f, 0xf4];

/** Whether code has a DELEGATECALL that is neither data nor what a compiler appends, and is no clone. */
function isDelegating(bytes: Uint8Array): boolean {
  if (CLONE.test(Buffer.from(bytes).toString("hex"))) return false;
  const code = withoutMetadata(bytes);
  for (let at = 0; at < code.length; at += 1) {
    const opcode = code[at] ?? 0;
    if (opcode === DELEGATECALL) return true;
    if (opcode >= PUSH1 && opcode <= PUSH32) at += opcode - PUSH1 + 1;
  }
  return false;
}

/** Solidity appends a CBOR map of few entries, and its length in two bytes. */
function withoutMetadata(code: Uint8Array): Uint8Array {
  const [high = 0, low = 0] = code.subarray(-2);
  const start = code.length - 2 - (high * 256 + low);
  const first = code[start] ?? 0;
  return start >= 0 && first >= 0xa1 && first <= 0xa4 ? code.subarray(0, start) : code;
}

function callsOf(contract: Address): RpcCall[] {
  const view = (data: string): RpcCall => {
    const message = { to: contract, gas: toQuantity(VIEW_GAS), data };
    return { method: "eth_call", params: [message, "latest"] };
  };
  const code = { method: "eth_getCode", params: [contract, "latest"] };
  return [
    code,
    view(ERC20_SELECTORS.symbol),
    view(ERC20_SELECTORS.decimals),
    view(ERC20_SELECTORS.totalSupply),
  ];
}

/** Answered bytes; a call that reverts is an answer as well. */
function bytesOf(outcome: RpcOutcome): Uint8Array | undefined {
  try {
    return outcome.ok ? hexToBytes(parseHex(outcome.result)) : undefined;
  } catch {
    return undefined; // Not hex: the contract's bytes cannot be told.
  }
}

function decodeWord(bytes: Uint8Array): bigint | undefined {
  return bytes.length === WORD_BYTES ? bytesToBigint(bytes) : undefined;
}
