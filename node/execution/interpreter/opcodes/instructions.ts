/** Cancun's instructions by opcode: what each takes from the stack, gives back and always costs. */
import * as accounts from "./accounts.js";
import * as arithmetic from "./arithmetic.js";
import * as calls from "./calls.js";
import * as data from "./data.js";
import * as flow from "./flow.js";
import type { Handler } from "../frame.js";
import * as storage from "./storage.js";

/** One opcode. */
export interface Instruction {
  readonly run: Handler;
  /** Gas that does not depend on operands or state. */
  readonly gas: number;
  /** Items it needs on the stack, and how many stand there in their place. */
  readonly takes: number;
  readonly gives: number;
  /** It leaves the line, or reads the gas that is left: instructions behind it are a new block. */
  readonly endsBlock: boolean;
}

type Row = readonly [opcode: number, run: Handler, gas: number, takes: number, gives: number];

/** Gas tiers of the Yellow Paper. */
const BASE = 2;
const VERY_LOW = 3;
const LOW = 5;
const MID = 8;
const HIGH = 10;

const ROWS: readonly Row[] = [
  [0x01, arithmetic.add, VERY_LOW, 2, 1],
  [0x02, arithmetic.mul, LOW, 2, 1],
  [0x03, arithmetic.sub, VERY_LOW, 2, 1],
  [0x04, arithmetic.div, LOW, 2, 1],
  [0x05, arithmetic.sdiv, LOW, 2, 1],
  [0x06, arithmetic.mod, LOW, 2, 1],
  [0x07, arithmetic.smod, LOW, 2, 1],
  [0x08, arithmetic.addmod, MID, 3, 1],
  [0x09, arithmetic.mulmod, MID, 3, 1],
  [0x0a, arithmetic.exp, HIGH, 2, 1],
  [0x0b, arithmetic.signextend, LOW, 2, 1],
  [0x10, arithmetic.lt, VERY_LOW, 2, 1],
  [0x11, arithmetic.gt, VERY_LOW, 2, 1],
  [0x12, arithmetic.slt, VERY_LOW, 2, 1],
  [0x13, arithmetic.sgt, VERY_LOW, 2, 1],
  [0x14, arithmetic.eq, VERY_LOW, 2, 1],
  [0x15, arithmetic.iszero, VERY_LOW, 1, 1],
  [0x16, arithmetic.and, VERY_LOW, 2, 1],
  [0x17, arithmetic.or, VERY_LOW, 2, 1],
  [0x18, arithmetic.xor, VERY_LOW, 2, 1],
  [0x19, arithmetic.not, VERY_LOW, 1, 1],
  [0x1a, arithmetic.byte, VERY_LOW, 2, 1],
  [0x1b, arithmetic.shl, VERY_LOW, 2, 1],
  [0x1c, arithmetic.shr, VERY_LOW, 2, 1],
  [0x1d, arithmetic.sar, VERY_LOW, 2, 1],
  [0x20, data.keccak, 30, 2, 1],
  [0x30, accounts.ownAddress, BASE, 0, 1],
  [0x31, accounts.balance, 0, 1, 1],
  [0x32, accounts.origin, BASE, 0, 1],
  [0x33, accounts.caller, BASE, 0, 1],
  [0x34, accounts.callvalue, BASE, 0, 1],
  [0x35, data.calldataload, VERY_LOW, 1, 1],
  [0x36, data.calldatasize, BASE, 0, 1],
  [0x37, data.calldatacopy, VERY_LOW, 3, 0],
  [0x38, data.codesize, BASE, 0, 1],
  [0x39, data.codecopy, VERY_LOW, 3, 0],
  [0x3a, accounts.gasprice, BASE, 0, 1],
  [0x3b, accounts.extcodesize, 0, 1, 1],
  [0x3c, data.extcodecopy, 0, 4, 0],
  [0x3d, data.returndatasize, BASE, 0, 1],
  [0x3e, data.returndatacopy, VERY_LOW, 3, 0],
  [0x3f, accounts.extcodehash, 0, 1, 1],
  [0x40, accounts.blockhash, 20, 1, 1],
  [0x41, accounts.coinbase, BASE, 0, 1],
  [0x42, accounts.timestamp, BASE, 0, 1],
  [0x43, accounts.number, BASE, 0, 1],
  [0x44, accounts.prevrandao, BASE, 0, 1],
  [0x45, accounts.gaslimit, BASE, 0, 1],
  [0x46, accounts.chainid, BASE, 0, 1],
  [0x47, accounts.selfbalance, LOW, 0, 1],
  [0x48, accounts.basefee, BASE, 0, 1],
  [0x49, accounts.blobhash, VERY_LOW, 1, 1],
  [0x4a, accounts.blobbasefee, BASE, 0, 1],
  [0x50, flow.pop, BASE, 1, 0],
  [0x51, data.mload, VERY_LOW, 1, 1],
  [0x52, data.mstore, VERY_LOW, 2, 0],
  [0x53, data.mstore8, VERY_LOW, 2, 0],
  [0x54, storage.sload, 0, 1, 1],
  [0x58, flow.pc, BASE, 0, 1],
  [0x59, data.msize, BASE, 0, 1],
  [0x5b, flow.jumpdest, 1, 0, 0],
  [0x5c, storage.tload, 100, 1, 1],
  [0x5d, storage.tstore, 100, 2, 0],
  [0x5e, data.mcopy, VERY_LOW, 3, 0],
  [0x5f, flow.pushZero, BASE, 0, 1],
];

const ENDING_ROWS: readonly Row[] = [
  [0x00, flow.stop, 0, 0, 0],
  [0x55, storage.sstore, 0, 2, 0],
  [0x56, flow.jump, MID, 1, 0],
  [0x57, flow.jumpi, HIGH, 2, 0],
  [0x5a, flow.gas, BASE, 0, 1],
  [0xf0, calls.create, 32_000, 3, 1],
  [0xf1, calls.call, 0, 7, 1],
  [0xf2, calls.callcode, 0, 7, 1],
  [0xf3, flow.returnOutput, 0, 2, 0],
  [0xf4, calls.delegatecall, 0, 6, 1],
  [0xf5, calls.create2, 32_000, 4, 1],
  [0xfa, calls.staticcall, 0, 6, 1],
  [0xfd, flow.revert, 0, 2, 0],
  [0xff, calls.selfdestruct, 5_000, 1, 0],
];

/** PUSH1 to PUSH32; what they push is in the code, so they are made with it. */
const PUSH_ROWS: readonly Row[] = rowsFrom(0x60, 32, () => [flow.invalid, VERY_LOW, 0, 1]);
const DUP_ROWS = rowsFrom(0x80, 16, (n) => [flow.dup(n), VERY_LOW, n, n + 1]);
const SWAP_ROWS = rowsFrom(0x90, 16, (n) => [flow.swap(n), VERY_LOW, n + 1, n + 1]);
const LOG_ROWS = rowsFrom(0xa0, 5, (n) => [data.logWith(n - 1), 375, n + 1, 0]);

function rowsFrom(
  first: number,
  count: number,
  rowOf: (n: number) => readonly [Handler, number, number, number],
): readonly Row[] {
  return Array.from({ length: count }, (_, index) => [first + index, ...rowOf(index + 1)]);
}

/** Any other opcode, 0xfe among them. */
export const INVALID_INSTRUCTION: Instruction = {
  run: flow.invalid,
  gas: 0,
  takes: 0,
  gives: 0,
  endsBlock: true,
};

/** By opcode; undefined for one that is none. */
export const INSTRUCTIONS: readonly (Instruction | undefined)[] = table();

function table(): (Instruction | undefined)[] {
  const instructions: (Instruction | undefined)[] = Array.from({ length: 256 });
  const put = (rows: readonly Row[], endsBlock: boolean) => {
    for (const [opcode, run, gas, takes, gives] of rows) {
      instructions[opcode] = { run, gas, takes, gives, endsBlock };
    }
  };
  for (const rows of [ROWS, PUSH_ROWS, DUP_ROWS, SWAP_ROWS, LOG_ROWS]) put(rows, false);
  put(ENDING_ROWS, true);
  return instructions;
}
