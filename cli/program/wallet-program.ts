/** The `causeway wallets` commands with their flags. */
import type { Command } from "commander";
import type {
  AddWalletOptions,
  RetireWalletOptions,
  WalletWordOptions,
} from "../commands/wallets/wallets.js";
import { addDecision, addShared, type Runner, type SharedOptions } from "../shared-options.js";

/** Adds the group to the program. */
export function addWalletCommands(program: Command, run: Runner): void {
  const wallets = program
    .command("wallets")
    .description("the hot wallets that pay withdrawals; every change is kept with its reason");
  addShared(wallets.command("list"))
    .description("every wallet: what it holds, what is on its way, who works for it")
    .action(
      run(async (context) =>
        (await import("../commands/wallets/wallets.js")).runListWallets(context),
      ),
    );
  addDecision(wallets.command("add"))
    .description("make a keystore in the home, or bring one, and pay from it once it is funded")
    .requiredOption("--label <name>", "what people call it; the name of its file")
    .option("--keystore <file>", "bring this keystore (version 3) instead of making one")
    .option("--passphrase-file <file>", "with --keystore: the file that holds its passphrase")
    .action(
      run<SharedOptions & AddWalletOptions>(async (context, own) => {
        const { runAddWallet } = await import("../commands/wallets/wallets.js");
        return runAddWallet(context, own);
      }),
    );
  addChange(wallets, run, "drain", "no new payments from it; what is on its way goes on");
  addChange(wallets, run, "activate", "a draining wallet takes new payments again");
  addDecision(wallets.command("retire"))
    .description("nobody signs for a drained wallet any more; it is watched and reconciled on")
    .argument("<address>", "the wallet, 0x hex")
    .option("--leave-behind", "also with open nonces or a balance: both stay as they are")
    .option("--dust-atoken <n>", "a balance up to this counts as none (default: ten transfers)")
    .action((address: string, own: SharedOptions & RetireWalletOptions) =>
      run<SharedOptions & RetireWalletOptions>(async (context, given) => {
        const { runRetireWallet } = await import("../commands/wallets/wallets.js");
        return runRetireWallet(context, address, given);
      })(own),
    );
}

function addChange(
  wallets: Command,
  run: Runner,
  name: "drain" | "activate",
  description: string,
): void {
  addDecision(wallets.command(name))
    .description(description)
    .argument("<address>", "the wallet, 0x hex")
    .action((address: string, own: SharedOptions & WalletWordOptions) =>
      run<SharedOptions & WalletWordOptions>(async (context, given) => {
        const commands = await import("../commands/wallets/wallets.js");
        const change = name === "drain" ? commands.runDrainWallet : commands.runActivateWallet;
        return change(context, address, given);
      })(own),
    );
}
