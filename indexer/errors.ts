/** Coded faults of the indexer and its API. */
import { AppError } from "../chain/errors.js";

/**
 * Codes of the indexer. FOREIGN_INDEX, NEWER_INDEX and OLDER_INDEX: the tables are of another chain
 * or version; CONTRADICTED: node and index disagree about a final block, or about coins; NODE_UNFIT:
 * the node lacks a method or has deleted what is needed; DATABASE_TOO_OLD: the server lacks a function;
 * INDEX_MOVED: blocks come faster than balances can be looked at; the others are answers of the API.
 */
const INDEXER_ERROR_CODES = [
  "FOREIGN_INDEX",
  "NEWER_INDEX",
  "OLDER_INDEX",
  "CONTRADICTED",
  "NODE_UNFIT",
  "DATABASE_TOO_OLD",
  "WRONG_NETWORK",
  "NOT_FOUND",
  "INVALID_FIELD",
  "CURSOR_MISMATCH",
  "NOT_INDEXED_YET",
  "RATE_LIMITED",
  "TOO_MANY_STREAMS",
  "TOO_MANY_READS",
  "EXPORT_BUSY",
  "EXPORT_TOO_LARGE",
  "EXPORT_BLOCK_GONE",
  "NO_INDEX",
  "BURN_ADDRESS_UNKNOWN",
  "INDEX_MOVED",
] as const;

/** One of `INDEXER_ERROR_CODES`. */
export type IndexerErrorCode = (typeof INDEXER_ERROR_CODES)[number];

/** A fault of this folder. */
export class IndexerError extends AppError<IndexerErrorCode> {}
