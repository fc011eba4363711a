/** Process entry of the offline Construction API: opens no connection, ever. */
import { NETWORKS } from "../chain/networks.js";
import { loadConfig } from "../runtime/config/config.js";
import { runProcess } from "../runtime/process/lifecycle.js";
import { createMetrics } from "../runtime/process/metrics.js";
import { sidecarConfig } from "./config.js";
import { createOfflineServer } from "./offline-server.js";
import { loadTokenRegistry } from "./rosetta/token-registry.js";

runProcess({
  name: "sidecar-offline",
  async start({ home, env, portOffset, log }) {
    const config = loadConfig({ home, env, portOffset }, sidecarConfig);
    const server = createOfflineServer({
      network: NETWORKS[config[""].network],
      registry: loadTokenRegistry(home),
      listen: config.offline.listen,
      log,
      metrics: createMetrics(),
    });
    await server.start();
    return [server];
  },
});
