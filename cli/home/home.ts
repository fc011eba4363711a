/** The home folder: where everything lies, and whether it can be used. */
import { existsSync } from "node:fs";
import { chmod, mkdir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { killSwitchPath, policyPath } from "../../ledger/policy/policy-paths.js";
import type { Environment } from "../../runtime/config/config.js";
import { giveFolder } from "../../runtime/files/owner.js";
import { cannotWrite, CliError, fileCause, systemCode } from "../errors.js";
import { LOGS_MODE } from "./append-log.js";

/** Every file of a home that the command line knows, as absolute paths. */
export interface HomePaths {
  readonly home: string;
  readonly config: string;
  readonly data: string;
  readonly logs: string;
  readonly faucetKey: string;
  readonly apiKey: string;
  readonly hotWallet: string;
  readonly hotWalletPassphrase: string;
  readonly depositSeed: string;
  readonly depositXpub: string;
  readonly postgresPassword: string;
  readonly tokens: string;
  /** What the exchange allows itself to pay. */
  readonly policy: string;
  readonly killSwitch: string;
  readonly genesis: string;
  /** Where the chain comes from, of a home on a chain that exists: `chain-origin.ts`. */
  readonly chain: string;
  /** What a chain of its own is made of, until its genesis is written: `new-chain.ts`. */
  readonly newChain: string;
  readonly validatorKey: string;
  /** Owns the stake of a validator of a network of its own. */
  readonly operatorKey: string;
  readonly validatorState: string;
  /** The node's store: where it is there, a chain exists, whatever else was lost. */
  readonly store: string;
  readonly nodeKey: string;
  /** Held while a kit runs on this home. */
  readonly lock: string;
  /** Processes that the kit started, so that the next start knows its orphans. */
  readonly children: string;
}

/** Paths of a home; the folder need not exist. */
export function homePaths(home: string): HomePaths {
  const root = resolve(home);
  const inConfig = (name: string): string => join(root, "config", name);
  const inData = (name: string): string => join(root, "data", name);
  return {
    home: root,
    config: join(root, "config"),
    data: join(root, "data"),
    logs: join(root, "logs"),
    faucetKey: inConfig("faucet.key"),
    apiKey: inConfig("api.key"),
    hotWallet: inConfig("hot-wallet.json"),
    hotWalletPassphrase: inConfig("hot-wallet.passphrase"),
    depositSeed: inConfig("deposit.seed"),
    depositXpub: inConfig("deposit.xpub"),
    postgresPassword: inConfig("postgres.password"),
    tokens: inConfig("tokens.json"),
    policy: policyPath(root),
    killSwitch: killSwitchPath(root),
    genesis: inConfig("genesis.json"),
    chain: inConfig("chain.json"),
    newChain: inConfig("new-chain.json"),
    validatorKey: inConfig("priv_validator_key.json"),
    operatorKey: inConfig("operator.key"),
    validatorState: inData("priv_validator_state.json"),
    store: inData("chain"),
    nodeKey: inConfig("node_key.json"),
    lock: join(root, "kit.lock"),
    children: inData("children.json"),
  };
}

/** Whether a home holds what a node is started from. */
export function isNodeHome(paths: HomePaths): boolean {
  return existsSync(paths.genesis);
}

/** Whether the exchange side lies in this home too. */
export function isKitHome(paths: HomePaths): boolean {
  return existsSync(join(paths.config, "sidecar.toml"));
}

/** Folder of the clone: the nearest one above this file that holds package.json. */
export function cloneFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json")) && dirname(folder) !== folder) {
    folder = dirname(folder);
  }
  return folder;
}

/**
 * The home that a command means: the flag, else `CAUSEWAY_HOME`, else `.causeway` in the clone.
 * @throws USAGE for a flag without a folder: keys would be written wherever somebody stands; for a
 *   path of several lines, which neither PostgreSQL nor a node can work in
 */
export function resolveHome(flag: string | undefined, env: Environment): string {
  if (flag === "") throw new CliError("USAGE", "--home needs a folder.");
  const named = flag ?? (env["CAUSEWAY_HOME"] === "" ? undefined : env["CAUSEWAY_HOME"]);
  const home = resolve(named ?? join(cloneFolder(), ".causeway"));
  if (!/[\r\n]/.test(home)) return home;
  throw new CliError(
    "USAGE",
    `The path of the home, ${JSON.stringify(home)}, has a line break: choose another --home.`,
  );
}

/**
 * Creates the folders of a home. Only the owner may list them. Where root owns them, others may
 * pass through the home and `data` (711), because PostgreSQL refuses to run as root and its user
 * has to reach its cluster; `config`, where the keys lie, stays closed (700).
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function createHomeFolders(paths: HomePaths): Promise<void> {
  const passable = process.getuid?.() === 0 ? 0o711 : 0o700;
  await createFolders([[paths.home, passable]]);
  const inside = [
    [paths.config, 0o700],
    [paths.data, passable],
    [paths.logs, LOGS_MODE],
  ] as const;
  await createFolders(inside, giveFolder);
}

/**
 * Creates the folders of a node's home, which has no database and no log files.
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function createNodeFolders(paths: HomePaths): Promise<void> {
  await createFolders([[paths.home, 0o700]]);
  await createFolders(
    [paths.config, paths.data].map((folder) => [folder, 0o700]),
    giveFolder,
  );
}

/**
 * Creates a folder that anybody may list, with those above it.
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function createOpenFolder(folder: string): Promise<void> {
  await createFolders([[folder, 0o755]]);
}

/**
 * Creates a folder below a home that only its owner may enter, whoever types the command as root.
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function createSecretFolder(folder: string): Promise<void> {
  await createFolders([[folder, 0o700]], giveFolder);
}

/** @param whose what gives a folder that was made to somebody else: what lies in a home is its owner's */
async function createFolders(
  folders: readonly (readonly [string, number])[],
  whose: (folder: string) => void = () => undefined,
): Promise<void> {
  for (const [folder, mode] of folders) {
    try {
      if (!(await createFolder(folder))) continue;
      await chmod(folder, mode);
      whose(folder);
    } catch (cause) {
      if (cause instanceof CliError) throw cause;
      throw new CliError(
        "HOME_UNUSABLE",
        `Cannot create the folder ${folder}: ${fileCause(cause)}.`,
        { cause },
      );
    }
  }
}

/** Wraps a file operation on the home so that its fault names folder and cause. */
export async function inHome<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw cause instanceof CliError ? cause : cannotWrite(path, cause);
  }
}

/**
 * Creates a folder and those above it; true when this call made it. Node's own recursive mkdir
 * never returns on file systems that refuse with ENOENT, such as /proc.
 */
async function createFolder(folder: string): Promise<boolean> {
  if (existsSync(folder)) {
    if ((await stat(folder)).isDirectory()) return false;
    throw new CliError("HOME_UNUSABLE", `${folder} is not a folder; choose another one.`);
  }
  if (dirname(folder) !== folder) await createFolder(dirname(folder));
  try {
    await mkdir(folder, { mode: 0o755 });
    return true;
  } catch (error) {
    // Two starts at once: the other was first, and the lock decides between them later.
    if (systemCode(error) === "EEXIST") return false;
    throw error;
  }
}
