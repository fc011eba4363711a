/** An account as the state holds it, and its two encodings: of tries and snapshots, and of the store. */
import { EMPTY_CODE_HASH, EMPTY_TRIE_ROOT, type Hash32, hexToBytes } from "../../chain/hex.js";
import { encodeRlp } from "../../chain/encoding/rlp-writer.js";
import { readRlp, type RlpReader } from "../../chain/encoding/rlp-reader.js";
import { Slab } from "../../chain/encoding/slab.js";
import type { Atoken } from "../../chain/units.js";

/** Immutable account; every change makes a new record. */
export interface AccountRecord {
  readonly nonce: bigint;
  readonly balanceAtoken: Atoken;
  readonly storageRoot: Hash32;
  readonly codeHash: Hash32;
}

/** The account that an unknown address stands for. */
export const EMPTY_ACCOUNT: AccountRecord = {
  nonce: 0n,
  balanceAtoken: 0n,
  storageRoot: EMPTY_TRIE_ROOT,
  codeHash: EMPTY_CODE_HASH,
};

/** Empty in the sense of EIP-161: such accounts do not exist in the state. */
export function isEmptyAccount(account: AccountRecord): boolean {
  return (
    account.nonce === 0n && account.balanceAtoken === 0n && account.codeHash === EMPTY_CODE_HASH
  );
}

const EMPTY_ROOT_BYTES = hexToBytes(EMPTY_TRIE_ROOT);
const EMPTY_CODE_BYTES = hexToBytes(EMPTY_CODE_HASH);

/** What is encoded is copied into a trie's node and into the store, and not kept. */
const ENCODED = new Slab();

/** rlp([nonce, balance, storageRoot, codeHash]): the value in the account trie and in snapshots. */
export function encodeAccount(account: AccountRecord): Uint8Array {
  const { nonce, balanceAtoken, storageRoot, codeHash } = account;
  return encodeRlp(
    [
      nonce,
      balanceAtoken,
      storageRoot === EMPTY_TRIE_ROOT ? EMPTY_ROOT_BYTES : storageRoot,
      codeHash === EMPTY_CODE_HASH ? EMPTY_CODE_BYTES : codeHash,
    ],
    ENCODED,
  );
}

/** Reads an account of a trie or a snapshot. Throws INVALID_RLP. */
export function decodeAccount(bytes: Uint8Array): AccountRecord {
  return readRlp(bytes, (reader) => reader.list(readAccountFields));
}

function readAccountFields(reader: RlpReader): AccountRecord {
  return {
    nonce: reader.integer(),
    balanceAtoken: reader.integer(),
    storageRoot: reader.hex(32) as Hash32,
    codeHash: reader.hex(32) as Hash32,
  };
}

const NO_HASH = new Uint8Array(0);

/**
 * The same for the store, with empty bytes for the storage root and the code hash that accounts
 * without storage and code have: 14 bytes of most accounts instead of 72.
 */
export function encodeStoredAccount(account: AccountRecord): Uint8Array {
  const { nonce, balanceAtoken, storageRoot, codeHash } = account;
  return encodeRlp(
    [
      nonce,
      balanceAtoken,
      storageRoot === EMPTY_TRIE_ROOT ? NO_HASH : storageRoot,
      codeHash === EMPTY_CODE_HASH ? NO_HASH : codeHash,
    ],
    ENCODED,
  );
}

/** Reads an account of the store; also of format 3, with both hashes. Throws INVALID_RLP. */
export function decodeStoredAccount(bytes: Uint8Array): AccountRecord {
  return readRlp(bytes, (reader) => reader.list(readStoredFields));
}

function readStoredFields(reader: RlpReader): AccountRecord {
  return {
    nonce: reader.integer(),
    balanceAtoken: reader.integer(),
    storageRoot: (reader.optionalHex(32) ?? EMPTY_TRIE_ROOT) as Hash32,
    codeHash: (reader.optionalHex(32) ?? EMPTY_CODE_HASH) as Hash32,
  };
}
