/** Upgrades that `causeway start` is told to give up. */
import {
  ConfigError,
  type ConfigSources,
  type Environment,
  environmentName,
  loadConfig,
} from "../../runtime/config/config.js";
import { APP_FILE } from "../../node/settings/config.js";

/**
 * The environment of a node that gives up the upgrades of these heights as well: what its settings name was
 * given up before, and stays so.
 * @param heights as typed; none leaves everything as the settings say
 */
export function withSkips(
  sources: Pick<ConfigSources, "home" | "env">,
  heights: readonly string[],
): Environment {
  if (heights.length === 0) return sources.env;
  const all = new Set([...namedSkips(sources), ...heights]);
  return { ...sources.env, [environmentName("app", "skip-upgrades")]: [...all].join(",") };
}

/** Heights at which a node started like this gives an upgrade up. */
export function skippedHeights(
  sources: Pick<ConfigSources, "home" | "env">,
  heights: readonly string[],
): ReadonlySet<number> {
  return new Set([...namedSkips(sources), ...heights].map(Number));
}

/** None where the settings are wrong: the node tells that of all its files together. */
function namedSkips({ home, env }: Pick<ConfigSources, "home" | "env">): readonly string[] {
  try {
    return loadConfig({ home, env }, APP_FILE)[""]["skip-upgrades"];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [];
  }
}
