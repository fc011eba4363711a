/** `causeway doctor`: every check of a home, and what to do about each finding. */
import { systemClock } from "../../runtime/process/clock.js";
import { readKillSwitch } from "../../ledger/kill-switch/kill-switch.js";
import { readActivePolicy } from "../../ledger/policy/policy-store.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { type CommandContext, printJson } from "../command-context.js";
import { homePaths } from "../home/home.js";
import { runDoctorChecks } from "../probe/doctor.js";
import type { Finding, Severity } from "../probe/doctor-checks.js";
import { createNodeClient } from "../probe/node-client.js";
import { AT_ONCE, withLedgerAlone } from "../ledger/ledger-alone.js";

/** Prints the findings: 0 when nothing failed, else 1; warnings count only with `strict`. */
export async function runDoctor(
  context: CommandContext,
  options: { readonly strict: boolean },
): Promise<number> {
  const closers: (() => void)[] = [];
  const findings = await runDoctorChecks({
    paths: homePaths(context.home),
    env: context.env,
    portOffset: context.portOffset,
    clock: systemClock,
    signal: context.signal,
    createEvm: (url) => {
      const { evm, close } = createNodeClient(url);
      closers.push(close);
      return evm;
    },
    readLedgerSwitch: () => askLedger(context, readKillSwitch),
    readLedgerPolicy: () => askLedger(context, readActivePolicy),
  });
  for (const close of closers) close();
  const failed = findings.some(
    ({ severity }) => severity === "fail" || (options.strict && severity === "warn"),
  );
  if (context.json) printJson(context, { ok: !failed, checks: findings });
  else {
    for (const { id, severity, value, remedy } of findings) {
      context.print(`  ${severity.toUpperCase().padEnd(5)} ${id.padEnd(18)} ${value}`);
      if (remedy !== "") context.print(`        ${"".padEnd(18)} -> ${remedy}`);
    }
    context.print(verdictLine(findings));
  }
  return failed ? 1 : 0;
}

/** Undefined where the ledger does not say: whoever needs it says what is wrong with it. */
async function askLedger<T>(
  context: CommandContext,
  read: (database: SqlDatabase) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await withLedgerAlone(context, ({ database }) => read(database), AT_ONCE);
  } catch {
    context.signal.throwIfAborted();
    return undefined;
  }
}

/** What all findings come to, for whoever reads the last line alone. */
export function verdictLine(findings: readonly Finding[]): string {
  const count = (severity: Severity) => findings.filter((one) => one.severity === severity).length;
  const [failed, warned] = [count("fail"), count("warn")];
  const warnings = warned === 1 ? "there is 1 warning" : `there are ${warned} warnings`;
  if (failed === 0 && warned === 0) return "All is well.";
  if (failed === 0) {
    const lines =
      warned === 1 ? "line that begins with WARN says" : "lines that begin with WARN say";
    return `Nothing failed; ${warnings}: the ${lines} what to do.`;
  }
  const checks = failed === 1 ? "1 check failed" : `${failed} checks failed`;
  return warned === 0
    ? `${checks}; each line that begins with FAIL says what to do.`
    : `${checks}, and ${warnings}; each line that begins with FAIL or WARN says what to do.`;
}
