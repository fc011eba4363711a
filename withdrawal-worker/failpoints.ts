/** Names of the places where a test can kill the worker: every durable step of its path. */

/** Arm one with `CAUSEWAY_FAILPOINT`; the text says what a crash there leaves behind. */
export const WORKER_FAILPOINTS = {
  /** The request and its hold are committed, the client has no answer. */
  afterAcceptCommit: "worker.after-accept-commit",
  /** A request that cannot be paid has failed, its hold is released. */
  afterRefusalCommit: "worker.after-refusal-commit",
  /** Nonces are taken, nothing is signed. */
  afterSlotCommit: "worker.after-slot-commit",
  /** Bytes are signed and not stored: they are lost, the nonce is not. */
  beforeAttemptCommit: "worker.before-attempt-commit",
  /** Bytes are stored and not sent. */
  afterAttemptCommit: "worker.after-attempt-commit",
  /** A corrected attempt is stored and not sent. */
  afterCorrectionCommit: "worker.after-correction-commit",
  /** The node has the bytes, the ledger does not know. */
  afterSend: "worker.after-send",
  /** The ledger knows that the node has the bytes. */
  afterBroadcastCommit: "worker.after-broadcast-commit",
  /** A receipt was seen, nothing is written. */
  beforeInclusionCommit: "worker.before-inclusion-commit",
  /** The receipt is recorded, not booked. */
  afterInclusionCommit: "worker.after-inclusion-commit",
  /** Booked; nothing else remains to be done. */
  afterSettleCommit: "worker.after-settle-commit",
} as const;
