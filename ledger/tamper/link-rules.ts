/**
 * Pure: what is hashed, and how. A row is written as a JSON array of texts, null and such arrays,
 * without white space (`JSON.stringify`); its digest is SHA-256 of these bytes. A link is SHA-256 of
 * five lines: the hash of the link before, the link's number, kind, the row's key, the row's digest.
 * The first link stands on the ledger's own identity.
 */
import { hash } from "node:crypto";

/**
 * Kinds of rows that are linked: what moved coins, what allowed it, whose addresses are, and what persons
 * decide; in the order in which releases brought them.
 */
export const LINK_KINDS = [
  "event",
  "entry",
  "deposit",
  "withdrawal",
  "asset",
  "token_state",
  "sighting",
  "activation",
  "listing",
  "decision",
  "approval",
  "verdict",
  "kill_switch",
  "address",
  "assignment",
  "proposal",
  "outcome",
  "wallet",
  "wallet_change",
  "acknowledgement",
  "rewind",
] as const;

/** One of `LINK_KINDS`. */
export type LinkKind = (typeof LINK_KINDS)[number];

/** A row as it is hashed; the fields of each kind are in `linked-rows.ts`. */
export type CanonicalValue = string | null | readonly CanonicalValue[];

/** One row of the books in the chain of hashes: its digest, and the hash of all links up to it. */
export interface Link {
  /** 1, 2, 3 ... without gaps. */
  readonly n: number;
  readonly kind: LinkKind;
  /** Identifier of the row among those of its kind. */
  readonly key: number;
  /** 64 hex digits, as all hashes here. */
  readonly digest: string;
  readonly previous: string;
  readonly hash: string;
}

/** Of which ledger and blockchain the links are: their first `previous` is made of it. */
export interface ChainRoot {
  /** Random identity of the ledger. */
  readonly ledgerId: string;
  /** Hash of block 0, 0x and 64 hex digits. */
  readonly genesisHash: string;
}

/** Value of `previous` in the first link. */
export function rootHash({ ledgerId, genesisHash }: ChainRoot): string {
  return sha256(["causeway-chain/1", ledgerId, genesisHash].join("\n"));
}

/** The first field of the row that a link is about: indexes of addresses begin at 0, keys at 1. */
export function firstFieldOf({ kind, key }: Pick<Link, "kind" | "key">): string {
  return `${kind === "address" ? key - 1 : key}`;
}

/** Digest of a row. */
export function rowDigest(row: readonly CanonicalValue[]): string {
  return sha256(JSON.stringify(row));
}

/** The link of a row behind the last one. */
export function nextLink(
  before: Pick<Link, "n" | "hash">,
  row: Pick<Link, "kind" | "key" | "digest">,
): Link {
  const n = before.n + 1;
  const { kind, key, digest } = row;
  return {
    n,
    kind,
    key,
    digest,
    previous: before.hash,
    hash: linkHash({ ...row, n, previous: before.hash }),
  };
}

/** Hash of a link from everything else in it. */
export function linkHash({ previous, n, kind, key, digest }: Omit<Link, "hash">): string {
  return sha256([previous, `${n}`, kind, `${key}`, digest].join("\n"));
}

function sha256(text: string): string {
  return hash("sha256", text, "hex");
}
