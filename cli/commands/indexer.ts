/** `causeway indexer verify|rebuild`. */
import { indexerConfigFile } from "../../indexer/config.js";
import {
  type MaintenanceProgress,
  rebuildIndex,
  verifyIndex,
} from "../../indexer/maintenance/commands.js";
import { AppError } from "../../chain/errors.js";
import { NETWORKS } from "../../chain/networks.js";
import { loadConfig } from "../../runtime/config/config.js";
import { databaseUrl } from "../../runtime/config/service-urls.js";
import { type CommandContext, printJson } from "../command-context.js";
import { sentenceOf } from "../errors.js";
import { assertDatabaseAnswers } from "../probe/outside-services.js";
import { withProgress } from "../progress.js";

/** `indexer verify`. @returns 0, or 1 where the index contradicts the chain, which is said */
export async function runVerifyIndex(
  context: CommandContext,
  warn: (line: string) => void,
): Promise<number> {
  try {
    return await runIndexer(context, "verify", warn);
  } catch (error) {
    if (!(error instanceof AppError && error.code === "CONTRADICTED")) throw error;
    warn(sentenceOf(error));
    return 1;
  }
}

/**
 * Runs beside the live indexer, which goes on.
 * @returns 0; a contradiction is thrown
 */
export async function runIndexer(
  context: CommandContext,
  command: "verify" | "rebuild",
  warn: (line: string) => void,
): Promise<number> {
  const { home, env, portOffset, signal } = context;
  const config = loadConfig({ home, env, portOffset }, indexerConfigFile);
  const url = databaseUrl({ home, env, portOffset });
  await assertDatabaseAnswers(url, "start the kit, or the server that DATABASE_URL names");
  let progress: MaintenanceProgress | undefined;
  const options = {
    databaseUrl: url,
    nodeUrl: config.node["json-rpc-url"],
    evmChainId: NETWORKS[config.chain.network].evmChainId,
    timeoutMs: config.node["request-timeout-ms"],
    batchBytes: config.indexer["batch-mib"] * 1024 * 1024,
    onProgress: (now: MaintenanceProgress) => {
      progress = now;
    },
    signal,
  };
  if (!context.json) context.print("Reading the chain; the index goes on serving meanwhile ...");
  const report = await withProgress(
    warn,
    () => `indexer ${command}: ${progressText(progress)}`,
    () => (command === "verify" ? verifyIndex(options) : rebuildIndex(options)),
  );
  const { height, checked, corrected, unanswered } = report;
  if (context.json) printJson(context, { command, ...report });
  else {
    const made = command === "rebuild" ? "The index was made anew" : "The index was read";
    context.print(
      `${made} up to block ${height}: ${checked} balances agree with state, ${corrected} of them ` +
        `after a correction.${untold(unanswered)}`,
    );
  }
  return 0;
}

function progressText(progress: MaintenanceProgress | undefined): string {
  if (progress === undefined) return "waiting for the database and the node";
  const { height, nodeHeight, looks } = progress;
  return `block ${Math.max(0, height)} of ${Math.max(0, nodeHeight)}, ${looks} balances held against state`;
}

/** Of balances that could not be held against anything. */
function untold(count: number): string {
  return count === 0 ? "" : ` ${count} more are as logs have them: their contracts tell none.`;
}
