/** The `causeway treasury` and `causeway sweeps` commands with their flags. */
import type { Command } from "commander";
import type { ListSweepsOptions, ReleaseSweepOptions } from "../commands/treasury/treasury.js";
import { addShared, judging, type Runner, type SharedOptions } from "../shared-options.js";

/** Adds the groups to the program. */
export function addTreasuryCommands(program: Command, run: Runner): void {
  const treasury = program
    .command("treasury")
    .description("what the exchange has where, and what persons are asked to send");
  judging(addShared(treasury.command("status")))
    .description("by asset: hot, on deposit addresses, in transit, cold; exit 1 on an open request")
    .action(
      run(async (context) =>
        (await import("../commands/treasury/treasury.js")).runTreasury(context),
      ),
    );
  const sweeps = program
    .command("sweeps")
    .description("coins of deposit addresses on their way to the hot wallets");
  judging(addShared(sweeps.command("list")))
    .description("sweeps, oldest first; exit 1 while one is frozen")
    .option("--state <state>", "only sweeps in this state")
    .option("--after <id>", "only sweeps behind this one")
    .option("--limit <n>", "rows at most (default 100)")
    .action(
      run<SharedOptions & ListSweepsOptions>(async (context, own) => {
        const { runListSweeps } = await import("../commands/treasury/treasury.js");
        return runListSweeps(context, own);
      }),
    );
  addShared(sweeps.command("release"))
    .description(
      "a frozen sweep goes on: its bytes again, or the address anew if its nonce is used",
    )
    .argument("<id>", "number of the sweep")
    .requiredOption("--reason <text>", "what you found, kept for ever (causeway ledger decisions)")
    .option("--operator <name>", "who decides, for the record (else the user)")
    .action((id: string, own: SharedOptions & ReleaseSweepOptions) =>
      run<SharedOptions & ReleaseSweepOptions>(async (context, given) => {
        const { runReleaseSweep } = await import("../commands/treasury/treasury.js");
        return runReleaseSweep(context, id, given);
      })(own),
    );
}
