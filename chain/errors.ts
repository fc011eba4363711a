/** The one error shape of the whole kit: a stable code, typed details, and whether trying again can help. */

/** Values that may travel in an error's details: plain data, never secrets or raw bodies. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** What an `AppError` carries beside its code and message. */
export interface AppErrorOptions {
  readonly details?: ErrorDetails;
  /** True when the same call may succeed later without any change by the caller. */
  readonly retriable?: boolean;
  readonly cause?: unknown;
}

/**
 * Base of every coded error. Callers switch on `code`, never on `message`; edges map codes to
 * JSON-RPC, HTTP or Rosetta errors once.
 */
export class AppError<Code extends string = string> extends Error {
  readonly code: Code;
  readonly details: ErrorDetails;
  readonly retriable: boolean;

  constructor(code: Code, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.details = options.details ?? {};
    this.retriable = options.retriable ?? false;
  }
}

/**
 * Codes of faults in the pure primitives of `chain/`. IMPLEMENTATIONS_DISAGREE: @ethereumjs/tx and
 * our own encoding made different transactions of one intent.
 */
export type ChainErrorCode =
  | "INVALID_HEX"
  | "INVALID_QUANTITY"
  | "INVALID_AMOUNT"
  | "INVALID_ADDRESS"
  | "INVALID_RLP"
  | "INVALID_TRANSACTION"
  | "UNSUPPORTED_TRANSACTION_TYPE"
  | "UNPROTECTED_TRANSACTION"
  | "IMPLEMENTATIONS_DISAGREE"
  | "WRONG_CHAIN_ID"
  | "INVALID_SIGNATURE"
  | "INVALID_KEY"
  | "INVALID_XPUB"
  | "DERIVATION_MISMATCH"
  | "INVALID_MESSAGE"
  | "INVALID_VALIDATORS"
  | "HEIGHT_BEFORE_RECEIPT"
  | "KEYSTORE_MALFORMED"
  | "KEYSTORE_WRONG_PASSPHRASE"
  | "KEYSTORE_WRONG_ADDRESS";

/** Malformed or unacceptable chain data. */
export class ChainError extends AppError<ChainErrorCode> {}

/**
 * Reads the code of any thrown value: `AppError.code`, a Node error's `code`, else "UNKNOWN".
 */
export function errorCode(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") {
    return error.code;
  }
  return "UNKNOWN";
}

/** Message of any thrown value, for logs and last-resort reports. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** An answer that must exist is missing; the process that meets it cannot be trusted to go on. */
export class MissingAnswer extends AppError<"MISSING_ANSWER"> {}

/**
 * The value itself.
 * @param what names it in the fault, for example "balance of an asked account"
 * @throws MISSING_ANSWER when it is undefined
 */
export function present<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new MissingAnswer("MISSING_ANSWER", `there is no ${what}`);
  return value;
}
