/** Faults of snapshots. */
import { AppError } from "../../../chain/errors.js";

/** Codes of faults of snapshots. */
export type SnapshotErrorCode =
  /** A manifest or a chunk is not what it should be, or does not prove what was decided. */
  | "SNAPSHOT_INVALID"
  /** A snapshot would take room on the disk that the chain needs. */
  | "SNAPSHOT_NO_ROOM"
  /** A snapshot cannot be written (disk full, read-only). */
  | "SNAPSHOT_WRITE_FAILED";

/** A fault of a snapshot; an invalid one is never retriable. */
export class SnapshotError extends AppError<SnapshotErrorCode> {}

/** The error for a snapshot that must not be believed; `reason` names the first broken rule. */
export function snapshotInvalid(reason: string, cause?: unknown): SnapshotError {
  return new SnapshotError("SNAPSHOT_INVALID", `the snapshot is not valid: ${reason}`, {
    details: { reason },
    cause,
  });
}
