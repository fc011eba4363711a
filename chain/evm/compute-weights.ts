/**
 * Compute units (D21): what execution costs in time, in nanoseconds of a reference machine. Gas says
 * little about time in an interpreter, so a block is bounded by both. The tables are consensus, one for
 * each version, and genesis names a chain's: whoever changes a number makes a new version.
 * `npm run bench -- --only weights` times every case beside its weight.
 */

/** Versions of the table. */
export const WEIGHTS_VERSIONS = [1, 2, 3, 4, 5] as const;

/** One of them. */
export type WeightsVersion = (typeof WEIGHTS_VERSIONS)[number];

/** What new chains begin with. */
export const NEWEST_WEIGHTS: WeightsVersion = 5;

/** A table: compute units, nanoseconds. */
export interface ComputeWeights {
  /** What an opcode always costs, by opcode. */
  readonly opcodesNs: Int32Array;
  /** A transaction without code: checks, two accounts, receipt, their part of the roots. */
  readonly transactionNs: number;
  /** A byte of call data: hashed, stored, sent. */
  readonly dataByteNs: number;
  /** An account of an access list: the transaction has paid for its first read with it. */
  readonly listedAccountNs: number;
  /** A slot of an access list. */
  readonly listedSlotNs: number;
  /** First read of an account in a transaction: it may lie on the disk. */
  readonly coldAccountNs: number;
  /** The same where the block has read it before: it lies in memory. */
  readonly seenAccountNs: number;
  /** First read of a slot in a transaction. */
  readonly coldSlotNs: number;
  /** The same where the block has read it before. */
  readonly seenSlotNs: number;
  /** First change of a slot in a transaction: trie, store and history. */
  readonly slotChangeNs: number;
  /** First read of a slot that an earlier transaction of the block changed: it lies in memory. */
  readonly changedSlotNs: number;
  /** First change of such a slot in a transaction: its trie, store and history are paid for. */
  readonly slotChangeAgainNs: number;
  /** The same of a slot that earlier transactions of the block changed and put back. */
  readonly slotChangeBackNs: number;
  /** First change of an account's storage in a block: its own trie, and its leaf among the accounts. */
  readonly storageChangeNs: number;
  /** Coins that move in a call: two accounts, trie, store and history. */
  readonly valueMoveNs: number;
  /** A word that is hashed. */
  readonly hashWordNs: number;
  /** A word that is copied. */
  readonly copyWordNs: number;
  /** A word that is added to a memory. */
  readonly memoryWordNs: number;
  /** A byte of a log: receipt, root, store. */
  readonly logByteNs: number;
  /** First log of an account with its first topic in a block: an entry of the index by each, and by both. */
  readonly logTermNs: number;
  /** A byte of an exponent. */
  readonly exponentByteNs: number;
  /** A byte of the code that a frame runs: read, and searched for places to jump to. */
  readonly codeByteNs: number;
  /** Bytes of codes that a block keeps ready: a frame that runs one of them does not pay for its bytes. */
  readonly keptCodeBytes: number;
  /** A byte of the code that EXTCODECOPY takes from: however little it takes, all is read. */
  readonly copiedCodeByteNs: number;
  /** A byte of code that is stored. */
  readonly codeDepositByteNs: number;
  /** A pair of points that 0x08 pairs. */
  readonly pairingNs: number;
}

/** The table of a chain. */
export function weightsOf(version: WeightsVersion): ComputeWeights {
  return TABLES[version];
}

/** What an opcode weighs that is not listed, and those that take longer; operands and state come on top. */
interface OpcodeWeights {
  readonly otherNs: number;
  readonly listedNs: Readonly<Record<number, number>>;
}

const FIRST_OPCODES_NS: OpcodeWeights["listedNs"] = {
  0x02: 120, // MUL
  0x04: 300, // DIV
  0x05: 400, // SDIV
  0x06: 300, // MOD
  0x07: 400, // SMOD
  0x08: 400, // ADDMOD
  0x09: 700, // MULMOD
  0x0a: 200, // EXP
  0x0b: 120, // SIGNEXTEND
  0x12: 80, // SLT
  0x13: 80, // SGT
  0x1a: 100, // BYTE
  0x1b: 120, // SHL
  0x1c: 100, // SHR
  0x1d: 160, // SAR
  0x20: 1_500, // KECCAK256
  0x30: 120, // ADDRESS
  0x31: 700, // BALANCE
  0x32: 120, // ORIGIN
  0x33: 120, // CALLER
  0x35: 350, // CALLDATALOAD
  0x37: 200, // CALLDATACOPY
  0x39: 200, // CODECOPY
  0x3b: 700, // EXTCODESIZE
  0x3c: 900, // EXTCODECOPY
  0x3e: 200, // RETURNDATACOPY
  0x3f: 900, // EXTCODEHASH
  0x40: 2_000, // BLOCKHASH
  0x41: 120, // COINBASE
  0x44: 150, // PREVRANDAO
  0x47: 300, // SELFBALANCE
  0x51: 300, // MLOAD
  0x52: 200, // MSTORE
  0x54: 900, // SLOAD
  0x55: 1_500, // SSTORE
  0x5b: 30, // JUMPDEST, with the checks of a block
  0x5c: 300, // TLOAD
  0x5d: 500, // TSTORE
  0x5e: 150, // MCOPY
  0xa0: 3_000, // LOG0
  0xa1: 5_000,
  0xa2: 7_000,
  0xa3: 9_000,
  0xa4: 11_000, // LOG4
  0xf0: 30_000, // CREATE
  0xf1: 6_000, // CALL
  0xf2: 6_000, // CALLCODE
  0xf4: 5_000, // DELEGATECALL
  0xf5: 30_000, // CREATE2
  0xfa: 5_000, // STATICCALL
  0xff: 30_000, // SELFDESTRUCT
};

/** Made on a quiet machine, which runs most in less than half of what the first table says. */
const FIFTH_OPCODES_NS: OpcodeWeights["listedNs"] = {
  ...FIRST_OPCODES_NS,
  0x02: 100, // MUL
  0x04: 200, // DIV
  0x05: 260, // SDIV
  0x06: 200, // MOD
  0x07: 260, // SMOD
  0x08: 250, // ADDMOD
  0x09: 400, // MULMOD
  0x0b: 80, // SIGNEXTEND
  0x12: 60, // SLT
  0x13: 60, // SGT
  0x1a: 60, // BYTE
  0x1b: 80, // SHL
  0x1c: 70, // SHR
  0x1d: 100, // SAR
  0x20: 1_000, // KECCAK256
  0x30: 60, // ADDRESS
  0x31: 400, // BALANCE
  0x32: 60, // ORIGIN
  0x33: 60, // CALLER
  0x35: 180, // CALLDATALOAD
  0x3b: 400, // EXTCODESIZE
  0x3f: 500, // EXTCODEHASH
  0x41: 60, // COINBASE
  0x44: 100, // PREVRANDAO
  0x47: 200, // SELFBALANCE
  0x51: 80, // MLOAD
  0x52: 120, // MSTORE
  0x54: 450, // SLOAD
  0x55: 1_200, // SSTORE
  0x5b: 20, // JUMPDEST
  0x5c: 200, // TLOAD
  0x5d: 900, // TSTORE: dearer than it was
  0x5e: 100, // MCOPY
  0xa1: 4_000, // LOG1: topics that nobody had are hashed for the bloom
  0xa2: 6_000,
  0xa3: 7_000,
  0xa4: 8_000, // LOG4
  // The more accounts there are, the deeper lies a new one: what a million of them make it.
  0xf0: 85_000, // CREATE
  0xf5: 85_000, // CREATE2
};

function opcodeTable({ otherNs, listedNs }: OpcodeWeights): Int32Array {
  return Int32Array.from({ length: 256 }, (_, opcode) => listedNs[opcode] ?? otherNs);
}

/** Made from programs that were executed alone. */
const FIRST: ComputeWeights = {
  opcodesNs: opcodeTable({ otherNs: 40, listedNs: FIRST_OPCODES_NS }),
  transactionNs: 50_000,
  dataByteNs: 4,
  listedAccountNs: 0,
  listedSlotNs: 0,
  coldAccountNs: 8_000,
  seenAccountNs: 8_000,
  coldSlotNs: 10_000,
  seenSlotNs: 10_000,
  slotChangeNs: 30_000,
  changedSlotNs: 10_000,
  slotChangeAgainNs: 30_000,
  slotChangeBackNs: 30_000,
  storageChangeNs: 0,
  valueMoveNs: 40_000,
  hashWordNs: 110,
  copyWordNs: 5,
  memoryWordNs: 8,
  logByteNs: 5,
  logTermNs: 0,
  exponentByteNs: 4_000,
  codeByteNs: 4,
  keptCodeBytes: 0,
  copiedCodeByteNs: 0,
  codeDepositByteNs: 30,
  pairingNs: 3_000_000,
};

/**
 * What a transfer weighs is the measure: in full blocks through commit a new contract, a kilobyte of
 * logs and coins that move in a call took up to twice as long for their weight as transfers did.
 */
const SECOND: ComputeWeights = {
  ...FIRST,
  opcodesNs: opcodeTable({
    otherNs: 40,
    listedNs: { ...FIRST_OPCODES_NS, 0xf0: 58_000, 0xf5: 58_000 },
  }),
  valueMoveNs: 48_000,
  logByteNs: 7,
};

/** However often a block changes a slot, one change of it reaches trie, store and history. */
const THIRD: ComputeWeights = { ...SECOND, changedSlotNs: 1_000, slotChangeAgainNs: 2_000 };

/** What an access list makes warm is read all the same, and so is code that is copied from. */
const FOURTH: ComputeWeights = {
  ...THIRD,
  listedAccountNs: THIRD.coldAccountNs,
  listedSlotNs: THIRD.coldSlotNs,
  copiedCodeByteNs: THIRD.codeByteNs,
};

/**
 * Made on a quiet machine, where code took a third of its weight and plain transfers all of theirs and more:
 * opcodes weigh about what they take there, and what the block has read or run before is not paid for again.
 */
const FIFTH: ComputeWeights = {
  ...FOURTH,
  opcodesNs: opcodeTable({ otherNs: 20, listedNs: FIFTH_OPCODES_NS }),
  seenAccountNs: 1_000,
  seenSlotNs: 1_000,
  slotChangeNs: 24_000,
  slotChangeBackNs: 2_000,
  storageChangeNs: 30_000,
  logByteNs: 15,
  logTermNs: 6_500,
  exponentByteNs: 1_500,
  keptCodeBytes: 512 * 1_024,
  pairingNs: 4_000_000,
};

const TABLES: Readonly<Record<WeightsVersion, ComputeWeights>> = {
  1: FIRST,
  2: SECOND,
  3: THIRD,
  4: FOURTH,
  5: FIFTH,
};
