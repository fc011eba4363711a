/**
 * How much time a unit of gas can buy at worst: loops over the dearest opcodes and precompiles,
 * run through the node's own machine. `max_call_gas` of the genesis is set from this table.
 */
import { type Address, parseAddress } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { EMPTY_TRIE_ROOT, type Hash32, hexToBytes, ZERO_HASH } from "../../chain/hex.js";
import { type BlockContext, createMachine, type Machine } from "../../node/execution/evm/evm.js";
import { BalanceRecorder } from "../../node/state/balance-recorder.js";
import { JournaledState } from "../../node/state/journaled-state.js";
import type { AccountRecord } from "../../node/store/account-record.js";
import { type StateReader, ZERO_VALUE } from "../../node/store/state-reader.js";
import type { BenchRow } from "./report.js";
import { type WorstCase, worstCases } from "./worst-gas-cases.js";

/** What a case measured. */
export interface WorstResult {
  readonly name: string;
  readonly gasUsed: bigint;
  /** Time of the processor, not of the clock: other programs on the machine count for little. */
  readonly cpuMs: number;
  readonly mgasPerSecond: number;
}

const CONTRACT = parseAddress(`0x${"c0".repeat(20)}`);
const CALLER = parseAddress(`0x${"ca".repeat(20)}`);

const BLOCK: BlockContext = {
  height: 1_000,
  timestampSeconds: 1_750_000_000,
  coinbase: parseAddress(`0x${"cb".repeat(20)}`),
  gasLimit: 600_000_000n,
  mixHash: ZERO_HASH,
  blockHash: () => ZERO_HASH,
};

/** A case that is ready to run, once. */
export interface WorstRun {
  readonly machine: Machine;
  /** Runs it and returns the gas that it used. */
  readonly run: () => Promise<bigint>;
}

/** Puts a case with the gas given over a fresh state. */
export async function openWorstCase(
  { code, others, data }: WorstCase,
  gas: bigint,
): Promise<WorstRun> {
  const contracts = new Map<Address, string>([[CONTRACT, code], ...(others ?? [])]);
  const state = new JournaledState(memoryReader(contracts));
  const machine = await createMachine(6_940n, state);
  const message = {
    from: CALLER,
    to: CONTRACT,
    valueAtoken: 0n,
    data: hexToBytes(`0x${data ?? ""}`),
    gasLimit: gas,
    gasPriceAtoken: 0n,
    accessList: [],
  };
  return {
    machine,
    async run() {
      state.checkpoint();
      const { execResult } = await machine.run(message, BLOCK, new BalanceRecorder());
      state.commit();
      return execResult.executionGasUsed;
    },
  };
}

/** Runs a case with the gas given, over a fresh state, and measures it. */
export async function measureWorstCase(item: WorstCase, gas: bigint): Promise<WorstResult> {
  const { machine, run } = await openWorstCase(item, gas);
  const begin = process.cpuUsage();
  const gasUsed = await run();
  await machine.evm.journal.cleanup();
  const { user, system } = process.cpuUsage(begin);
  const cpuMs = (user + system) / 1_000;
  return { name: item.name, gasUsed, cpuMs, mgasPerSecond: Number(gasUsed) / cpuMs / 1_000 };
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

/** Name of the row here, for `--only`. */
export const WORST_GAS_ROWS = ["worst-gas"] as const;

/** What a plain loop of additions does with the same gas: the machine's speed cancels out. */
const REFERENCE = "ADD";

/**
 * The dearest case may be twelve times as slow as the reference. @ethereumjs/evm as it comes is 170
 * times as slow at a jump in large code, and 17 times at calls of tiny contracts.
 */
const AIM = { ratio: 0.08 };

/** Gas of one case: what one transaction may use at most, or a tenth of it. */
const GAS = { full: 4_000_000n, quick: 400_000n };

/** A pause of the collector or a neighbour spoils one measurement, not three. */
const TRIES = 3;

/** Cases that the row lists, slowest first. */
const LISTED = 12;

/** Runs the row: gas that the slowest of all cases uses in a second of processor time. */
export async function runWorstGasRow(options: { readonly quick: boolean }): Promise<BenchRow[]> {
  const gas = options.quick ? GAS.quick : GAS.full;
  const best: WorstResult[] = [];
  for (const item of worstCases()) {
    const results = [];
    for (let attempt = 0; attempt < TRIES; attempt++) {
      results.push(await measureWorstCase(item, gas));
    }
    const [fastest] = results.toSorted(bySpeed).toReversed();
    if (fastest !== undefined) best.push(fastest);
  }
  const sorted = best.toSorted(bySpeed);
  const reference = best.find(({ name }) => name === REFERENCE);
  return [
    {
      title: `slowest of ${best.length} contracts`,
      unit: "Mgas/s",
      ours: sorted[0]?.mgasPerSecond ?? 0,
      ...(reference === undefined ? {} : { peer: reference.mgasPerSecond }),
      peerName: "additions, ours too",
      aim: AIM,
      details: sorted.slice(0, LISTED).map(worstGasLine),
    },
  ];
}

const bySpeed = (left: WorstResult, right: WorstResult) => left.mgasPerSecond - right.mgasPerSecond;

function worstGasLine({ name, gasUsed, cpuMs, mgasPerSecond }: WorstResult): string {
  const rate = mgasPerSecond.toFixed(1).padStart(8);
  return `${rate} Mgas/s ${cpuMs.toFixed(0).padStart(7)} ms ${gasUsed} gas  ${name}`;
}
