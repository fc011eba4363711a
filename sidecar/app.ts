/** The HTTP server that both entries use: two API files on one port, Rosetta's errors. */
import { fileURLToPath } from "node:url";
import type { ListenAddress } from "../runtime/config/config-values.js";
import type { HttpRoute } from "../runtime/http/http-route.js";
import {
  createHttpServer,
  type HttpServer,
  type HttpServerOptions,
} from "../runtime/http/http-server.js";
import type { LogFields, Logger } from "../runtime/process/logger.js";
import type { Metrics } from "../runtime/process/metrics.js";
import { severityOf, toErrorResponse } from "./rosetta/errors.js";

/** What a server of the sidecar is made of. */
export interface SidecarServerOptions {
  readonly name: string;
  readonly listen: ListenAddress;
  /** Every path of openapi/data.yaml. */
  readonly dataRoutes: readonly HttpRoute[];
  /** Every path of openapi/construction.yaml. */
  readonly constructionRoutes: readonly HttpRoute[];
  readonly readiness: HttpServerOptions["readiness"];
  readonly cachedReply?: HttpServerOptions["cachedReply"];
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** A transaction has at most 128 KiB, twice that as hex, once more inside an unsigned one. */
const BODY_LIMIT_BYTES = 1024 * 1024;

/** Path of an API file; the build copies them beside the compiled code. */
export function apiFile(name: "data" | "construction"): string {
  return fileURLToPath(new URL(`../openapi/${name}.yaml`, import.meta.url));
}

/** Makes the server; it listens after `start()`. */
export function createSidecarServer(options: SidecarServerOptions): HttpServer {
  const { dataRoutes, constructionRoutes, log, ...rest } = options;
  return createHttpServer({
    ...rest,
    log: logBySeverity(log),
    apiSpecPath: apiFile("data"),
    routes: dataRoutes,
    moreApis: [{ apiSpecPath: apiFile("construction"), routes: constructionRoutes }],
    mapError: toErrorResponse,
    bodyLimitBytes: BODY_LIMIT_BYTES,
  });
}

/** The server logs every 500 as an error; here a 500 may be a block that is not there yet. */
function logBySeverity(log: Logger): Logger {
  const error: Logger["error"] = (fieldsOrMessage: LogFields | string, message?: string) => {
    if (typeof fieldsOrMessage === "string") return log.error(fieldsOrMessage);
    const severity = severityOf(fieldsOrMessage["err"]);
    log[severity](fieldsOrMessage, message ?? "");
  };
  return {
    debug: log.debug.bind(log),
    info: log.info.bind(log),
    warn: log.warn.bind(log),
    error,
    child: (fields) => logBySeverity(log.child(fields)),
  };
}
