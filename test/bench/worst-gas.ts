/**
 * How much time a unit of gas can buy at worst: loops over the dearest opcodes and precompiles,
 * run through the node's own machine. `max_call_gas` of the genesis is set from this table.
 */
import { type Address, parseAddress } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { EMPTY_TRIE_ROOT, type Hash32, hexToBytes, ZERO_HASH } from "../../chain/hex.js";
import { type BlockContext, createMachine } from "../../node/execution/evm/evm.js";
import { BalanceRecorder } from "../../node/state/balance-recorder.js";
import { JournaledState } from "../../node/state/journaled-state.js";
import type { AccountRecord } from "../../node/store/account-record.js";
import { type StateReader, ZERO_VALUE } from "../../node/store/state-reader.js";
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

/** Runs a case with the gas given, over a fresh state. */
export async function measureWorstCase(
  { name, code, others, data }: WorstCase,
  gas: bigint,
): Promise<WorstResult> {
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
  const begin = process.cpuUsage();
  state.checkpoint();
  const { execResult } = await machine.run(message, BLOCK, new BalanceRecorder());
  state.commit();
  await machine.evm.journal.cleanup();
  const { user, system } = process.cpuUsage(begin);
  const cpuMs = (user + system) / 1_000;
  const gasUsed = execResult.executionGasUsed;
  return { name, gasUsed, cpuMs, mgasPerSecond: Number(gasUsed) / cpuMs / 1_000 };
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

/** Measures all cases (or those whose name matches), slowest first. */
export async function measureWorstGas(gas: bigint, only?: RegExp): Promise<WorstResult[]> {
  const results: WorstResult[] = [];
  for (const item of worstCases()) {
    if (only === undefined || only.test(item.name)) {
      results.push(await measureWorstCase(item, gas));
    }
  }
  return results.toSorted((left, right) => left.mgasPerSecond - right.mgasPerSecond);
}

/** The table as text, one line for each case. */
export function worstGasTable(results: readonly WorstResult[]): string {
  return results
    .map(({ name, gasUsed, cpuMs, mgasPerSecond }) => {
      const rate = mgasPerSecond.toFixed(1).padStart(8);
      return `${rate} Mgas/s ${cpuMs.toFixed(0).padStart(7)} ms ${gasUsed} gas  ${name}\n`;
    })
    .join("");
}
