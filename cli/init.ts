/**
 * The first start of a home: keys, genesis, settings. Every file appears whole or not at all and
 * an existing one is never overwritten, so that an init that was cut off is completed by the next.
 * The genesis file is written last of what money hangs on: where it exists, the keys are complete,
 * and one that is missing was lost, which no start may hide by making a new one.
 */
import { existsSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Address, privateKeyToAddress } from "../chain/address.js";
import type { NetworkName } from "../chain/networks.js";
import { parseValidatorIdentity } from "../node/consensus/validator-key.js";
import { createLocalGenesis, encodeGenesis, type GenesisValidator } from "../node/genesis.js";
import type { Clock } from "../runtime/clock.js";
import { type ConfigFile, renderToml } from "../runtime/config.js";
import { createFileOnce, PLAIN_MODE, readTextIfPresent, SECRET_MODE } from "./durable-file.js";
import { CliError } from "./errors.js";
import { createHomeFolders, homePaths, type HomePaths, inHome } from "./home.js";
import { createNetworkKeys, writeNetworkHomes } from "./kit-network.js";
import { type KitNode, kitNodes } from "./kit-nodes.js";
import { encryptKeystore, type ScryptCost, STANDARD_SCRYPT } from "./keystore.js";
import { NODE_CONFIG_FILES } from "./node-home.js";
import { VALIDATOR_POWER } from "./testnet.js";
import {
  createNodeKey,
  createValidatorKeyFile,
  createValidatorStateFile,
} from "./validator-keys.js";
import {
  createPrivateKey,
  createSecretLine,
  createSeedLine,
  encodeKeyFile,
  parseKeyFile,
  parseKeystoreAddress,
  seedToXpub,
} from "./wallet-keys.js";

/** What a new home is made from. */
export interface InitOptions {
  readonly paths: HomePaths;
  readonly portOffset: number;
  readonly network: NetworkName;
  /** Time between blocks of the new chain; the network's own when absent. */
  readonly blockIntervalMs?: number;
  /** How many validators decide a new chain; 1 when absent. An existing one keeps its number. */
  readonly validators?: number;
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
 * @throws HOME_UNUSABLE, HOME_INCOMPLETE
 */
export async function initHome(options: InitOptions): Promise<InitResult> {
  const { paths } = options;
  await createHomeFolders(paths);
  const complete = await isInitialised(paths);
  const nodes = kitNodes(paths.home, options.validators);
  const isNetwork = nodes.length > 1;
  // A chain without its genesis file: a new one would be refused by the store, and hide the loss.
  if (complete || existsSync(join(paths.data, "chain"))) {
    await assertKeysPresent(paths, nodes);
  } else await createKeys(options);
  // Nothing of value hangs on these: one that is missing is made anew at any start.
  await createFileOnce(paths.apiKey, createSecretLine(), SECRET_MODE);
  await createFileOnce(paths.tokens, "[]\n", PLAIN_MODE);
  for (const file of options.configFiles) {
    // The validators of a network have settings of their own, in their homes.
    if (isNetwork && NODE_CONFIG_FILES.includes(file)) continue;
    const text = renderToml(file, {}, { portOffset: options.portOffset });
    await createFileOnce(join(paths.config, `${file.name}.toml`), text, SECRET_MODE);
  }
  const faucetKey = parseKeyFile(await readFile(paths.faucetKey, "utf8"), paths.faucetKey);
  const addresses = {
    faucetAddress: privateKeyToAddress(faucetKey),
    hotWalletAddress: await hotWalletAddress(paths),
  };
  if (!complete) await createGenesis(options, nodes, addresses);
  for (const { home } of nodes) {
    await createFileOnce(homePaths(home).nodeKey, createNodeKey().text, SECRET_MODE);
  }
  return { created: !complete, ...addresses };
}

/** Address of the home's hot wallet, read without its key. Throws HOME_INCOMPLETE. */
export async function hotWalletAddress(paths: HomePaths): Promise<Address> {
  return parseKeystoreAddress(await readFile(paths.hotWallet, "utf8"), paths.hotWallet);
}

async function assertKeysPresent(paths: HomePaths, nodes: readonly KitNode[]): Promise<void> {
  const needed = [
    paths.genesis,
    paths.faucetKey,
    paths.hotWallet,
    paths.hotWalletPassphrase,
    paths.depositXpub,
    ...nodes.map(({ home }) => homePaths(home).validatorKey),
  ];
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

async function createKeys(options: InitOptions): Promise<void> {
  const { paths } = options;
  await removeDrafts(paths.config);
  await createFileOnce(paths.faucetKey, encodeKeyFile(createPrivateKey()), SECRET_MODE);
  await createFileOnce(paths.postgresPassword, createSecretLine(), SECRET_MODE);
  // The passphrase first: a keystore without its passphrase could never be opened again.
  await createFileOnce(paths.hotWalletPassphrase, createSecretLine(), SECRET_MODE);
  if ((await readTextIfPresent(paths.hotWallet)) === undefined) {
    const passphrase = (await readFile(paths.hotWalletPassphrase, "utf8")).trim();
    const cost = options.scrypt ?? STANDARD_SCRYPT;
    const keystore = await encryptKeystore(createPrivateKey(), passphrase, cost);
    await createFileOnce(paths.hotWallet, keystore, SECRET_MODE);
  }
  await createFileOnce(paths.depositSeed, createSeedLine(), SECRET_MODE);
  const seed = await readFile(paths.depositSeed, "utf8");
  const xpub = await seedToXpub(seed, paths.depositSeed);
  await createFileOnce(paths.depositXpub, `${xpub}\n`, SECRET_MODE);
}

/** The one validator, whose key lies in the kit's own home. */
async function createValidator(paths: HomePaths): Promise<GenesisValidator> {
  await createFileOnce(paths.validatorKey, createValidatorKeyFile(), SECRET_MODE);
  // A state file that is there tells what this key has signed: it is never reset.
  await createFileOnce(paths.validatorState, createValidatorStateFile(), SECRET_MODE);
  const text = await readFile(paths.validatorKey, "utf8");
  return { ...parseValidatorIdentity(text, paths.validatorKey), power: VALIDATOR_POWER };
}

async function createGenesis(
  options: InitOptions,
  nodes: readonly KitNode[],
  addresses: { readonly faucetAddress: Address; readonly hotWalletAddress: Address },
): Promise<void> {
  const { paths, network, portOffset, clock, blockIntervalMs } = options;
  const isNetwork = nodes.length > 1;
  const genesis = createLocalGenesis({
    network,
    faucet: addresses.faucetAddress,
    hotWallet: addresses.hotWalletAddress,
    genesisTimeMs: clock.nowMs(),
    blockIntervalMs,
    validators: isNetwork ? await createNetworkKeys(nodes) : [await createValidator(paths)],
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
