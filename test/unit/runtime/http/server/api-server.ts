/** A server of a small API with one key, and what is asked of it. */
import { afterAll, beforeAll } from "@jest/globals";
import { singleKeyAccess } from "../../../../helpers/services/single-key.js";
import { fileURLToPath } from "node:url";
import supertest from "supertest";
import { AppError, errorMessage } from "../../../../../chain/errors.js";
import { HttpError } from "../../../../../runtime/http/http-errors.js";
import type { HttpRoute } from "../../../../../runtime/http/http-route.js";
import {
  createHttpServer,
  type HttpServer,
  type HttpServerOptions,
  type Readiness,
} from "../../../../../runtime/http/http-server.js";
import { createLogger } from "../../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../../runtime/process/metrics.js";

/** Files of the API. */
export const fixture = (name: string) =>
  fileURLToPath(new URL(`../../../../fixtures/runtime/${name}`, import.meta.url));

/** Its key. */
export const KEY = "k".repeat(64);
/** What it says of whether it is ready. */
export const told: { readiness: Readiness } = { readiness: { ready: true } };
/** What it has logged. */
export const logLines: string[] = [];

/** Its operations; the last one does what its parameter says. */
export const routes: readonly HttpRoute[] = [
  {
    method: "get",
    path: "/v1/things",
    scope: "things:any",
    handler: async ({ query }) => ({ body: { limit: query["limit"] } }),
  },
  {
    method: "post",
    path: "/v1/things",
    scope: "things:any",
    handler: async ({ body }) => ({ status: 201, body: { made: JSON.stringify(body) } }),
  },
  {
    method: "get",
    path: "/v1/things/{id}",
    scope: "things:any",
    handler: async ({ params }) => {
      const { id = "" } = params;
      switch (id) {
        case "boom":
          throw new Error("a secret detail");
        case "absent":
          throw new AppError("THING_UNKNOWN", "no such thing");
        case "broken":
          return { body: { wrong: 1 } };
        case "bytes":
          return { bytes: Buffer.from('{"finished":true}'), headers: { "x-kind": "bytes" } };
        default:
          return { body: { id } };
      }
    },
  },
];

function mapError(error: unknown) {
  if (error instanceof HttpError) {
    return { status: error.status, body: { code: error.code, errors: error.errors } };
  }
  if (error instanceof AppError) {
    return { status: 404, body: { code: error.code, message: errorMessage(error) } };
  }
  return { status: 500, body: { code: "INTERNAL" } };
}

/** A server of the API, not started. */
export function makeServer(options: Partial<HttpServerOptions> = {}): HttpServer {
  return createHttpServer({
    name: "test-api",
    apiSpecPath: fixture("api.yaml"),
    listen: { host: "127.0.0.1", port: 0 },
    routes,
    access: singleKeyAccess(KEY),
    mapError,
    readiness: () => told.readiness,
    log: createLogger({
      component: "test",
      destination: { write: (line) => logLines.push(line) },
    }),
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 1_000,
    ...options,
  });
}

/** One that listens, for all tests of a file. */
export function serverForTests() {
  let server: HttpServer;
  const api = () => supertest(`http://127.0.0.1:${server.port}`);
  const get = (path: string) => api().get(path).set("authorization", `Bearer ${KEY}`);
  const post = (path: string) => api().post(path).set("authorization", `Bearer ${KEY}`);

  beforeAll(async () => {
    server = makeServer();
    await server.start();
  });

  afterAll(async () => {
    await server.stop();
  });

  return {
    get server() {
      return server;
    },
    api,
    get,
    post,
  };
}
