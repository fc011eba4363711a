/** What the reader of a running kit may try next: addresses, key files, commands. */
import { type Address, toChecksumAddress } from "../chain/address.js";
import { ATOKEN_PER_TOKEN } from "../chain/units.js";
import { readPortOffset } from "../runtime/config/config.js";
import type { HomePaths } from "./home/home.js";
import { KIT_CONFIG_NAMES, type KitEndpoints, shownUrl } from "./home/kit-config.js";
import { shellWord } from "./shell-word.js";

/** Coins from the faucet by the kit's own command: nothing else has to be installed. */
const SEND_WORDS = `tx bank send <deposit address> ${ATOKEN_PER_TOKEN}atoken --from faucet --yes`;

/** A command beside the kit that runs on a home, with ports of its own where the files name others. */
export function causewayCommand(words: string, home: string, portOffset: number): string {
  const isOfFiles = readPortOffset(home, KIT_CONFIG_NAMES) === portOffset;
  const ports = isOfFiles ? "" : ` --port-offset ${portOffset}`;
  return `npm run causeway -- ${words} --home ${shellWord(home)}${ports}`;
}

/**
 * Lines with URLs, key files and commands; no secret is in them.
 * @param kit `hotWallet`: of a home without a faucet, where it has to be funded by its owner;
 *   `portOffset`: of this run
 */
export function whereToLookNext(
  paths: HomePaths,
  endpoints: KitEndpoints,
  {
    hotWallet,
    portOffset,
  }: { readonly hotWallet: Address | undefined; readonly portOffset: number },
): readonly string[] {
  const [faucetKey, apiKey] = [shellWord(paths.faucetKey), shellWord(paths.apiKey)];
  const { jsonRpcUrl, depositUrl, cometRpcUrl, metricsUrl, restUrl, grpcAddress } = endpoints;
  const metrics = metricsUrl === undefined ? "" : `   metrics ${metricsUrl}/metrics`;
  const ownNode =
    cometRpcUrl === undefined ? [] : [`  consensus status  ${cometRpcUrl}/status${metrics}`];
  const coins =
    hotWallet === undefined
      ? [
          `  ${causewayCommand(SEND_WORDS, paths.home, portOffset)}`,
          `  cast send --legacy --rpc-url ${jsonRpcUrl} --private-key $(cat ${faucetKey}) \\`,
          "    --value 1ether <deposit address>   # the same with Foundry, where it is installed",
        ]
      : [`  fund the hot wallet ${toChecksumAddress(hotWallet)}: it pays the withdrawals`];
  const { indexerUrl, explorerUrl, consoleUrl } = endpoints;
  const indexer =
    indexerUrl === undefined
      ? []
      : [`  indexer           ${indexerUrl}   routes ${indexerUrl}/v1/openapi.json`];
  const explorer = explorerUrl === undefined ? [] : [`  explorer          ${explorerUrl}`];
  const operators = consoleUrl === undefined ? [] : [`  operator console  ${consoleUrl}`];
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
    ...operators,
    `  keys, settings    ${paths.config}   logs ${paths.logs}`,
    "Try:",
    ...coins,
    `  curl -H "Authorization: Bearer $(cat ${apiKey})" ${depositUrl}/v1/deposits`,
    `  ${causewayCommand("reconcile", paths.home, portOffset)}`,
    `  ${causewayCommand("doctor", paths.home, portOffset)}`,
    "Ctrl-C stops everything within 10 s; the next start goes on with the same chain and ledger.",
  ];
}
