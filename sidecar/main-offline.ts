/** Process entry of the offline Construction API: opens no connection, ever. */
import { NETWORKS } from "../chain/networks.js";
import { runProcess } from "../runtime/process/lifecycle.js";
import { createMetrics } from "../runtime/process/metrics.js";
import { readSettings } from "./settings.js";
import { createOfflineServer } from "./offline-server.js";

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
