/**
 * Homes for processes that run apart (containers, machines): each gets the files that it needs and
 * no other. The watcher sees no key, the sidecar no secret at all; only the worker can sign for hot
 * wallets, and only the treasury for deposit addresses.
 */
import { chmod, mkdir, readFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { readHomeWallets } from "../../ledger/wallets/home-wallets.js";
import {
  indexerRole,
  LEDGER_SERVICES,
  type LedgerService,
  ledgerRole,
} from "../../ledger/roles.js";
import { readSecretFile } from "../../runtime/config/secret-file.js";
import { EMBEDDED_POSTGRES_DATABASE } from "../../runtime/config/service-urls.js";
import { makeFolders } from "../../runtime/files/folder.js";
import { readChainOrigin } from "./network/chain-origin.js";
import { CliError, fileCause } from "../errors.js";
import { createFileOnce, SECRET_MODE } from "./home-file.js";
import { createSecretLine } from "./keys/wallet-keys.js";
import { type HomePaths, inHome } from "./home.js";
import { hotWalletAddress } from "./init.js";

/** Folder with a password for each service's role. */
const ROLE_PASSWORDS = "config/database-roles";

/** A file of a role's home and where its content comes from. */
interface RoleFile {
  /** Path inside the home. */
  readonly name: string;
  /** A home may be without it. */
  readonly isOptional?: true;
  /** It changes behind the first start: a copy of that day would undo what came after it. */
  readonly isInitial?: true;
  /** Complete homes of older releases have none; the worker makes it, and it is to be copied from there. */
  readonly isYounger?: true;
  readonly content: (paths: HomePaths) => Promise<string>;
}

/** The hot wallet's address without its key: what the watcher needs to know of it. */
const WALLET_ADDRESS_ONLY: RoleFile = {
  name: "config/hot-wallet.json",
  content: async (paths) => `${JSON.stringify({ address: await hotWalletAddress(paths) })}\n`,
};

/** A role's password in the form that PostgreSQL clients read through PGPASSFILE. */
function passwordFile(role: string, passwordPath: (paths: HomePaths) => string): RoleFile {
  return {
    name: "config/pgpass",
    content: async (paths) =>
      `*:*:${DATABASE}:${role}:${(await readFile(passwordPath(paths), "utf8")).trim()}\n`,
  };
}

/** Name of the database and of its owner. */
const DATABASE = EMBEDDED_POSTGRES_DATABASE;

const OWNER_PASSWORD = passwordFile(DATABASE, (paths) => paths.postgresPassword);

/** A process with a role of its own in the database. */
type DatabaseUser = LedgerService | "indexer";

const DATABASE_USERS: readonly DatabaseUser[] = [...LEDGER_SERVICES, "indexer"];

function servicePassword(user: DatabaseUser): RoleFile {
  const role = user === "indexer" ? indexerRole(DATABASE) : ledgerRole(DATABASE, user);
  return passwordFile(role, (paths) => rolePasswordPath(paths.home, user));
}

/** Secrets that only processes apart from each other need; made once in the complete home. */
const SHARED_SECRETS: readonly string[] = [
  ...DATABASE_USERS.map((user) => rolePasswordName(user)),
  "config/redis.password",
  "config/superuser.password",
];

/** Redis reads its password from a file of settings, never from a command line. */
const REDIS_SETTINGS: RoleFile = {
  name: "config/redis.conf",
  content: async (paths) =>
    `requirepass ${(await readFile(join(paths.home, "config/redis.password"), "utf8")).trim()}\n`,
};

const GENESIS = copyOf("config/genesis.json");
const CHAIN = copyOf("config/chain.json");
const TOKENS = copyOf("config/tokens.json");
const POLICY: RoleFile = { ...initialCopyOf("config/policy.json"), isYounger: true };
const KILL_SWITCH: RoleFile = { ...initialCopyOf("config/kill-switch.json"), isYounger: true };
const API_KEY = copyOf("config/api.key");

const ROLE_FILES: Readonly<Record<string, readonly RoleFile[]>> = {
  node: [
    GENESIS,
    copyOf("config/config.toml"),
    copyOf("config/app.toml"),
    // The key may sign elsewhere by now, and the state tells what it has signed.
    initialCopyOf("config/priv_validator_key.json"),
    initialCopyOf("data/priv_validator_state.json"),
    copyOf("config/node_key.json"),
  ],
  sidecar: [GENESIS, TOKENS, copyOf("config/sidecar.toml")],
  indexer: [copyOf("config/indexer.toml"), servicePassword("indexer")],
  explorer: [TOKENS, copyOf("config/explorer.toml")],
  console: [copyOf("config/console.toml")],
  "deposit-watcher": [
    GENESIS,
    TOKENS,
    API_KEY,
    servicePassword("watcher"),
    WALLET_ADDRESS_ONLY,
    copyOf("config/watcher.toml"),
    copyOf("config/deposit.xpub"),
  ],
  "withdrawal-worker": [
    GENESIS,
    TOKENS,
    API_KEY,
    servicePassword("worker"),
    copyOf("config/redis.password"),
    copyOf("config/worker.toml"),
    copyOf("config/hot-wallet.json"),
    passphrase("config/hot-wallet.passphrase"),
    // Public: it shows which addresses may be given gas.
    copyOf("config/deposit.xpub"),
    POLICY,
    KILL_SWITCH,
  ],
  // It works in the worker's role, and knows hot wallets by their addresses alone.
  treasury: [
    GENESIS,
    TOKENS,
    servicePassword("worker"),
    WALLET_ADDRESS_ONLY,
    copyOf("config/worker.toml"),
    copyOf("config/deposit.xpub"),
    { ...copyOf("config/deposit.seed"), isOptional: true },
    POLICY,
    KILL_SWITCH,
  ],
  // Who migrates owns the tables and makes the services' roles.
  migrate: [
    GENESIS,
    OWNER_PASSWORD,
    ...DATABASE_USERS.map((user) => copyOf(rolePasswordName(user))),
    WALLET_ADDRESS_ONLY,
    copyOf("config/watcher.toml"),
  ],
  // Who reconciles, recovers and decides signs nothing; the public key finds lost addresses.
  desk: [
    GENESIS,
    TOKENS,
    API_KEY,
    servicePassword("operator"),
    WALLET_ADDRESS_ONLY,
    copyOf("config/deposit.xpub"),
    copyOf("config/sidecar.toml"),
    copyOf("config/watcher.toml"),
    copyOf("config/worker.toml"),
    copyOf("config/indexer.toml"),
    copyOf("config/explorer.toml"),
    copyOf("config/console.toml"),
    POLICY,
    KILL_SWITCH,
  ],
  postgres: [copyOf("config/postgres.password"), copyOf("config/superuser.password")],
  redis: [copyOf("config/redis.password"), REDIS_SETTINGS],
};

/** What roles get of wallets beside the first one: the worker keystores, the treasury addresses. */
const FURTHER_WALLETS: Readonly<Record<string, (paths: HomePaths) => readonly RoleFile[]>> = {
  "withdrawal-worker": furtherKeystores,
  treasury: furtherAddresses,
};

/** Keystores beside the first wallet's, with their passphrases. */
function furtherKeystores({ home }: HomePaths): readonly RoleFile[] {
  return readHomeWallets(home)
    .slice(1)
    .flatMap((wallet) => [
      copyOf(relative(home, wallet.keystore)),
      passphrase(relative(home, wallet.passphrase)),
    ]);
}

/** Addresses beside the first wallet's, without their keys. */
function furtherAddresses({ home }: HomePaths): readonly RoleFile[] {
  return readHomeWallets(home)
    .slice(1)
    .map(({ keystore, address }) => ({
      name: relative(home, keystore),
      content: async () => `${JSON.stringify({ address })}\n`,
    }));
}

/** Names of the roles: the folders that `writeRoleHomes` makes. */
export const ROLE_NAMES: readonly string[] = Object.keys(ROLE_FILES);

/**
 * Writes `<folder>/<role>` for every role from a complete home; none for a node where somebody
 * else's is used. Existing files stay as they are: a node's state file tells what its key has
 * signed, and edited settings are the operator's. What is missing is written, but for what changes later:
 * a policy that was lost would come back as one that forbids nothing. What the complete home is too old to
 * have is not written either.
 * @returns what is missing and was not written, as `<role>/<name>`
 * @throws HOME_UNUSABLE naming file or folder, and cause
 */
export async function writeRoleHomes(paths: HomePaths, folder: string): Promise<readonly string[]> {
  await inHome(paths.home, async () => {
    makeFolders(join(paths.home, ROLE_PASSWORDS));
    for (const name of SHARED_SECRETS) {
      await createFileOnce(join(paths.home, name), createSecretLine(), SECRET_MODE);
    }
  });
  const hasNode = readChainOrigin(paths)?.kind !== "remote";
  const leftOut: string[] = [];
  for (const [role, allFiles] of Object.entries(ROLE_FILES)) {
    if (role === "node" && !hasNode) continue;
    // Without a node there is no genesis: the record of the chain takes its place.
    const files = hasNode ? allFiles : allFiles.map((file) => (file === GENESIS ? CHAIN : file));
    const home = join(folder, role);
    const wanted = [...files, ...(FURTHER_WALLETS[role]?.(paths) ?? [])].filter(
      ({ name, isOptional }) => isOptional !== true || existsSync(join(paths.home, name)),
    );
    const initial = wanted.filter(({ isInitial }) => isInitial === true);
    const others = wanted.filter(({ isInitial }) => isInitial !== true);
    // Written behind the initial ones: where there is one of these, all of those were there once.
    const isMade = others.some(({ name }) => existsSync(join(home, name)));
    const left = initial.filter(
      ({ name, isYounger }) =>
        !existsSync(join(home, name)) &&
        (isMade || (isYounger === true && !existsSync(join(paths.home, name)))),
    );
    leftOut.push(...left.map(({ name }) => `${role}/${name}`));
    await inHome(home, async () => {
      await mkdir(folder, { recursive: true });
      for (const part of [".", "config", "data", "logs"]) {
        makeFolders(join(home, part));
        await chmod(join(home, part), 0o700);
      }
      const made = isMade ? [] : initial.filter((file) => !left.includes(file));
      for (const { name, content } of [...made, ...others]) {
        makeFolders(dirname(join(home, name)));
        await createFileOnce(join(home, name), await content(paths), SECRET_MODE);
      }
    });
  }
  return leftOut;
}

/** The passwords that `causeway migrate` gives to the services' roles; undefined where a home has none. */
export function readRolePasswords(
  home: string,
): (Record<LedgerService, string> & { readonly indexer: string | undefined }) | undefined {
  if (!existsSync(join(home, ROLE_PASSWORDS))) return undefined;
  const password = (user: DatabaseUser) => readSecretFile(rolePasswordPath(home, user));
  return {
    watcher: password("watcher"),
    worker: password("worker"),
    operator: password("operator"),
    indexer: existsSync(rolePasswordPath(home, "indexer")) ? password("indexer") : undefined,
  };
}

function rolePasswordName(user: DatabaseUser): string {
  return `${ROLE_PASSWORDS}/${user}.password`;
}

function rolePasswordPath(home: string, user: DatabaseUser): string {
  return join(home, rolePasswordName(user));
}

/** There is none beside a file that only names an address: the wallet's key is held elsewhere. */
function passphrase(name: string): RoleFile {
  return { ...copyOf(name), isOptional: true };
}

/** The complete home's file, for a home that is being made. */
function initialCopyOf(name: string): RoleFile {
  return { ...copyOf(name), isInitial: true };
}

/** The file of the same name in the complete home. */
function copyOf(name: string): RoleFile {
  const content = async ({ home }: HomePaths): Promise<string> => {
    const file = join(home, name);
    try {
      return await readFile(file, "utf8");
    } catch (cause) {
      const message = `Cannot read ${file}, of which a copy is to be made: ${fileCause(cause)}.`;
      throw new CliError("HOME_UNUSABLE", message, { cause, retriable: true });
    }
  };
  return { name, content };
}
