/** The REST API: all routes behind one server, with a limit for each client where one is set. */
import { fileURLToPath } from "node:url";
import { present } from "../../chain/errors.js";
import { onFirstUse, readApiFile } from "../../runtime/http/api-schema.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { createHttpServer, type HttpServer } from "../../runtime/http/http-server.js";
import { systemClock } from "../../runtime/process/clock.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import type { IndexerConfig } from "../config.js";
import { LIVE_SCHEMA as s, REBUILD_SCHEMA } from "../store/schema.js";
import { addressRoutes } from "./address-routes.js";
import { blockRoutes } from "./block-routes.js";
import { dexRoutes } from "./dex-routes.js";
import { mapIndexerError } from "./errors.js";
import { withEntityTags } from "./entity-tags.js";
import type { Exports } from "./exports.js";
import {
  assertForward,
  assertIndexed,
  invalidField,
  readAddressText,
  readAsset,
  readHeight,
} from "./inputs.js";
import { RequestQuota } from "./request-quota.js";
import { type ApiContext, atOneMoment, blockHashAt, metaOf } from "./reads.js";
import type { BlockStream } from "./stream.js";
import { tokenRoutes } from "./token-routes.js";
import { transactionRoutes } from "./transaction-routes.js";

/** What the server is made of. */
export interface ApiParts {
  readonly context: ApiContext;
  readonly stream: BlockStream;
  readonly exports: Exports;
  readonly config: IndexerConfig;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Bytes of the largest request: 100 hashes, with room. */
const BODY_LIMIT_BYTES = 64 * 1024;

const API_FILE = fileURLToPath(new URL("../../openapi/indexer.yaml", import.meta.url));

/** Makes the server; it does not listen yet. */
export function createIndexerServer(parts: ApiParts): HttpServer {
  const { context, config, log, metrics } = parts;
  const limit = new RequestQuota(config.api["requests-per-minute"], systemClock);
  const routes = [
    ...serviceRoutes(parts),
    ...transactionRoutes(context),
    ...blockRoutes(context),
    ...addressRoutes(context),
    ...tokenRoutes(context),
    ...dexRoutes(context),
    ...exportRoutes(parts),
  ];
  return createHttpServer({
    name: "indexer-api",
    apiSpecPath: API_FILE,
    listen: config.api.listen,
    corsOrigins: config.api["cors-origins"],
    routes: withEntityTags(routes),
    pace: (request, response) => limit.pace(request, response),
    mapError: mapIndexerError,
    readiness: () => readinessOf(context, config.indexer["max-lag-blocks"]),
    log,
    metrics,
    bodyLimitBytes: BODY_LIMIT_BYTES,
  });
}

/** 503 while behind, halted, or without a node. */
function readinessOf({ status }: ApiContext, maxLagBlocks: number) {
  const { state, reason, indexedHeight, nodeHeight } = status();
  const lag = (nodeHeight ?? indexedHeight) - indexedHeight;
  if (state === "following" || (state === "behind" && reason === undefined)) {
    if (nodeHeight !== undefined && lag <= maxLagBlocks) return { ready: true };
    const far = nodeHeight === undefined ? "the node was not asked yet" : `${lag} blocks behind`;
    return { ready: false, reason: `${far}; indexed up to ${indexedHeight}` };
  }
  return { ready: false, reason: reason ?? `the indexer is ${state}` };
}

/** What counts of rows go up to: anybody can have contracts that make as many as the chain is long. */
export const MOST_COUNTED = 10_000;

/** A count of rows, as SQL, that ends where there are that many. */
function countOf(rows: string): string {
  return `(SELECT count(*) FROM (SELECT 1 FROM ${s}.${rows} LIMIT ${MOST_COUNTED}) counted)`;
}

function serviceRoutes({ context, stream }: ApiParts): readonly HttpRoute[] {
  // Of those that start an indexer few ask for it, and all would wait for it.
  const description = onFirstUse(() => {
    const bytes = Buffer.from(JSON.stringify(readApiFile(API_FILE)));
    return () => bytes;
  });
  return [
    {
      method: "get",
      path: "/v1/status",
      handler: (request) =>
        atOneMoment(context, request, async (snapshot) => {
          const [row] = await snapshot.sql.query<{
            unverified: string;
            corrections: string;
            rebuild: string | null;
          }>(
            `SELECT ${countOf("balance WHERE checked_at IS NULL")} AS unverified,
               ${countOf("correction")} AS corrections,
               to_regclass('${REBUILD_SCHEMA}.progress')::text AS rebuild`,
          );
          const { state, reason } = context.status();
          const shown = {
            schemaVersion: snapshot.progress.schemaVersion,
            genesisHash: snapshot.progress.genesisHash,
            state,
            reason: reason ?? null,
            unverifiedBalances: Number(row?.unverified ?? 0),
            corrections: Number(row?.corrections ?? 0),
            rebuilding: typeof row?.rebuild === "string",
          };
          return { body: { meta: metaOf(snapshot), status: shown } };
        }),
    },
    {
      method: "get",
      path: "/v1/openapi.json",
      handler: () => Promise.resolve({ bytes: description() }),
    },
    { method: "get", path: "/v1/stream", handler: (request) => stream.open(request) },
  ];
}

const MEDIA_TYPES = { csv: "text/csv; charset=utf-8", jsonl: "application/x-ndjson" } as const;

function exportRoutes({ context, exports }: ApiParts): readonly HttpRoute[] {
  return [
    {
      method: "post",
      path: "/v1/exports",
      handler: async (request) => {
        const { wanted, meta } = await atOneMoment(context, request, async (snapshot) => {
          const asked = readExport(request.body, snapshot.progress.height);
          const toHash = present(
            await blockHashAt(snapshot.sql, asked.toHeight),
            "the hash of an indexed block",
          );
          return { wanted: { ...asked, toHash }, meta: metaOf(snapshot) };
        });
        const created = exports.create(wanted, request.remoteAddress);
        return { status: 202, body: { meta, export: created } };
      },
    },
    {
      method: "get",
      path: "/v1/exports/{id}",
      handler: (request) =>
        atOneMoment(context, request, async (snapshot) => ({
          body: { meta: metaOf(snapshot), export: exports.get(request.params["id"]) },
        })),
    },
    {
      method: "get",
      path: "/v1/exports/{id}/file",
      handler: async ({ params }) => {
        const { state, bytes } = exports.read(params["id"]);
        const isCsv = state.format === "csv";
        return {
          headers: {
            "content-type": isCsv ? MEDIA_TYPES.csv : MEDIA_TYPES.jsonl,
            "content-length": String(state.sizeBytes ?? 0),
            "content-disposition": `attachment; filename="${state.kind}-${state.id}.${state.format}"`,
            "x-content-sha256": state.sha256 ?? "",
          },
          stream: bytes,
        };
      },
    },
  ];
}

const KINDS = ["transfers", "transactions", "balances", "swaps"] as const;

/** Fields that a kind is not chosen by. Balances are those at `toBlock`. */
const NOT_OF: Readonly<Record<(typeof KINDS)[number], readonly string[]>> = {
  transfers: [],
  transactions: ["asset"],
  balances: ["fromBlock"],
  swaps: ["asset"],
};

/** The validator has seen to the form. */
function readExport(body: unknown, indexedHeight: number) {
  const fields: Readonly<Record<string, unknown>> =
    typeof body === "object" && body !== null ? { ...body } : {};
  const kind = KINDS.find((one) => one === fields["kind"]);
  if (kind === undefined) throw invalidField("kind", `one of ${KINDS.join(", ")}`);
  const { address, asset } = fields;
  const [fromBlock, toBlock] = [readHeight(fields["fromBlock"]), readHeight(fields["toBlock"])];
  // What would change nothing is refused: a file with more than was asked for is believed all the same.
  for (const name of NOT_OF[kind]) {
    if (fields[name] !== undefined) throw invalidField(name, `${kind} are not chosen by it`);
  }
  assertForward(fromBlock, toBlock, "toBlock");
  if (fromBlock !== undefined) assertIndexed(fromBlock, indexedHeight);
  // Rows of blocks to come are left out; balances after them cannot be told, and others are not these.
  if (kind === "balances" && toBlock !== undefined) assertIndexed(toBlock, indexedHeight);
  return {
    kind,
    format: fields["format"] === "csv" ? ("csv" as const) : ("jsonl" as const),
    addressHex: address === undefined ? undefined : readAddressText(address).slice(2),
    assetHex: asset === undefined ? undefined : readAsset(asset).toString("hex"),
    fromHeight: fromBlock ?? 0,
    toHeight: Math.min(toBlock ?? indexedHeight, indexedHeight),
  };
}
