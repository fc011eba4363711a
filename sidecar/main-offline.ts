/** Process entry of the offline Construction API: opens no connection, ever. */
import { NETWORKS } from "../chain/networks.js";
import { type ConfigSources, loadConfig } from "../runtime/config/config.js";
import { readTogether } from "../runtime/config/read-together.js";
import { runProcess } from "../runtime/process/lifecycle.js";
import { createMetrics } from "../runtime/process/metrics.js";
import { sidecarConfig } from "./config.js";
import { createOfflineServer } from "./offline-server.js";
import { loadTokenRegistry } from "./rosetta/token-registry.js";

function readSettings(sources: ConfigSources) {
  return readTogether({
    config: () => loadConfig(sources, sidecarConfig),
    registry: () => loadTokenRegistry(sources.home),
  });
}

runProcess({
  name: "sidecar-offline",
  settings: readSettings,
  async start({ home, env, portOffset, log }) {
    const { config, registry } = readSettings({ home, env, portOffset });
    const server = createOfflineServer({
      network: NETWORKS[config[""].network],
      registry,
      listen: config.offline.listen,
      log,
      metrics: createMetrics(),
    });
    await server.start();
    return [server];
  },
});
