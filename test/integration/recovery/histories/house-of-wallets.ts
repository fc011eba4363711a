/**
 * An exchange on the fake chain with everything that moves its money: three hot wallets, two workers,
 * two watchers, a treasury, a token. Nothing runs by itself; what a process does may end between any two commits.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Mnemonic } from "ethers";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { type DepositKeys, readDepositSeed } from "../../../../chain/derivation/deposit-keys.js";
import { present } from "../../../../chain/errors.js";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import type { LedgerDatabase } from "../../../../ledger/database.js";
import { readKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import {
  hashPolicy,
  PERMISSIVE_POLICY,
  policyFileText,
  type AssetRules,
  type TreasuryRules,
} from "../../../../ledger/policy/policy.js";
import { createEvmClient } from "../../../../rpc-client/evm-client.js";
import type { JsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { createLaneGuard } from "../../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../../withdrawal-worker/lane/lane-ledger.js";
import type { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { PolicyKeeper } from "../../../../withdrawal-worker/policy-keeper.js";
import { Sweeper } from "../../../../withdrawal-worker/treasury/sweeper.js";
import { SweepSigner } from "../../../../withdrawal-worker/treasury/sweep-signer.js";
import { FAKE_CHAIN_ID, testAddress } from "../../../helpers/chains/fake-chain.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { derivation, Desk, KEY, STRANGER, TOKEN } from "../desk.js";
import { LANE, withoutWaiting } from "../desk-settings.js";
import { createPatientClient, createPatientNode } from "../../../helpers/exchange/patient-node.js";

/** The chain's token. */
export const PLAIN = "PLAIN";

/** One of it, of as many units as an atoken, so that amounts of both can be drawn alike. */
export const TOKEN_CONTRACT = testAddress(0x70c3);

/** Where the exchange keeps what it does not need. */
export const COLD = testAddress(0xc01d);

/** Keys of the hot wallets; the first one's is the desk's. */
export const KEYS: readonly Uint8Array[] = [
  KEY,
  keccak256(Buffer.from("second hot wallet of the histories")),
  keccak256(Buffer.from("third hot wallet of the histories")),
];

/** The hot wallets. */
export const WALLETS: readonly Address[] = KEYS.map((key) => privateKeyToAddress(key));

/** What each hot wallet has at the beginning. */
const FUNDS = 100n * TOKEN;

/** Charged for a payment that is mined and fails. */
const FAILURE_FEE = 1_000n;

/** Thrown instead of everything that a killed process would have done. */
export class Killed extends Error {}

/** A database whose process dies at its `steps`-th call, before it or behind its commit. */
function dying(database: LedgerDatabase, steps: number): LedgerDatabase {
  let left = steps;
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    if (left <= 0) throw new Killed("the process is gone");
    const result = await work();
    left -= 1;
    if (left <= 0) throw new Killed("killed behind a commit");
    return result;
  };
  return {
    ...database,
    query: (text, values) => counted(() => database.query(text, values)),
    transaction: (work) => counted(() => database.transaction(work)),
    snapshot: (work, options) => counted(() => database.snapshot(work, options)),
    close: () => Promise.resolve(),
  };
}

/** One worker process: a lane for each wallet over one ledger of its own. */
class WorkerProcess {
  readonly #lanes: readonly Lane[];

  constructor(house: HouseOfWallets, database: LedgerDatabase) {
    const { desk } = house;
    const ledger = withoutWaiting(createLaneLedger(database));
    this.#lanes = KEYS.map((key, index) => {
      const wallet = present(WALLETS[index], "a wallet");
      const { signer, killSwitch, screener } = desk.rulesOf(key);
      const { policy } = house;
      return desk.makeLane(
        wallet,
        { signer, hasKey: () => true },
        {
          policy,
          killSwitch,
          screener,
          ledger,
          guard: createLaneGuard({ database, wallet, log: silentLog }),
          node: house.walletNode,
          clock: house.clock,
          ...LANE,
          settings: {
            ...LANE,
            scanIntervalMs: 1,
            failures: { failureFeeAtoken: FAILURE_FEE, maxCount: 0, windowMs: 60_000 },
          },
        },
      );
    });
  }

  /** One round of each wallet. */
  async round(signal: AbortSignal): Promise<PromiseSettledResult<boolean>[]> {
    return Promise.allSettled(this.#lanes.map((lane) => lane.runRound(signal)));
  }
}

/** See the head of the file. */
export class HouseOfWallets {
  readonly clock = { ms: 1_000_000, nowMs: () => this.clock.ms, monotonicMs: () => this.clock.ms };
  readonly walletNode;
  readonly #rpc: JsonRpcClient;
  #workers: WorkerProcess[] = [];
  #sweeper: Sweeper | undefined;
  #keeper: PolicyKeeper | undefined;
  /** Codes of faults that rounds ended with, and how often. */
  readonly faults = new Map<string, number>();

  /** Rounds that ended with one, of whatever code. */
  get faultCount(): number {
    return [...this.faults.values()].reduce((sum, count) => sum + count, 0);
  }

  private constructor(
    readonly desk: Desk,
    private readonly keys: DepositKeys,
  ) {
    this.#rpc = createPatientClient(desk.chain.url);
    this.walletNode = createPatientNode(this.#rpc, {
      chainId: FAKE_CHAIN_ID,
      genesisHash: desk.chain.genesisHash,
    });
  }

  static async open(): Promise<HouseOfWallets> {
    const desk = await Desk.open();
    const { chain } = desk;
    chain.token = TOKEN_CONTRACT;
    const tokens = [{ contractAddress: TOKEN_CONTRACT, symbol: PLAIN, decimals: 18 }];
    desk.tokens = tokens;
    mkdirSync(join(desk.home, "config"), { recursive: true });
    writeFileSync(join(desk.home, "config", "tokens.json"), JSON.stringify(tokens));
    const others = WALLETS.slice(1);
    for (const [index, wallet] of others.entries()) {
      desk.writeKeystore(`wallets/other-${index}.json`, wallet);
    }
    const mint = { from: undefined, to: STRANGER, units: 10n ** 6n * TOKEN };
    chain.mine([
      chain.tokenPayment(STRANGER, mint),
      ...others.map((to) => chain.payment(STRANGER, to, FUNDS)),
      ...WALLETS.map((to) => chain.tokenPayment(STRANGER, { from: STRANGER, to, units: FUNDS })),
    ]);
    await desk.restart();
    const words = Mnemonic.fromPhrase(`${"test ".repeat(11)}junk`).phrase;
    const house = new HouseOfWallets(desk, present(await readDepositSeed(words), "the seed"));
    chain.mine();
    chain.mine();
    await desk.watch();
    await house.setPolicy({}, undefined);
    await house.startAgain();
    return house;
  }

  /** Every process of the home ends and begins anew. */
  async startAgain(): Promise<void> {
    this.#keeper = await PolicyKeeper.open({
      database: this.desk.workerDatabase,
      home: this.desk.home,
      clock: this.clock,
      log: silentLog,
    });
    this.#workers = [0, 1].map(() => new WorkerProcess(this, this.desk.workerDatabase));
    this.#sweeper = undefined;
  }

  /** What may be paid from now on. */
  async setPolicy(rules: Partial<AssetRules>, treasury: TreasuryRules | undefined): Promise<void> {
    const [first] = PERMISSIVE_POLICY.assets.values();
    const assets = new Map([["*", { ...present(first, "rules"), ...rules }]]);
    const policy = { ...PERMISSIVE_POLICY, assets, treasury };
    this.desk.files.policy = hashPolicy(policy);
    writeFileSync(this.#policyFile, policyFileText(policy), { mode: 0o600 });
    await this.#keeper?.current();
  }

  get #policyFile(): string {
    return join(this.desk.home, "config", "policy.json");
  }

  /** As the worker and the treasury read it. */
  get policy(): PolicyKeeper {
    return present(this.#keeper, "a policy");
  }

  /** Rounds of one worker, or of both at once; a killed one begins anew. @param killedAfter calls */
  async workers(how: "one" | "both" | { readonly killedAfter: number }): Promise<void> {
    const { workerDatabase, signal } = this.desk;
    const meant =
      typeof how === "object"
        ? [new WorkerProcess(this, dying(workerDatabase, how.killedAfter))]
        : this.#workers.slice(0, how === "both" ? 2 : 1);
    const outcomes = await Promise.all(meant.map(async (each) => each.round(signal)));
    for (const outcome of outcomes.flat()) this.#note(outcome);
    this.clock.ms += 2_000;
  }

  /** A round of the treasury. */
  async treasury(killedAfter?: number): Promise<void> {
    const { desk } = this;
    await desk.database.query(`UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`);
    this.#sweeper ??= this.#makeSweeper(desk.workerDatabase);
    const sweeper =
      killedAfter === undefined
        ? this.#sweeper
        : this.#makeSweeper(dying(desk.workerDatabase, killedAfter));
    const [outcome] = await Promise.allSettled([sweeper.round(desk.signal)]);
    this.#note(outcome);
  }

  /** What waits for another try is tried now. */
  async hurry(): Promise<void> {
    await this.desk.database.query(
      `UPDATE withdrawal SET next_try_at = now() WHERE status = 'accepted'`,
    );
  }

  #note(outcome: PromiseSettledResult<unknown> | undefined): void {
    if (outcome?.status !== "rejected") return;
    const { reason } = outcome;
    if (reason instanceof Killed) return;
    const code: unknown = Reflect.get(Object(reason), "code");
    if (typeof code !== "string" || !TOLERATED.has(code)) throw reason;
    this.faults.set(code, (this.faults.get(code) ?? 0) + 1);
  }

  #makeSweeper(database: SqlDatabase): Sweeper {
    const { desk, keys } = this;
    const readSwitch = () => readKillSwitch(desk.workerDatabase);
    const limits = { gasPriceCapAtoken: LANE.gas.priceCapAtoken, gasLimitMax: LANE.gas.limitMax };
    const signer = new SweepSigner(keys, derivation, {
      chainId: FAKE_CHAIN_ID,
      limits,
      readPolicy: () => desk.files.policy,
      readKillSwitch: () => desk.files.killSwitch,
      wallets: () => WALLETS,
      contractOf: (asset) => (asset === PLAIN ? TOKEN_CONTRACT : undefined),
    });
    return new Sweeper({
      database,
      rpc: this.#rpc,
      evm: createEvmClient(this.#rpc),
      node: this.walletNode,
      signer,
      wallets: () => WALLETS,
      policy: this.policy,
      killSwitch: { read: readSwitch },
      chainId: FAKE_CHAIN_ID,
      settings: {
        sweepsAtOnce: 10,
        rebroadcastIntervalMs: 1_000,
        repriceAfterMs: 3_600_000,
        receiptPatienceMs: 3_000,
        gas: {
          marginPercent: 20,
          limitMax: 1_000_000n,
          priceFloorAtoken: 1n,
          priceCapAtoken: 10n ** 9n,
        },
      },
      clock: this.clock,
      log: silentLog,
    });
  }

  async close(): Promise<void> {
    this.#rpc.close();
    await this.desk.close();
  }
}

/** What a round may end with while others work, blocks are lost, or a process dies. */
const TOLERATED = new Set(["LEASE_LOST", "NODE_BEHIND", "RECOVERY", "POLICY_UNREADABLE"]);

/** A destination that nobody else uses. */
export function payee(number: number): Address {
  return parseAddress(testAddress(0xd0_0000 + number));
}
