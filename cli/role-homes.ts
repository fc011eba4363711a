/**
 * Homes for processes that run apart (containers, machines): each gets the files that it needs and
 * no other. The watcher sees no key, the sidecar no secret at all, only the worker can sign.
 */
import { chmod, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createFileOnce, SECRET_MODE } from "./durable-file.js";
import { type HomePaths, inHome } from "./home.js";
import { hotWalletAddress } from "./init.js";

/** A file of a role's home and where its content comes from. */
interface RoleFile {
  /** Path inside the home. */
  readonly name: string;
  readonly content: (paths: HomePaths) => Promise<string>;
}

/** The hot wallet's address without its key: what the watcher needs to know of it. */
const WALLET_ADDRESS_ONLY: RoleFile = {
  name: "config/hot-wallet.json",
  content: async (paths) => `${JSON.stringify({ address: await hotWalletAddress(paths) })}\n`,
};

/** The database's password in the form that PostgreSQL clients read through PGPASSFILE. */
const PASSWORD_FILE: RoleFile = {
  name: "config/pgpass",
  content: async (paths) =>
    `*:*:causeway:causeway:${(await readFile(paths.postgresPassword, "utf8")).trim()}\n`,
};

const GENESIS = copyOf("config/genesis.json");
const TOKENS = copyOf("config/tokens.json");
const API_KEY = copyOf("config/api.key");

const ROLE_FILES: Readonly<Record<string, readonly RoleFile[]>> = {
  node: [
    GENESIS,
    copyOf("config/config.toml"),
    copyOf("config/app.toml"),
    copyOf("config/priv_validator_key.json"),
    copyOf("config/node_key.json"),
    copyOf("data/priv_validator_state.json"),
  ],
  sidecar: [GENESIS, TOKENS, copyOf("config/sidecar.toml")],
  "deposit-watcher": [
    GENESIS,
    TOKENS,
    API_KEY,
    PASSWORD_FILE,
    WALLET_ADDRESS_ONLY,
    copyOf("config/watcher.toml"),
    copyOf("config/deposit.xpub"),
  ],
  "withdrawal-worker": [
    GENESIS,
    TOKENS,
    API_KEY,
    PASSWORD_FILE,
    copyOf("config/worker.toml"),
    copyOf("config/hot-wallet.json"),
    copyOf("config/hot-wallet.passphrase"),
  ],
  postgres: [copyOf("config/postgres.password")],
};

/** Names of the roles: the folders that `writeRoleHomes` makes. */
export const ROLE_NAMES: readonly string[] = Object.keys(ROLE_FILES);

/**
 * Writes `<folder>/<role>` for every role from a complete home. Existing files stay as they are: a
 * node's state file tells what its key has signed, and edited settings are the operator's.
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function writeRoleHomes(paths: HomePaths, folder: string): Promise<void> {
  for (const [role, files] of Object.entries(ROLE_FILES)) {
    const home = join(folder, role);
    await inHome(home, async () => {
      for (const part of [".", "config", "data", "logs"]) {
        await mkdir(join(home, part), { recursive: true });
        await chmod(join(home, part), 0o700);
      }
      for (const { name, content } of files) {
        await createFileOnce(join(home, name), await content(paths), SECRET_MODE);
      }
    });
  }
}

/** The file of the same name in the complete home. */
function copyOf(name: string): RoleFile {
  return { name, content: (paths) => readFile(join(paths.home, name), "utf8") };
}
