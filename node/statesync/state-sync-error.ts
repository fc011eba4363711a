/** Faults of the light client and of state sync. */
import { AppError } from "../../chain/errors.js";

/** Codes of faults on the way to a state that may be trusted. */
export type StateSyncErrorCode =
  /** Two servers tell different stories of one height: at least one of them lies. */
  | "LIGHT_DIVERGENCE"
  /** The header at the trusted height is not the one that the operator trusts. */
  | "TRUST_HASH_MISMATCH"
  /** What a server says breaks a rule or a bound. */
  | "SERVER_ANSWER_INVALID"
  /** Too few servers answer, or they lack the height; may pass. */
  | "SERVER_UNAVAILABLE"
  /** No peer gives what the chosen snapshot needs; may pass. */
  | "SNAPSHOT_UNAVAILABLE"
  /** A chunk cannot be kept (disk full, read-only). */
  | "CHUNK_WRITE_FAILED";

/** A fault of state sync. */
export class StateSyncError extends AppError<StateSyncErrorCode> {}
