/** Process entry of the explorer. */
import { NETWORKS } from "../chain/networks.js";
import { loadConfig } from "../runtime/config/config.js";
import { loadTokenFile } from "../runtime/config/token-file.js";
import { systemClock } from "../runtime/process/clock.js";
import { runProcess } from "../runtime/process/lifecycle.js";
import { createMetrics } from "../runtime/process/metrics.js";
import { createExplorer } from "./app.js";
import { explorerConfig } from "./config.js";

runProcess({
  name: "explorer",
  async start({ home, env, portOffset, log, signal }) {
    const config = loadConfig({ home, env, portOffset }, explorerConfig);
    const explorer = createExplorer({
      home,
      config,
      network: NETWORKS[config[""].network],
      tokens: loadTokenFile(home),
      clock: systemClock,
      log,
      metrics: createMetrics(),
      signal,
    });
    await explorer.start();
    return explorer.services;
  },
});
