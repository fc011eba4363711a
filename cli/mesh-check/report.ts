/** The result as a table for people, or as one JSON document for scripts. */
import type { MeshFault } from "./faults.js";
import type { WalkReport } from "./walk.js";

/** What the command knows beside the walk. */
export interface ReportContext {
  readonly url: string;
  readonly nodeUrl: string | undefined;
  readonly seed: number;
  readonly durationMs: number;
}

/** Version of the JSON document; a change that breaks readers raises it. */
const SCHEMA_VERSION = 1;

/** Faults shown in the table; the JSON document has all that were kept. */
const MAX_SHOWN_FAULTS = 50;

/** One line per figure, then the faults, then the verdict. */
export function formatReport(report: WalkReport, context: ReportContext): string[] {
  const blocks = report.to - report.from + 1;
  const rows: readonly (readonly [string, string])[] = [
    ["server", context.url],
    ["node", context.nodeUrl ?? "not asked (--node)"],
    ["blocks", `${blocks} (${report.from} to ${report.to})`],
    ["transactions", String(report.transactionCount)],
    ["operations", String(report.operationCount)],
    ["accounts", String(report.accountCount)],
    ["currencies", report.currencies.join(", ")],
    ["balances compared", String(report.answerCount)],
    ["supply proofs", `${report.supplyBlockCount} of ${blocks} blocks`],
    ["seed", String(context.seed)],
    ["time", `${(context.durationMs / 1_000).toFixed(1)} s`],
  ];
  const kinds = [...report.operationKinds].toSorted(([left], [right]) => (left < right ? -1 : 1));
  return [
    ...rows.map(([name, value]) => `  ${name.padEnd(18)} ${value}`),
    ...kinds.map(([kind, count]) => `  ${`  ${kind}`.padEnd(26)} ${count}`),
    ...report.quarantined.map(
      ({ contractAddress, fromIndex, reason }) =>
        `  ${"quarantined".padEnd(18)} ${contractAddress} from block ${fromIndex}: ${reason}`,
    ),
    ...report.faults.slice(0, MAX_SHOWN_FAULTS).map(formatFault),
    verdict(report),
  ];
}

/** The whole report as a document; amounts of faults are in their messages. */
export function toJsonReport(report: WalkReport, context: ReportContext): string {
  const { operationKinds, ...rest } = report;
  return JSON.stringify({
    schemaVersion: SCHEMA_VERSION,
    ok: report.faults.length === 0,
    ...context,
    ...rest,
    operationKinds: Object.fromEntries(operationKinds),
  });
}

function verdict({ faults }: WalkReport): string {
  if (faults.length === 0) return "Every balance is explained by its operations; no fault.";
  const hidden = faults.length - MAX_SHOWN_FAULTS;
  const more = hidden > 0 ? ` (${hidden} more are in the --json document)` : "";
  return `${faults.length} ${faults.length === 1 ? "fault" : "faults"}${more}.`;
}

function formatFault(fault: MeshFault): string {
  const place = [
    fault.blockIndex === undefined ? "" : `block ${fault.blockIndex}`,
    fault.transaction === undefined ? "" : `transaction ${fault.transaction}`,
    fault.account === undefined ? "" : `account ${fault.account}`,
    fault.currency ?? "",
  ];
  return `  FAULT ${fault.code}: ${place.filter((part) => part !== "").join(", ")}: ${fault.message}`;
}
