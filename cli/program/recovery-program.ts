/** The `causeway recover` command with its flags. */
import type { Command } from "commander";
import type { RecoverOptions } from "../commands/recover.js";
import { addShared, judging, type Runner, type SharedOptions } from "../shared-options.js";

/** Adds the command to the program. */
export function addRecoveryCommands(program: Command, run: Runner): void {
  judging(addShared(program.command("recover")))
    .description(
      "rebuild a ledger that is older than what was answered from it: shows the plan; exit 1 while " +
        "the ledger waits for it",
    )
    .option("--apply", "carry the plan out and open the ledger again")
    .option("--declare <reason>", "close the ledger first: it is older than the home knows")
    .option(
      "--last-address-index <index>",
      "with --declare: the last address of your own records; else 1,000 are left out",
    )
    .option(
      "--backup-of <time>",
      "with --declare: when the backup was made; what was written since is told again",
    )
    .option(
      "--former-key <index:file...>",
      "a deposit key of before deposit-key-from-index: the first index that is its own, and its xpub",
    )
    .option("--wallet <address...>", "wallets that neither the ledger nor this home knows")
    .option(
      "--accept-unseen <wallet...>",
      "with --apply: wallets that were used elsewhere before this ledger knew them",
    )
    .option("--operator <name>", "who does it, for the record (else the user)")
    .action(
      run<SharedOptions & RecoverOptions>(async (context, own) => {
        const { runRecover } = await import("../commands/recover.js");
        return runRecover(context, own);
      }),
    );
}
