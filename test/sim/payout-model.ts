/**
 * The worker's own lanes over a ledger and a chain in memory: a seed decides whose call goes on
 * next, what is mined, lost, dropped or asked for, and which worker dies between two of its calls.
 */
import { bytesToAddress } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import { AppError } from "../../chain/errors.js";
import { NodeFault } from "../../rpc-client/errors.js";
import { createLogger } from "../../runtime/process/logger.js";
import type { LaneContext, LaneSettings } from "../../withdrawal-worker/lane/lane-context.js";
import type { LaneLedger } from "../../withdrawal-worker/lane/lane-ledger.js";
import { Lane } from "../../withdrawal-worker/lane/lane.js";
import type { WalletNode } from "../../withdrawal-worker/lane/wallet-node.js";
import { chance, createRandom, type Random } from "../helpers/random.js";
import { BrokenPromise, type BrokenRule, ModelLedger } from "./payout-ledger.js";
import { createModelSigner, ModelChain, NATURES } from "./payout-pool.js";
import { PERMISSIVE } from "../helpers/keys/signing.js";
import { SWITCH_UNTOUCHED } from "../../ledger/kill-switch/kill-switch-level.js";

const WALLET = bytesToAddress(Buffer.alloc(20, 0xaa));

/** Where somebody else with the key sends its coins. */
const OUTSIDER = bytesToAddress(Buffer.alloc(20, 0xee));

/** Real time plays no part: the lease runs out when the model says so. */
const NEVER_MS = 2 ** 31 - 1;

const SETTINGS: LaneSettings = {
  batchSize: 4,
  maxLiveSlots: 8,
  scanIntervalMs: 1,
  pollIntervalMs: 1,
  rebroadcastIntervalMs: 5_000,
  retryDelayMs: 2_000,
  receiptPatienceMs: 5_000,
  leaseMs: NEVER_MS,
  gas: {
    marginPercent: 20,
    limitMax: 1_000_000n,
    priceFloorAtoken: 1n,
    priceCapAtoken: 1_000n,
    feePerPayoutAtoken: 10n ** 9n,
    feePerDayAtoken: 10n ** 12n,
    codeGasInFlight: 500_000n,
  },
  stall: { repriceAfterMs: 30_000, giveUpAfterMs: 120_000, alarmAfterMs: 60_000 },
  failures: { failureFeeAtoken: 0n, maxCount: 0, windowMs: 1_000 },
};

/** What a run came to, for the report. */
export interface ModelReport {
  readonly calls: number;
  readonly requests: number;
  readonly mined: number;
  /** Endings by state. */
  readonly ends: ReadonlyMap<string, number>;
}

/** Runs one interleaving. @throws BrokenPromise naming the seed */
export async function runInterleaving(seed: number, broken?: BrokenRule): Promise<ModelReport> {
  const model = new Model(seed, broken);
  try {
    await model.live();
    await model.comeToRest();
    return model.report();
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw new BrokenPromise(`seed ${seed}: ${text}`, { cause: error });
  }
}

/** A call of a worker that waits for its turn. */
interface Call {
  readonly perform: () => Promise<() => void>;
  /** Ends the caller's round, so that nothing of a dead worker stays behind. */
  readonly abandon: () => void;
}

class Model {
  readonly #random: Random;
  readonly #chain = new ModelChain(WALLET);
  readonly #signer = createModelSigner(WALLET);
  readonly #ledger: ModelLedger;
  readonly #workers: Worker[];
  readonly #log = createLogger({ component: "model", level: "silent" });
  /** In some runs somebody else uses the wallet's key: then it freezes, and need not end. */
  readonly #hasOutsider: boolean;
  #nowMs = 0;
  #lagUntilMs = 0;
  #calls = 0;
  #faultShare = 0.06;

  constructor(seed: number, broken: BrokenRule | undefined) {
    this.#random = createRandom(seed);
    this.#hasOutsider = seed % 8 === 7;
    this.#ledger = new ModelLedger(this.#chain, () => this.#nowMs, broken);
    this.#workers = [this.#hire(0), this.#hire(1)];
  }

  /** Random events between the calls of two workers. */
  async live(): Promise<void> {
    for (let step = 0; step < 150; step++) await this.#event();
    this.#check();
  }

  /** The network heals; blocks come, time passes, and everything has to end. */
  async comeToRest(): Promise<void> {
    this.#faultShare = 0;
    this.#chain.toldHeight = Number.POSITIVE_INFINITY;
    this.#chain.floorAtoken = 1n;
    this.#chain.isForgetful = false;
    this.#ledger.expireLease();
    const [worker] = this.#workers;
    // A few rounds in any case: with nothing open, what somebody else did has to be seen as well.
    // Each payment that no block takes is waited for on its own, so the bound is by requests.
    const most = 50 + 30 * this.#ledger.rows.size;
    for (let round = 0; round < most && (round < 3 || this.#ledger.open().length > 0); round++) {
      await worker?.finishRound();
      this.#chain.mine(10);
      this.#nowMs += 6_000;
    }
    this.#check();
    if (this.#hasOutsider) {
      const isSeen = this.#chain.mined.some(({ intent }) => intent.to === OUTSIDER);
      if (isSeen && this.#ledger.freeze === undefined) {
        throw new BrokenPromise("somebody else used the key, and signing goes on");
      }
      return;
    }
    if (this.#ledger.freeze !== undefined) throw new BrokenPromise(this.#ledger.freeze);
    const open = this.#ledger
      .open()
      .map(({ id, status, slot }) => [
        id,
        status,
        String(slot?.nonce),
        String(slot?.attempts.length),
      ]);
    if (open.length > 0) throw new BrokenPromise(`never end: ${JSON.stringify(open)}`);
    if (this.#chain.nonce !== this.#ledger.nextNonce) {
      throw new BrokenPromise(`nonces ${this.#chain.nonce} of ${this.#ledger.nextNonce} are used`);
    }
  }

  report(): ModelReport {
    const ends = new Map<string, number>();
    for (const { status } of this.#ledger.rows.values()) {
      ends.set(status, (ends.get(status) ?? 0) + 1);
    }
    const requests = this.#ledger.rows.size;
    return { calls: this.#calls, requests, mined: this.#chain.mined.length, ends };
  }

  #check(): void {
    this.#ledger.check(
      (row) =>
        this.#chain.mined.filter(
          ({ intent, isSuccess }) => isSuccess && intent.to === row.destination,
        ).length,
    );
  }

  async #event(): Promise<void> {
    const random = this.#random;
    if (this.#nowMs >= this.#lagUntilMs) this.#chain.toldHeight = Number.POSITIVE_INFINITY;
    const dice = random.integer(100);
    const worker = random.pick(this.#workers);
    if (dice < 66) return worker.goOn();
    if (dice < 74) return this.#request();
    if (dice < 82) return this.#mine();
    if (dice < 87) return this.#cancel();
    if (dice < 93) {
      this.#nowMs += random.integer(40_000);
      return;
    }
    if (dice < 95) return this.#ledger.expireLease();
    if (dice < 97) {
      // It dies: its call may have happened, and nobody will ever hear of it.
      await worker.die(chance(random, 0.5));
      this.#ledger.expireLease();
      this.#workers[this.#workers.indexOf(worker)] = this.#hire(this.#calls);
      return;
    }
    if (dice < 98) return this.#chain.dropPool();
    if (dice < 99) this.#chain.isForgetful = chance(random, 0.3);
    else this.#ledger.isLate = true;
    this.#chain.floorAtoken = random.pick([1n, 20n, 26n, 40n]);
    this.#chain.suggestedAtoken = random.pick([25n, 25n, 30n, 60n, 2_000n]);
  }

  #mine(): void {
    const random = this.#random;
    if (this.#hasOutsider && chance(random, 0.2)) this.#intrude();
    // Shorter than the lane's patience with missing receipts.
    if (chance(random, 0.3)) {
      this.#chain.toldHeight = Math.min(this.#chain.toldHeight, this.#chain.height);
      this.#lagUntilMs = this.#nowMs + 4_000;
    }
    this.#chain.mine(random.integer(4));
  }

  /** A transaction that the worker never signed, on a nonce that it has or will have. */
  #intrude(): void {
    const { nextNonce } = this.#ledger;
    const nonce = this.#chain.nonce + BigInt(this.#random.integer(3));
    const hash: Hash32 = `0x${(nonce + nextNonce).toString(16).padStart(64, "f")}` as Hash32;
    const gas = { gasLimit: 21_000n, gasPriceAtoken: 900n };
    this.#chain.submit({ chainId: 1n, nonce, to: OUTSIDER, valueAtoken: 5n, ...gas, hash });
  }

  #request(): void {
    const random = this.#random;
    const number = this.#ledger.rows.size + 1;
    // Above the chain's own addresses, which are never plain.
    const digits = `dd${number.toString(16).padStart(38, "0")}`;
    const destination = bytesToAddress(Buffer.from(digits, "hex"));
    this.#chain.natures.set(destination, random.pick(NATURES));
    this.#ledger.request(destination, 1_000n, chance(random, 0.2));
  }

  #cancel(): void {
    const ids = [...this.#ledger.rows.keys()];
    if (ids.length > 0) this.#ledger.cancel(this.#random.pick(ids));
  }

  #hire(number: number): Worker {
    return new Worker(this.#random, (enqueue) => {
      const context: LaneContext = {
        ledger: this.#turns(this.#ledger.port(), enqueue),
        // This chain never goes back; what does is in test/integration/recovery.
        guard: { mayGoOn: async () => true },
        node: this.#turns(this.#node(), enqueue),
        signer: this.#signer,
        hasKey: () => true,
        policy: { current: async () => PERMISSIVE },
        killSwitch: { read: async () => SWITCH_UNTOUCHED },
        screener: { ask: async () => [] },
        chainId: 1n,
        settings: SETTINGS,
        clock: { nowMs: () => this.#nowMs, monotonicMs: () => this.#nowMs },
        log: this.#log,
      };
      return new Lane(context, `worker ${number}`);
    });
  }

  /** Every call waits until the model lets it go on. */
  #turns<T extends LaneLedger | WalletNode>(port: T, enqueue: (call: Call) => void): T {
    const entries = Object.entries(port).map(([name, method]) => [
      name,
      (...parameters: unknown[]) =>
        new Promise((resolve, reject) => {
          enqueue({
            abandon: () => reject(new NodeFault("NODE_TIMEOUT", "the worker is dead")),
            perform: async () => {
              this.#calls += 1;
              try {
                const result: unknown = await method(...parameters);
                return () => resolve(result);
              } catch (error) {
                if (error instanceof BrokenPromise) throw error;
                return () => reject(error);
              }
            },
          });
        }),
    ]);
    return Object.fromEntries(entries) as T;
  }

  #node(): WalletNode {
    const chain = this.#chain;
    const faulty = async <T>(work: () => T): Promise<T> => {
      const isLost = chance(this.#random, this.#faultShare);
      const hasHappened = !isLost || chance(this.#random, 0.5);
      const result = hasHappened ? work() : undefined;
      if (isLost) throw new NodeFault("NODE_TIMEOUT", "no answer", { retriable: true });
      return result as T;
    };
    return {
      view: () => faulty(() => chain.view()),
      haveCode: (addresses) =>
        faulty(() =>
          addresses.map((address) => !["plain", "unmined"].includes(chain.natureOf(address))),
        ),
      estimate: (_wallet, payments) =>
        faulty(() => payments.map((payment) => chain.estimate(payment))),
      tokenBalances: async (_wallet, tokens) => tokens.map(() => 0n),
      keptBlocks: async () => ({ oldestSeconds: -Infinity, headSeconds: chain.height }),
      assertChain: async () => undefined,
      send: (raws) =>
        faulty(() =>
          raws.map((raw) => {
            this.#ledger.assertStored(raw);
            const tx = this.#signer.intentOf.get(raw);
            if (tx === undefined) throw new BrokenPromise(`${raw} was never signed`);
            return chain.submit(tx);
          }),
        ),
      receipts: (hashes) =>
        faulty(() => ({
          height: chain.height,
          untold: new Map(),
          byHash: new Map(
            hashes.flatMap((hash) => {
              const receipt = chain.receipt(hash);
              return receipt === undefined ? [] : [[hash, receipt] as const];
            }),
          ),
        })),
      headers: (heights) =>
        faulty(() =>
          heights.map((height) => ({
            height,
            hash: chain.blockHash(height),
            parentHash: chain.blockHash(height - 1),
            timestampSeconds: height,
          })),
        ),
    };
  }
}

/** One process: its lane, and the calls it waits for: while one batch is sent, the next is made. */
class Worker {
  readonly #lane: Lane;
  readonly #random: Random;
  #calls: Call[] = [];
  #round: Promise<void> | undefined;
  #fault: unknown;
  readonly #signal = new AbortController().signal;

  constructor(random: Random, makeLane: (enqueue: (call: Call) => void) => Lane) {
    this.#random = random;
    this.#lane = makeLane((call) => {
      this.#calls.push(call);
    });
  }

  /** Starts a round, or lets its next call happen. */
  async goOn(): Promise<void> {
    if (this.#round === undefined) this.#start();
    else await this.#perform();
    await this.#settle();
  }

  /** Works until its round has ended. */
  async finishRound(): Promise<void> {
    if (this.#round === undefined) this.#start();
    while (this.#round !== undefined) {
      await this.#settle();
      await this.#perform();
    }
  }

  /** @param hasHappened one of its calls reached whom it was for */
  async die(hasHappened: boolean): Promise<void> {
    if (hasHappened) await this.#next()?.perform();
    // What it asks for afterwards is nobody's: the lane is thrown away.
    for (const call of this.#calls.splice(0)) call.abandon();
  }

  /** Any of those that wait: answers come in no order. */
  #next(): Call | undefined {
    const place = this.#calls.length > 1 ? this.#random.integer(this.#calls.length) : 0;
    return this.#calls[place];
  }

  #start(): void {
    this.#round = this.#lane.runRound(this.#signal).then(
      () => undefined,
      (error: unknown) => {
        // What a lane waits out: the node's faults and a lease that is lost.
        const passing = ["NODE_TIMEOUT", "NODE_BEHIND", "LEASE_LOST"];
        if (!(error instanceof AppError) || !passing.includes(error.code)) this.#fault = error;
      },
    );
    void this.#round.finally(() => {
      this.#round = undefined;
    });
  }

  async #perform(): Promise<void> {
    const call = this.#next();
    this.#calls = this.#calls.filter((other) => other !== call);
    const deliver = await call?.perform();
    deliver?.();
  }

  /** Until it waits for another call, or its round has ended. */
  async #settle(): Promise<void> {
    for (let tick = 0; tick < 500; tick++) {
      if (this.#fault !== undefined) throw this.#fault;
      if (this.#calls.length > 0 || this.#round === undefined) return;
      await Promise.resolve();
    }
    throw new BrokenPromise("a worker waits for something that the model does not know");
  }
}
