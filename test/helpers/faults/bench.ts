/** A kit under load that is struck again and again: what all the fault tests share. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { BlockWitness } from "./chain.js";
import { FaultExchange } from "./exchange.js";
import { assertNothingLostOrDoubled, type Figures } from "./oracle.js";
import {
  deathsBySigkill,
  killEverything,
  type KitProcessName,
  untilAllReady,
} from "./processes.js";
import type { WithdrawalKind } from "./promises.js";
import { type RunningKit, startKit } from "../kit.js";
import { createRandom, type Random } from "../random.js";
import { until } from "../until.js";

/**
 * Pauses between the customers' actions. Every block of 500 ms shall hold several payments, so
 * that there is money in each step, and the pool shall never be empty for long.
 */
const PAY_EVERY_MS = 60;
const WITHDRAW_EVERY_MS = 100;
const FOLLOW_EVERY_MS = 200;

/** Every how many actions something unusual is done. */
const EARLY_PAYMENT_EVERY = 8;
const OWN_PAYOUT_EVERY = 5;
const REFUSED_PAYOUT_EVERY = 6;

/** Time for a failpoint to be reached under load on a busy machine. */
const STRIKE_TIMEOUT_MS = 60_000;

/**
 * Payments and withdrawals before a strike, so that it meets work, and after it, so that the new
 * life has had to work as well.
 */
const WORK_AROUND_STRIKE = 5;

/** How a kit ends before it is started again. */
export type Ending = "SIGTERM" | "kill -9 of everything" | "kill -9 of the supervisor";

/** One home, its kit and its customers. */
export class FaultBench {
  readonly exchange: FaultExchange;
  readonly witness: BlockWitness;
  readonly random: Random;
  #kit: RunningKit | undefined;
  readonly #home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-fault-"));

  private constructor(private readonly options: { seed: number; portOffset: number }) {
    this.random = createRandom(options.seed);
    this.exchange = new FaultExchange(() => this.kit, this.random);
    this.witness = new BlockWitness(this.exchange.chain);
  }

  /** Starts a kit on a new home, and customers with coins to withdraw. */
  static async open(options: {
    readonly seed: number;
    readonly portOffset: number;
    readonly env?: Record<string, string>;
  }): Promise<FaultBench> {
    console.log(`seed ${options.seed} (CAUSEWAY_FAULT_SEED repeats it)`);
    const bench = new FaultBench(options);
    try {
      await bench.start(options.env);
      await bench.exchange.open(["alice", "bob", "carol"]);
    } catch (error) {
      await bench.close();
      throw error;
    }
    return bench;
  }

  /** The kit of this moment; its URLs stay the same over all starts. */
  get kit(): RunningKit {
    if (this.#kit === undefined) throw new Error("the kit was never started");
    return this.#kit;
  }

  /** Starts the kit on the home as it is. */
  async start(env: Record<string, string> = {}): Promise<void> {
    const { portOffset } = this.options;
    this.#kit = await startKit({ home: this.#home, portOffset, env });
  }

  /** Ends the kit in the given way and starts it again with other variables. */
  async restart(ending: Ending, env: Record<string, string> = {}): Promise<void> {
    await this.#end(ending);
    await this.start(env);
  }

  /** Customers pay and withdraw before, while and after `strike` runs. */
  async underLoad(strike: () => Promise<void>): Promise<void> {
    const stop = new AbortController();
    const { signal } = stop;
    const loops = [
      this.#payLoop(signal),
      this.#withdrawLoop(signal),
      this.#followLoop(signal),
      this.witness.run(signal),
    ];
    const failed = Promise.race(loops.map((loop) => loop.then(() => new Promise<never>(() => {}))));
    try {
      const whole = async (): Promise<void> => {
        await this.#someWork();
        await strike();
        await this.#someWork();
      };
      await Promise.race([whole(), failed]);
    } finally {
      stop.abort();
      await Promise.allSettled(loops);
    }
    await Promise.all(loops);
    await this.exchange.registerPaid();
  }

  /**
   * Starts the kit again with a failpoint armed, under load, and resolves when the process died at
   * it and every part is ready again.
   */
  async strikeAt(
    target: { readonly process: KitProcessName; readonly failpoint: string },
    options: { readonly ending: Ending; readonly env?: Record<string, string> },
  ): Promise<void> {
    await this.underLoad(async () => {
      const env = { ...options.env, CAUSEWAY_FAILPOINT: target.failpoint };
      await this.restart(options.ending, env);
      await until(() => deathsBySigkill(this.kit, target.process) > 0, {
        timeoutMs: STRIKE_TIMEOUT_MS,
        what: `${target.process} dies at ${target.failpoint}`,
      });
      await untilAllReady(this.kit);
    });
    const deaths = deathsBySigkill(this.kit, target.process);
    if (deaths !== 1) throw new Error(`${target.process} died ${deaths} times`);
  }

  /** Judges everything so far. */
  async prove(): Promise<Figures> {
    return assertNothingLostOrDoubled(this.kit, this.exchange, this.witness);
  }

  /** Ends the kit and deletes the home. */
  async close(): Promise<void> {
    if (this.#kit !== undefined) await this.#end("kill -9 of everything");
    fs.rmSync(this.#home, { recursive: true, force: true });
  }

  async #end(ending: Ending): Promise<void> {
    if (ending === "kill -9 of everything") {
      await killEverything(this.kit);
    } else if (ending === "kill -9 of the supervisor") {
      await this.kit.kill();
    } else {
      const code = await this.kit.stop();
      if (code !== 0) throw new Error(`the kit ended with ${code}:\n${this.kit.output()}`);
    }
  }

  async #someWork(): Promise<void> {
    const { payments, requests } = this.exchange;
    const [paid, asked] = [payments.length, requests.length];
    const isDone = (): boolean =>
      payments.length >= paid + WORK_AROUND_STRIKE && requests.length >= asked + WORK_AROUND_STRIKE;
    await until(isDone, { timeoutMs: STRIKE_TIMEOUT_MS, what: "customers go on" });
  }

  async #payLoop(signal: AbortSignal): Promise<void> {
    for (let round = 1; !signal.aborted; round += 1) {
      const customerId = this.random.pick(["alice", "bob", "carol"]);
      if (round % EARLY_PAYMENT_EVERY === 0) await this.exchange.payBeforeRegistration(customerId);
      else await this.exchange.pay(1 + this.random.integer(4));
      await pause(PAY_EVERY_MS);
    }
  }

  async #followLoop(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.exchange.follow();
      await this.exchange.registerPaid();
      await pause(FOLLOW_EVERY_MS);
    }
  }

  async #withdrawLoop(signal: AbortSignal): Promise<void> {
    for (let round = 1; !signal.aborted; round += 1) {
      let kind: WithdrawalKind = "fresh";
      if (round % OWN_PAYOUT_EVERY === 0) kind = "own";
      if (round % REFUSED_PAYOUT_EVERY === 0) kind = "refusing";
      // Requests that arrive together share a commit; some shall.
      const count = 1 + this.random.integer(3);
      await Promise.all(Array.from({ length: count }, () => this.exchange.withdraw(kind)));
      await pause(WITHDRAW_EVERY_MS);
    }
  }
}

/** The seed of this run: of the environment to repeat one, else of the clock. */
export function faultSeed(): number {
  const given = process.env["CAUSEWAY_FAULT_SEED"];
  return given === undefined ? Date.now() % 1_000_000_007 : Number(given);
}

/** Paces the load; nothing relies on what happens meanwhile. */
export function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}
