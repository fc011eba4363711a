/** A pool on fakes: a state that tests set, a journal whose writes tests hold or fail, a clock. */
import { NEWEST_WEIGHTS } from "../../../chain/evm/compute-weights.js";
import { minedTransactions } from "../../../node/blocks/block-pool.js";
import { allAtOnce, type Steps } from "../../../chain/steps/steps.js";
import { type BlockTransaction, isEvm } from "../../../chain/block.js";
import { COSMOS_RULES } from "../../helpers/chains/cosmos-rules.js";
import { type Address } from "../../../chain/address.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { Wallet } from "ethers";
import { bytesToHex, type Hash32, parseHexBytes } from "../../../chain/hex.js";
import {
  decodeTransaction,
  type SignedTransaction,
  signLegacy,
} from "../../../chain/transaction.js";
import { EventBus, type PendingTransaction } from "../../../node/view/event-bus.js";
import type { PoolRules, StateAtHead } from "../../../node/mempool/admission/admission.js";
import { Mempool } from "../../../node/mempool/mempool.js";
import type { PoolJournal, PoolJournalEntry } from "../../../node/mempool/pool-journal.js";
import type { PoolLimits } from "../../../node/mempool/pool-limits.js";
import type { SenderRecovery } from "../../../node/mempool/recovery/sender-recovery.js";

export const CHAIN_ID = 6940n;
export const RECIPIENT = `0x${"11".repeat(20)}` as Address;
export const PRECOMPILE = `0x${"00".repeat(19)}01` as Address;

/** Cost of a default transfer: 21,000 gas at price 10 and value 1. */
export const TRANSFER_COST_ATOKEN = 210_001n;

export interface Account {
  readonly key: Uint8Array;
  readonly address: Address;
}

/** The n-th test account, n from 1. */
export function account(n: number): Account {
  const key = new Uint8Array(32);
  new DataView(key.buffer).setUint32(28, n);
  return { key, address: privateKeyToAddress(key) };
}

/** A signed legacy transfer of 1 atoken with 21,000 gas at price 10, unless told otherwise. */
export function transfer(
  from: Account,
  nonce: number,
  changes: {
    priceAtoken?: bigint;
    gasLimit?: bigint;
    valueAtoken?: bigint;
    to?: Address;
    data?: Uint8Array;
  } = {},
): SignedTransaction {
  const intent = {
    chainId: CHAIN_ID,
    nonce: BigInt(nonce),
    gasPriceAtoken: changes.priceAtoken ?? 10n,
    gasLimit: changes.gasLimit ?? 21_000n,
    to: changes.to ?? RECIPIENT,
    valueAtoken: changes.valueAtoken ?? 1n,
    data: changes.data ?? new Uint8Array(0),
  };
  return decodeTransaction(signLegacy(intent, from.key));
}

/** A signed transaction of type 2 at price 10 with an access list of 500 addresses: 12 KB, 80 KB decoded. */
export async function listing(from: Account, nonce: number): Promise<SignedTransaction> {
  const accessList = Array.from({ length: 500 }, () => ({ address: RECIPIENT, storageKeys: [] }));
  const signed = await new Wallet(bytesToHex(from.key)).signTransaction({
    type: 2,
    chainId: CHAIN_ID,
    nonce,
    maxFeePerGas: 10n,
    maxPriorityFeePerGas: 10n,
    gasLimit: 2_000_000n,
    to: RECIPIENT,
    accessList,
  });
  return decodeTransaction(parseHexBytes(signed));
}

/** Committed state that tests write directly. */
export class FakeState implements StateAtHead {
  readonly nonces = new Map<Address, bigint>();
  readonly balances = new Map<Address, bigint>();
  readonly locked = new Map<Address, bigint>();
  readonly contracts = new Set<Address>();
  failing = false;

  nonce(address: Address): bigint {
    if (this.failing) throw new Error("state is closed");
    return this.nonces.get(address) ?? 0n;
  }

  balanceAtoken(address: Address): bigint {
    return this.balances.get(address) ?? 10n ** 18n;
  }

  lockedAtoken(address: Address): bigint {
    return this.locked.get(address) ?? 0n;
  }

  hasCode(address: Address): boolean {
    return this.contracts.has(address);
  }
}

type Outcomes = ReturnType<PoolJournal["outcomes"]>;
type Outcome = Outcomes extends ReadonlyMap<Hash32, infer Item> ? Item : never;

/** A journal in memory. `hold` keeps the next appends open until `release`. */
export class FakeJournal implements PoolJournal {
  readonly entries = new Map<Hash32, PoolJournalEntry>();
  readonly appends: number[] = [];
  readonly removals: (readonly Hash32[])[] = [];
  failAppend: Error | undefined;
  /** With `failAppend`: the entries reach the disk all the same. */
  failAfterWriting = false;
  failRemove: Error | undefined;
  private gate: Promise<void> = Promise.resolve();
  private open: () => void = () => undefined;
  private appendSeen: () => void = () => undefined;

  hold(): { appendStarted: Promise<void> } {
    this.gate = new Promise((resolve) => {
      this.open = resolve;
    });
    return {
      appendStarted: new Promise((resolve) => {
        this.appendSeen = resolve;
      }),
    };
  }

  release(): void {
    this.open();
  }

  async append(entries: readonly PoolJournalEntry[], dropped: Outcomes): Promise<void> {
    this.appends.push(entries.length);
    this.appendSeen();
    await this.gate;
    if (this.failAppend === undefined || this.failAfterWriting) {
      for (const entry of entries) {
        this.entries.set(entry.hash, entry);
        this.kept.delete(entry.hash);
      }
      for (const [hash, outcome] of dropped) {
        this.entries.delete(hash);
        this.kept.set(hash, outcome);
      }
    }
    if (this.failAppend !== undefined) throw this.failAppend;
  }

  async remove(hashes: readonly Hash32[], outcomes: Outcomes): Promise<void> {
    if (this.failRemove !== undefined) throw this.failRemove;
    this.removals.push(hashes);
    for (const hash of hashes) this.entries.delete(hash);
    for (const [hash, outcome] of outcomes) this.kept.set(hash, outcome);
  }

  private readonly kept = new Map<Hash32, Outcome>();

  outcomes(): Outcomes {
    return this.kept;
  }

  lastSequence(): number {
    const all = [...this.entries.values(), ...this.stale];
    return all.reduce((highest, { sequence }) => Math.max(highest, sequence), -1);
  }

  /** As a store does at a start: the chain knows what became of these. */
  forgetMined(hashes: Iterable<Hash32>): void {
    for (const hash of hashes) this.kept.delete(hash);
  }

  /** Entries that a store by group may have kept beside the newer ones of the same hash. */
  readonly stale: PoolJournalEntry[] = [];

  /** Out of order on purpose, as a store keyed by hash would. */
  async *load(): AsyncIterable<PoolJournalEntry> {
    for (const hash of [...this.entries.keys()].toSorted()) {
      const entry = this.entries.get(hash);
      if (entry !== undefined) yield entry;
    }
    yield* this.stale;
  }
}

export interface Fixture {
  readonly pool: Mempool;
  readonly state: FakeState;
  readonly journal: FakeJournal;
  readonly bus: EventBus;
  /** Time that passes, and by how much the clock of the day is set beside it. */
  readonly clock: { atMs: number; setByMs: number };
  readonly mined: Map<Hash32, { height: number; index: number; blockHash: Hash32 }>;
  readonly faults: unknown[];
  readonly announced: Hash32[];
  /** Settable: why the node is halted. */
  readonly halt: { reason: string | undefined };
  /** A new pool over the same journal, state and chain, as after a restart. */
  readonly restart: () => Promise<Mempool>;
  /** Mines transactions: state, index, journal and pool move as the block producer moves them. */
  readonly mine: (
    transactions: readonly PendingTransaction[],
    extraTouched?: readonly Address[],
  ) => void;
  /** The same; the caller does the pool's steps. */
  readonly mineInSteps: (
    transactions: readonly PendingTransaction[],
    extraTouched?: readonly Address[],
  ) => Steps<void>;
}

export interface FixtureOptions {
  readonly limits?: Partial<PoolLimits>;
  readonly rules?: Partial<PoolRules>;
  readonly recovery?: SenderRecovery;
  readonly unlocking?: readonly Address[];
}

/** Says that one account signed everything, and counts what it is asked. */
export class CountedRecovery implements SenderRecovery {
  count = 0;

  constructor(private readonly sender: Address) {}

  async verify(): Promise<readonly boolean[]> {
    throw new Error("no Cosmos transactions here");
  }

  async recover(transactions: readonly SignedTransaction[]): Promise<readonly Address[]> {
    this.count += transactions.length;
    return transactions.map(() => this.sender);
  }
}

/** A fresh pool. */
export async function createFixture(options: FixtureOptions = {}): Promise<Fixture> {
  const state = new FakeState();
  const journal = new FakeJournal();
  const faults: unknown[] = [];
  const announced: Hash32[] = [];
  const bus = new EventBus((error) => faults.push(error));
  bus.on("pendingTransactions", (list) => announced.push(...list.map(({ tx }) => tx.hash)));
  const clock = { atMs: 1_700_000_000_000, setByMs: 0 };
  const mined: Fixture["mined"] = new Map();
  const halt: Fixture["halt"] = { reason: undefined };
  const rules: PoolRules = {
    chainId: CHAIN_ID,
    ...COSMOS_RULES,
    minGasPriceAtoken: 1n,
    maxTransactionGas: 30_000_000n,
    ...options.rules,
  };
  const openPool = (): Promise<Mempool> =>
    Mempool.open({
      state,
      journal,
      bus,
      clock: { nowMs: () => clock.atMs + clock.setByMs, monotonicMs: () => clock.atMs },
      rules,
      limits: options.limits ?? {},
      locate: (hash) => mined.get(hash),
      oldestHeight: () => 1,
      haltReason: () => halt.reason,
      onJournalFault: (error) => faults.push(error),
      ...(options.recovery === undefined ? {} : { recovery: options.recovery }),
      ...(options.unlocking === undefined ? {} : { unlocking: options.unlocking }),
    });
  let pool = await openPool();
  let height = 0;
  const mineInSteps: Fixture["mineInSteps"] = (transactions, extraTouched = []) => {
    height++;
    const blockHash = `0x${height.toString(16).padStart(64, "0")}` as Hash32;
    for (const [index, { tx, from }] of transactions.entries()) {
      state.nonces.set(from, tx.nonce + 1n);
      if (tx.type === "cosmos") throw new Error("no EVM transaction");
      const costAtoken = 21_000n * tx.maxFeePerGasAtoken + tx.valueAtoken;
      state.balances.set(from, state.balanceAtoken(from) - costAtoken);
      mined.set(tx.hash, { height, index, blockHash });
    }
    for (const { tx } of transactions) journal.entries.delete(tx.hash);
    return pool.onBlockCommitted({
      transactions: allAtOnce(minedTransactions(transactions)),
      touched: [...transactions.map(({ from }) => from), ...extraTouched],
    });
  };
  return {
    get pool() {
      return pool;
    },
    state,
    journal,
    bus,
    clock,
    mined,
    faults,
    announced,
    halt,
    async restart() {
      journal.forgetMined(mined.keys());
      pool = await openPool();
      return pool;
    },
    mine: (transactions, extraTouched) => allAtOnce(mineInSteps(transactions, extraTouched)),
    mineInSteps,
  };
}

/** Submits decoded transactions. */
export function submit(
  pool: Mempool,
  ...transactions: readonly SignedTransaction[]
): Promise<readonly (Hash32 | Error)[]> {
  return pool.submit(transactions.map((tx) => tx.raw));
}

/** Everything that a block without limits would take, in order. */
export function drain(
  pool: Mempool,
  limits: Partial<Parameters<Mempool["takeForBlock"]>[0]> = {},
): BlockTransaction[] {
  const selection = pool.takeForBlock({
    maxGas: 10n ** 12n,
    maxComputeNs: 1e12,
    computeWeights: NEWEST_WEIGHTS,
    maxBytes: 1e9,
    ...limits,
  });
  const taken: PendingTransaction[] = [];
  for (let next = selection.next(); next !== undefined; next = selection.next()) taken.push(next);
  return evmOnly(taken);
}

/** The transactions, which are all of the EVM. */
export function evmOnly(transactions: readonly PendingTransaction[]): BlockTransaction[] {
  const evm = transactions.filter(isEvm);
  if (evm.length !== transactions.length) throw new Error("no EVM transaction");
  return evm;
}

/** Code and text of a refusal. */
export function refusal(answer: unknown): { code: unknown; message: string } {
  if (!(answer instanceof Error)) throw new Error(`expected a refusal, got ${String(answer)}`);
  return { code: "code" in answer ? answer.code : undefined, message: answer.message };
}
