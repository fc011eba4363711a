/** Types of `test-variables.mjs`. */

/** Names of what runs of the tests are told. */
export declare const OF_TESTS: RegExp;
