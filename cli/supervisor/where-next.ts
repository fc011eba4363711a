/** What the reader of a running kit may try next: addresses, key files, commands. */
import { type Address, toChecksumAddress } from "../../chain/address.js";
import type { HomePaths } from "../home/home.js";
import { type KitEndpoints, shownUrl } from "../home/kit-config.js";

/**
 * Lines with URLs, key files and commands; no secret is in them.
 * @param hotWallet of a home without a faucet, where it has to be funded by its owner
 */
export function whereToLookNext(
  paths: HomePaths,
  endpoints: KitEndpoints,
  hotWallet: Address | undefined,
): readonly string[] {
  const { jsonRpcUrl, depositUrl, cometRpcUrl, metricsUrl, restUrl, grpcAddress } = endpoints;
  const ownNode =
    cometRpcUrl === undefined
      ? []
      : [`  consensus status  ${cometRpcUrl}/status   metrics ${metricsUrl}/metrics`];
  const coins =
    hotWallet === undefined
      ? [
          `  cast send --legacy --rpc-url ${jsonRpcUrl} --private-key $(cat ${paths.faucetKey}) \\`,
          "    --value 1ether <deposit address>",
        ]
      : [`  fund the hot wallet ${toChecksumAddress(hotWallet)}: it pays the withdrawals`];
  const { indexerUrl, explorerUrl } = endpoints;
  const indexer =
    indexerUrl === undefined
      ? []
      : [`  indexer           ${indexerUrl}   routes ${indexerUrl}/v1/openapi.json`];
  const explorer = explorerUrl === undefined ? [] : [`  explorer          ${explorerUrl}`];
  return [
    "Where to look next:",
    `  JSON-RPC          ${shownUrl(jsonRpcUrl)}   WebSocket ${shownUrl(endpoints.webSocketUrl)}`,
    ...ownNode,
    ...(restUrl === undefined
      ? []
      : [`  REST              ${restUrl}   routes ${restUrl}/swagger`]),
    ...(grpcAddress === undefined ? [] : [`  gRPC              ${grpcAddress}`]),
    `  Rosetta online    ${endpoints.sidecarOnlineUrl}   offline ${endpoints.sidecarOfflineUrl}`,
    `  deposit API       ${depositUrl}   withdrawal API ${endpoints.withdrawalUrl}`,
    ...indexer,
    ...explorer,
    `  keys, settings    ${paths.config}   logs ${paths.logs}`,
    "Try:",
    ...coins,
    `  curl -H "Authorization: Bearer $(cat ${paths.apiKey})" ${depositUrl}/v1/deposits`,
    `  npm run causeway -- reconcile --home ${paths.home}`,
    `  npm run causeway -- doctor --home ${paths.home}`,
  ];
}
