/**
 * Compute weights beside time (D21): loops over the dearest opcodes, precompiles and frames through the
 * node's own EVM until their compute units are used up. A weight is right when no program takes
 * longer than its units say.
 */
import { NEWEST_WEIGHTS, weightsOf } from "../../chain/evm/compute-weights.js";
import { type Address, parseAddress } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { EMPTY_TRIE_ROOT, type Hash32, hexToBytes, ZERO_HASH } from "../../chain/hex.js";
import type { BlockContext } from "../../node/execution/evm/evm.js";
import { Engine } from "../../node/execution/interpreter/engine.js";
import type { RunResult } from "../../node/execution/transaction-engine.js";
import { BalanceRecorder } from "../../node/state/balance-recorder.js";
import { JournaledState } from "../../node/state/journaled-state.js";
import type { AccountRecord } from "../../node/store/account-record.js";
import { type StateReader, ZERO_VALUE } from "../../node/store/state-reader.js";
import type { BenchRow } from "./report.js";
import { type WorstCase, worstCases } from "./worst-cases.js";

/** What a case measured. */
interface WeighedCase {
  readonly name: string;
  readonly gasUsed: bigint;
  readonly computeMs: number;
  /** Time of the processor, not of the clock: other programs on the machine count for little. */
  readonly cpuMs: number;
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

/** What a case may use up. */
export interface WorstLimits {
  readonly gas: bigint;
  readonly limitNs: number;
}

/** Puts a case over a fresh state; what comes back runs it, once. */
export function openWorstCase(
  { code, others, data }: WorstCase,
  { gas, limitNs }: WorstLimits,
): () => RunResult {
  const contracts = new Map<Address, string>([[CONTRACT, code], ...(others ?? [])]);
  const state = new JournaledState(memoryReader(contracts));
  const engine = new Engine({ chainId: 6_940n, state, weights: weightsOf(NEWEST_WEIGHTS) });
  const message = {
    from: CALLER,
    to: CONTRACT,
    valueAtoken: 0n,
    data: hexToBytes(`0x${data ?? ""}`),
    gasLimit: gas,
    gasPriceAtoken: 0n,
    accessList: [],
  };
  return () => {
    state.checkpoint();
    const result = engine.run(message, BLOCK, { recorder: new BalanceRecorder(), limitNs });
    state.commit();
    return result;
  };
}

function measure(item: WorstCase, limits: WorstLimits): WeighedCase {
  const run = openWorstCase(item, limits);
  const begin = process.cpuUsage();
  const { gasUsed, computeNs } = run();
  const { user, system } = process.cpuUsage(begin);
  const cpuMs = (user + system) / 1_000;
  return { name: item.name, gasUsed, computeMs: computeNs / 1e6, cpuMs };
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
export const WEIGHT_ROWS = ["weights"] as const;

/** What one transaction may take, or a fifth of it. */
const LIMITS = {
  full: { gas: 30_000_000n, limitNs: 250_000_000 },
  quick: { gas: 30_000_000n, limitNs: 50_000_000 },
};

/** A pause of the collector or a neighbour spoils one measurement, not three. */
const TRIES = 3;

/** Cases that the row lists, dearest first. */
const LISTED = 20;

/** Runs the row: how long the dearest of all cases takes for a second of compute units. */
export function runWeightsRow(options: { readonly quick: boolean }): BenchRow[] {
  const limits = options.quick ? LIMITS.quick : LIMITS.full;
  const best: WeighedCase[] = [];
  for (const item of worstCases()) {
    const results = Array.from({ length: TRIES }, () => measure(item, limits));
    const [fastest] = results.toSorted((left, right) => costOf(left) - costOf(right));
    if (fastest !== undefined) best.push(fastest);
  }
  const sorted = best.toSorted((left, right) => costOf(right) - costOf(left));
  const [dearest] = sorted;
  return [
    {
      title: `compute units of ${best.length} contracts, the dearest`,
      unit: "s of units per s",
      ours: dearest === undefined ? 0 : 1 / costOf(dearest),
      peer: 1,
      peerName: "its weight",
      aim: { ratio: 0.77 },
      details: sorted.slice(0, LISTED).map(line),
    },
  ];
}

const costOf = ({ cpuMs, computeMs }: WeighedCase): number => cpuMs / computeMs;

function line(item: WeighedCase): string {
  const cost = costOf(item).toFixed(2).padStart(6);
  const units = item.computeMs.toFixed(0).padStart(5);
  return `${cost} s per s of units; ${units} ms of units, ${item.gasUsed} gas  ${item.name}`;
}
