/**
 * Tokens that came to our addresses and are not credited: of contracts that nobody listed, NFTs, and
 * what listed contracts claimed without delivering or taking. Recorded and never booked; of one block, of
 * contracts that nobody listed, as many as `deposit-watcher/tokens/wanted-logs.ts` says.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { stands } from "../watch/lost-heights.js";
import {
  storedAddress,
  storedAtoken,
  storedHash,
  storedHeight,
  storedInteger,
} from "../stored-values.js";

/** Standards whose transfers are looked for. */
const TOKEN_STANDARDS = ["erc20", "erc721", "erc1155"] as const;

/** One of `TOKEN_STANDARDS`. */
export type TokenStandard = (typeof TOKEN_STANDARDS)[number];

/**
 * Why it is not credited. UNKNOWN_TOKEN: no listed contract. NFT: no fungible token. MALFORMED: not
 * written as the standard has it. NOT_ARRIVED: the balance did not rise by any of it, or its transaction took
 * it again. SHORTFALL: it rose by less, or a part was taken so; what stayed is a deposit. UNREADABLE: the
 * contract does not tell the balance. NOT_LEFT: it says that units left the address, and the balance did not
 * fall by them; no payment or sweep of ours did it.
 */
const SIGHTING_REASONS = [
  "UNKNOWN_TOKEN",
  "NFT",
  "MALFORMED",
  "NOT_ARRIVED",
  "SHORTFALL",
  "UNREADABLE",
  "NOT_LEFT",
] as const;

/** One of `SIGHTING_REASONS`. */
export type SightingReason = (typeof SIGHTING_REASONS)[number];

/** Something that a contract says came to one of our addresses, or left it. */
export interface NewSighting {
  readonly height: Height;
  readonly blockHash: Hash32;
  readonly txHash: Hash32;
  readonly txIndex: number;
  /** Numbered as that of a deposit. */
  readonly opIndex: number;
  readonly contract: Address;
  readonly standard: TokenStandard;
  /** Ours. */
  readonly address: Address;
  /** Who is said to have sent it, undefined for a mint; of NOT_LEFT who has it, undefined for a burn. */
  readonly sender: Address | undefined;
  /** Units, or the id of an NFT; undefined where the log names several or none. */
  readonly claimed: bigint | undefined;
  readonly reason: SightingReason;
}

/** A sighting as stored. */
export interface StoredSighting extends NewSighting {
  /** Position in the list of all; never changes. */
  readonly id: number;
}

/** Which sightings to list, oldest first. */
export interface SightingFilter {
  readonly address?: Address | undefined;
  readonly txHash?: Hash32 | undefined;
  /** Only those after this position; 0 for all. */
  readonly afterId: number;
  readonly limit: number;
}

/** Stores sightings of a run of blocks. */
export async function recordSightings(
  tx: Sql,
  sightings: readonly NewSighting[],
  rewinds: number,
): Promise<void> {
  if (sightings.length === 0) return;
  const column = (read: (sighting: NewSighting) => unknown) => sightings.map(read);
  await tx.query(
    `INSERT INTO token_sighting (height, block_hash, tx_hash, tx_index, op_index, rewind, contract,
       standard, address, sender, claimed, reason)
     SELECT height, block_hash, tx_hash, tx_index, op_index, $1, contract, standard, address,
            sender, claimed, reason
       FROM unnest($2::bigint[], $3::text[], $4::text[], $5::integer[], $6::integer[], $7::text[],
                   $8::text[], $9::text[], $10::text[], $11::numeric[], $12::text[])
            AS t (height, block_hash, tx_hash, tx_index, op_index, contract, standard, address,
                  sender, claimed, reason)
      ORDER BY height, tx_index, op_index`,
    [
      rewinds,
      column(({ height }) => height),
      column(({ blockHash }) => blockHash),
      column(({ txHash }) => txHash),
      column(({ txIndex }) => txIndex),
      column(({ opIndex }) => opIndex),
      column(({ contract }) => contract),
      column(({ standard }) => standard),
      column(({ address }) => address),
      column(({ sender }) => sender ?? null),
      column(({ claimed }) => claimed?.toString() ?? null),
      column(({ reason }) => reason),
    ],
  );
}

/** Sightings of blocks that the chain has which match every given filter, oldest first, at most `limit`. */
export async function listSightings(sql: Sql, filter: SightingFilter): Promise<StoredSighting[]> {
  const rows = await sql.query<SightingRow>(
    `SELECT id::text, height::text, block_hash, tx_hash, tx_index, op_index, contract, standard,
            address, sender, claimed::text, reason
       FROM token_sighting
      WHERE id > $1 AND ($2::text IS NULL OR address = $2) AND ($3::text IS NULL OR tx_hash = $3)
        AND ${stands("height", "rewind")}
      ORDER BY token_sighting.id LIMIT $4`,
    [filter.afterId, filter.address ?? null, filter.txHash ?? null, filter.limit],
  );
  return rows.map(parseRow);
}

interface SightingRow {
  readonly id: string;
  readonly height: string;
  readonly block_hash: string;
  readonly tx_hash: string;
  readonly tx_index: number;
  readonly op_index: number;
  readonly contract: string;
  readonly standard: string;
  readonly address: string;
  readonly sender: string | null;
  readonly claimed: string | null;
  readonly reason: string;
}

function parseRow(row: SightingRow): StoredSighting {
  const standard = TOKEN_STANDARDS.find((known) => known === row.standard);
  const reason = SIGHTING_REASONS.find((known) => known === row.reason);
  if (standard === undefined || reason === undefined) {
    throw new LedgerError("CORRUPT_ROW", "unknown kind of a sighting");
  }
  return {
    id: storedInteger(row.id),
    height: storedHeight(row.height),
    blockHash: storedHash(row.block_hash),
    txHash: storedHash(row.tx_hash),
    txIndex: row.tx_index,
    opIndex: row.op_index,
    contract: storedAddress(row.contract),
    standard,
    address: storedAddress(row.address),
    sender: row.sender === null ? undefined : storedAddress(row.sender),
    claimed: row.claimed === null ? undefined : storedAtoken(row.claimed),
    reason,
  };
}
