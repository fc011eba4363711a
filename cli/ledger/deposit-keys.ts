/**
 * The keys that deposit addresses of a ledger were given out by: the home's, and, for indexes below it, those
 * that it took the place of.
 */
import { join } from "node:path";
import type { Address } from "../../chain/address.js";
import { createAddressDerivation } from "../../chain/derivation/address-derivation.js";
import { firstOfKey, type KeyRange, lastOfKey } from "../../ledger/deposits/deposit-addresses.js";
import { readCursor } from "../../ledger/watch/watch-cursor.js";
import { readSecretFile } from "../../runtime/config/secret-file.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { CliError } from "../errors.js";

/** What addresses of a ledger are derived from. */
export interface DepositKeys {
  /** The address of an index, by the key that the index is of. */
  readonly addressAt: (index: number) => Address;
  /**
   * Addresses of another key would take the indexes of those that customers were told, which nobody would
   * watch then.
   * @throws HOME_UNUSABLE where the ledger has addresses that are not of the key of their index, or lacks
   *   some that no key is named for
   */
  readonly refuseOthers: (sql: Sql) => Promise<void>;
}

/** One key, with where it stands. */
interface NamedKey extends KeyRange {
  readonly file: string;
}

/**
 * @param keyFromIndex from which on addresses are of the home's key
 * @param former as typed, each `<first index>:<file>`
 * @throws USAGE, SECRET_FILE_UNREADABLE, faults of an xpub
 */
export function readDepositKeys(
  home: string,
  keyFromIndex: number,
  former: readonly string[] = [],
): DepositKeys {
  const present = readKey(join(home, "config", "deposit.xpub"), keyFromIndex);
  const others = former.map((text) => parseFormer(text, keyFromIndex));
  const starts = [...others, present].toSorted((left, right) => left.firstIndex - right.firstIndex);
  const keys = starts.map((key, place) => ({ ...key, endIndex: starts[place + 1]?.firstIndex }));
  for (const [place, { firstIndex, file, deriveAddress }] of keys.slice(1).entries()) {
    if (keys[place]?.firstIndex === firstIndex) {
      throw new CliError("USAGE", `--former-key names two keys for index ${firstIndex}.`);
    }
    if (keys[place]?.deriveAddress(firstIndex) !== deriveAddress(firstIndex)) continue;
    throw new CliError("USAGE", `${keys[place]?.file} holds the same key as ${file}.`);
  }
  const lowest = keys[0] ?? present;
  return {
    addressAt: (index) =>
      (keys.findLast(({ firstIndex }) => firstIndex <= index) ?? lowest).deriveAddress(index),
    async refuseOthers(sql) {
      for (const key of keys) await refuseOther(sql, key);
      const { nextAddressIndex } = await readCursor(sql);
      if (nextAddressIndex < lowest.firstIndex) throw lacksKey(lowest.firstIndex);
    },
  };
}

/** @throws USAGE, as `readDepositKeys` */
function parseFormer(text: string, keyFromIndex: number): NamedKey {
  const [, index, file = ""] = /^(0|[1-9][0-9]{0,9}):(.+)$/.exec(text) ?? [];
  if (index === undefined) {
    throw new CliError(
      "USAGE",
      "--former-key takes the first index that is the key's own and the file of its xpub, as 0:former.xpub.",
    );
  }
  if (Number(index) >= keyFromIndex) {
    throw new CliError(
      "USAGE",
      `--former-key ${index}: from index ${keyFromIndex} on addresses are of config/deposit.xpub, by ` +
        "api.deposit-key-from-index of watcher.toml.",
    );
  }
  return readKey(file, Number(index));
}

function readKey(file: string, firstIndex: number): NamedKey {
  const derivation = createAddressDerivation(readSecretFile(file));
  return { file, firstIndex, deriveAddress: (index) => derivation.addressAt(index) };
}

async function refuseOther(sql: Sql, key: NamedKey): Promise<void> {
  for (const found of [await firstOfKey(sql, key), await lastOfKey(sql, key)]) {
    if (found?.isOfKey !== false) continue;
    throw new CliError(
      "HOME_UNUSABLE",
      `${key.file} is another key than the ledger's: address ${found.index} of this ledger, ` +
        `${found.address}, is not of it. config/deposit.xpub has to be that of the home that gave it out; ` +
        "where the key was exchanged on purpose, api.deposit-key-from-index of watcher.toml says from " +
        "which index on, and --former-key names what was before. Nothing was recovered.",
    );
  }
}

function lacksKey(firstIndex: number): CliError {
  return new CliError(
    "HOME_UNUSABLE",
    `The ledger lacks addresses below ${firstIndex}, and by api.deposit-key-from-index of watcher.toml ` +
      "these were given out by a former key: name the file of its xpub, causeway recover --former-key " +
      "0:<file>, with what you typed. Nothing was recovered.",
  );
}
