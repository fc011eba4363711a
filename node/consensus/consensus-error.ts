/** Faults of consensus. */
import { AppError } from "../../chain/errors.js";

/** Codes of faults of consensus. */
export type ConsensusErrorCode =
  /** The key's state file cannot be read as CometBFT's. */
  | "VALIDATOR_STATE_INVALID"
  /** The state file of a validator's key is missing: what the key signed is not known. */
  | "VALIDATOR_STATE_MISSING"
  /** The signer will not sign: it signed something later, or something else in the same step. */
  | "SIGNATURE_REFUSED"
  /** What was signed last cannot be written down, so nothing may be signed. */
  | "SIGNER_WRITE_FAILED"
  | "WAL_WRITE_FAILED"
  /** The log knows of heights that the store has lost. */
  | "WAL_AHEAD_OF_STORE"
  /** The key signed one of the last blocks: another process may be using it. */
  | "DOUBLE_SIGN_RISK"
  /** Something that must never happen: consensus stops here. */
  | "CONSENSUS_FAILURE";

/** A fault of consensus. */
export class ConsensusError extends AppError<ConsensusErrorCode> {}
