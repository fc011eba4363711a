/** Gas of Cancun that is not one number for one opcode. Sources: Yellow Paper, appendix G, and EIPs. */

/** First touch of an account (EIP-2929). */
export const COLD_ACCOUNT_GAS = 2_600;
/** Each further touch of an account or slot (EIP-2929). */
export const WARM_GAS = 100;
/** First touch of a slot (EIP-2929). */
export const COLD_SLOT_GAS = 2_100;

/** SSTORE that sets a slot that was zero (EIP-2200; refunds of EIP-3529). */
export const SLOT_SET_GAS = 20_000;
/** SSTORE that changes a slot that was not zero. */
export const SLOT_RESET_GAS = 2_900;
/** What comes back for a slot that is cleared. */
export const SLOT_CLEAR_REFUND = 4_800;
/** With no more than this an SSTORE fails (EIP-2200). */
export const SLOT_SENTRY_GAS = 2_300;

/** A call that moves coins. */
export const VALUE_GAS = 9_000;
/** What a called contract gets for nothing when coins come with the call. */
export const STIPEND_GAS = 2_300;
/** A call that makes an account. */
export const NEW_ACCOUNT_GAS = 25_000;

/** A byte of code that stays. */
export const CODE_BYTE_GAS = 200;
/** The most code that may stay (EIP-170). */
export const MAX_CODE_BYTES = 24_576;
/** A word of creation code (EIP-3860). */
export const INIT_CODE_WORD_GAS = 2;
/** The most creation code (EIP-3860). */
export const MAX_INIT_CODE_BYTES = 2 * MAX_CODE_BYTES;

/** A word that is hashed. */
export const HASH_WORD_GAS = 6;
/** A word that is copied. */
export const COPY_WORD_GAS = 3;

/** A topic of a log. */
export const LOG_TOPIC_GAS = 375;
/** A byte of a log. */
export const LOG_BYTE_GAS = 8;

/** A byte of an exponent (EIP-160). */
export const EXPONENT_BYTE_GAS = 50;

/** Memory: so much a word, and the words squared over the divisor. */
const MEMORY_WORD_GAS = 3;
const MEMORY_QUADRATIC_DIVISOR = 512;

/** Calls may be nested so deep. */
export const MAX_DEPTH = 1_024;

/** Gas of so many words of memory, counted from none. */
export function memoryGas(words: number): number {
  return words * MEMORY_WORD_GAS + Math.floor((words * words) / MEMORY_QUADRATIC_DIVISOR);
}

/** Words that so many bytes take. */
export function wordsOf(bytes: number): number {
  return Math.ceil(bytes / 32);
}

/** What a caller may pass on at most: all but a 64th (EIP-150). */
export function allButOne64th(gas: number): number {
  return gas - Math.floor(gas / 64);
}
