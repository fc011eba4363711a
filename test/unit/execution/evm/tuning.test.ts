/**
 * The tuned EVM against the library's own: the same random programs over the same state must come
 * to the same gas, result, logs, warm addresses and state.
 */
import { describe, expect, it } from "@jest/globals";
import { createCustomCommon, Hardfork, Mainnet } from "@ethereumjs/common";
import { createEVM, type EVM } from "@ethereumjs/evm";
import { createAddressFromString } from "@ethereumjs/util";
import { bytesToHex, hexToBytes } from "../../../../chain/hex.js";
import { EvmState } from "../../../../node/execution/evm/evm-state.js";
import { libraryPrecompile } from "../../../../node/execution/evm/evm.js";
import { tuneEvm } from "../../../../node/execution/evm/tuning.js";
import { JournaledState } from "../../../../node/state/journaled-state.js";
import { ALICE, COINBASE, CONTRACT, MemoryState, OTHER, TEN } from "../call-fixture.js";
import { program, randomOf, THIRD } from "../engines/random-programs.js";

const modexpOfLibrary = libraryPrecompile("MODEXP").function;
const PROGRAMS = 300;
const GAS = 400_000n;

/** The block's header, as the EVM reads it. */
const HEADER = {
  number: 7n,
  coinbase: createAddressFromString(COINBASE),
  timestamp: 1_750_000_000n,
  difficulty: 0n,
  prevRandao: new Uint8Array(32),
  gasLimit: 600_000_000n,
  baseFeePerGas: 0n,
  getBlobGasPrice: () => 1n,
};

async function open(state: JournaledState): Promise<EVM> {
  const common = createCustomCommon({ chainId: 6_940 }, Mainnet, { hardfork: Hardfork.Cancun });
  const blockchain = {
    getBlock: async () => ({ hash: () => new Uint8Array(32).fill(7) }),
    putBlock: () => Promise.reject(new TypeError("nothing is stored")),
    shallowCopy() {
      return this;
    },
  };
  return createEVM({ common, blockchain, stateManager: new EvmState(state) });
}

/** Everything that a run leaves behind. */
async function outcomeOf(codes: readonly [string, string, string], isTuned: boolean) {
  const reader = new MemoryState({
    [ALICE]: { balanceAtoken: TEN },
    [CONTRACT]: { code: codes[0], balanceAtoken: 40n, storage: { 1: 5n, 7: 9n } },
    [OTHER]: { code: codes[1], balanceAtoken: 5n },
    [THIRD]: { code: codes[2] },
  });
  const state = new JournaledState(reader);
  const evm = await open(state);
  if (isTuned) {
    tuneEvm(evm, () => undefined);
    evm.precompiles.set(`${"00".repeat(19)}05`, modexpOfLibrary);
  }
  evm.journal.startReportingAccessList();
  state.beginTransaction();
  state.checkpoint();
  const { execResult } = await evm.runCall({
    caller: createAddressFromString(ALICE),
    to: createAddressFromString(CONTRACT),
    value: 3n,
    block: { header: HEADER },
    gasLimit: GAS,
    data: hexToBytes(`0x${"c0ffee".repeat(11)}`),
  });
  state.commit();
  const touched = [...(evm.journal.accessList ?? [])].map(
    ([address, slots]) => [address, [...slots].toSorted()] as const,
  );
  await evm.journal.cleanup();
  const error = execResult.exceptionError?.error.replace(/^(invalid JUMP).*/, "$1");
  return {
    error,
    gas: execResult.executionGasUsed,
    refund: execResult.gasRefund,
    returnValue: bytesToHex(execResult.returnValue),
    logs: execResult.logs?.map(([address, topics, data]) => [address, topics, data].map(String)),
    destroyed: [...(execResult.selfdestruct ?? [])],
    created: [...(execResult.createdAddresses ?? [])],
    touched: new Map(touched),
    accounts: state.changedAccounts(),
    storage: [...state.changedStorage()].map(([address, slots]) => [
      address,
      [...slots].map(([slot, value]) => `${slot} ${bytesToHex(value)}`).toSorted(),
    ]),
    stepsBack: state.depth(),
  };
}

describe("tuned EVM", () => {
  it("does what the library's does, on random programs", async () => {
    const ends = new Map<string, number>();
    for (let seed = 1; seed <= PROGRAMS; seed++) {
      const random = randomOf(seed);
      const codes = [program(random, 40), program(random, 15), program(random, 15)] as const;
      const tuned = await outcomeOf(codes, true);
      const plain = await outcomeOf(codes, false);
      expect({ seed, ...tuned }).toEqual({ seed, ...plain });
      const end = plain.error ?? "success";
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    // The programs must reach their ends in many ways, else they show nothing.
    expect(ends.size).toBeGreaterThan(5);
    expect(ends.get("success")).toBeGreaterThan(PROGRAMS / 20);
  });
});

describe("modexp", () => {
  /** Lengths and operands as the precompile takes them. */
  const input = (parts: readonly string[]) =>
    hexToBytes(
      `0x${parts.map((hex) => (hex.length / 2).toString(16).padStart(64, "0")).join("")}${parts.join("")}`,
    );
  const run = (parts: readonly string[], gasLimit = 10n ** 9n) =>
    modexpOfLibrary({ data: input(parts), gasLimit });

  // EIP-198's examples and EIP-2565's gas for "nagydani-1-square".
  it("computes the examples of EIP-198", () => {
    const p = "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f";
    const one = run(["03", p.replace(/2f$/, "2e"), p]);
    expect(bytesToHex(one.returnValue)).toBe(`0x${"1".padStart(64, "0")}`);
    const zero = run(["", p.replace(/2f$/, "2e"), p]);
    expect(bytesToHex(zero.returnValue)).toBe(`0x${"0".repeat(64)}`);
    expect(one.executionGasUsed).toBe(1_360n);
  });

  it("agrees with plain arithmetic for all sizes of modulus", () => {
    const random = randomOf(7);
    const hex = (bytes: number) =>
      Array.from({ length: bytes }, () => random(256).toString(16).padStart(2, "0")).join("");
    for (let round = 0; round < 200; round++) {
      const parts = [hex(1 + random(40)), hex(random(4)), hex(1 + random(12))] as const;
      const [base, exponent, modulus] = parts.map((part) =>
        BigInt(`0x${part === "" ? "0" : part}`),
      );
      let expected = 1n;
      for (let bit = 31n; bit >= 0n; bit--) {
        expected = (expected * expected) % ((modulus ?? 0n) || 1n);
        if ((((exponent ?? 0n) >> bit) & 1n) === 1n) {
          expected = (expected * (base ?? 0n)) % ((modulus ?? 0n) || 1n);
        }
      }
      if ((modulus ?? 0n) <= 1n) expected = 0n;
      const { returnValue } = run(parts);
      expect([parts, BigInt(bytesToHex(returnValue))]).toEqual([parts, expected]);
    }
  });

  it("runs out of gas, and returns nothing for a modulus of no bytes", () => {
    expect(run(["03", "05", "07"], 199n).exceptionError?.error).toBe("out of gas");
    expect(run(["03", "05", ""]).returnValue).toHaveLength(0);
  });
});
