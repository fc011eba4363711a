/** `causeway mesh-check`: the check of the kit that belongs to a home. */
import { escapeUnshowable } from "../../chain/evm/foreign-text.js";
import { systemClock } from "../../runtime/process/clock.js";
import type { CommandContext } from "../command-context.js";
import { sentenceOf } from "../errors.js";
import { type KitEndpoints, loadKitConfig } from "../home/kit-config.js";
import { MESH_CHECK_EXIT, runMeshCheck } from "./command.js";
import { assertOwnNode } from "../probe/own-node.js";
import type { MeshCheckOptions } from "./words.js";

/** Checks the home's own sidecar with its own node as witness, unless the words say otherwise. */
export async function runMeshCheckOfHome(
  context: CommandContext,
  options: MeshCheckOptions,
): Promise<number> {
  const { signal, print } = context;
  const printProgress = (line: string): void => {
    process.stderr.write(`${escapeUnshowable(line, "many")}\n`);
  };
  let endpoints: KitEndpoints | undefined;
  try {
    // A server that is named needs no home.
    endpoints = options.url === undefined ? loadKitConfig(context).endpoints : undefined;
    if (endpoints !== undefined) await assertOwnNode(context.home, endpoints.jsonRpcUrl, signal);
  } catch (error) {
    signal.throwIfAborted();
    printProgress(`mesh-check: ${sentenceOf(error)}`);
    return MESH_CHECK_EXIT.cannotRun;
  }
  const url = options.url ?? endpoints?.sidecarOnlineUrl;
  const node = options.node ?? endpoints?.jsonRpcUrl;
  const clock = systemClock;
  return runMeshCheck({ ...options, url, node }, { clock, signal, print, printProgress });
}
