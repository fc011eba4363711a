/** An account as the state holds it, and its two encodings. */
import {
  bigintToBytes,
  EMPTY_CODE_HASH,
  EMPTY_TRIE_ROOT,
  type Hash32,
  hexToBytes,
} from "../../chain/hex.js";
import { encodeRlp } from "../../chain/encoding/rlp.js";
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

/** rlp([nonce, balance, storageRoot, codeHash]): the value in the account trie and in the store. */
export function encodeAccount(account: AccountRecord): Uint8Array {
  const { nonce, balanceAtoken, storageRoot, codeHash } = account;
  return encodeRlp(
    [
      bigintToBytes(nonce),
      bigintToBytes(balanceAtoken),
      storageRoot === EMPTY_TRIE_ROOT ? EMPTY_ROOT_BYTES : hexToBytes(storageRoot),
      codeHash === EMPTY_CODE_HASH ? EMPTY_CODE_BYTES : hexToBytes(codeHash),
    ],
    ENCODED,
  );
}

/** Reads an encoded account. */
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
