/** What the reader of a running kit may try next: addresses, key files, commands. */
import type { HomePaths } from "./home.js";
import type { KitEndpoints } from "./kit-config.js";

/** Lines with URLs, key files and commands; no secret is in them. */
export function whereToLookNext(paths: HomePaths, endpoints: KitEndpoints): readonly string[] {
  const { jsonRpcUrl, depositUrl } = endpoints;
  return [
    "Where to look next:",
    `  JSON-RPC          ${jsonRpcUrl}   WebSocket ${endpoints.webSocketUrl}`,
    `  consensus status  ${endpoints.cometRpcUrl}/status   metrics ${endpoints.metricsUrl}/metrics`,
    `  Rosetta online    ${endpoints.sidecarOnlineUrl}   offline ${endpoints.sidecarOfflineUrl}`,
    `  deposit API       ${depositUrl}   withdrawal API ${endpoints.withdrawalUrl}`,
    `  keys, settings    ${paths.config}   logs ${paths.logs}`,
    "Try:",
    `  cast send --legacy --rpc-url ${jsonRpcUrl} --private-key $(cat ${paths.faucetKey}) \\`,
    "    --value 1ether <deposit address>",
    `  curl -H "Authorization: Bearer $(cat ${paths.apiKey})" ${depositUrl}/v1/deposits`,
    `  npm run causeway -- reconcile --home ${paths.home}`,
    `  npm run causeway -- doctor --home ${paths.home}`,
  ];
}
