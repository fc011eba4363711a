/** The `causeway upgrade` commands, each with its flags. */
import type { Command } from "commander";
import { addShared, judging, type Runner, type SharedOptions } from "../shared-options.js";
import type { StageOptions, UnstageOptions } from "./commands.js";

/** Adds the group to the program. */
export function addUpgradeCommands(program: Command, run: Runner): void {
  const upgrade = program
    .command("upgrade")
    .description("releases that `causeway start` goes on with at the height of a planned upgrade");
  addShared(upgrade.command("stage"))
    .description(
      "have an installed and built release go on at the plan's height; prints the SHA-256 of what it runs",
    )
    .argument("<name>", "name of the plan; the release has to know it")
    .requiredOption("--release <folder>", "clone of the release; leave it there as it is")
    .option("--sha256 <hex>", "refuse a release that runs anything else")
    .option("--replace", "in the place of another release that is staged for the plan")
    .action((name: string, own: SharedOptions & StageOptions) =>
      run<SharedOptions & StageOptions>(async (context, flags) => {
        const { runStageUpgrade } = await import("./commands.js");
        return runStageUpgrade(context, name, flags);
      })(own),
    );
  judging(addShared(upgrade.command("list")))
    .description(
      "what is staged, the plan of the chain, what this release knows; exit 1 when a staged release " +
        "would not be started, or none knows the plan, 2 when nobody tells the plan",
    )
    .action(run(async (context) => (await import("./commands.js")).runListUpgrades(context)));
  addShared(upgrade.command("unstage"))
    .description("take back what is staged for a plan")
    .argument("<name>", "name of the plan")
    .option("--switched", "also a release that has taken over: nothing hands over to it any more")
    .action((name: string, own: SharedOptions & UnstageOptions) =>
      run<SharedOptions & UnstageOptions>(async (context, flags) => {
        const { runUnstageUpgrade } = await import("./commands.js");
        return runUnstageUpgrade(context, name, flags);
      })(own),
    );
  addShared(upgrade.command("known"))
    .description("upgrades that this release knows")
    .action(run(async (context) => (await import("./commands.js")).runKnownUpgrades(context)));
}
