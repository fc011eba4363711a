/** Random programs on either engine: everything that a run leaves behind, to be compared. */
import { NEWEST_WEIGHTS, weightsOf } from "../../../../chain/evm/compute-weights.js";
import { bytesToHex, hexToBytes, ZERO_HASH } from "../../../../chain/hex.js";
import { createMachine, type BlockContext } from "../../../../node/execution/evm/evm.js";
import { LibraryEngine } from "../../../../node/execution/evm/library-engine.js";
import { Engine } from "../../../../node/execution/interpreter/engine.js";
import type {
  RunResult,
  RunTerms,
  TransactionEngine,
} from "../../../../node/execution/transaction-engine.js";
import { BalanceRecorder } from "../../../../node/state/balance-recorder.js";
import { JournaledState } from "../../../../node/state/journaled-state.js";
import { ALICE, COINBASE, CONTRACT, MemoryState, OTHER, TEN } from "../call-fixture.js";
import { program, randomOf, THIRD } from "./random-programs.js";

const GAS = 400_000n;
const CHAIN_ID = 6_940n;

/** The block that all messages are in. */
export const BLOCK: BlockContext = {
  height: 7,
  timestampSeconds: 1_750_000_000,
  coinbase: COINBASE,
  gasLimit: 600_000_000n,
  mixHash: ZERO_HASH,
  blockHash: () => `0x${"07".repeat(32)}` as typeof ZERO_HASH,
};

/** Our own engine, and the library's. */
export const ENGINES = {
  own: async (state: JournaledState) =>
    new Engine({ chainId: CHAIN_ID, state, weights: weightsOf(NEWEST_WEIGHTS) }),
  library: async (state: JournaledState) => new LibraryEngine(await createMachine(CHAIN_ID, state)),
};

/** Makes an engine over a state. */
type OpenEngine = (state: JournaledState) => Promise<TransactionEngine>;

/**
 * The library's engine by one machine for every state that it is asked for, one behind the other: building
 * a machine takes as long as some programs. What a state before left in it would show as a difference.
 */
export function oneLibraryMachine(): OpenEngine {
  let current = new JournaledState(new MemoryState({}));
  const forwarding = new Map<PropertyKey, unknown>();
  const state = new Proxy(current, {
    get(_first, key) {
      const value: unknown = Reflect.get(current, key);
      if (typeof value !== "function") return value;
      if (!forwarding.has(key)) {
        forwarding.set(key, (...args: unknown[]): unknown => {
          const method: unknown = Reflect.get(current, key);
          return typeof method === "function" ? Reflect.apply(method, current, args) : undefined;
        });
      }
      return forwarding.get(key);
    },
    set: (_first, key, value) => Reflect.set(current, key, value),
  });
  const machine = createMachine(CHAIN_ID, state);
  return async (next) => {
    current = next;
    return new LibraryEngine(await machine);
  };
}

/** The code of the contract that is called, and of two that it may call. */
export type Codes = readonly [string, string, string];

/** The programs of a seed. */
export function codesOf(seed: number): Codes {
  const random = randomOf(seed);
  return [program(random, 40), program(random, 15), program(random, 15)];
}

/** Everything that a run leaves behind. */
export async function outcomeOf(
  codes: Codes,
  open: OpenEngine,
  terms: Omit<RunTerms, "recorder"> = { limitNs: Number.POSITIVE_INFINITY },
) {
  const reader = new MemoryState({
    [ALICE]: { balanceAtoken: TEN },
    [CONTRACT]: { code: codes[0], balanceAtoken: 40n, storage: { 1: 5n, 7: 9n } },
    [OTHER]: { code: codes[1], balanceAtoken: 5n },
    [THIRD]: { code: codes[2] },
  });
  const state = new JournaledState(reader);
  const engine = await open(state);
  const recorder = new BalanceRecorder();
  const message = {
    from: ALICE,
    to: CONTRACT,
    valueAtoken: 3n,
    data: hexToBytes(`0x${"c0ffee".repeat(11)}`),
    gasLimit: GAS,
    gasPriceAtoken: 1n,
    accessList: [],
  };
  state.checkpoint();
  const result = await engine.run(message, BLOCK, { recorder, ...terms });
  await engine.finish(true);
  state.commit();
  return {
    ...leftBehind(result, recorder, state),
    stepsBack: state.depth(),
    compute: { ns: result.computeNs, isOut: result.isOutOfCompute },
  };
}

/** Everything but compute units that a message leaves behind. */
export function leftBehind(result: RunResult, recorder: BalanceRecorder, state: JournaledState) {
  // Which failure it was may differ: a block of code is checked as a whole.
  const endOf = (error: string | undefined) =>
    error === undefined || error === "revert" ? error : "failure";
  return {
    end: endOf(result.error),
    gasUsed: result.gasUsed,
    gasRefund: result.gasRefund,
    output: bytesToHex(result.output),
    logs: result.logs.map(({ address, topics, data }) => [address, topics, bytesToHex(data)]),
    destroyed: result.destroyed.toSorted(),
    moved: recorder.changes().map((change) => ({ ...change, error: endOf(change.error) })),
    accounts: new Map(
      [...state.changedAccounts()].toSorted(([left], [right]) => (left < right ? -1 : 1)),
    ),
    storage: new Map(
      [...state.changedStorage()]
        .filter(([, slots]) => slots.size > 0)
        .map(([address, slots]) => [
          address,
          [...slots].map(([slot, value]) => `${slot} ${bytesToHex(value)}`).toSorted(),
        ]),
    ),
  };
}
