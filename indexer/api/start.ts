/** Everything that serves the index; loaded by itself, because its libraries take longest of all to load. */
import { join } from "node:path";
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import type { IndexerConfig } from "../config.js";
import { Exports } from "./exports.js";
import type { ApiContext } from "./reads.js";
import { createIndexerServer } from "./server.js";
import { BlockStream } from "./stream.js";

/** Longest export: its snapshot holds VACUUM back, and other exports wait for their turn. */
const EXPORT_TIME_LIMIT_MS = 3_600_000;

/** What serving works with. */
export interface ApiOptions {
  readonly context: ApiContext;
  readonly config: IndexerConfig;
  readonly home: string;
  /** Holds a password. */
  readonly databaseUrl: string;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly signal: AbortSignal;
}

/** The API that serves. */
export interface IndexerApi {
  /** In the order in which they were started. */
  readonly services: readonly Service[];
  /** Tells the readers of `/v1/stream` that new blocks are there. */
  wake(): void;
}

/**
 * Opens exports, stream and server.
 * @throws what listening throws: the address is in use, or is not this machine's
 */
export async function startApi(options: ApiOptions): Promise<IndexerApi> {
  const { context, config, home, databaseUrl, log, metrics, signal } = options;
  const stream = new BlockStream(context, { maxReaders: config.api.streams, signal });
  const exports = await Exports.open({
    folder: join(home, "data", "indexer"),
    databaseUrl,
    kept: config.api["exports-kept"],
    maxBytes: config.api["exports-mib"] * 1024 * 1024,
    timeLimitMs: EXPORT_TIME_LIMIT_MS,
    log,
    signal,
  });
  try {
    const server = createIndexerServer({ context, stream, exports, config, log, metrics });
    await server.start();
    await exports.deleteLeft();
    const closer = { name: "exports", stop: () => exports.close() };
    return { services: [closer, server], wake: () => stream.wake() };
  } catch (error) {
    await exports.close();
    throw error;
  }
}
