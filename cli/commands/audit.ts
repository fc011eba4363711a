/** `causeway audit execution`: stored blocks executed again by @ethereumjs/vm, outside the node. */
import { createJsonRpcClient } from "../../rpc-client/json-rpc.js";
import { createAuditNode } from "../audit/audit-node.js";
import type { AuditExecutionOptions } from "../audit/words.js";
import { AUDIT_EXIT, AuditError, type Difference } from "../audit/errors.js";
import {
  badOption,
  readGenesisOption,
  readHashOption,
  readHeightOption,
  readUrlOption,
} from "../audit/options.js";
import type { AuditProgress, AuditReport } from "../audit/execution-audit.js";
import { type CommandContext, printJson } from "../command-context.js";
import { sentenceOf } from "../errors.js";
import { loadKitConfig } from "../home/kit-config.js";
import { progressLines } from "../progress.js";

/** A block of many transactions and its proofs take a node a while. */
const REQUEST_TIMEOUT_MS = 60_000;

/** Runs the audit and prints the result; whatever hinders it is said and gives 2. */
export async function runAuditExecution(
  context: CommandContext,
  options: AuditExecutionOptions,
  warn: (line: string) => void,
): Promise<number> {
  try {
    return await runAudit(context, options, warn);
  } catch (error) {
    warn(`audit: ${sentenceOf(error)}`);
    return AUDIT_EXIT.cannotRun;
  }
}

async function runAudit(
  context: CommandContext,
  options: AuditExecutionOptions,
  warn: (line: string) => void,
): Promise<number> {
  const { signal } = context;
  const from = readHeightOption("--from", options.from);
  if (from === 0) throw badOption("--from", "0");
  const url = options.node ?? loadKitConfig(context).endpoints.jsonRpcUrl;
  const genesis = readGenesisOption(options.genesis, context.home);
  const rpc = createJsonRpcClient({
    url: readUrlOption("--node", url),
    timeoutMs: REQUEST_TIMEOUT_MS,
  });
  try {
    const node = createAuditNode(rpc, signal);
    const head = await node.headHeight();
    const to = options.to === "head" ? head : readHeightOption("--to", options.to);
    if (to > head || from > to) {
      const message = `There is nothing to audit from ${from} to ${to}; the head is ${head}.`;
      throw new AuditError("BAD_RANGE", message);
    }
    // Loaded here: no other command should wait for a virtual machine.
    const { auditExecution } = await import("../audit/execution-audit.js");
    const report = await auditExecution({
      node,
      genesis,
      from,
      to,
      trustedHash: options.hash === undefined ? undefined : readHashOption("--hash", options.hash),
      onProgress: progressPrinter(warn),
      signal,
    });
    if (context.json) printJson(context, toWire(report));
    else for (const line of formatAudit(report)) context.print(line);
    return report.difference === undefined ? AUDIT_EXIT.clean : AUDIT_EXIT.difference;
  } finally {
    rpc.close();
  }
}

/** Says where the walk is. */
function progressPrinter(warn: (line: string) => void): (progress: AuditProgress) => void {
  const say = progressLines(warn);
  return ({ height, to, transactions }) =>
    say(() => `audit: block ${height} of ${to}, ${transactions} transactions`);
}

function toWire({ difference, gasUsed, ...report }: AuditReport): Record<string, unknown> {
  return {
    ok: difference === undefined,
    ...report,
    gasUsed: gasUsed.toString(),
    difference: difference ?? null,
  };
}

/** The report for a terminal. */
function formatAudit(report: AuditReport): string[] {
  const rows: readonly (readonly [string, string])[] = [
    ["blocks", `${report.blocks} (${report.from} to ${report.to})`],
    ["transactions", report.transactions.toString()],
    ...(report.cosmosTransactions === 0 ? [] : [asSaid(report.cosmosTransactions)]),
    ["logs", report.logs.toString()],
    ["gas", report.gasUsed.toString()],
    ["proofs read", report.proofs.toString()],
    ["supply", report.isSupplyExact ? "followed from genesis" : "followed from the first mint"],
    ["last block", report.lastHash],
  ];
  return [
    ...rows.map(([name, value]) => `  ${name.padEnd(14)}${value}`),
    ...(report.difference === undefined
      ? ["Executed again with the same result; no difference."]
      : formatDifference(report.difference)),
  ];
}

/** What the second execution does not have; the sentence below is not about it. */
function asSaid(count: number): readonly [string, string] {
  return ["not executed", `${count} Cosmos transactions, whose moves are taken as the node says`];
}

function formatDifference({ height, transaction, field, chain, audit }: Difference): string[] {
  const place = transaction === undefined ? "" : `, transaction ${transaction.index}`;
  return [
    `DIFFERENCE in block ${height}${place}: ${field}`,
    ...(transaction === undefined ? [] : [`  transaction   ${transaction.hash}`]),
    `  the chain     ${chain}`,
    `  executed      ${audit}`,
  ];
}
