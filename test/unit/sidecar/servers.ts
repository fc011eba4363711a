/** Both servers of the sidecar as request listeners, and a Rosetta call on them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import request from "supertest";
import { NETWORKS } from "../../../chain/networks.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import {
  createJsonRpcClient,
  type JsonRpcClient,
  type RpcOptions,
} from "../../../rpc-client/json-rpc.js";
import { compileResponseCheck } from "../../../runtime/http/api-schema.js";
import type { HttpServer } from "../../../runtime/http/http-server.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { apiFile } from "../../../sidecar/app.js";
import { type ChainIndex, createChainIndex } from "../../../sidecar/index/chain-index.js";
import { createOfflineServer } from "../../../sidecar/offline-server.js";
import { createOnlineServer } from "../../../sidecar/online-server.js";
import type { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";
import { PATIENCE_MS, until } from "../../helpers/until.js";
import { REGISTRY } from "../../helpers/chains/known-tokens.js";
import type { Reply } from "./replies.js";

export const NETWORK = { blockchain: "token", network: "testnet" };

const checkReply = compileResponseCheck(apiFile("data"), "/block", "post");

const shared = () => ({
  network: NETWORKS.testnet,
  registry: REGISTRY,
  listen: { host: "127.0.0.1", port: 0 },
  log: createLogger({ component: "test", level: "silent" }),
  metrics: createMetrics({ processMetrics: false }),
});

export function offlineServer(): HttpServer {
  return createOfflineServer(shared());
}

export interface Online {
  readonly server: HttpServer;
  readonly index: ChainIndex;
  /** Its `close` also ends the index and deletes its folder. */
  readonly rpc: { close(): Promise<void> };
  /** Returns when the index has come to a height. */
  indexed(height: number): Promise<void>;
  /** Fires the process's signal; returns when nothing follows the node any more. */
  stopping(): Promise<void>;
}

/** What tests may set; the rest fits the fake chain. */
export interface OnlineOptions {
  readonly nowMs?: number;
  readonly registry?: TokenRegistry;
  readonly storedBlocksBytes?: number;
  readonly cacheBytes?: number;
  /** An index that lives on after `close`. */
  readonly folder?: string;
  /** Another node for what clients ask. */
  readonly strangersUrl?: string;
  /** Lines of the log, warnings and above; none is kept otherwise. */
  readonly logLines?: string[];
}

/**
 * Gives every call all the time that there is, also those for which the sidecar has less: on a busy machine a
 * node of the tests that is slow is not one that hangs.
 */
function patientClient(url: string): JsonRpcClient {
  const client = createJsonRpcClient({ url, timeoutMs: PATIENCE_MS });
  const patient = (chosen: RpcOptions) => ({ ...chosen, timeoutMs: PATIENCE_MS });
  return {
    ...client,
    request: (method, params, chosen) => client.request(method, params, patient(chosen)),
    batch: (calls, chosen) => client.batch(calls, patient(chosen)),
  };
}

/** An online server that follows a node; the index is ready a moment after the first request. */
export function onlineServer(nodeUrl: string, options: OnlineOptions = {}): Online {
  const { nowMs = 1_790_000_005_000, registry = REGISTRY } = options;
  const rpc = patientClient(nodeUrl);
  const client = createEvmClient(rpc);
  const clientsRpc = patientClient(options.strangersUrl ?? nodeUrl);
  const stop = new AbortController();
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), "causeway-index-"));
  const { logLines } = options;
  const common = {
    ...shared(),
    ...(logLines === undefined ? {} : { log: keptIn(logLines) }),
    registry,
    client,
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    signal: stop.signal,
  };
  const index = createChainIndex({
    ...common,
    folder: join(folder, "sidecar"),
    cacheBytes: options.cacheBytes ?? 8 * 1024 * 1024,
    storedBlocksBytes: options.storedBlocksBytes ?? 64 * 1024 * 1024,
    verifyHolders: 256,
    checkReply,
    maxWaitMs: 240_000,
  });
  // A fault of `open` is for a test that waits for what never comes.
  const following = index.follower
    .open()
    .then(() => index.follower.run())
    .catch(() => undefined);
  // Made when it is first used: compiling the API's description takes a while.
  const makeServer = () =>
    createOnlineServer({
      ...common,
      client: createEvmClient(clientsRpc),
      ownClient: client,
      index,
      feePolicy: { gasMarginPercent: 20, minimumGasPriceAtoken: 1n },
      maxBlockAgeMs: 60_000,
    });
  let server: HttpServer | undefined;
  let closing: Promise<void> | undefined;
  const stopping = () => {
    stop.abort();
    return following;
  };
  const end = async () => {
    void stopping();
    rpc.close();
    clientsRpc.close();
    await following;
    await index.store.close();
    if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
  };
  const indexed = (height: number) =>
    until(
      () => {
        if ((index.blocks.tip()?.index ?? -1) >= height) return true;
        // As a new head of the node does that is announced.
        index.follower.wake();
        return false;
      },
      { timeoutMs: 20_000 },
    );
  return {
    get server() {
      server ??= makeServer();
      return server;
    },
    index,
    rpc: {
      close() {
        closing ??= end();
        return closing;
      },
    },
    indexed,
    stopping,
  };
}

function keptIn(lines: string[]) {
  const destination = { write: (line: string) => lines.push(line) };
  return createLogger({ component: "test", level: "warn", destination });
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
