/** A token bench with a lane of the hot wallet and the treasury over it, blocks mined by the test. */
import { Mnemonic } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { type DepositKeys, readDepositSeed } from "../../../chain/derivation/deposit-keys.js";
import type { Hex } from "../../../chain/hex.js";
import { type LedgerDatabase, openLedger } from "../../../ledger/database.js";
import {
  type KillSwitchState,
  SWITCH_UNTOUCHED,
} from "../../../ledger/kill-switch/kill-switch-level.js";
import {
  hashPolicy,
  PERMISSIVE_POLICY,
  type TreasuryAsset,
  type TreasuryRules,
} from "../../../ledger/policy/policy.js";
import { listSweeps, type Sweep } from "../../../ledger/treasury/sweeps.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { Lane } from "../../../withdrawal-worker/lane/lane.js";
import { createLaneGuard } from "../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../withdrawal-worker/lane/lane-ledger.js";
import type { WalletNode } from "../../../withdrawal-worker/lane/wallet-node.js";
import type { Sweeper } from "../../../withdrawal-worker/treasury/sweeper.js";
import { type SweepRules, SweepSigner } from "../../../withdrawal-worker/treasury/sweep-signer.js";
import type { Signer } from "../../../withdrawal-worker/signers/signer-port.js";
import type {
  TreasuryContext,
  TreasurySettings,
} from "../../../withdrawal-worker/treasury/treasury-context.js";
import { laneRules, type RuleFiles } from "../../helpers/keys/signing.js";
import { roleUrl, silentLog } from "../../helpers/services/ledger.js";
import { derivation } from "../../helpers/services/watcher.js";
import { TokenBench, TOKENS } from "../tokens/token-bench.js";
import { House, WALLET, WALLET_KEY } from "../../helpers/exchange/house.js";
import { holdKeys, SweeperOfHeldKeys } from "../../helpers/exchange/held-keys.js";
import { createPatientNode } from "../../helpers/exchange/patient-node.js";

/** Cold storage of the tests' policy. */
export const COLD = parseAddress(`0x${"c0".repeat(20)}`);

/** Price that the bench's node suggests. */
export const PRICE = 25_000_000n;

const { signal } = new AbortController();

const LIMITS = { gasPriceCapAtoken: 1_000_000_000n, gasLimitMax: 1_000_000n };

/** Rules of an asset of the treasury; nothing is too small. */
export const ANY_SWEEP: TreasuryAsset = {
  sweepMinimumUnits: 1n,
  sweepFeeMaxAtoken: 10n ** 15n,
  coldAddress: undefined,
  band: undefined,
};

const contractOf = (asset: string) =>
  TOKENS.find(({ symbol }) => symbol === asset)?.contractAddress;

function textOf(facts: object): string {
  return JSON.stringify(facts, (_key, value: unknown) =>
    typeof value === "bigint" ? value.toString() : value,
  );
}

/** Everything; `close` ends it. */
export class TreasuryBench {
  /** Deadlines are the database's time; waits are the test's. */
  readonly clock = { ms: 0, nowMs: () => Date.now(), monotonicMs: () => this.clock.ms };
  killSwitch: KillSwitchState = SWITCH_UNTOUCHED;
  /** Whose keystores the home holds. */
  wallets: readonly Address[] = [WALLET];
  /** Of them those whose keys no worker holds. */
  keyless: readonly Address[] = [];
  readonly files: RuleFiles;
  readonly settings: TreasurySettings = {
    sweepsAtOnce: 100,
    rebroadcastIntervalMs: 1_000,
    repriceAfterMs: 3_600_000,
    receiptPatienceMs: 3_000,
    gas: {
      marginPercent: 20,
      limitMax: LIMITS.gasLimitMax,
      priceFloorAtoken: 1n,
      priceCapAtoken: LIMITS.gasPriceCapAtoken,
    },
  };
  readonly lane: Lane;
  /** The hot wallet's. */
  readonly laneSigner: Signer;
  readonly node: WalletNode;
  #sent: Hex[] = [];

  private constructor(
    readonly bench: TokenBench,
    readonly house: House,
    /** In the role of the worker. */
    readonly worker: LedgerDatabase,
    readonly keys: DepositKeys,
  ) {
    this.files = { policy: this.policyOf({}), killSwitch: SWITCH_UNTOUCHED };
    const genesisHash = bench.chain.chain.view.genesis().block.hash;
    const node = createPatientNode(bench.rpc, { chainId: 6940n, genesisHash });
    this.node = {
      ...node,
      send: (raws, options) => {
        this.#sent.push(...raws);
        return node.send(raws, options);
      },
    };
    const rules = laneRules({
      privateKey: WALLET_KEY,
      chainId: 6940n,
      limits: LIMITS,
      sql: worker,
      files: this.files,
      contractOf,
      depositAddressAt: (index) => derivation.addressAt(index),
    });
    this.laneSigner = rules.signer;
    this.lane = new Lane(
      {
        ...house.context(),
        ...rules,
        ledger: createLaneLedger(worker),
        guard: createLaneGuard({ database: worker, wallet: WALLET, log: silentLog }),
        node: this.node,
      },
      "worker",
    );
  }

  /** With contracts deployed, nothing in the hot wallet. */
  static async open(): Promise<TreasuryBench> {
    const bench = await TokenBench.open();
    const house = await House.open();
    await bench.watch();
    await bench.deploy();
    const genesisHash = bench.chain.chain.view.genesis().block.hash;
    const worker = await openLedger({
      url: roleUrl(bench.ledger.ownerUrl, "worker"),
      log: silentLog,
      signal,
      identity: { chainId: 6940n, genesisHash },
    });
    const words = Mnemonic.fromPhrase(`${"test ".repeat(11)}junk`).phrase;
    const keys = await readDepositSeed(words);
    if (keys === undefined) throw new Error("the seed cannot be read");
    return new TreasuryBench(bench, house, worker, keys);
  }

  /** The chain comes back without the blocks above one, and everything starts on it anew. */
  async without(height: number): Promise<TreasuryBench> {
    const bench = await this.bench.without(height);
    return new TreasuryBench(bench, this.house, this.worker, this.keys);
  }

  /** A policy with the treasury's terms. */
  policyOf(
    rules: Partial<Omit<TreasuryRules, "assets">> & { assets?: Record<string, TreasuryAsset> },
  ) {
    const assets = rules.assets ?? { TOKEN: ANY_SWEEP, PLAIN: ANY_SWEEP, MOODY: ANY_SWEEP };
    return hashPolicy({
      ...PERMISSIVE_POLICY,
      treasury: { topUpMaxAtoken: 10n ** 15n, ...rules, assets: new Map(Object.entries(assets)) },
    });
  }

  /** A treasury, over a database that a test may let die. */
  sweeper(over: Partial<TreasuryContext> = {}): Sweeper {
    const signer = this.signer();
    const parts = {
      database: this.worker,
      rpc: this.bench.rpc,
      evm: createEvmClient(this.bench.rpc),
      node: this.node,
      signer,
      wallets: () => this.wallets,
      policy: { current: async () => this.files.policy },
      killSwitch: { read: async () => this.killSwitch },
      chainId: 6940n,
      settings: this.settings,
      clock: this.clock,
      log: silentLog,
      ...over,
    };
    return new SweeperOfHeldKeys(parts, () => this.holdKeys());
  }

  /** What workers say of the keys that they have. */
  async holdKeys(): Promise<void> {
    const held = this.wallets.filter((each) => !this.keyless.includes(each));
    await holdKeys(this.bench.ledger.owner, held);
  }

  /** @param over rules of a home that differs */
  signer(over: Partial<SweepRules> = {}): SweepSigner {
    return new SweepSigner(this.keys, derivation, {
      chainId: 6940n,
      limits: LIMITS,
      readPolicy: () => this.files.policy,
      readKillSwitch: () => this.killSwitch,
      wallets: () => this.wallets,
      contractOf,
      ...over,
    });
  }

  /** Mines what was sent since the last block, and waits until the watcher has booked it. */
  async mine(): Promise<void> {
    const raws = [...new Set(this.#sent)];
    this.#sent = [];
    await this.bench.mine([], raws);
    await this.bench.caughtUp();
  }

  /** Rounds of treasury and lane, each with a block of what they sent; books are even after each. */
  async rounds(count: number, sweeper = this.sweeper()): Promise<void> {
    for (let round = 0; round < count; round++) {
      await this.step(sweeper);
      await this.assertEven();
    }
  }

  /** Rounds until no coins are left on addresses. @throws with what sweeps and payments wait for */
  async untilEmpty(addresses: readonly Address[]): Promise<void> {
    const areEmpty = async () => {
      const units = await Promise.all(addresses.map((address) => this.units(address)));
      return units.every((each) => each === 0n);
    };
    for (let round = 0; round < 20; round++) {
      if (await areEmpty()) return;
      await this.rounds(1);
    }
    const payments = await this.bench.ledger.owner.query(
      `SELECT to_jsonb(w) AS payment, to_jsonb(s) AS slot FROM withdrawal w
       LEFT JOIN nonce_slot s ON s.withdrawal_id = w.id`,
    );
    throw new Error(textOf({ sweeps: await this.sweeps(), payments }));
  }

  /** One round of both, and a block. */
  async step(sweeper: Sweeper): Promise<void> {
    this.house.clock.ms += 3_000;
    this.clock.ms += 3_000;
    await this.bench.ledger.owner.query(
      `UPDATE withdrawal SET next_try_at = now() WHERE status = 'accepted'`,
    );
    await sweeper.round(signal);
    await this.lane.runRound(signal);
    await this.mine();
  }

  /** Books against chain, at tolerance 0. */
  async assertEven(): Promise<void> {
    const report = await this.bench.reconcile();
    if (report.clean && report.halted === undefined) return;
    throw new Error(textOf(report));
  }

  sweeps(): Promise<Sweep[]> {
    return listSweeps(this.worker, { afterId: 0, limit: 1_000 });
  }

  /** Coins, or units of a token, after the head. */
  async units(address: Address, asset = "TOKEN"): Promise<bigint> {
    const token = contractOf(asset);
    if (token === undefined) return this.bench.node.getBalance(address, "latest", { signal });
    const at = this.bench.chain.chain.view.head().height;
    const [units] = await this.bench.node.tokenBalances([{ token, account: address, at }], {
      signal,
    });
    return units ?? 0n;
  }

  /** Transactions that an address sent. */
  nonce(address: Address): Promise<bigint> {
    return this.bench.node.getTransactionCount(address, "latest", { signal });
  }

  async close(): Promise<void> {
    await this.worker.close();
    await this.house.close();
    await this.bench.close();
  }
}

/** Thrown instead of everything that a killed process would have done. */
export class Killed extends Error {}

/** A database whose process dies behind its `steps`-th call: that one is committed. */
export function dyingDatabase(
  database: SqlDatabase,
  steps: number,
): { readonly database: SqlDatabase; readonly isDead: () => boolean } {
  let left = steps;
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    if (left <= 0) throw new Killed("the process is gone");
    const result = await work();
    left -= 1;
    if (left <= 0) throw new Killed("killed behind a commit");
    return result;
  };
  return {
    database: {
      ...database,
      query: (text, values) => counted(() => database.query(text, values)),
      transaction: (work) => counted(() => database.transaction(work)),
      close: () => Promise.resolve(),
    },
    isDead: () => left <= 0,
  };
}
