/** Why a check could not be made at all; nothing about the chain is said by it. */
import { AppError } from "../../chain/errors.js";

/** Codes of faults of the command itself. */
export type MeshCheckErrorCode = "BAD_RANGE" | "TOO_MANY_BALANCES" | "BAD_OPTION";

/** The walk cannot be made, or cannot go on. */
export class MeshCheckError extends AppError<MeshCheckErrorCode> {}
