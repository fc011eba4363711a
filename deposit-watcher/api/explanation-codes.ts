/** What programs are told of why a transaction's coins are credited, or are not; as in the API file. */

const EXPLANATION_CODES = [
  /** There is a deposit, and it is credited. */
  "CREDITED",
  /** There is a deposit, and it waits for its confirmations. */
  "CONFIRMING",
  /** There is a deposit, and it is held: its token is paused. */
  "HELD",
  /** What it brought lies in suspense: as a deposit, or as a part of one sum of units of a listed token. */
  "SUSPENSE",
  /** There was a deposit, and the chain came back without its block. */
  "REVERSED",
  /** It is in no block, and the pool has it executable. */
  "PENDING",
  /** It is in no block, and none can have it yet, as where an earlier one of its sender is missing. */
  "QUEUED",
  /** It is in no block, and another one of the same nonce took its place. */
  "REPLACED",
  /** It is in no block, and the pool has let go of it. */
  "DROPPED",
  /** Neither the pool nor a block that the node still has knows it. */
  "UNKNOWN_TRANSACTION",
  /** It is in a block, and was reverted. */
  "FAILED",
  /**
   * The watcher, or by now the Data API, is below its block, or what came before an address or its token was
   * registered is not booked yet.
   */
  "NOT_READ_YET",
  /** Crediting stands still. */
  "HALTED",
  /** It brought one of our addresses tokens or NFTs that nobody listed. */
  "TOKEN_NOT_CREDITED",
  /** A listed token claimed more than came, or than was there when it was registered. */
  "TOKEN_NOT_ARRIVED",
  /** It brought what is the exchange's own. */
  "NOT_A_DEPOSIT",
  /** It touched our addresses and left them no richer. */
  "NOTHING_ARRIVED",
  /** It touched none of our addresses. */
  "NOT_OURS",
  /** The Data API cannot tell: its node has deleted what the block is made of. */
  "BLOCK_DELETED",
] as const;

/** One of `EXPLANATION_CODES`. */
export type ExplanationCode = (typeof EXPLANATION_CODES)[number];
