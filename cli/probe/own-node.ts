/** Commands that ask the node of a home ask no other that listens where it does. */
import { CliError } from "../errors.js";
import { foreignReason } from "./home-chain.js";
import { createNodeClient } from "./node-client.js";

/**
 * Refuses a node of another home's chain.
 * @param jsonRpcUrl where the home's node answers, or another one has its port
 * @throws NODE_FOREIGN; HOME_UNUSABLE, HOME_INCOMPLETE
 */
export async function assertOwnNode(
  home: string,
  jsonRpcUrl: string,
  signal: AbortSignal,
): Promise<void> {
  const { evm, close } = createNodeClient(jsonRpcUrl);
  try {
    const reason = await foreignReason(home, evm, signal);
    if (reason !== undefined) throw new CliError("NODE_FOREIGN", `At ${jsonRpcUrl}, ${reason}.`);
  } finally {
    close();
  }
}
