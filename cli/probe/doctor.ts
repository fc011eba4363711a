/** `causeway doctor` put together: which checks a home needs. */
import { APP_FILE, CONFIG_FILE } from "../../node/settings/config.js";
import { loadConfig } from "../../runtime/config/config.js";
import {
  checkCrypto,
  checkDisks,
  checkKeyModes,
  checkKillSwitch,
  checkParts,
  checkSettings,
  type DoctorContext,
  type Finding,
} from "./doctor-checks.js";
import { checkMeaning } from "./doctor-meaning.js";
import { checkHeight, checkHistory, checkNodeHome, checkPeers } from "./doctor-node.js";
import type { KitConfig } from "../home/kit-config.js";
import { isKitHome, isNodeHome } from "../home/home.js";
import { firstNodeOf } from "../home/network/kit-nodes.js";
import { readNodeStatus } from "./node-status.js";

/** Runs every check of a home: of a kit's, or of a node's alone. */
export async function runDoctorChecks(context: DoctorContext): Promise<readonly Finding[]> {
  const { paths } = context;
  const files = [...checkKeyModes(paths), ...checkDisks(paths), checkCrypto()];
  if (isNodeHome(paths) && !isKitHome(paths)) return [...(await checkNodeHome(context)), ...files];
  const { findings, config } = checkSettings(context);
  if (config === undefined) return [...findings, ...files];
  // A file that cannot be read at all is told above.
  if (findings.every(({ severity }) => severity !== "fail")) {
    files.push(...checkMeaning(context, await context.readLedgerPolicy()));
  }
  files.push(...checkKillSwitch(paths, await context.readLedgerSwitch()));
  const parts = await checkParts(context, config);
  return [...findings, ...files, ...parts, ...(await checkKitNode(context, config))];
}

/** Peers, lag and history of the kit's own node, of several the first; nothing where it is silent. */
async function checkKitNode(
  { paths, env, portOffset, clock, signal }: DoctorContext,
  { endpoints: { cometRpcUrl } }: KitConfig,
): Promise<readonly Finding[]> {
  if (cometRpcUrl === undefined) return [];
  const sources = firstNodeOf({ home: paths.home, env, portOffset });
  const app = loadConfig(sources, APP_FILE);
  const node = loadConfig(sources, CONFIG_FILE);
  try {
    const status = await readNodeStatus(cometRpcUrl, { clock, signal });
    const height = await checkHeight(node, signal);
    return [checkPeers(status, node), ...height, checkHistory(status, app, true)];
  } catch {
    signal.throwIfAborted();
    return [];
  }
}
