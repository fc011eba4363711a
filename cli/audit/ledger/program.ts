/** The commands about the ledger's own evidence, each with its flags. */
import type { Command } from "commander";
import { addShared, type Runner, type SharedOptions } from "../../shared-options.js";
import type { StatementOptions } from "../statement/command.js";
import type { VerifyLedgerOptions } from "./commands.js";

/** Where warnings go. */
export type Warn = (line: string) => void;

/** Adds commands below `audit` and `verify`. */
export function addLedgerAudits(
  groups: { readonly audit: Command; readonly verify: Command },
  run: Runner,
  warn: Warn,
): void {
  addShared(groups.audit.command("export"))
    .description(
      "write the whole ledger to a file: every row with its link in the chain of hashes, and the " +
        "balances; JSON lines, for `verify ledger` and for programs of others",
    )
    .requiredOption("--out <file>", "new file, mode 600")
    .action(
      run<SharedOptions & { out: string }>(async (context, own) =>
        (await import("./commands.js")).runExportLedger(context, own, warn),
      ),
    );
  addShared(groups.audit.command("statement"))
    .description(
      "a customer's statement as JSON and CSV: opening, movements with what stands behind them, " +
        "closing; with the SHA-256 of both files",
    )
    .argument("<customer>", "the customer's identifier")
    .requiredOption("--from <date>", "first day, or a time of RFC 3339")
    .requiredOption("--to <date>", "the day behind the last one, or a time")
    .option("--out <name>", "files NAME.json, NAME.csv, NAME.sha256 (else by customer and days)")
    .action((customer: string, own: SharedOptions & StatementOptions) =>
      run(async (context) =>
        (await import("../statement/command.js")).runStatement(context, customer, own),
      )(own),
    );
  addShared(groups.verify.command("ledger"))
    .description(
      "check a file of `audit export`: the chain of hashes, double entry, balances from postings; " +
        "names the first row that was changed",
    )
    .argument("<file>", "the file")
    .option("--head <hash>", "a link's hash that was written down earlier and must be in the chain")
    .addHelpText(
      "after",
      "\nExit code: 0 nothing was changed, 1 something was, 2 it cannot be read.",
    )
    .action((file: string, own: SharedOptions & VerifyLedgerOptions) =>
      run(async (context) =>
        (await import("./commands.js")).runVerifyLedger(context, file, own, warn),
      )(own),
    );
}
