/** Process entry of the Data API and the online Construction API. */
import { NETWORKS } from "../chain/networks.js";
import { createEvmClient } from "../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../rpc-client/json-rpc.js";
import { systemClock } from "../runtime/clock.js";
import { loadConfig } from "../runtime/config.js";
import { runProcess } from "../runtime/lifecycle.js";
import { createMetrics } from "../runtime/metrics.js";
import { sidecarConfig } from "./config.js";
import { createBlockSource } from "./data-api/block-source.js";
import { followHead } from "./data-api/follow-head.js";
import { createOnlineServer } from "./online-server.js";

const MIB = 1024 * 1024;

runProcess({
  name: "sidecar-online",
  async start({ home, env, portOffset, log, signal }) {
    const config = loadConfig({ home, env, portOffset }, sidecarConfig);
    const rpc = createJsonRpcClient({
      url: config.node.url,
      timeoutMs: config.node["timeout-ms"],
      maxResponseBytes: config.node["max-response-mib"] * MIB,
    });
    const client = createEvmClient(rpc);
    const cacheBytes = config.cache["blocks-mib"] * MIB;
    const source = createBlockSource({ client, cacheBytes, signal });
    const server = createOnlineServer({
      network: NETWORKS[config[""].network],
      client,
      source,
      listen: config.online.listen,
      cacheBytes,
      feePolicy: {
        gasMarginPercent: config.construction["gas-margin-percent"],
        minimumGasPriceAtoken: config.construction["minimum-gas-price-atoken"],
      },
      maxBlockAgeMs: config.node["max-block-age-ms"],
      clock: systemClock,
      log,
      metrics: createMetrics(),
      signal,
    });
    await server.start();
    const following = followHead({ source, log, signal });
    return [
      { name: "node client", stop: () => Promise.resolve(rpc.close()) },
      { name: "head follower", stop: () => following },
      server,
    ];
  },
});
