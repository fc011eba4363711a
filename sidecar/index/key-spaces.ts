/**
 * The sidecar's index: one level store in `<home>/data/sidecar`, derived from the chain and
 * rebuilt by deleting it. This page lists every key space as "key -> value"; prefix numbers are
 * never reused.
 */

/** The version of this layout: an older index is built anew, a newer one refused. */
export const INDEX_FORMAT_VERSION = 3;

/**
 * Key spaces. Heights are 8 big-endian bytes, positions 4, addresses 20, hashes 32; token amounts
 * are big-endian without leading zeros.
 */
const INDEX_SPACE = {
  /** name -> text: format version, genesis hash, registry entries */
  meta: 0x01,
  /** "" -> height: the last indexed block */
  tip: 0x02,
  /** height -> finished reply of /block with the places of its transactions (block-records.ts) */
  block: 0x10,
  /** height -> block hash */
  heightHash: 0x11,
  /** block hash -> height */
  blockHash: 0x12,
  /** transaction hash -> height, position; the block-level transaction has its block's hash */
  transaction: 0x13,
  /** "" -> height of the oldest stored reply, bytes of all stored replies (8 each) */
  storedBlocks: 0x14,
  /** height -> JSON of the accounts that each of its transactions names (block-accounts.ts) */
  blockAccounts: 0x15,
  /** height -> "": a block whose node did not tell the hash that validators signed; nor does its reply */
  unsigned: 0x16,
  /** contract, account, height -> the account's balance after that block, as operations have it */
  tokenBalance: 0x20,
  /** contract, account -> its balance at the index' tip; every account that was ever named */
  holder: 0x21,
  /** account, contract -> height of the account's first operation of the token */
  holding: 0x22,
  /** contract -> height from which it is quarantined, then the reason as text */
  quarantine: 0x23,
  /** contract -> height of its first Deposit or Withdrawal without a Transfer (token-operations.ts) */
  unaccompanied: 0x25,
  /** contract -> account at which the next check of a part of its holders begins */
  holderCursor: 0x24,
  /** term, 2^53 - 1 - height of its oldest entry -> full chunk of postings (posting-codec.ts) */
  postingChunk: 0x40,
  /** term -> its newest chunk of postings, which still grows (search-postings.ts) */
  postingHead: 0x41,
} as const;

/** Name of a key space of the index. */
export type IndexSpace = keyof typeof INDEX_SPACE;

/** Key of a space: prefix byte, then the parts. */
export function indexKey(space: IndexSpace, ...parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.of(INDEX_SPACE[space]), ...parts]);
}

/** Name of a key's space and the rest of the key, for people. */
export function describeIndexKey(key: Uint8Array): string {
  const [name] = Object.entries(INDEX_SPACE).find(([, prefix]) => prefix === key[0]) ?? [
    "no space",
  ];
  return `${name}, key 0x${Buffer.from(key.subarray(1)).toString("hex")}`;
}
