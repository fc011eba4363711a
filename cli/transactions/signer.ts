/**
 * Who signs: `--from` names a key file, a keystore, a name in the home or an account. Keys come from
 * files only; what looks like a key on the command line is refused without repeating it.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Address, parseAnyAddress, toBech32 } from "../../chain/address.js";
import { keystoreAddress } from "../../chain/signing/keystore.js";
import { privateKeyToAddress } from "../../chain/signing/account-key.js";
import { keystoreFiles, passphraseBeside } from "../../ledger/wallets/home-wallets.js";
import { readWalletKey } from "../../ledger/wallets/wallet-key.js";
import { fileCause } from "../errors.js";
import { homePaths } from "../home/home.js";
import { parseKeyFile } from "../home/keys/wallet-keys.js";
import { looksLikeKey, usage } from "./values.js";

/** Where keys are looked for. */
export interface KeySources {
  readonly home: string;
  /** Folder that is looked into first. */
  readonly keyringDir: string | undefined;
  /** File with the passphrase of a keystore. */
  readonly passphraseFile: string | undefined;
  readonly warn: (line: string) => void;
}

/** An account, and its key where it has to be there. */
export interface Signer {
  readonly address: Address;
  /** Reads the key, 32 bytes. Throws USAGE where there is none, and the faults of `readWalletKey`. */
  privateKey(): Uint8Array;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * Finds who is meant.
 * @param from path of a key file or of a keystore, name in the home ("operator", "faucet"), account
 * @throws USAGE
 */
export function findSigner(from: string | undefined, sources: KeySources): Signer {
  if (from === undefined || from === "") {
    throw usage("--from must say who signs: a key file, a keystore, or a name such as operator.");
  }
  if (looksLikeKey(from)) {
    throw usage(
      "--from takes a file, a name or an account, never a key: command lines are seen by others. " +
        "Put the key into a file of mode 600, and take another key if this one holds coins.",
    );
  }
  const address = accountOf(from);
  if (address !== undefined) return ofAccount(address, sources);
  const file = keyFiles(from, sources).find((path) => existsSync(path));
  if (file === undefined) {
    throw usage(
      `--from ${from.slice(0, 200)}: there is no such key file, and no key of that name.`,
    );
  }
  return ofFile(file, sources);
}

function accountOf(text: string): Address | undefined {
  try {
    return parseAnyAddress(text);
  } catch {
    return undefined;
  }
}

/** Paths that a name may mean, in the order in which they are tried. */
function keyFiles(from: string, { home, keyringDir }: KeySources): string[] {
  if (!NAME.test(from)) return [from];
  const folders = [...(keyringDir === undefined ? [] : [keyringDir]), homePaths(home).config];
  const named = folders.flatMap((folder) => [
    join(folder, `${from}.key`),
    join(folder, `${from}.json`),
  ]);
  return [...named, from];
}

/** An account whose key may lie in the home. */
function ofAccount(address: Address, sources: KeySources): Signer {
  return {
    address,
    privateKey() {
      for (const name of ["operator", "faucet"]) {
        const file = keyFiles(name, sources).find((path) => existsSync(path));
        const signer = file === undefined ? undefined : ofFile(file, sources);
        if (signer?.address === address) return signer.privateKey();
      }
      const account = toBech32(address);
      throw usage(`The key of ${account} is not known: give its file as --from instead.`);
    },
  };
}

function ofFile(path: string, sources: KeySources): Signer {
  const text = readText(path);
  warnIfOpen(path, sources);
  if (text.trimStart().startsWith("{")) return ofKeystore(path, text, sources);
  const privateKey = parseKeyFile(text, path);
  const address = privateKeyToAddress(privateKey);
  assertNoHotWallet(path, address, sources);
  return { address, privateKey: () => privateKey };
}

/** Coins of hot wallets move by the worker alone: it stops where a nonce was used by others. */
function assertNoHotWallet(path: string, address: Address, { home }: KeySources): void {
  const wallets = keystoreFiles(home).filter(({ keystore }) => existsSync(keystore));
  const isWallet = wallets.some(({ keystore }) => {
    return addressOfKeystore(keystore, readText(keystore)) === address;
  });
  if (!isWallet) return;
  throw usage(
    `${path} is the key of a hot wallet of this home: its nonces belong to the withdrawal worker, ` +
      "which stops at one that it did not use. Pay with a withdrawal instead.",
  );
}

function ofKeystore(path: string, text: string, sources: KeySources): Signer {
  const address = addressOfKeystore(path, text);
  assertNoHotWallet(path, address, sources);
  const passphraseFile = sources.passphraseFile ?? passphraseBeside(path);
  return {
    address,
    privateKey() {
      if (!existsSync(passphraseFile)) {
        throw usage(`The passphrase of ${path} is needed: name its file with --passphrase-file.`);
      }
      return readWalletKey({ keystore: path, passphrase: passphraseFile }).privateKey;
    },
  };
}

function addressOfKeystore(path: string, text: string): Address {
  try {
    return keystoreAddress(text);
  } catch {
    throw usage(`${path} is neither a key file (0x hex on one line) nor a keystore.`);
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw usage(`Cannot read ${path}: ${fileCause(cause)}.`);
  }
}

function warnIfOpen(path: string, { warn }: KeySources): void {
  const others = 0o077;
  if ((statSync(path).mode & others) === 0) return;
  warn(`${path} can be read by others than its owner: chmod 600 ${path}`);
}
