/**
 * The first start of a home: keys, genesis, settings. Every file appears whole or not at all and
 * an existing one is never overwritten, so that an init that was cut off is completed by the next, and
 * the first of them says what the chain is made of.
 * The genesis file is written last of what money hangs on, and no node starts before: where it or a
 * node's store exists, the keys were complete, and one that is missing was lost, which no start may
 * hide by making a new one.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Address } from "../../chain/address.js";
import { stalledAfterMs } from "../../chain/consensus/block-age.js";
import { privateKeyToAddress } from "../../chain/signing/account-key.js";
import type { Hash32 } from "../../chain/hex.js";
import type { NetworkName } from "../../chain/networks.js";
import { consoleConfig } from "../../console/config.js";
import { explorerConfig } from "../../explorer/config.js";
import { watcherConfigFile } from "../../deposit-watcher/config.js";
import { encodeKillSwitch } from "../../ledger/kill-switch/kill-switch-file.js";
import { SWITCH_UNTOUCHED } from "../../ledger/kill-switch/kill-switch-level.js";
import { PERMISSIVE_POLICY, policyFileText } from "../../ledger/policy/policy.js";
import { parseValidatorIdentity } from "../../node/consensus/signing/validator-key.js";
import {
  createLocalGenesis,
  encodeGenesis,
  GenesisError,
  type GenesisValidator,
  loadGenesis,
} from "../../node/settings/genesis.js";
import type { ModuleParams } from "../../node/settings/module-params.js";
import type { Clock } from "../../runtime/process/clock.js";
import { type ConfigFile, renderToml } from "../../runtime/config/config.js";
import { passphraseOf } from "../../runtime/config/secret-file.js";
import { indexerConfigFile } from "../../indexer/config.js";
import { sidecarConfig } from "../../sidecar/config.js";
import { workerConfigFile } from "../../withdrawal-worker/config.js";
import { CliError } from "../errors.js";
import type { ChainPlan } from "./network/attach.js";
import {
  type ChainOrigin,
  completeChainOrigin,
  createChainOrigin,
  readChainOrigin,
} from "./network/chain-origin.js";
import {
  createFileOnce,
  PLAIN_MODE,
  readText,
  readTextIfPresent,
  replaceFile,
  SECRET_MODE,
} from "./home-file.js";
import { createHomeFolders, homePaths, type HomePaths, inHome } from "./home.js";
import { createNetworkKeys, writeNetworkHomes } from "./network/kit-network.js";
import { type KitNode, kitNodes } from "./network/kit-nodes.js";
import { forgetNewChain, keepNewChain, type NewChain } from "./network/new-chain.js";
import {
  encryptKeystore,
  namesAddressAlone,
  type ScryptCost,
  STANDARD_SCRYPT,
} from "../../chain/signing/keystore.js";
import { NODE_CONFIG_FILES, writeNodeHome } from "./node-home.js";
import { createOperator } from "./keys/operator-key.js";
import { VALIDATOR_STAKE } from "./network/testnet.js";
import {
  createNodeKey,
  createValidatorKeyFile,
  createValidatorStateFile,
} from "./keys/validator-keys.js";
import {
  createPrivateKey,
  createSecretLine,
  createSeedLine,
  encodeKeyFile,
  parseKeyFile,
  parseKeystoreAddress,
  seedToXpub,
} from "./keys/wallet-keys.js";

/** Name of a kit's own node among its peers. */
const NODE_MONIKER = "causeway";

/** What a new home is made from. */
export interface InitOptions {
  readonly paths: HomePaths;
  readonly portOffset: number;
  readonly network: NetworkName;
  /** Time between blocks of the new chain; the network's own when absent. */
  readonly blockIntervalMs?: number;
  /** How many validators decide a new chain; 1 when absent. An existing one keeps its number. */
  readonly validators?: number;
  /** Parameters of the modules of a new chain; the first values when absent. */
  readonly modules?: ModuleParams | undefined;
  /** Schemas of the settings files to write. */
  readonly configFiles: readonly ConfigFile[];
  readonly clock: Clock;
  /** Cost of the keystore; tests make it cheap. */
  readonly scrypt?: ScryptCost;
}

/** What the first start tells the reader. */
export interface InitResult {
  /** True when this call completed the home. */
  readonly created: boolean;
  readonly faucetAddress: Address;
  readonly hotWalletAddress: Address;
}

/** Whether a home is complete: its genesis is there. */
export async function isInitialised(paths: HomePaths): Promise<boolean> {
  return (await readTextIfPresent(paths.genesis)) !== undefined;
}

/**
 * Makes the home, or completes one that was cut off; a complete one is only checked. Call it with
 * the home's lock held.
 * @throws HOME_UNUSABLE, HOME_INCOMPLETE, HOME_EXISTS for a home on a chain that exists
 */
export async function initHome(options: InitOptions): Promise<InitResult> {
  const { paths } = options;
  const origin = readChainOrigin(paths);
  if (origin !== undefined) {
    const message = `${paths.home} is a home on a chain that exists (${origin.network}): no other is made.`;
    throw new CliError("HOME_EXISTS", message);
  }
  await createHomeFolders(paths);
  const complete = await isInitialised(paths);
  const nodes = kitNodes(paths.home, options.validators);
  const isNetwork = nodes.length > 1;
  // A chain without its genesis file: what is missing beside it was lost, too, and not cut off.
  const stores = [paths, ...nodes.map(({ home }) => homePaths(home))].map(({ store }) => store);
  let chain: NewChain | undefined;
  if (complete || stores.some((store) => existsSync(store))) {
    await assertKeysPresent(paths, [paths.genesis, paths.faucetKey, ...validatorKeys(nodes)]);
  } else {
    await removeDrafts(paths.config);
    chain = await keepNewChain(paths, { ...options, validators: nodes.length });
    await createFileOnce(paths.faucetKey, encodeKeyFile(createPrivateKey()), SECRET_MODE);
    await createExchangeKeys(paths, options.scrypt);
    await createExchangeRules(paths);
  }
  await createReplaceableFiles(paths);
  for (const file of options.configFiles) {
    // The validators of a network have settings of their own, in their homes.
    if (isNetwork && NODE_CONFIG_FILES.includes(file)) continue;
    const text = renderToml(file, localSettings(file, (chain ?? options).blockIntervalMs), {
      portOffset: options.portOffset,
    });
    await createFileOnce(join(paths.config, `${file.name}.toml`), text, SECRET_MODE);
  }
  const faucetKey = parseKeyFile(await readText(paths.faucetKey), paths.faucetKey);
  const addresses = {
    faucetAddress: privateKeyToAddress(faucetKey),
    hotWalletAddress: await hotWalletAddress(paths),
  };
  if (chain !== undefined) await createGenesis(options, chain, nodes, addresses);
  await forgetNewChain(paths);
  for (const { home } of nodes) {
    await createFileOnce(homePaths(home).nodeKey, createNodeKey().text, SECRET_MODE);
  }
  return { created: !complete, ...addresses };
}

/** Time between blocks of the home's chain; undefined where there is none yet, or none that can be read. */
export function blockIntervalOf(paths: HomePaths): number | undefined {
  try {
    return loadGenesis(paths.genesis).params.blockIntervalMs;
  } catch (error) {
    if (error instanceof GenesisError) return undefined;
    throw error;
  }
}

/** Address of the home's hot wallet, read without its key. Throws HOME_INCOMPLETE. */
export async function hotWalletAddress(paths: HomePaths): Promise<Address> {
  return parseKeystoreAddress(await readText(paths.hotWallet), paths.hotWallet);
}

/** What the first start of a home on a chain that exists is made from. */
export interface AttachedInitOptions {
  readonly paths: HomePaths;
  readonly portOffset: number;
  readonly plan: Exclude<ChainPlan, { readonly kind: "local" }>;
  /** What somebody else's node said of itself; undefined where the node runs in this home. */
  readonly node: { readonly network: NetworkName; readonly genesisHash: Hash32 } | undefined;
  readonly scrypt?: ScryptCost;
}

/**
 * Makes the home of a kit on a chain that exists, or completes one that was cut off; a complete one
 * is only checked. It has no faucet, and its hot wallet is empty. Call it with the lock held.
 * @throws HOME_UNUSABLE, HOME_INCOMPLETE
 */
export async function initAttachedHome(
  options: AttachedInitOptions,
): Promise<Omit<InitResult, "faucetAddress">> {
  const { paths } = options;
  await createHomeFolders(paths);
  const known = readChainOrigin(paths);
  const origin = known ?? plannedOrigin(options);
  if (known?.isComplete === true) {
    const node = known.kind === "joined" ? [paths.genesis, paths.validatorKey] : [];
    await assertKeysPresent(paths, node);
    await createReplaceableFiles(paths);
    return { created: false, hotWalletAddress: await hotWalletAddress(paths) };
  }
  await removeDrafts(paths.config);
  await createChainOrigin(paths, origin);
  await createExchangeKeys(paths, options.scrypt);
  await createExchangeRules(paths);
  await createReplaceableFiles(paths);
  if (options.plan.kind === "joined") await createFollowingNode(options);
  for (const [name, text] of attachedSettings(options, origin.network)) {
    if (origin.kept?.includes(name) === true) continue;
    // Nobody can have edited these yet: a first start that was cut off may have had other flags.
    await replaceFile(join(paths.config, `${name}.toml`), text, SECRET_MODE);
  }
  await completeChainOrigin(paths, origin);
  return { created: true, hotWalletAddress: await hotWalletAddress(paths) };
}

function plannedOrigin(options: AttachedInitOptions): ChainOrigin {
  const { plan, node } = options;
  if (plan.kind === "joined") {
    const { network } = plan;
    return { kind: "joined", network, isComplete: false, ...placedSettings(options, network) };
  }
  assert(node !== undefined, "somebody else's node was asked before a home is made for it");
  return { kind: "remote", ...node, isComplete: false, ...placedSettings(options, node.network) };
}

/** Before the record of the chain nothing is ours: who restores a ledger says in these where it begins. */
function placedSettings(options: AttachedInitOptions, network: NetworkName) {
  const names = attachedSettings(options, network).map(([name]) => name);
  const kept = names.filter((name) => existsSync(join(options.paths.config, `${name}.toml`)));
  return kept.length === 0 ? {} : { kept };
}

/** A node without power: its keys, and the genesis that was given. */
async function createFollowingNode({ paths, plan, portOffset }: AttachedInitOptions) {
  assert(plan.kind === "joined" && plan.source !== undefined, "a new home has a genesis");
  await writeNodeHome(paths, {
    genesis: plan.source.genesis,
    nodeKey: createNodeKey().text,
    validatorKey: createValidatorKeyFile(),
    portOffset,
    moniker: NODE_MONIKER,
    p2p: { seeds: plan.source.seeds },
  });
}

/** Settings of the exchange side, as texts by the name of their file. */
function attachedSettings(
  { plan, portOffset }: AttachedInitOptions,
  network: NetworkName,
): readonly (readonly [string, string])[] {
  const node = plan.kind === "remote" ? plan.node : undefined;
  const offset = { portOffset };
  const sidecarNode = node === undefined ? {} : { url: node.url, "ws-url": node.wsUrl };
  const watcherNode =
    node === undefined ? {} : { "json-rpc-url": node.url, "web-socket-url": node.wsUrl };
  const workerNode = node === undefined ? {} : { "json-rpc-url": node.url };
  const sidecar = { "": { network }, node: sidecarNode };
  // Addresses that are given out from now on have no past: the chain's is not read.
  const watcher = { chain: { network }, node: watcherNode, watcher: { "start-height": "head" } };
  const worker = { chain: { network }, node: workerNode };
  const indexer = { chain: { network }, node: watcherNode };
  // Where somebody's consensus RPC and REST are, its owner says. Until then the JSON-RPC refuses such
  // questions: better than asking whatever node of another chain may listen on this machine.
  const explorerNode =
    node === undefined
      ? {}
      : {
          url: node.url,
          "ws-url": node.wsUrl,
          "consensus-url": node.url,
          "rest-url": node.url,
        };
  const explorer = { "": { network }, node: explorerNode };
  const console = {
    "": { network },
    parts: node === undefined ? {} : { "node-url": node.url },
  };
  return [
    [sidecarConfig.name, renderToml(sidecarConfig, sidecar, offset)],
    [watcherConfigFile.name, renderToml(watcherConfigFile, watcher, offset)],
    [workerConfigFile.name, renderToml(workerConfigFile, worker, offset)],
    [indexerConfigFile.name, renderToml(indexerConfigFile, indexer, offset)],
    [explorerConfig.name, renderToml(explorerConfig, explorer, offset)],
    [consoleConfig.name, renderToml(consoleConfig, console, offset)],
  ];
}

function validatorKeys(nodes: readonly KitNode[]): readonly string[] {
  return nodes.map(({ home }) => homePaths(home).validatorKey);
}

/** @param ofChain files of the chain's side that have to be there beside the exchange's keys */
async function assertKeysPresent(paths: HomePaths, ofChain: readonly string[]): Promise<void> {
  const wallet = await readTextIfPresent(paths.hotWallet);
  const isKeyElsewhere = wallet !== undefined && namesAddressAlone(wallet);
  const keystore = [paths.hotWallet, ...(isKeyElsewhere ? [] : [paths.hotWalletPassphrase])];
  const needed = [...ofChain, ...keystore, paths.depositXpub];
  const missing: string[] = [];
  for (const path of needed) {
    if ((await readTextIfPresent(path)) === undefined) missing.push(path);
  }
  if (missing.length === 0) return;
  throw new CliError(
    "HOME_INCOMPLETE",
    `The home ${paths.home} has a chain but lacks ${missing.join(", ")}: restore from a backup; ` +
      "new keys would not own the coins of this chain.",
    { details: { missing } },
  );
}

/** Nothing of value hangs on these: one that is missing is made anew at any start. */
async function createReplaceableFiles(paths: HomePaths): Promise<void> {
  await createFileOnce(paths.apiKey, createSecretLine(), SECRET_MODE);
  await createFileOnce(paths.tokens, "[]\n", PLAIN_MODE);
}

/**
 * Settings of a chain of one's own, where who receives webhooks runs on the same machine, and blocks may
 * come less often than the usual bound of the newest one's age allows.
 */
function localSettings(
  { name }: ConfigFile,
  blockIntervalMs?: number,
): Record<string, Record<string, unknown>> {
  if (name === watcherConfigFile.name) return { webhooks: { "allow-local": true } };
  const reader = [sidecarConfig, explorerConfig].find((file) => file.name === name);
  if (reader === undefined) return {};
  const { defaultValue: usualMs } = reader.sections.node["max-block-age-ms"];
  const stalledMs = stalledAfterMs(blockIntervalMs);
  return stalledMs > usualMs ? { node: { "max-block-age-ms": stalledMs } } : {};
}

/**
 * What the exchange may pay: everything, at first. Never made anew later: a lost policy must not
 * come back as one that forbids nothing.
 */
async function createExchangeRules(paths: HomePaths): Promise<void> {
  await createFileOnce(paths.policy, policyFileText(PERMISSIVE_POLICY), SECRET_MODE);
  await createFileOnce(paths.killSwitch, encodeKillSwitch(SWITCH_UNTOUCHED), SECRET_MODE);
}

/** The exchange side's keys, made where they are missing. */
async function createExchangeKeys(
  paths: HomePaths,
  scrypt: ScryptCost = STANDARD_SCRYPT,
): Promise<void> {
  await createFileOnce(paths.postgresPassword, createSecretLine(), SECRET_MODE);
  // The passphrase first: a keystore without its passphrase could never be opened again.
  await createFileOnce(paths.hotWalletPassphrase, createSecretLine(), SECRET_MODE);
  if ((await readTextIfPresent(paths.hotWallet)) === undefined) {
    const passphrase = passphraseOf(await readText(paths.hotWalletPassphrase));
    const keystore = await encryptKeystore(createPrivateKey(), passphrase, scrypt);
    await createFileOnce(paths.hotWallet, keystore, SECRET_MODE);
  }
  await createFileOnce(paths.depositSeed, createSeedLine(), SECRET_MODE);
  const seed = await readText(paths.depositSeed);
  const xpub = await seedToXpub(seed, paths.depositSeed);
  await createFileOnce(paths.depositXpub, `${xpub}\n`, SECRET_MODE);
}

/** The one validator, whose key lies in the kit's own home. */
async function createValidator(paths: HomePaths): Promise<GenesisValidator> {
  await createFileOnce(paths.validatorKey, createValidatorKeyFile(), SECRET_MODE);
  // A state file that is there tells what this key has signed: it is never reset.
  await createFileOnce(paths.validatorState, createValidatorStateFile(), SECRET_MODE);
  const text = await readText(paths.validatorKey);
  const identity = parseValidatorIdentity(text, paths.validatorKey);
  const operator = await createOperator(paths);
  return { ...identity, power: VALIDATOR_STAKE, operator, moniker: NODE_MONIKER };
}

async function createGenesis(
  options: InitOptions,
  { blockIntervalMs, modules }: NewChain,
  nodes: readonly KitNode[],
  addresses: { readonly faucetAddress: Address; readonly hotWalletAddress: Address },
): Promise<void> {
  const { paths, network, portOffset, clock } = options;
  const isNetwork = nodes.length > 1;
  const genesis = createLocalGenesis({
    network,
    faucet: addresses.faucetAddress,
    hotWallet: addresses.hotWalletAddress,
    genesisTimeMs: clock.nowMs(),
    blockIntervalMs,
    validators: isNetwork ? await createNetworkKeys(nodes) : [await createValidator(paths)],
    modules,
  });
  const made = encodeGenesis(genesis);
  const text = isNetwork ? await writeNetworkHomes(nodes, { genesis: made, portOffset }) : made;
  await createFileOnce(paths.genesis, text, PLAIN_MODE);
}

/** Drafts of an init that was cut off hold secrets under names that nobody looks for. */
async function removeDrafts(folder: string): Promise<void> {
  await inHome(folder, async () => {
    for (const name of await readdir(folder)) {
      if (name.startsWith(".") && name.endsWith(".tmp")) await rm(join(folder, name));
    }
  });
}
