/**
 * What calls of the chain's own contracts cost. A function pays for the words, accounts, coins and
 * logs that it needs what a contract would pay for them, but that nothing is refunded; on top of
 * it a base, and its bytes. The table is consensus, as the EVM's own is.
 */

/** Every call, also one that is refused. */
export const CALL_GAS = 2_000;
/** A word of input that is read, and of output that is written. */
export const DATA_WORD_GAS = 6;
/** An event that searches of transactions find. */
export const EVENT_GAS = 500;
/** secp256r1 verification (RIP-7212). */
export const P256_GAS = 3_450;

/** Compute units (D21) of a call, nanoseconds, as all that follow. */
export const CALL_NS = 40_000;
/** A word of input or output: decoded, encoded. */
export const DATA_WORD_NS = 400;
/** A byte of a proposal's JSON. */
export const JSON_BYTE_NS = 200;
/** An event: texts of its accounts, store. */
export const EVENT_NS = 100_000;
/** A word of a module that is read, its slot worked out. */
export const WORD_READ_NS = 6_000;
/** The same where it is written. */
export const WORD_WRITE_NS = 12_000;
/** A log: encoded, bloom, receipt. */
export const LOG_NS = 25_000;
/** A verification. */
export const P256_NS = 5_000_000;
