/** Programs that spend gas on what costs the node most time for it. */
import { type Address, parseAddress } from "../../chain/address.js";

/** A case: code of the called contract, other contracts, calldata; hex without prefix. */
export interface WorstCase {
  readonly name: string;
  readonly code: string;
  readonly others?: ReadonlyMap<Address, string>;
  readonly data?: string;
}

const OTHER = parseAddress(`0x${"dd".repeat(20)}`);
const ONES = "f".repeat(64);
const ODD_WORD = `${"f".repeat(62)}fd`;
const LARGE_CODE = "5b".repeat(24_576);
/** Bytes of loop body: enough that the jump back does not count. */
const LOOP_BYTES = 6_000;

function push(value: number | bigint, bytes = 1): string {
  const hex = value.toString(16);
  const length = Math.max(bytes, Math.ceil(hex.length / 2));
  return (0x5f + length).toString(16) + hex.padStart(2 * length, "0");
}

const word = (value: number | bigint): string => value.toString(16).padStart(64, "0");
const pushAddress = (address: Address): string => `73${address.slice(2)}`;

/** `setup` once, then `body` for ever. */
function loop(body: string, setup = ""): string {
  const repeats = Math.max(1, Math.floor(LOOP_BYTES / (body.length / 2)));
  return `${setup}5b${body.repeat(repeats)}${push(setup.length / 2, 2)}56`;
}

/** A frame of a contract, with all gas unless said otherwise; the result is dropped. */
function frameOf(address: Address, gas = "5a"): string {
  return `5f5f5f5f${pushAddress(address)}${gas}fa50`;
}

/** Contracts of the largest size: who goes round more than are kept ready must not have them made anew. */
function manyContracts(count: number, part: string): [Address, string][] {
  return Array.from({ length: count }, (_, index) => {
    const own = (0x1000 + index).toString(16);
    const code = `61${own}50${part.repeat(Math.floor(24_500 / (part.length / 2)))}`;
    return [parseAddress(`0x${"ee".repeat(18)}${own}`), code];
  });
}

const frames = (contracts: readonly [Address, string][], gas?: string): string =>
  contracts.map(([address]) => frameOf(address, gas)).join("");

function callsOfMany(count: number, part: string): WorstCase {
  const contracts = manyContracts(count, part);
  return {
    name: `STATICCALLs of ${count} contracts, 24 KiB of ${part}`,
    code: loop(frames(contracts)),
    others: new Map(contracts),
  };
}

/** 24 KiB that are one block of instructions, whose first one nobody has the gas for. */
const ONE_BLOCK = "5f50".repeat(12_288);

/** Frames that fail at their entry: whatever is looked at before that, nobody has paid for. */
function framesWithoutGas(count: number): WorstCase {
  const contracts = manyContracts(count, "5f50");
  return {
    name: `STATICCALLs without gas of ${count} contracts, 24 KiB of one block`,
    code: loop(frames(contracts, "5f")),
    others: new Map(contracts),
  };
}

/** A frame of the other contract, or of an account without code. */
function frame(opcode: "f1" | "fa", options: { inBytes?: number; gas?: string } = {}): string {
  const { inBytes = 0, gas = "5a" } = options;
  const value = opcode === "f1" ? "5f" : "";
  return `5f5f${push(inBytes)}5f${value}${pushAddress(OTHER)}${gas}${opcode}50`;
}

/** A precompile over the calldata, which the setup copies to memory 0. */
function precompile(name: string, address: number, data: string): WorstCase {
  const call = `${push(64)}${push(0x4000)}${push(data.length / 2)}5f${push(address)}5afa50`;
  return { name, data, code: loop(call, "365f5f37") };
}

function modexp(name: string, base: string, exponent: string, modulus: string): WorstCase {
  const operands = [base, exponent, modulus];
  const lengths = operands.map((hex) => word(hex.length / 2)).join("");
  return precompile(`modexp ${name}`, 5, lengths + operands.join(""));
}

const odd = (bytes: number): string => `${"ff".repeat(bytes - 1)}fd`;

/** go-ethereum's vector "ValidKey" of ecRecover. */
const SIGNATURE = [
  "18c547e4f7b0f325ad1e56f57e26c745b09a3e503d86e00e5255ff7f715d3d1c",
  word(28),
  "73b1693892219d736caba55bdb67216e485557ea6b6af75f37096c9aa6a5a75f",
  "eeb940b1d03b21e36b0e47e79769f095fe2ab855bd91e3a38756b7d75a9c4549",
].join("");
const BN_P = 21888242871839275222246405745257275088696311157297823662689037894645226208583n;
/** Generator of G2 as EIP-197 encodes it. */
const G2 = [
  "198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2",
  "1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed",
  "090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b",
  "12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa",
].join("");
/** e(P, Q) x e(-P, Q): a check that succeeds. */
const PAIRS = word(1) + word(2) + G2 + word(1) + word(BN_P - 2n) + G2;
const BLAKE_REST = `${"ff".repeat(208)}01`;

const PRECOMPILES: readonly WorstCase[] = [
  precompile("ecrecover", 1, SIGNATURE),
  precompile("sha256 8 KiB", 2, "ab".repeat(8_192)),
  precompile("sha256 empty", 2, ""),
  precompile("ripemd160 8 KiB", 3, "ab".repeat(8_192)),
  precompile("ripemd160 empty", 3, ""),
  precompile("identity 8 KiB", 4, "ab".repeat(8_192)),
  precompile("identity empty", 4, ""),
  modexp("32^32 % 32", odd(32), ONES, odd(32)),
  modexp("8^2 % 8, least gas", odd(8), "ffff", odd(8)),
  modexp("64^32 % 64", odd(64), ONES, odd(64)),
  modexp("256^3 % 256", odd(256), "010001", odd(256)),
  modexp("256^1 % 256", odd(256), "03", odd(256)),
  modexp("1024^1 % 1024", odd(1_024), "02", odd(1_024)),
  modexp("256^256 % 256, even", odd(256), "ff".repeat(256), `${"ff".repeat(255)}fe`),
  modexp("8^1024 % 8", odd(8), "ff".repeat(1_024), odd(8)),
  modexp("8^8192 % 8", odd(8), "ff".repeat(8_192), odd(8)),
  modexp("4^8192 % 4", odd(4), "ff".repeat(8_192), odd(4)),
  modexp("1^8192 % 1", "ff", `${"00".repeat(32)}${"ff".repeat(8_160)}`, "fd"),
  precompile("bn254 add", 6, word(1) + word(2) + word(1) + word(2)),
  precompile("bn254 mul", 7, word(1) + word(2) + ONES),
  precompile("bn254 pairing of 2", 8, PAIRS),
  precompile("bn254 pairing of 10", 8, PAIRS.repeat(5)),
  precompile("bn254 pairing of 0", 8, ""),
  precompile("blake2f 12 rounds", 9, `0000000c${BLAKE_REST}`),
  precompile("blake2f 100,000 rounds", 9, `000186a0${BLAKE_REST}`),
];

const large = new Map([[OTHER, LARGE_CODE]]);

/** A counter on the stack that each use raises. */
const FROM_2_16 = push(0x1_0000);

const OPCODES: readonly WorstCase[] = [
  { name: "JUMP", code: "5b5f56" },
  { name: "JUMPDEST", code: loop("5b") },
  { name: "PUSH32 POP", code: loop(`7f${ONES}50`) },
  { name: "ADD", code: loop(`7f${ONES}800150`) },
  { name: "MULMOD", code: loop(`7f${ODD_WORD}80800950`) },
  { name: "ADDMOD", code: loop(`7f${ODD_WORD}80800850`) },
  { name: "DIV", code: loop(`63ffffffff7f${ONES}0450`) },
  { name: "SDIV", code: loop(`63ffffffff7f${ONES}0550`) },
  { name: "EXP 32 bytes", code: loop(`7f${ONES}7f${ODD_WORD}0a50`) },
  { name: "EXP 1 byte", code: loop(`60ff7f${ODD_WORD}0a50`) },
  { name: "SIGNEXTEND", code: loop(`7f${ONES}600f0b50`) },
  { name: "BYTE", code: loop(`7f${ONES}600f1a50`) },
  { name: "SAR", code: loop(`7f${ONES}600f1d50`) },
  { name: "KECCAK256 of 0", code: loop("5f5f2050") },
  { name: "KECCAK256 of 32", code: loop("60205f2050") },
  { name: "KECCAK256 of 64 KiB", code: loop("620100005f2050") },
  { name: "SLOAD warm", code: loop("5f5450") },
  { name: "SLOAD cold", code: loop("805450600101", FROM_2_16) },
  { name: "SSTORE new slots", code: loop("808055600101", FROM_2_16) },
  { name: "SSTORE same value", code: loop("60015f55") },
  { name: "SSTORE there and back", code: loop("60015f555f5f55") },
  { name: "TSTORE new slots", code: loop("80805d600101", FROM_2_16) },
  { name: "TLOAD", code: loop("5f5c50") },
  { name: "BALANCE cold", code: loop("803150600101", FROM_2_16) },
  { name: "BALANCE warm", code: loop("303150") },
  { name: "EXTCODEHASH cold", code: loop("803f50600101", FROM_2_16) },
  { name: "EXTCODESIZE of 24 KiB", code: loop(`${pushAddress(OTHER)}3b50`), others: large },
  {
    name: "EXTCODECOPY 1 byte of 24 KiB",
    code: loop(`60015f5f${pushAddress(OTHER)}3c`),
    others: large,
  },
  {
    name: "EXTCODECOPY 1 KiB",
    code: loop(`6104005f5f${pushAddress(OTHER)}3c`),
    others: large,
  },
  {
    name: "EXTCODECOPY 64 KiB past the end",
    code: loop(`620100005f5f${pushAddress(OTHER)}3c`),
    others: large,
  },
  { name: "CODECOPY 64 KiB past the end", code: loop("620100005f5f39") },
  { name: "CALLDATACOPY 64 KiB past the end", code: loop("620100005f5f37"), data: "ff" },
  {
    name: "RETURNDATACOPY 8 KiB",
    code: loop("6120005f5f3e", "5f5f6120005f60045afa50"),
  },
  { name: "MLOAD", code: loop("5f5150") },
  { name: "MSTORE", code: loop(`7f${ONES}5f52`) },
  { name: "MSTORE8", code: loop("5f5f53") },
  { name: "MSTORE, memory grows", code: loop("808052602001", "5f") },
  { name: "MCOPY 64 KiB", code: loop("6201000060205f5e") },
  { name: "MCOPY 32", code: loop("602060205f5e") },
  { name: "LOG0 of 0", code: loop("5f5fa0") },
  { name: "LOG4 of 32", code: loop("5f5f5f5f60205fa4") },
  { name: "LOG0 of 8 KiB", code: loop("6120005fa0") },
  { name: "BLOCKHASH", code: loop("6103e74050") },
  { name: "SELFBALANCE", code: loop("4750") },
  { name: "CALLDATALOAD", code: loop("5f3550"), data: "ff".repeat(1_000) },
  { name: "CALLDATALOAD past the end", code: loop("61ffff3550"), data: "ff" },
  { name: "DUP16 POP", code: loop("8f50", "5f".repeat(16)) },
  { name: "SWAP16", code: loop("9f", "5f".repeat(17)) },
];

/** Little gas for the frame, so that a frame that fails does not end the loop. */
const LITTLE = { gas: push(200) };
const at = (code: string) => new Map([[OTHER, code]]);
/** CREATE of so many bytes of memory, value 0. */
const create = (bytes: number) => `${push(bytes, 2)}5f5ff050`;
/** Creation codes that end at once, as many as leave no room to make another code ready. */
const NO_ROOM = create(0xc000).repeat(98) + create(0x3000).repeat(5);
/** Fills the memory with 48 KiB of JUMPDESTs behind a jump. */
const JUMPDEST_MEMORY = `7f600456005b${"5b".repeat(27)}5f52${push(49_120, 3)}5f60205e`;

const FRAMES: readonly WorstCase[] = [
  { name: "CALL without code", code: loop(frame("f1")) },
  { name: "STATICCALL without code", code: loop(frame("fa")) },
  { name: "STATICCALL without code, 256 KiB in", code: loop(frame("fa", { inBytes: 262_144 })) },
  { name: "CALL of new accounts", code: loop("5f5f5f5f5f855af150600101", FROM_2_16) },
  { name: "CALL of new accounts with value", code: loop("5f5f5f5f6001855af150600101", FROM_2_16) },
  { name: "STATICCALL, STOP", code: loop(frame("fa")), others: at("00") },
  { name: "STATICCALL, REVERT", code: loop(frame("fa")), others: at("5f5ffd") },
  {
    name: "STATICCALL, 24 KiB of JUMPDEST",
    code: loop(frame("fa")),
    others: at(`600456005b${"5b".repeat(24_000)}`),
  },
  // More than a block keeps, and as many.
  ...[30, 21].flatMap((count) =>
    ["5b", "600150", "5a50", "5f5f57"].map((part) => callsOfMany(count, part)),
  ),
  {
    name: "STATICCALL, jump in 24 KiB of PUSH1",
    code: loop(frame("fa")),
    others: at(`600456005b00${"60ff".repeat(12_000)}`),
  },
  {
    name: "STATICCALL, jump in 24 KiB of PUSH32",
    code: loop(frame("fa")),
    others: at(`600456005b00${`7f${ONES}`.repeat(740)}`),
  },
  {
    name: "STATICCALL, bad jump in 24 KiB",
    code: loop(frame("fa", LITTLE)),
    others: at(`5f56${"00".repeat(24_000)}`),
  },
  ...[30, 21].map(framesWithoutGas),
  {
    name: "100 creations of 48 KiB, then STATICCALLs without gas, 24 KiB of one block",
    code: loop(frame("fa", { gas: "5f" }), NO_ROOM),
    others: at(ONE_BLOCK),
  },
  {
    name: "20 contracts of 24 KiB, then STATICCALLs without gas, 24 KiB of one block",
    code: loop(frame("fa", { gas: "5f" }), frames(manyContracts(20, "5f50")).repeat(3)),
    others: new Map([...manyContracts(20, "5f50"), [OTHER, ONE_BLOCK]]),
  },
  { name: "STATICCALL, 8 KiB of memory", code: loop(frame("fa")), others: at("611fe05100") },
  { name: "STATICCALL, 16 KiB returned", code: loop(frame("fa")), others: at("6140005ff3") },
  { name: "CALL, SSTORE and REVERT", code: loop(frame("f1")), others: at("60015f555f5ffd") },
  { name: "CALL to itself, 1024 deep", code: "5f5f5f5f5f305af1505f56" },
  { name: "CREATE of nothing", code: loop(create(0)) },
  { name: "CREATE2 of nothing", code: loop("5a5f5f5ff550") },
  { name: "CREATE, jump in 48 KiB", code: loop(create(49_152), JUMPDEST_MEMORY) },
  { name: "CREATE and SELFDESTRUCT", code: loop(`6130ff5f52${push(2)}${push(30)}5ff050`) },
  {
    name: "5,000 logs, then STATICCALLs",
    code: loop(frame("fa"), "5f5fa0".repeat(5_000)),
    others: at("00"),
  },
  {
    name: "60 creations, then STATICCALLs",
    code: loop(frame("fa"), "5f5f5ff050".repeat(60)),
    others: at("00"),
  },
  {
    name: "256 KiB of memory, then STATICCALLs",
    code: loop(frame("fa"), "6203ffe05150"),
    others: at("00"),
  },
];

/** All cases. */
export function worstCases(): readonly WorstCase[] {
  return [...PRECOMPILES, ...OPCODES, ...FRAMES];
}
