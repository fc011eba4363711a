/** Process entry of the operator console. */
import { type ConfigSources, loadConfig } from "../runtime/config/config.js";
import { systemClock } from "../runtime/process/clock.js";
import { runProcess } from "../runtime/process/lifecycle.js";
import { createMetrics } from "../runtime/process/metrics.js";
import { createConsole } from "./app.js";
import { consoleConfig } from "./config.js";

function readSettings(sources: ConfigSources) {
  return loadConfig(sources, consoleConfig);
}

runProcess({
  name: "console",
  settings: readSettings,
  async start({ home, env, portOffset, log, signal }) {
    const config = readSettings({ home, env, portOffset });
    const metrics = createMetrics();
    const { server, services } = createConsole({
      config,
      home,
      clock: systemClock,
      log,
      metrics,
      signal,
    });
    await server.start();
    return services;
  },
});
