/**
 * Balances of many accounts of one token by a single `eth_call`: code of our own, put in an account for this
 * call alone (a state override), asks the token's contract for one after the other. Asked one by one, they
 * take a node four times as long, in many more exchanges.
 */
import { type Address, ZERO_ADDRESS } from "../../chain/address.js";
import { type Hex, toQuantity } from "../../chain/hex.js";
import { readHex } from "../answer-fields.js";
import { encodeStateAt, type StateAt } from "../at.js";
import { areParamsInvalid, RpcError } from "../errors.js";
import type { JsonRpcClient, RpcOptions } from "../json-rpc.js";

/** What is asked together. */
export interface ManyBalances {
  readonly token: Address;
  readonly accounts: readonly Address[];
  readonly at: StateAt;
}

/** Accounts of one call: with the usual contracts a few milliseconds, and far below a node's bounds. */
const MAX_ACCOUNTS = 200;

/** Gas of one call: what every node grants. What is left unanswered for want of it is asked by itself. */
const CALL_GAS = 30_000_000n;

/**
 * Each `balanceOf` gets 78,000 gas (0x0130b0), somewhat less than one that is asked by itself, or is not
 * asked: what succeeds here would not fail there for want of gas, but for what slots cost that are read anew.
 * `CALLER` is the zero address, as there, because the code lies at it.
 *
 * Input: the token, then the accounts, a word each. Output: two words for each account, 1 and the units
 * where the contract answered 32 bytes; else zeros.
 */
const CODE = [
  "0x6370a08231", // PUSH4 selector of balanceOf
  "60e01b600052", // its first four bytes of memory: SHL 224, MSTORE 0
  "60206080", //     stack: o = 0x80, where the output begins; c = 0x20, the first account
  "5b", //           0x0f, loop
  "368210156052", // PUSH end where not c < CALLDATASIZE
  "57",
  "8135600452", //   memory 4: the account
  "620144385a10", // GAS < 83,000: 78,000 are not left of it
  "604657", //       PUSH next, JUMPI
  "602060406024", // output of 32 bytes to 0x40; input of 36 bytes
  "6000600035", //   from 0; to the token
  "620130b0fa", //   STATICCALL with 78,000 gas
  "3d60201416", //   it succeeded, and RETURNDATASIZE is 32
  "808252", //       memory o: that
  "60405102", //     the units, or 0
  "8160200152", //   memory o + 32
  "5b", //           0x46, next
  "604001", //       o + 64
  "9060200190", //   c + 32
  "600f56", //       loop
  "5b", //           0x52, end
  "608080820390f3", // RETURN memory from 0x80 to o
].join("") as Hex;

/** Balances by few calls. */
export class BalancesAtOnce {
  readonly #rpc: JsonRpcClient;
  #isRefused = false;

  constructor(rpc: JsonRpcClient) {
    this.#rpc = rpc;
  }

  /**
   * Units in the order of the accounts; undefined for each that has to be asked by itself: its contract
   * fails or answers something else, or the node does not answer such calls.
   * @throws NodeFault; the signal's reason
   */
  async ask(
    { token, accounts, at }: ManyBalances,
    options: RpcOptions,
  ): Promise<(bigint | undefined)[]> {
    const found: (bigint | undefined)[] = [];
    while (found.length < accounts.length && !this.#isRefused) {
      const part = accounts.slice(found.length, found.length + MAX_ACCOUNTS);
      const answers = await this.#askPart({ token, accounts: part, at }, options);
      // A contract that takes too long for many takes long for the next ones, too.
      if (answers === undefined) break;
      found.push(...answers);
    }
    return accounts.map((_, index) => found[index]);
  }

  async #askPart(
    { token, accounts, at }: ManyBalances,
    options: RpcOptions,
  ): Promise<(bigint | undefined)[] | undefined> {
    const data = `0x${[token, ...accounts].map(wordOf).join("")}`;
    const message = { to: ZERO_ADDRESS, gas: toQuantity(CALL_GAS), data };
    const overrides = { [ZERO_ADDRESS]: { code: CODE } };
    try {
      const answer = await this.#rpc.request(
        "eth_call",
        [message, encodeStateAt(at), overrides],
        options,
      );
      return readUnits(readHex(answer, "balances"), accounts.length);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      // A node that knows no overrides is not asked in this way again.
      this.#isRefused = areParamsInvalid(error);
      return undefined;
    }
  }
}

const WORD_DIGITS = 64;

function wordOf(address: Address): string {
  return address.slice(2).padStart(WORD_DIGITS, "0");
}

/** Undefined where the code was not run: a node that passes over overrides calls an account without code. */
function readUnits(answer: Hex, count: number): (bigint | undefined)[] | undefined {
  if (answer.length !== 2 + 2 * WORD_DIGITS * count) return undefined;
  return Array.from({ length: count }, (_, index) => {
    const start = 2 + 2 * WORD_DIGITS * index;
    const isAnswered = BigInt(`0x${answer.slice(start, start + WORD_DIGITS)}`) === 1n;
    const units = BigInt(`0x${answer.slice(start + WORD_DIGITS, start + 2 * WORD_DIGITS)}`);
    return isAnswered ? units : undefined;
  });
}
