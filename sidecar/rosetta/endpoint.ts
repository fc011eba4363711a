/** One Rosetta operation as a route: body fields known, network checked, then the handler. */
import type { Network } from "../../chain/networks.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest, HttpRoute } from "../../runtime/http/http-route.js";
import { SidecarError, type SidecarErrorCode } from "./errors.js";
import { checkNetwork } from "./identifiers.js";
import { type Fields, readFields } from "./request-fields.js";

/** What a handler is given: the body's fields, and the request around them. */
export type EndpointHandler = (fields: Fields, request: HttpRequest) => Promise<HttpReply>;

/** A path with the fields that its request may have beside `network_identifier`. */
export interface Endpoint {
  readonly path: string;
  readonly fields: readonly string[];
  readonly handler: EndpointHandler;
}

/** The route of an endpoint: unknown fields and other networks are refused before the handler. */
export function toRoute(endpoint: Endpoint, network: Network): HttpRoute {
  const known = ["network_identifier", ...endpoint.fields];
  return {
    method: "post",
    path: endpoint.path,
    direct: true,
    async handler(request) {
      const fields = readFields(request.body, { at: "" }, known);
      checkNetwork(fields["network_identifier"], network);
      return endpoint.handler(fields, request);
    },
  };
}

/** Routes that answer one listed error, whatever they are asked. */
export function unavailable(paths: readonly string[], code: SidecarErrorCode): HttpRoute[] {
  return paths.map((path) => ({
    method: "post",
    path,
    handler: () => Promise.reject(new SidecarError(code, { path })),
  }));
}
