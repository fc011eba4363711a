/**
 * The direct lane: which requests are served without Express. Only plain ones that their operation
 * accepts; every other request is left to Express, so that errors have one source.
 */
import type { IncomingMessage } from "node:http";
import { loadApiSchemas, onFirstUse, type RequestCheck, type ResponseCheck } from "./api-schema.js";
import { parseJsonBody } from "./http-body.js";
import { HttpError } from "./http-errors.js";
import type { HttpRoute } from "./http-route.js";

/** A request that the lane takes. */
export interface DirectCall<Route> {
  readonly route: Route;
  /** The body, checked and completed. */
  readonly body: unknown;
  readonly checkReply: ResponseCheck;
}

/** An API file with those of its routes that take the lane; all are POST. */
export interface DirectRoutes<Route> {
  readonly apiSpecPath: string;
  readonly routes: readonly Route[];
}

/** The compiled operations of a server. */
export interface DirectLane<Route> {
  /** Undefined for a request that is Express' to answer. */
  accept(request: IncomingMessage, rawBody: Uint8Array): DirectCall<Route> | undefined;
}

interface DirectOperation<Route> {
  readonly route: Route;
  readonly checkRequest: RequestCheck;
  readonly checkReply: ResponseCheck;
}

/** Whether a route takes the lane. @throws LISTEN_FAILED for one that is marked and cannot */
export function isDirect({ direct, method, path }: HttpRoute): boolean {
  if (direct === true && method !== "post") {
    throw new HttpError("LISTEN_FAILED", `${method} ${path} cannot be served directly: no POST`);
  }
  return direct === true;
}

/** Other types, and other ways to write this one, are for the validator to judge. */
const PLAIN_JSON_TYPE = /^application\/json(; ?charset=utf-8)?$/i;

/** True for a body in the one type that needs no judgement of the validator. */
export function isPlainJson({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return PLAIN_JSON_TYPE.test(headers["content-type"] ?? "");
}

/**
 * The lane over API files; each check is compiled when its operation is first asked for.
 * @throws LISTEN_FAILED when a file cannot be read
 */
export function createDirectLane<Route extends { readonly path: string }>(
  apis: readonly DirectRoutes<Route>[],
  { validateResponses }: { readonly validateResponses: boolean },
): DirectLane<Route> {
  const operations = new Map<string, DirectOperation<Route>>();
  for (const { apiSpecPath, routes } of apis.filter((api) => api.routes.length > 0)) {
    const schemas = loadApiSchemas(apiSpecPath);
    for (const route of routes) {
      const { path } = route;
      operations.set(path, {
        route,
        checkRequest: onFirstUse(() => schemas.requestCheck(path, "post")),
        checkReply: validateResponses
          ? onFirstUse(() => schemas.responseCheck(path, "post"))
          : () => undefined,
      });
    }
  }
  return {
    accept(request, rawBody) {
      const { method, url = "" } = request;
      // The whole URL is the key: a query, an escape or a trailing slash is no plain request.
      const operation = operations.get(url);
      if (operation === undefined || method !== "POST" || rawBody.length === 0) return undefined;
      if (!isPlainJson(request)) return undefined;
      try {
        const body = parseJsonBody(rawBody);
        if (!operation.checkRequest(body, request.headers)) return undefined;
        return { route: operation.route, body, checkReply: operation.checkReply };
      } catch (error) {
        if (error instanceof HttpError) return undefined;
        throw error;
      }
    },
  };
}
