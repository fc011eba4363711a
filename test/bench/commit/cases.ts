/**
 * Programs whose effects stay: what they change goes into tries, store and indexes. Each is a loop
 * over numbers from calldata, so that a block of them goes on where the one before has ended.
 */
import { type Address, parseAddress } from "../../../chain/address.js";
import { hexToBytes } from "../../../chain/hex.js";

/** A loop's turns, as its calldata says them in three words. */
export interface Turns {
  readonly from: number;
  readonly to: number;
  /** Another one in each block. */
  readonly value: number;
}

/** A case: a loop, or plain transfers where it has no body. */
export interface CommitCase {
  readonly name: string;
  /** Of a turn, hex: the turn's number lies on the stack's top, before and after. */
  readonly body?: string;
  /** Gas of a turn at most, the first time that it is done; or more, where time bounds its transaction. */
  readonly gas: number;
  /** Each block has the turns of the one before; otherwise it goes on behind them. */
  readonly isRepeated?: boolean;
  /** Each transaction has the turns of the one before, with another value. */
  readonly isRewritten?: boolean;
  /** Its blocks also make the state large before anything is timed. */
  readonly grows?: boolean;
  /** Turns name contracts, each of which writes a slot of its own. */
  readonly callsContracts?: boolean;
}

/** Numbers from here on are no address of a precompile or of the chain's contracts. */
export const FIRST_TURN = 2 ** 32;

/** Turns of a repeated case: more than fit into a block. */
export const REPEATED_TURNS = 40_000;

/** Contracts of `callsContracts`, from FIRST_TURN on. */
export const CALLED_CONTRACTS = 20_000;

/** SSTORE of 1 under the block's number. */
export const CALLED_CODE = "6001435500";

/** CALL of the turn's number as an address, without gas beyond the stipend. */
const PAY_TURN = "5f5f5f5f6001855ff150";

/** See `turnsCode` for how a body runs. */
export const COMMIT_CASES: readonly CommitCase[] = [
  { name: "transfers to new accounts", gas: 21_000, grows: true },
  { name: "transfers to accounts that are there", gas: 21_000, isRepeated: true },
  { name: "SSTORE, new slots", body: "808055", gas: 22_300, grows: true },
  { name: "SSTORE, slots that are there", body: "6040358155", gas: 22_500, isRepeated: true },
  {
    name: "SSTORE, slots that the block has changed",
    body: "6040358155",
    gas: 22_500,
    isRewritten: true,
  },
  { name: "SLOAD, slots that are there", body: "805450", gas: 2_200, isRepeated: true },
  {
    name: "SSTORE in other contracts",
    body: "5f5f5f5f5f855af150",
    gas: 26_000,
    isRepeated: true,
    callsContracts: true,
  },
  { name: "SSTORE, one slot", body: "805f55", gas: 250, isRepeated: true },
  { name: "LOG0 of nothing", body: "5f5fa0", gas: 460 },
  { name: "LOG1, another topic each", body: "805f5fa1", gas: 1_300 },
  { name: "LOG1 of a byte, another topic each", body: "8060015fa1", gas: 1_300 },
  { name: "LOG1 of 256 bytes, another topic each", body: "806101005fa1", gas: 2_900 },
  { name: "LOG4, other topics each", body: "8081828360205fa4", gas: 2_300 },
  { name: "LOG0 of 1 KiB", body: "6104005fa0", gas: 8_700 },
  { name: "CALL with value, new accounts", body: PAY_TURN, gas: 37_000 },
  {
    name: "CALL with value, accounts that are there",
    body: PAY_TURN,
    gas: 37_000,
    isRepeated: true,
  },
  { name: "CALL with value, one account", body: "5f5f5f5f600161ffff5ff150", gas: 7_000 },
  { name: "CREATE of nothing", body: "5f5f5ff050", gas: 32_500 },
  { name: "CREATE of 6 KiB", body: "646118005ff35f526005601b5ff050", gas: 1_300_000 },
];

/**
 * Code that runs a body for each number in `[from, to)`: PUSH0 CALLDATALOAD, JUMPDEST, body, plus
 * one, and back while it is below the second word.
 */
export function turnsCode(body: string): string {
  return `5f355b${body}60010180602035116002570000`;
}

/** Calldata of `turnsCode`. */
export function turnsData({ from, to, value }: Turns): Uint8Array {
  const word = (number: number) => number.toString(16).padStart(64, "0");
  return hexToBytes(`0x${word(from)}${word(to)}${word(value)}`);
}

/** A number as an address. */
export function addressOf(number: number): Address {
  return parseAddress(`0x${number.toString(16).padStart(40, "0")}`);
}
