/**
 * Which of the shell's variables reach tests and benchmarks. A shell that works with an exchange names its
 * database, its queue and its settings; what is started here brings services of its own, and would fill the
 * exchange's tables or drop them.
 */
import { OF_TESTS } from "../../cli/home/test-variables.mjs";

/** What parts of the kit and the Mesh image read beside names of ours. */
const SETTINGS = new Set(
  "DATABASE_URL REDIS_URL REDIS_PASSWORD_FILE MODE NETWORK PORT GENESIS SEEDS".split(" "),
);

/** What clients of PostgreSQL read. Source: libpq, "Environment Variables" */
const OF_POSTGRES = /^PG[A-Z]/;

const OURS = /^CAUSEWAY_/i;

/** Names of those that are settings of an exchange, but for the tests' own. */
export function settingsIn(env) {
  return Object.keys(env).filter(
    (name) =>
      SETTINGS.has(name) || OF_POSTGRES.test(name) || (OURS.test(name) && !OF_TESTS.test(name)),
  );
}

/** Takes them out, for this process and all that it starts. */
export function leaveOutSettings(env = process.env) {
  for (const name of settingsIn(env)) delete env[name];
}

/**
 * What jest is started with: without them, and without a list of certificates: every Node reads it as it
 * starts, for longer than the rest of its start, and tests start thousands and ask nobody outside.
 */
export function environmentOfTests(env = process.env) {
  const { NODE_EXTRA_CA_CERTS: _certificates, ...environment } = env;
  leaveOutSettings(environment);
  return environment;
}
