/**
 * Validators without servers, in this process: real stores, pool, execution, log and signer in a
 * folder each; what they say to each other passes through the test.
 */
import { COSMOS_RULES } from "./cosmos-rules.js";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type Address, parseAddress } from "../../../chain/address.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import { EMPTY_CODE_HASH } from "../../../chain/hex.js";
import { CommittedView } from "../../../node/blocks/committed-view.js";
import {
  type BlockApplication,
  createBlockApplication,
} from "../../../node/blocks/block-application.js";
import { Consensus } from "../../../node/consensus/consensus.js";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import type { ConsensusFailpoint } from "../../../node/consensus/height-run.js";
import { PrivateValidator } from "../../../node/consensus/signing/private-validator.js";
import type { ConsensusTimeouts } from "../../../node/consensus/machine/schedule.js";
import { EventBus } from "../../../node/view/event-bus.js";
import { createGenesisBlock } from "../../../node/blocks/genesis-block.js";
import { createLocalGenesis, type Genesis } from "../../../node/settings/genesis.js";
import { parseModuleParams } from "../../../node/settings/module-params.js";
import type { Upgrades } from "../../../node/modules/upgrade/upgrades.js";
import { largestTransaction } from "../../../node/mempool/admission/largest-transaction.js";
import { Mempool } from "../../../node/mempool/mempool.js";
import { createProposedTransactions } from "../../../node/mempool/admission/proposed-transactions.js";
import {
  InlineRecovery,
  type SenderRecovery,
} from "../../../node/mempool/recovery/sender-recovery.js";
import { TrieCache } from "../../../node/state/trie-cache.js";
import { openStores, type OpenStores } from "../../../node/store/open-store.js";
import { PoolStore } from "../../../node/store/pool-store.js";
import { createTrieReader } from "../../../node/store/tries/trie-store.js";
import { type Clock, systemClock } from "../../../runtime/process/clock.js";
import { createLogger, type Logger } from "../../../runtime/process/logger.js";

/** Short enough that lost rounds do not make tests slow. */
export const TEST_TIMEOUTS: ConsensusTimeouts = {
  proposeMs: 600,
  proposeDeltaMs: 200,
  prevoteMs: 150,
  prevoteDeltaMs: 100,
  precommitMs: 150,
  precommitDeltaMs: 100,
};

/** Long enough that no timeout moves a round, however slow the machine is: only messages do. */
export const PATIENT_TIMEOUTS: ConsensusTimeouts = {
  proposeMs: 600_000,
  proposeDeltaMs: 0,
  prevoteMs: 600_000,
  prevoteDeltaMs: 0,
  precommitMs: 600_000,
  precommitDeltaMs: 0,
};

/** Writes the key files of a validator; the seed decides the key. */
export function writeValidatorHome(home: string, seed: Uint8Array): Uint8Array {
  const { publicKey } = signingKeyOf(seed);
  fs.mkdirSync(path.join(home, "config"), { recursive: true });
  fs.mkdirSync(path.join(home, "data"), { recursive: true });
  const value = Buffer.concat([seed, publicKey]).toString("base64");
  const key = {
    address: validatorAddress(publicKey).slice(2).toUpperCase(),
    pub_key: { type: "tendermint/PubKeyEd25519", value: Buffer.from(publicKey).toString("base64") },
    priv_key: { type: "tendermint/PrivKeyEd25519", value },
  };
  fs.writeFileSync(path.join(home, "config", "priv_validator_key.json"), JSON.stringify(key));
  const state = JSON.stringify({ height: "0", round: 0, step: 0 });
  fs.writeFileSync(path.join(home, "data", "priv_validator_state.json"), state);
  return publicKey;
}

/** Seeds and genesis of some validators of equal power. */
export function validatorGenesis(
  count: number,
  options: {
    readonly faucet?: string;
    readonly blockIntervalMs?: number;
    /** Gives the validators stake and operators, with these parameters. */
    readonly params?: Readonly<Record<string, string>>;
  } = {},
): { readonly genesis: Genesis; readonly seeds: readonly Uint8Array[] } {
  const seeds = Array.from({ length: count }, (_, index) => Buffer.alloc(32, index + 1));
  const genesis = createLocalGenesis({
    network: "testnet",
    faucet: parseAddress(options.faucet ?? `0x${"aa".repeat(20)}`),
    hotWallet: parseAddress(`0x${"ab".repeat(20)}`),
    genesisTimeMs: 1_750_000_000_000,
    blockIntervalMs: options.blockIntervalMs ?? 100,
    validators: seeds.map((seed, index) => {
      const { publicKey } = signingKeyOf(seed);
      const text = Buffer.from(publicKey).toString("base64");
      const validator = { address: validatorAddress(publicKey), publicKey: text, power: 10 };
      if (options.params === undefined) return validator;
      return { ...validator, operator: operatorAt(index), moniker: `node${index}` };
    }),
    ...(options.params === undefined ? {} : { modules: parseModuleParams(options.params) }),
  });
  return { genesis, seeds };
}

/** Operator of a validator with stake: an account whose key nobody has. */
export function operatorAt(index: number): Address {
  return parseAddress(`0x${(0xb0000 + index).toString(16).padStart(40, "0")}`);
}

/** What may be set of a node. */
export interface ValidatorNodeOptions {
  readonly genesis: Genesis;
  /** Undefined makes a node that only follows. */
  readonly seed: Uint8Array | undefined;
  readonly home?: string;
  readonly failpoint?: (name: ConsensusFailpoint) => void;
  readonly timeouts?: ConsensusTimeouts;
  readonly doubleSignCheckBlocks?: number;
  /** Recovers what a proposal brings and the pool does not know. */
  readonly recovery?: SenderRecovery;
  /** Upgrades that its program can make; absent: those of the release. */
  readonly upgrades?: Upgrades;
  /** Looks at, or slows, what consensus asks of the application. */
  readonly watch?: (application: BlockApplication) => BlockApplication;
  readonly clock?: Clock;
  /** Where it logs to; absent: nowhere. */
  readonly log?: Logger;
}

/** One node; `stop` and `open` with the same home is a restart. */
export class ValidatorNode {
  private readonly controller = new AbortController();
  private running: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly home: string,
    readonly stores: OpenStores,
    readonly view: CommittedView,
    readonly pool: Mempool,
    readonly bus: EventBus,
    readonly consensus: Consensus,
    readonly signer: PrivateValidator | undefined,
    /** Why consensus halted. */
    readonly halts: readonly string[],
  ) {}

  static async open(options: ValidatorNodeOptions): Promise<ValidatorNode> {
    const { genesis, seed } = options;
    const home = options.home ?? fs.mkdtempSync(path.join(os.tmpdir(), "causeway-validator-"));
    const keyFile = path.join(home, "config", "priv_validator_key.json");
    if (seed !== undefined && !fs.existsSync(keyFile)) writeValidatorHome(home, seed);
    const folder = path.join(home, "data", "chain");
    fs.mkdirSync(folder, { recursive: true });
    const stores = await openStores({
      folder,
      genesisBlock: createGenesisBlock(genesis),
      cosmosChainId: genesis.cosmosChainId,
      archive: false,
    });
    const log = options.log ?? createLogger({ component: "test", level: logLevel() });
    const bus = new EventBus((error) => {
      throw error;
    });
    const view = new CommittedView(stores, stores.head);
    const tries = new TrieCache(createTrieReader(stores.database), { maxSizeBytes: 2 ** 24 });
    const poolStore = new PoolStore(stores.database, (hash) => view.locate(hash) !== undefined);
    const pool = await openPool(genesis, stores, { view, poolStore, bus });
    const application = createBlockApplication({
      ...stores,
      view,
      tries,
      pool,
      poolStore,
      bus,
      proposed: createProposedTransactions({
        chainId: genesis.evmChainId,
        cosmosChainId: genesis.cosmosChainId,
        params: genesis.params,
        pool,
        recovery: options.recovery ?? new InlineRecovery(),
      }),
      log,
      executor: {
        chainId: genesis.evmChainId,
        params: genesis.params,
        state: {
          account: (address) => stores.state.account(address),
          storage: (address, slot) => stores.state.storage(address, slot),
          code: (codeHash) => stores.state.code(codeHash),
        },
        tries,
        blockHash: (height) => stores.blocks.hashOf(height),
        monotonicMs: () => performance.now(),
        ...(options.upgrades === undefined ? {} : { upgrades: options.upgrades }),
      },
    });
    const stateFile = path.join(home, "data", "priv_validator_state.json");
    const chainId = genesis.cosmosChainId;
    const signer =
      seed === undefined ? undefined : await PrivateValidator.open({ keyFile, stateFile, chainId });
    const halts: string[] = [];
    const consensus = await Consensus.open({
      home,
      genesis,
      database: stores.database,
      blocks: stores.blocks,
      application: options.watch?.(application) ?? application,
      headHeight: () => view.head().height,
      signer,
      timeouts: options.timeouts ?? TEST_TIMEOUTS,
      doubleSignCheckBlocks: options.doubleSignCheckBlocks ?? 0,
      clock: options.clock ?? systemClock,
      log,
      onHalt: (reason) => halts.push(reason),
      ...(options.failpoint === undefined ? {} : { failpoint: options.failpoint }),
    });
    return new ValidatorNode(home, stores, view, pool, bus, consensus, signer, halts);
  }

  get height(): number {
    return this.view.head().height;
  }

  /** Starts consensus; what it says goes to `broadcast`. */
  start(broadcast: (message: ConsensusMessage) => void): void {
    this.running = this.consensus.start({ broadcast }, this.controller.signal);
    this.running.catch(() => undefined);
  }

  /** Leaves it to `work` when consensus runs, until `stop`. */
  run(work: (signal: AbortSignal) => Promise<void>): void {
    this.running = work(this.controller.signal);
    this.running.catch(() => undefined);
  }

  /** Resolves when consensus has ended by itself or by `stop`; rejects with its fault. */
  ended(): Promise<unknown> {
    return this.running;
  }

  /** Stops consensus and closes the stores; deletes the folder unless `keep` is asked. */
  async stop(options: { readonly keep?: boolean } = {}): Promise<void> {
    this.controller.abort();
    await this.running.catch(() => undefined);
    await this.pool.close();
    await this.stores.state.close();
    await this.stores.database.close();
    if (options.keep !== true) fs.rmSync(this.home, { recursive: true, force: true });
  }
}

/** `CAUSEWAY_TEST_LOG=debug` shows what the nodes do. */
function logLevel(): "debug" | "silent" {
  return process.env["CAUSEWAY_TEST_LOG"] === "debug" ? "debug" : "silent";
}

function openPool(
  genesis: Genesis,
  stores: OpenStores,
  parts: {
    readonly view: CommittedView;
    readonly poolStore: PoolStore;
    readonly bus: EventBus;
  },
): Promise<Mempool> {
  const account = (address: Address) => stores.state.account(address);
  return Mempool.open({
    state: {
      nonce: (address) => account(address)?.nonce ?? 0n,
      balanceAtoken: (address) => account(address)?.balanceAtoken ?? 0n,
      lockedAtoken: () => 0n,
      hasCode: (address) => (account(address)?.codeHash ?? EMPTY_CODE_HASH) !== EMPTY_CODE_HASH,
    },
    journal: parts.poolStore,
    bus: parts.bus,
    clock: systemClock,
    rules: {
      chainId: genesis.evmChainId,
      ...COSMOS_RULES,
      minGasPriceAtoken: 1n,
      ...largestTransaction(genesis),
    },
    locate: (hash) => parts.view.locate(hash),
    oldestHeight: () => 1,
    haltReason: () => undefined,
    onJournalFault(error) {
      throw error;
    },
  });
}
