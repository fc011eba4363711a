/** Process entry of the explorer. */
import { NETWORKS } from "../chain/networks.js";
import { type ConfigSources, loadConfig } from "../runtime/config/config.js";
import { readTogether } from "../runtime/config/read-together.js";
import { loadTokenFile } from "../runtime/config/token-file.js";
import { systemClock } from "../runtime/process/clock.js";
import { runProcess } from "../runtime/process/lifecycle.js";
import { createMetrics } from "../runtime/process/metrics.js";
import { createExplorer } from "./app.js";
import { explorerConfig } from "./config.js";

function readSettings(sources: ConfigSources) {
  return readTogether({
    config: () => loadConfig(sources, explorerConfig),
    tokens: () => loadTokenFile(sources.home),
  });
}

runProcess({
  name: "explorer",
  settings: readSettings,
  async start({ home, env, portOffset, log, signal }) {
    const { config, tokens } = readSettings({ home, env, portOffset });
    const explorer = createExplorer({
      home,
      config,
      network: NETWORKS[config[""].network],
      tokens,
      clock: systemClock,
      log,
      metrics: createMetrics(),
      signal,
    });
    await explorer.start();
    return explorer.services;
  },
});
