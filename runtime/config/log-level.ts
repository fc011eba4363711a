/** How much each process writes into its log: the one variable about it. */
import type { LogLevel } from "../process/logger.js";
import type { ConfigFault, Environment } from "./config.js";

/** Names the lowest level that is written; "info" without it. */
export const LOG_LEVEL_VARIABLE = "CAUSEWAY_LOG_LEVEL";

const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error", "silent"];

/** The level that the environment asks for; undefined for none, or for a wrong one. */
export function readLogLevel(env: Environment): LogLevel | undefined {
  return LOG_LEVELS.find((level) => level === env[LOG_LEVEL_VARIABLE]);
}

/** What is wrong with the variable; a level that nobody knows would be passed over in silence. */
export function logLevelFaults(env: Environment): readonly ConfigFault[] {
  const given = env[LOG_LEVEL_VARIABLE] ?? "";
  if (given === "" || readLogLevel(env) !== undefined) return [];
  const allowed = `one of ${LOG_LEVELS.map((level) => `"${level}"`).join(", ")}`;
  const value = JSON.stringify(given);
  return [{ file: "environment", key: LOG_LEVEL_VARIABLE, value, allowed }];
}
