/** The tests' own variables: JavaScript, as `npm test` asks for it before anything is built. */

/** Names of what runs of the tests are told: how much, from which seed, where. */
export const OF_TESTS =
  /^CAUSEWAY_(AUDITED|FAULT|FUZZ|HISTORY|LOSS|SEARCH|SIM|SOAK|TEST)_|^CAUSEWAY_(INTENTS|PROGRAMS|RECORDED|SCREENSHOTS)$/;
