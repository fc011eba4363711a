/** The words of `audit execution`: what it is called with, and how that is explained. */
import { type Command, Option } from "commander";

/** The words of the command line. */
export interface AuditExecutionOptions {
  readonly from: string;
  readonly to: string;
  readonly node?: string;
  readonly genesis?: string;
  readonly hash?: string;
}

/** Gives the command its description and options; the shared ones are left to the caller. */
export function describeAuditExecution(command: Command): Command {
  return command
    .description(
      "execute stored blocks again with @ethereumjs/vm, over state that is proven from the " +
        "headers, and compare receipts, logs, balance journal and state",
    )
    .addOption(new Option("--from <height>", "first block").default("1"))
    .addOption(new Option("--to <height>", 'last block, or "head"').default("head"))
    .addOption(new Option("--node <url>", "JSON-RPC of the node (else the home's)"))
    .addOption(new Option("--genesis <file>", "genesis of the chain (else the home's)"))
    .addOption(new Option("--hash <hash>", "hash that the last block must have"))
    .addHelpText("after", "\nExit code: 0 agrees, 1 something differs, 2 it could not be made.");
}
