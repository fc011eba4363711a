/** Both servers of the sidecar as request listeners, and a Rosetta call on them. */
import request from "supertest";
import { NETWORKS } from "../../../chain/networks.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient, type JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import type { HttpServer } from "../../../runtime/http-server.js";
import { createLogger } from "../../../runtime/logger.js";
import { createMetrics } from "../../../runtime/metrics.js";
import { createOfflineServer } from "../../../sidecar/offline-server.js";
import { createOnlineServer } from "../../../sidecar/online-server.js";
import type { Reply } from "./replies.js";

export const NETWORK = { blockchain: "token", network: "testnet" };

const shared = () => ({
  network: NETWORKS.testnet,
  listen: { host: "127.0.0.1", port: 0 },
  log: createLogger({ component: "test", level: "silent" }),
  metrics: createMetrics({ processMetrics: false }),
});

export function offlineServer(): HttpServer {
  return createOfflineServer(shared());
}

export interface Online {
  readonly server: HttpServer;
  readonly rpc: JsonRpcClient;
}

export function onlineServer(nodeUrl: string, nowMs = 1_790_000_005_000): Online {
  const rpc = createJsonRpcClient({ url: nodeUrl, timeoutMs: 2_000 });
  const server = createOnlineServer({
    ...shared(),
    client: createEvmClient(rpc),
    cacheBytes: 8 * 1024 * 1024,
    feePolicy: { gasMarginPercent: 20, minimumGasPriceAtoken: 1n },
    maxBlockAgeMs: 60_000,
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    signal: new AbortController().signal,
  });
  return { server, rpc };
}

export interface Answer {
  readonly status: number;
  readonly body: Reply;
  readonly text: string;
}

/** POSTs fields with the network added; `null` as network leaves it out. */
export async function call(
  server: HttpServer,
  path: string,
  fields: Record<string, unknown> = {},
  network: unknown = NETWORK,
): Promise<Answer> {
  const body = network === null ? fields : { network_identifier: network, ...fields };
  const { status, body: reply, text } = await request(server.app).post(path).send(body);
  return { status, body: reply, text };
}
