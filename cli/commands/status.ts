/**
 * `causeway status`: what runs and how far it is. Asked often, by people and by scripts, so it loads
 * what it needs and nothing else.
 */
import { existsSync } from "node:fs";
import { stallReason } from "../../chain/consensus/block-age.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import { systemClock } from "../../runtime/process/clock.js";
import { type CommandContext, printJson } from "../command-context.js";
import { sentenceOf } from "../errors.js";
import { homePaths, isKitHome, isNodeHome } from "../home/home.js";
import { loadKitConfig } from "../home/kit-config.js";
import { foreignReason, homeBlockIntervalMs } from "../probe/home-chain.js";
import { readKitStatus, type WalletFigures } from "../probe/kit-status.js";
import { createNodeClient } from "../probe/node-client.js";
import { formatStatusLine } from "../supervisor/status-line.js";

/** Prints the status of a home and returns 0 when all in it is well, else 1. */
export function runStatus(context: CommandContext): Promise<number> {
  const paths = homePaths(context.home);
  return isNodeHome(paths) && !isKitHome(paths) ? nodeStatus(context) : kitStatus(context);
}

/** Of a kit: 0 when every part is ready, else 1; what has no home is none, whoever answers. */
async function kitStatus(context: CommandContext): Promise<number> {
  const { endpoints, treasury } = loadKitConfig(context);
  const { evm, close } = createNodeClient(endpoints.jsonRpcUrl);
  try {
    const blockIntervalMs = homeBlockIntervalMs(context.home);
    const probe = { endpoints, treasury, evm, blockIntervalMs, clock: systemClock };
    const [status, reason] = await Promise.all([
      readKitStatus(probe, context.signal),
      strangerReason(context, evm),
    ]);
    const areReady = status.parts.every((part) => part.ready || part.isDispensable === true);
    const ready = areReady && reason === undefined;
    if (context.json) printJson(context, { ready, reason, ...status });
    else {
      if (reason !== undefined) context.print(reason);
      context.print(formatStatusLine({ ...status, parts: [] }));
      for (const part of status.parts) {
        const state = part.ready ? "ready" : `NOT READY: ${part.reason}`;
        const url = part.url === "" ? "(listens on nothing)" : part.url;
        context.print(`  ${part.part.padEnd(18)} ${url.padEnd(24)} ${state}`);
      }
      for (const wallet of status.wallets) context.print(`  ${walletLine(wallet)}`);
    }
    return ready ? 0 : 1;
  } finally {
    close();
  }
}

/** Why what answers on the ports is not of this home; undefined where nothing says so. */
async function strangerReason(
  { home, signal }: CommandContext,
  evm: EvmClient,
): Promise<string | undefined> {
  if (!existsSync(homePaths(home).config)) {
    return `There is no home in ${home}; whatever answers on its ports is not of it.`;
  }
  return foreignReason(home, evm, signal);
}

function walletLine({ address, status, inFlight, isFrozen, hasKey }: WalletFigures): string {
  const key = hasKey || status === "retired" ? "" : ", no keystore opens it";
  return `hot wallet ${address} ${status}, ${inFlight} on their way${key}${isFrozen ? ", FROZEN" : ""}`;
}

/** Of a node's home: 0 when it answers, has caught up and has a block of now, else 1. */
async function nodeStatus(context: CommandContext): Promise<number> {
  // Loaded here: its parser takes longer to load than a kit to answer.
  const { cometRpcUrl, evmRpcUrl, formatNodeStatus, readNodeStatus } = await import(
    "../probe/node-status.js"
  );
  const url = cometRpcUrl(context);
  const { home, signal } = context;
  const { evm, close } = createNodeClient(evmRpcUrl(context));
  try {
    const [status, foreign] = await Promise.all([
      readNodeStatus(url, { clock: systemClock, signal }),
      foreignReason(home, evm, signal),
    ]);
    const still = status.catching_up
      ? ""
      : stallReason(status.blockAgeSeconds, homeBlockIntervalMs(home));
    const reason = foreign ?? (still === "" ? undefined : still);
    const ready = !status.catching_up && reason === undefined;
    if (context.json) printJson(context, { ready, url, reason, ...status });
    else {
      for (const line of formatNodeStatus(status)) context.print(line);
      if (reason !== undefined) context.print(`  NOT READY: ${reason}`);
    }
    return ready ? 0 : 1;
  } catch (error) {
    signal.throwIfAborted();
    const reason = sentenceOf(error);
    if (context.json) printJson(context, { ready: false, url, reason });
    else context.print(`The node at ${url} does not answer: ${reason}`);
    return 1;
  } finally {
    close();
  }
}
