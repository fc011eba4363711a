/**
 * How much time a unit of gas can buy at worst: loops over the dearest opcodes and precompiles,
 * run through the node's own machine. `max_call_gas` of the genesis is set from this table.
 */
import { type Address, parseAddress, ZERO_ADDRESS } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/crypto.js";
import { EMPTY_TRIE_ROOT, type Hash32, hexToBytes, ZERO_HASH } from "../../chain/hex.js";
import { type BlockContext, createMachine, type Machine } from "../../node/execution/evm.js";
import { BalanceRecorder } from "../../node/state/balance-recorder.js";
import { JournaledState } from "../../node/state/journaled-state.js";
import type { AccountRecord } from "../../node/store/account-record.js";
import { type StateReader, ZERO_VALUE } from "../../node/store/state-reader.js";

/** A case: code at the called contract, further contracts by address, and calldata. */
export interface WorstCase {
  readonly name: string;
  readonly code: string;
  readonly others?: ReadonlyMap<Address, string>;
  readonly data?: string;
}

/** What a case measured. */
export interface WorstResult {
  readonly name: string;
  readonly gasUsed: bigint;
  readonly milliseconds: number;
  readonly mgasPerSecond: number;
}

const CONTRACT = parseAddress(`0x${"c0".repeat(20)}`);
const CALLER = parseAddress(`0x${"ca".repeat(20)}`);
const OTHER = parseAddress(`0x${"dd".repeat(20)}`);

const BLOCK: BlockContext = {
  height: 1_000,
  timestampSeconds: 1_750_000_000,
  coinbase: parseAddress(`0x${"cb".repeat(20)}`),
  gasLimit: 600_000_000n,
  mixHash: ZERO_HASH,
  blockHash: () => ZERO_HASH,
};

/** Runs a case with the gas given; the state is fresh each time. */
export async function measureWorstCase(
  { name, code, others, data }: WorstCase,
  gas: bigint,
  prepare?: (machine: Machine) => void,
): Promise<WorstResult> {
  const contracts = new Map<Address, string>([[CONTRACT, code], ...(others ?? [])]);
  const state = new JournaledState(memoryReader(contracts));
  const machine = await createMachine(6_940n, state);
  prepare?.(machine);
  const message = {
    from: CALLER,
    to: CONTRACT,
    valueAtoken: 0n,
    data: hexToBytes(`0x${data ?? ""}`),
    gasLimit: gas,
    gasPriceAtoken: 0n,
    accessList: [],
  };
  const begin = process.cpuUsage();
  state.checkpoint();
  const { execResult } = await machine.run(message, BLOCK, new BalanceRecorder());
  state.commit();
  await machine.evm.journal.cleanup();
  const { user, system } = process.cpuUsage(begin);
  // Time of the processor, not of the clock: other programs on the machine do not count.
  const milliseconds = (user + system) / 1_000;
  const gasUsed = execResult.executionGasUsed;
  return { name, gasUsed, milliseconds, mgasPerSecond: Number(gasUsed) / milliseconds / 1_000 };
}

function memoryReader(contracts: ReadonlyMap<Address, string>): StateReader {
  const accounts = new Map<Address, AccountRecord>();
  const codes = new Map<Hash32, Uint8Array>();
  for (const [address, hex] of contracts) {
    const code = hexToBytes(`0x${hex}`);
    const codeHash = keccak256Hex(code);
    codes.set(codeHash, code);
    const storageRoot = EMPTY_TRIE_ROOT;
    accounts.set(address, { nonce: 1n, balanceAtoken: 10n ** 18n, codeHash, storageRoot });
  }
  return {
    account: (address) => accounts.get(address),
    code: (codeHash) => codes.get(codeHash) ?? ZERO_VALUE,
    storage: () => ZERO_VALUE,
  };
}

const push = (value: number | bigint, bytes = 0): string => {
  const hex = value.toString(16);
  const length = Math.max(bytes, Math.ceil(hex.length / 2));
  return (0x5f + length).toString(16) + hex.padStart(2 * length, "0");
};
const pushAddress = (address: Address): string => `73${address.slice(2)}`;

/** `body` for ever; `setup` runs once before. */
function loop(body: string, setup = ""): string {
  const start = setup.length / 2;
  // The body is repeated, so that the jump is not what is measured.
  const repeats = Math.max(1, Math.min(200, Math.floor(8_000 / (body.length / 2))));
  return `${setup}5b${body.repeat(repeats)}${push(start, 2)}56`;
}

/** STATICCALL of a precompile with `inputBytes` of memory; the answer goes to `outputAt`. */
function precompileCall(address: number, inputBytes: number, outputAt: number): string {
  const output = push(64) + push(outputAt);
  return `${output}${push(inputBytes)}5f${push(address)}5afa50`;
}

/** Copies the calldata to memory 0. */
const LOAD_CALLDATA = "365f5f37";

const word = (value: number | bigint): string => value.toString(16).padStart(64, "0");
const ONES = "f".repeat(64);
const BN_P = 21888242871839275222246405745257275088696311157297823662689037894645226208583n;
/** G2 generator as EIP-197 encodes it. */
const G2 = [
  "198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2",
  "1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed",
  "090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b",
  "12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa",
].join("");
const PAIR = word(1) + word(2) + G2 + word(1) + word(BN_P - 2n) + G2;

function modexp(baseHex: string, exponentHex: string, modulusHex: string): string {
  const lengths = [baseHex, exponentHex, modulusHex].map((hex) => word(hex.length / 2)).join("");
  return lengths + baseHex + exponentHex + modulusHex;
}

function precompileCases(): WorstCase[] {
  const call = (name: string, address: number, data: string): WorstCase => ({
    name,
    data,
    code: loop(precompileCall(address, data.length / 2, 0x4000), LOAD_CALLDATA),
  });
  // A valid signature of a published vector (go-ethereum, ecRecover "ValidKey").
  const signature = [
    "18c547e4f7b0f325ad1e56f57e26c745b09a3e503d86e00e5255ff7f715d3d1c",
    word(28),
    "73b1693892219d736caba55bdb67216e485557ea6b6af75f37096c9aa6a5a75f",
    "eeb940b1d03b21e36b0e47e79769f095fe2ab855bd91e3a38756b7d75a9c4549",
  ].join("");
  const odd = (bytes: number) => `${"ff".repeat(bytes - 1)}fd`;
  const blake = `${"ff".repeat(212)}01`;
  return [
    call("ecrecover", 1, signature),
    call("sha256 8 KiB", 2, "ab".repeat(8_192)),
    call("sha256 empty", 2, ""),
    call("ripemd160 8 KiB", 3, "ab".repeat(8_192)),
    call("ripemd160 empty", 3, ""),
    call("identity 8 KiB", 4, "ab".repeat(8_192)),
    call("identity empty", 4, ""),
    call("modexp 32^32%32", 5, modexp(odd(32), ONES, odd(32))),
    call("modexp 8^8%8 (200 gas)", 5, modexp(odd(8), "ffff", odd(8))),
    call("modexp 64^32%64", 5, modexp(odd(64), ONES, odd(64))),
    call("modexp 256^3%256", 5, modexp(odd(256), "010001", odd(256))),
    call("modexp 256^2%256", 5, modexp(odd(256), "03", odd(256))),
    call("modexp 1024^1%1024 e=2", 5, modexp(odd(1_024), "02", odd(1_024))),
    call("modexp 256^256%256 even", 5, modexp(odd(256), "ff".repeat(256), `${odd(255)}fe`)),
    call("modexp 1024^1024%1024", 5, modexp(odd(1_024), "ff".repeat(1_024), odd(1_024))),
    call("modexp 8^1024%8", 5, modexp(odd(8), "ff".repeat(1_024), odd(8))),
    call(
      "modexp 1^4096%1 zero head",
      5,
      modexp("ff", `${"00".repeat(32)}${"ff".repeat(4_064)}`, "fd"),
    ),
    call("bn254 add", 6, word(1) + word(2) + word(1) + word(2)),
    call("bn254 mul", 7, word(1) + word(2) + ONES),
    call("bn254 pairing 2", 8, PAIR),
    call("bn254 pairing 10", 8, PAIR.repeat(5)),
    call("bn254 pairing 0", 8, ""),
    call("blake2f 12 rounds", 9, `0000000c${blake.slice(8)}`),
    call("blake2f 100,000 rounds", 9, `000186a0${blake.slice(8)}`),
  ];
}

function opcodeCases(): WorstCase[] {
  const big = ONES;
  return [
    { name: "JUMP loop", code: "5b5f56" },
    { name: "JUMPDEST", code: loop("5b") },
    { name: "ADD", code: loop("01", `7f${big}7f${big}`.repeat(500)).slice(0) },
    { name: "PUSH32 POP", code: loop(`7f${big}50`) },
    { name: "MULMOD", code: loop(`7f${big.slice(0, 62)}fd80800950`) },
    { name: "ADDMOD", code: loop(`7f${big.slice(0, 62)}fd80800850`) },
    { name: "DIV", code: loop(`63ffffffff7f${big}0450`) },
    { name: "SDIV", code: loop(`63ffffffff7f${big}0550`) },
    { name: "EXP 32 bytes", code: loop(`7f${big}7f${big.slice(0, 62)}fd0a50`) },
    { name: "EXP 1 byte", code: loop(`60ff7f${big.slice(0, 62)}fd0a50`) },
    { name: "SIGNEXTEND", code: loop(`7f${big}600f0b50`) },
    { name: "BYTE", code: loop(`7f${big}600f1a50`) },
    { name: "KECCAK256 empty", code: loop("5f5f2050") },
    { name: "KECCAK256 32 bytes", code: loop("60205f2050") },
    { name: "KECCAK256 64 KiB", code: loop("620100005f2050") },
    { name: "SLOAD warm", code: loop("5f5450") },
    {
      name: "SLOAD cold",
      code: loop("80546001019050", "5f").replaceAll("80546001019050", "805450600101"),
    },
    {
      name: "SSTORE new slots",
      code: loop("80805560010180", "6001").replaceAll("80805560010180", "808055600101"),
    },
    { name: "SSTORE warm same", code: loop("60015f55") },
    { name: "SSTORE toggle", code: loop("60015f555f5f55") },
    { name: "TSTORE new slots", code: loop("80805d600101", "6001") },
    { name: "TLOAD", code: loop("5f5c50") },
    { name: "BALANCE cold", code: loop("803150600101", "6201000090".slice(0, 8)) },
    { name: "BALANCE warm", code: loop("303150") },
    { name: "EXTCODEHASH cold", code: loop("803f50600101", "62010000") },
    {
      name: "EXTCODECOPY 1 KiB",
      code: loop(`6104005f5f${pushAddress(OTHER)}3c`),
      others: new Map([[OTHER, "5b".repeat(24_576)]]),
    },
    {
      name: "EXTCODECOPY 64 KiB past end",
      code: loop(`620100005f5f${pushAddress(OTHER)}3c`),
      others: new Map([[OTHER, "5b".repeat(24_576)]]),
    },
    {
      name: "EXTCODESIZE warm 24 KiB",
      code: loop(`${pushAddress(OTHER)}3b50`),
      others: new Map([[OTHER, "5b".repeat(24_576)]]),
    },
    { name: "CODECOPY 64 KiB", code: loop("620100005f5f39") },
    { name: "CALLDATACOPY 64 KiB", code: loop("620100005f5f37"), data: "ff".repeat(1_000) },
    { name: "RETURNDATACOPY 32 KiB", code: loop("6180005f5f3e", precompileCall(4, 0x8000, 0)) },
    { name: "MLOAD", code: loop("5f5150") },
    { name: "MSTORE", code: loop("5f5f52") },
    { name: "MSTORE8", code: loop("5f5f53") },
    {
      name: "MSTORE growing",
      code: loop("80805260200180".slice(0, 12).replace("8080526020", "8080526020"), "5f"),
    },
    { name: "MCOPY 64 KiB", code: loop("6201000060205f5e") },
    { name: "MCOPY 32 B", code: loop("602060205f5e") },
    { name: "LOG0 empty", code: loop("5f5fa0") },
    { name: "LOG4", code: loop("5f5f5f5f60205fa4") },
    { name: "LOG0 8 KiB", code: loop("6120005fa0") },
    { name: "BLOCKHASH", code: loop("6103e74050") },
    { name: "SELFBALANCE", code: loop("4750") },
    { name: "GAS", code: loop("5a50") },
    { name: "CALLDATALOAD", code: loop("5f3550"), data: "ff".repeat(1_000) },
    { name: "DUP16 POP", code: loop("8f50", "5f".repeat(16)) },
    { name: "SWAP16", code: loop("9f", "5f".repeat(17)) },
  ];
}

/** A call with all gas of a little body: `gas to value in out`. */
function callOther(gas: string, inputBytes = 0): string {
  return `5f5f${push(inputBytes)}5f${pushAddress(OTHER)}${gas}fa50`;
}

function frameCases(): WorstCase[] {
  const others = (code: string) => new Map([[OTHER, code]]);
  // Half of the gas of a 10 Mgas run: the other half is spent in the frames under test.
  const jumper = (bytes: number) =>
    `60035600${"5b".repeat(0)}`.replace("600356", "600456").slice(0, 6) + `00${"5b".repeat(bytes)}`;
  const create = (initBytes: number, how: "f0" | "f5") => {
    const tail = how === "f5" ? "5a" : "";
    return `${tail}${push(initBytes, 2)}5f5f${how}50`;
  };
  return [
    { name: "CALL codeless warm", code: loop(callOther("5a")) },
    { name: "CALL codeless 256 KiB input", code: loop(callOther("5a", 262_144)) },
    { name: "CALL STOP", code: loop(callOther("5a")), others: others("00") },
    {
      name: "CALL with value, cold",
      code: loop("5f5f5f5f6001855af150600101", "62010000").slice(0),
    },
    {
      name: "CALL 24 KiB jump analysis",
      code: loop(callOther("5a")),
      others: others(jumper(24_000)),
    },
    {
      name: "CALL 24 KiB jump, PUSH32s",
      code: loop(callOther("5a")),
      others: others(`600456005b${`7f${ONES}`.repeat(740)}`),
    },
    {
      name: "CALL 24 KiB jump, PUSH1s",
      code: loop(callOther("5a")),
      others: others(`600456005b00${"60ff".repeat(12_000)}`),
    },
    {
      name: "CALL that memory-expands 24 KiB",
      code: loop(callOther("5a")),
      others: others("6160005100".replace("616000", "615fe0")),
    },
    { name: "CALL reverting", code: loop(callOther("5a")), others: others("5f5ffd") },
    { name: "CALL returning 16 KiB", code: loop(callOther("5a")), others: others("6140005ff3") },
    { name: "CALL recursion to 1024", code: `5f5f5f5f5f305af150` + "5f56", others: others("00") },
    { name: "CREATE empty", code: loop(create(0, "f0")) },
    { name: "CREATE2 empty", code: loop(create(0, "f5")) },
    {
      name: "CREATE 48 KiB jump analysis",
      code: loop(
        create(49_152, "f0"),
        `6004565b${""}`.slice(0, 0) + "7f60045600" + "5b".repeat(28) + "5f52",
      ),
    },
    {
      name: "CREATE 48 KiB of JUMPDEST",
      code: loop(
        create(49_152, "f0"),
        "7f600456005b" +
          "5b".repeat(27) +
          "5f52" +
          `${push(49_120, 3)}60205f5e`.replace("60205f5e", "5f60205e"),
      ),
    },
    {
      name: "SELFDESTRUCT in created",
      code: loop(`60015f53${push(0x30ff, 2)}5f5260026 01e5ff050`.replaceAll(" ", "")),
    },
    {
      name: "logs x calls",
      code: `${"5f5fa0".repeat(6_000)}${loopAt(callOther("5a"), 18_000)}`,
      others: others("00"),
    },
    { name: "creates x calls", code: createThenCall(150), others: others("00") },
    { name: "state undo x reverts", code: loop(callOther("5a")), others: others(`5f545f555ffd`) },
    {
      name: "deep memory x calls",
      code: loop(callOther("5a"), "6207ffe05150"),
      others: others("00"),
    },
  ];
}

function loopAt(body: string, start: number): string {
  return `5b${body.repeat(100)}${push(start, 2)}56`;
}

/** Creates `count` empty contracts, then calls for ever: every call copies the set of creations. */
function createThenCall(count: number): string {
  const setup = "5f5f5ff050".repeat(count);
  return setup + loopAt(callOther("5a"), setup.length / 2);
}

/** All cases, in the order of the table. */
export function worstCases(): readonly WorstCase[] {
  return [...precompileCases(), ...opcodeCases(), ...frameCases()];
}

/** Measures all cases, slowest first. */
export async function measureWorstGas(
  gas: bigint,
  options: { only?: RegExp; prepare?: (machine: Machine) => void } = {},
): Promise<WorstResult[]> {
  const { only, prepare } = options;
  const results: WorstResult[] = [];
  for (const item of worstCases()) {
    if (only !== undefined && !only.test(item.name)) continue;
    results.push(await measureWorstCase(item, gas, prepare));
  }
  return results.toSorted((left, right) => left.mgasPerSecond - right.mgasPerSecond);
}

void ZERO_ADDRESS;
