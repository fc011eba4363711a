/**
 * Keystores of a home: `config/hot-wallet.json`, the first wallet's, and further ones in
 * `config/wallets/`, each with a passphrase of the same name beside it. Nothing is decrypted here.
 */
import { readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Address } from "../../chain/address.js";
import { errorCode } from "../../chain/errors.js";
import { LedgerError } from "../errors.js";
import { storedAddress } from "../stored-values.js";
import { readWalletAddress } from "./wallet-address.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { type HotWallet, listWallets, MAX_WALLETS } from "./wallet.js";
import type { NewWallet } from "./wallet-registry.js";

/** A keystore file with its address. */
export interface HomeWallet {
  readonly address: Address;
  /** What people call it: the file's name. */
  readonly label: string;
  readonly keystore: string;
  /** Where its passphrase lies; it may be missing where nothing is signed. */
  readonly passphrase: string;
}

/** Folder of further keystores, below the home; hidden files there are what editors and disks leave. */
export const WALLETS_FOLDER = join("config", "wallets");

const KEYSTORE_END = ".json";

/**
 * All keystores of a home, the first wallet's first.
 * @throws INVALID_WALLET_FILE for a file without an address, two of the same address, and a folder that
 *   cannot be read
 */
export function readHomeWallets(home: string): readonly HomeWallet[] {
  const wallets = keystoreFiles(home).map(({ keystore, passphrase }): HomeWallet => {
    const label = basename(keystore, KEYSTORE_END).slice(0, 64);
    return { address: readWalletAddress(keystore), label, keystore, passphrase };
  });
  const twice = wallets.find(({ address }, at) =>
    wallets.slice(0, at).some((earlier) => earlier.address === address),
  );
  if (twice === undefined) return wallets;
  throw new LedgerError(
    "INVALID_WALLET_FILE",
    `${twice.keystore} holds a wallet that another file of the home holds: take one of them away`,
  );
}

/**
 * Where the keystores of a home lie, the first wallet's first, each with its passphrase.
 * @throws INVALID_WALLET_FILE where the folder cannot be read
 */
export function keystoreFiles(
  home: string,
): readonly Pick<HomeWallet, "keystore" | "passphrase">[] {
  const first = join(home, "config", `hot-wallet${KEYSTORE_END}`);
  return [first, ...furtherFiles(home)].map((keystore) => ({
    keystore,
    passphrase: passphraseBeside(keystore),
  }));
}

/** Where a keystore's passphrase lies, in a home or elsewhere: other wallets' files do not end in `.json`. */
export function passphraseBeside(keystore: string): string {
  return join(dirname(keystore), `${basename(keystore, KEYSTORE_END)}.passphrase`);
}

function furtherFiles(home: string): string[] {
  const folder = join(home, WALLETS_FOLDER);
  return namesIn(folder)
    .filter((name) => name.endsWith(KEYSTORE_END) && !name.startsWith("."))
    .toSorted()
    .slice(0, MAX_WALLETS)
    .map((name) => join(folder, name));
}

/** None where there is no folder; one that cannot be read may hold any. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (cause) {
    const code = errorCode(cause);
    if (code === "ENOENT") return [];
    throw new LedgerError("INVALID_WALLET_FILE", `cannot read ${folder} (${code})`, { cause });
  }
}

/** A keystore in the home is a wallet of its ledger, from the first start that sees it. */
export function foundInHome({ address, label }: HomeWallet, operator: string): NewWallet {
  return { address, label, operator, reason: "its keystore lies in the home" };
}

/**
 * Wallets of the ledger, and behind them those of the home that no process has registered yet: a
 * command must not overlook coins because nothing has been started since.
 */
export async function listKnownWallets(sql: Sql, home: string): Promise<HotWallet[]> {
  const registered = await listWallets(sql);
  const isKnown = new Set(registered.map(({ address }) => address));
  const unknown = readHomeWallets(home).filter(({ address }) => !isKnown.has(address));
  const found = unknown.map((wallet) => notRegistered(foundInHome(wallet, "nobody yet")));
  return [...registered, ...found];
}

/** A wallet that no process has registered, as commands look at it. */
export function notRegistered({ address, label, operator, reason }: NewWallet): HotWallet {
  const common = { address, label, operator, reason, since: NEVER };
  return { ...common, status: "active", fromHeight: 0, pastBooked: true };
}

/**
 * Whoever may sign, by what the tables of all releases tell: wallets with nonces, those that are registered
 * where there is a register, and the keystores of the home. For what stops payments where the wallets cannot
 * be listed as this release has them; a home that cannot be read hides only what has paid nothing yet.
 */
export async function listSigners(sql: Sql, home: string): Promise<Address[]> {
  const [register] = await sql.query<{ found: string | null }>(
    `SELECT to_regclass('wallet')::text AS found`,
  );
  const registered = register?.found == null ? "" : "UNION SELECT address FROM wallet";
  const rows = await sql.query<{ wallet: string }>(
    `SELECT wallet FROM hot_wallet ${registered} ORDER BY wallet`,
  );
  const known = new Set(rows.map(({ wallet }) => storedAddress(wallet)));
  for (const { keystore } of keystoresOf(home)) {
    try {
      known.add(readWalletAddress(keystore));
    } catch (error) {
      if (!(error instanceof LedgerError)) throw error;
    }
  }
  return [...known];
}

/** None where the folder of further ones cannot be read. */
function keystoresOf(home: string) {
  try {
    return keystoreFiles(home);
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    return [];
  }
}

/** Since when a wallet that nobody registered has its status. */
const NEVER = new Date(0).toISOString();
