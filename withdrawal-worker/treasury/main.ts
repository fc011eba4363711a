/**
 * Entry of the treasury: the one process that reads `config/deposit.seed`. It serves no API and
 * listens on nothing; what it did and does stands in the ledger, and the withdrawal API shows it.
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "../../chain/address.js";
import {
  type AddressDerivation,
  createAddressDerivation,
} from "../../chain/derivation/address-derivation.js";
import { type DepositKeys, readDepositSeed } from "../../chain/derivation/deposit-keys.js";
import { NETWORKS } from "../../chain/networks.js";
import type { TokenEntry } from "../../chain/token-list.js";
import { loadExchangeTokens } from "../../ledger/assets/asset-registry.js";
import { type ChainIdentity, type LedgerDatabase, openLedger } from "../../ledger/database.js";
import { findIdentity } from "../../ledger/find-identity.js";
import { runLeased } from "../../ledger/leased-loop.js";
import { readKillSwitchFile } from "../../ledger/kill-switch/kill-switch-file.js";
import { loadPolicyFile, PolicyFile } from "../../ledger/policy/policy-file.js";
import { killSwitchPath, policyPath } from "../../ledger/policy/policy-paths.js";
import { LedgerGuard } from "../../ledger/guard/ledger-guard.js";
import { readHomeWallets } from "../../ledger/wallets/home-wallets.js";
import { createEvmClient, type EvmClient } from "../../rpc-client/evm-client.js";
import { createJsonRpcClient, type JsonRpcClient } from "../../rpc-client/json-rpc.js";
import { ConfigError, type ConfigSources, loadConfig } from "../../runtime/config/config.js";
import { readTogether } from "../../runtime/config/read-together.js";
import { readSecretFile } from "../../runtime/config/secret-file.js";
import { assertServiceUrls, databaseUrl } from "../../runtime/config/service-urls.js";
import { systemClock } from "../../runtime/process/clock.js";
import { type ProcessContext, runProcess, type Service } from "../../runtime/process/lifecycle.js";
import { TaskGroup } from "../../runtime/process/task.js";
import { openPatiently } from "../../runtime/sql/opening.js";
import {
  TREASURY_ROUND_FILE,
  treasuryRoundHoldsMs,
  type WorkerConfig,
  workerConfigFile,
} from "../config.js";
import { WorkerError } from "../errors.js";
import { createKillSwitch, HomeSwitch } from "../kill-switch.js";
import { createWalletNode } from "../lane/wallet-node.js";
import { PolicyReader } from "../policy-keeper.js";
import { NowhereToSweep } from "./nowhere-to-sweep.js";
import { Sweeper } from "./sweeper.js";
import { SweepSigner } from "./sweep-signer.js";
import type { TreasurySettings } from "./treasury-context.js";
import { WatchedRounds } from "./watched-rounds.js";

/** Time that a round may take before another process may begin one. */
const LEASE_MS = 60_000;

runProcess({ name: "treasury", settings: readSettings, start });

function readSettings(sources: ConfigSources) {
  return readTogether({
    config: () => loadConfig(sources, workerConfigFile),
    entries: () => loadExchangeTokens(sources.home),
    urls: () => assertServiceUrls(sources.env, ["DATABASE_URL"]),
  });
}

async function start(context: ProcessContext): Promise<readonly Service[]> {
  const { home, env, portOffset } = context;
  const { config, entries } = readSettings({ home, env, portOffset });
  const depositKeys = await openDepositKeys(home);
  const rpc = createJsonRpcClient({
    url: config.node["json-rpc-url"],
    timeoutMs: config.node["request-timeout-ms"],
  });
  const url = databaseUrl({ home, env, portOffset });
  const evm = createEvmClient(rpc);
  const identity = await learnIdentity(context, { config, evm, url });
  // One that is not there yet is the worker's to write: rounds wait for it.
  if (existsSync(policyPath(home))) loadPolicyFile(policyPath(home));
  const books = await openPatiently(() => openBooks(context, url, identity), context);
  const { database } = books;
  try {
    const rounds = createRounds(context, {
      config,
      entries,
      depositKeys,
      rpc,
      evm,
      identity,
      books,
    });
    // What a killed process left says nothing of this one.
    await rounds.forget();
    const tasks = startRounds(context, { config, database, rounds });
    return [
      { name: "ledger", stop: () => database.close() },
      { name: "node client", stop: async () => rpc.close() },
      { name: "round file", stop: () => rounds.forget() },
      { name: "sweeps", stop: () => tasks.stop() },
    ];
  } catch (error) {
    rpc.close();
    await database.close();
    throw error;
  }
}

/** Which chain the ledger is about, as the node says it. */
function learnIdentity(
  { signal, log }: ProcessContext,
  parts: { readonly config: WorkerConfig; readonly evm: EvmClient; readonly url: string },
): Promise<ChainIdentity> {
  const { config, evm, url } = parts;
  const chainId = chainIdOf(config);
  return findIdentity({
    ask: async (): Promise<ChainIdentity> => {
      const found = await evm.chainId({ signal });
      const genesisHash = await evm.genesisHash({ signal });
      if (found === chainId) return { chainId, genesisHash };
      throw new WorkerError("WRONG_NODE", `the node serves chain ${found}, and not ${chainId}`);
    },
    isFinal: (error) => error instanceof WorkerError,
    url,
    log,
    signal,
  });
}

/** The chain that the settings name: what is signed is for no other one. */
function chainIdOf(config: WorkerConfig): bigint {
  return NETWORKS[config.chain.network].evmChainId;
}

/** What rounds are made from. */
interface RoundParts {
  readonly config: WorkerConfig;
  readonly entries: readonly TokenEntry[];
  readonly depositKeys: DepositKeyPair;
  readonly rpc: JsonRpcClient;
  readonly evm: EvmClient;
  readonly identity: ChainIdentity;
  readonly books: Books;
}

/** A round signs, sends and books what is due. */
function createRounds({ home, log }: ProcessContext, parts: RoundParts): WatchedRounds {
  const { config, rpc, evm, identity, books } = parts;
  const { database, guard } = books;
  const settings = settingsOf(config);
  const switchFile = killSwitchPath(home);
  const policy = new PolicyReader({ file: policyPath(home), log });
  const wallets = () => readHomeWallets(home).map(({ address }) => address);
  const sweeper = new Sweeper({
    database,
    rpc,
    evm,
    node: createWalletNode(rpc, identity),
    signer: createSigner(home, parts, { settings, wallets }),
    wallets,
    policy,
    killSwitch: createKillSwitch({ sql: database, file: switchFile }),
    chainId: chainIdOf(config),
    settings,
    clock: systemClock,
    log,
  });
  return new WatchedRounds({
    guard,
    sweeper,
    nowhere: new NowhereToSweep({ database, wallets, policy, clock: systemClock, log }),
    homeSwitch: new HomeSwitch({ sql: database, file: switchFile, log }),
    policy,
    file: join(home, TREASURY_ROUND_FILE),
    holdsMs: treasuryRoundHoldsMs(config.treasury["scan-interval-ms"]),
    log,
  });
}

/** The signer has rules of its own, read from the home alone. */
function createSigner(
  home: string,
  { config, entries, depositKeys }: RoundParts,
  options: { readonly settings: TreasurySettings; readonly wallets: () => readonly Address[] },
): SweepSigner {
  const { settings, wallets } = options;
  const policyFile = new PolicyFile(policyPath(home));
  const contracts = new Map(
    entries.map(({ symbol, contractAddress }): [string, Address] => [symbol, contractAddress]),
  );
  return new SweepSigner(depositKeys.keys, depositKeys.derivation, {
    chainId: chainIdOf(config),
    limits: {
      gasPriceCapAtoken: settings.gas.priceCapAtoken,
      gasLimitMax: settings.gas.limitMax,
    },
    readPolicy: () => policyFile.read(),
    readKillSwitch: () => readKillSwitchFile(killSwitchPath(home)),
    wallets,
    contractOf: (asset) => contracts.get(asset),
  });
}

function startRounds(
  context: ProcessContext,
  parts: {
    readonly config: WorkerConfig;
    readonly database: LedgerDatabase;
    readonly rounds: WatchedRounds;
  },
): TaskGroup {
  const { signal, log } = context;
  const { config, database, rounds } = parts;
  const tasks = new TaskGroup({ signal, onFault: (_name, error) => context.fatal(error) });
  const loop = {
    task: "treasury" as const,
    owner: randomUUID(),
    database,
    log,
    pauseMs: config.treasury["scan-interval-ms"],
    leaseMs: LEASE_MS,
  };
  tasks.run("sweeps", (inner) => runLeased(loop, (each) => rounds.round(each), inner));
  return tasks;
}

/** The ledger as this process works with it. */
interface Books {
  readonly database: LedgerDatabase;
  readonly guard: LedgerGuard;
}

/** Opens ledger and guard; a fault leaves nothing open. */
async function openBooks(
  { home, log, signal, busy }: ProcessContext,
  url: string,
  identity: ChainIdentity,
): Promise<Books> {
  const applicationName = "causeway-treasury";
  const database = await openLedger({ url, log, signal, identity, applicationName, busy });
  try {
    const guard = await LedgerGuard.open({ database, home, reporter: "treasury" });
    const reason = await guard.check();
    if (reason !== undefined) log.error({ reason }, "the ledger is in recovery");
    return { database, guard };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** The seed, and the public key that addresses were given out by. */
interface DepositKeyPair {
  readonly keys: DepositKeys;
  readonly derivation: AddressDerivation;
}

/**
 * Reads both: they have to be of each other.
 * @throws ConfigError
 */
async function openDepositKeys(home: string): Promise<DepositKeyPair> {
  const file = join(home, "config", "deposit.seed");
  const fault = (value: string, allowed: string) =>
    new ConfigError([{ file, key: "(whole file)", value, allowed }]);
  if (!existsSync(file)) throw fault("nothing", "the seed of the deposit addresses");
  const keys = await readDepositSeed(readSecretFile(file));
  if (keys === undefined) throw fault("***", "BIP-39 words, or a seed as hex");
  const xpub = readSecretFile(join(home, "config", "deposit.xpub"));
  if (keys.xpub !== xpub) throw fault("***", "the seed that config/deposit.xpub was made of");
  return { keys, derivation: createAddressDerivation(xpub) };
}

function settingsOf(config: WorkerConfig): TreasurySettings {
  return {
    sweepsAtOnce: config.treasury["sweeps-at-once"],
    rebroadcastIntervalMs: config.worker["rebroadcast-interval-ms"],
    repriceAfterMs: config.worker["reprice-after-ms"],
    receiptPatienceMs: config.worker["receipt-patience-ms"],
    gas: {
      marginPercent: config.gas["margin-percent"],
      limitMax: config.gas["limit-max"],
      priceFloorAtoken: config.gas["price-floor-atoken"],
      priceCapAtoken: config.gas["price-cap-atoken"],
    },
  };
}
