/** What both processes of the sidecar are told by the files of the home. */
import { type ConfigSources, loadConfig } from "../runtime/config/config.js";
import { readTogether } from "../runtime/config/read-together.js";
import { sidecarConfig } from "./config.js";
import { loadTokenRegistry } from "./rosetta/token-registry.js";

/** Settings and tokens with names; the faults of both are told together. @throws ConfigError */
export function readSettings(sources: ConfigSources) {
  return readTogether({
    config: () => loadConfig(sources, sidecarConfig),
    registry: () => loadTokenRegistry(sources.home),
  });
}
