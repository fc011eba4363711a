/** Process entry of the operator console. */
import { loadConfig } from "../runtime/config/config.js";
import { systemClock } from "../runtime/process/clock.js";
import { runProcess } from "../runtime/process/lifecycle.js";
import { createMetrics } from "../runtime/process/metrics.js";
import { createConsole } from "./app.js";
import { consoleConfig } from "./config.js";

runProcess({
  name: "console",
  async start({ home, env, portOffset, log, signal }) {
    const config = loadConfig({ home, env, portOffset }, consoleConfig);
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
