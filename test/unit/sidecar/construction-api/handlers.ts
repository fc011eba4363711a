/**
 * The offline endpoints without HTTP around them, for tests with thousands of requests; what HTTP
 * and the schema add is tested elsewhere.
 */
import { NETWORKS } from "../../../../chain/networks.js";
import { offlineRoutes } from "../../../../sidecar/construction-api/offline.js";
import { REGISTRY } from "../../../helpers/chains/known-tokens.js";
import type { Reply } from "../replies.js";

const handlers = new Map(
  offlineRoutes(NETWORKS.testnet, REGISTRY).map((route) => [route.path, route.handler]),
);

/** The reply's body as it is on the wire; a refusal is thrown. */
export async function ask(name: string, fields: Record<string, unknown>): Promise<Reply> {
  const path = `/construction/${name}`;
  const handler = handlers.get(path);
  if (handler === undefined) throw new Error(`no route ${path}`);
  const reply = await handler({
    method: "post",
    path,
    params: {},
    query: {},
    headers: {},
    body: { network_identifier: { blockchain: "token", network: "testnet" }, ...fields },
    rawBody: new Uint8Array(),
    signal: new AbortController().signal,
  });
  return JSON.parse(JSON.stringify(reply.body)) as Reply;
}
