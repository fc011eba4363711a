/** Commands about what may be paid: persons' approvals and the kill switch. */
import type { Command } from "commander";
import type { ApprovalOptions } from "../commands/policy/approvals.js";
import type { SetSwitchOptions } from "../commands/policy/kill-switch.js";
import { addShared, judging, type Runner, type SharedOptions } from "../shared-options.js";

const OPERATOR = ["--operator <name>", "who says so, for the record (else the user)"] as const;

/** Adds `approve` and `reject` to the group of withdrawals. */
export function addApprovalCommands(withdrawals: Command, run: Runner): void {
  const words = {
    approve:
      "let a withdrawal be paid, as one of the persons that its policy asks for; exit 1 when that " +
      "is not taken",
    reject:
      "end a withdrawal that waits for approvals; its hold goes back; exit 1 when that is not taken",
  };
  for (const decision of ["approve", "reject"] as const) {
    judging(addShared(withdrawals.command(decision)))
      .description(words[decision])
      .argument("<id>", "the withdrawal")
      .requiredOption("--reason <text>", "why, for the record")
      .option(...OPERATOR)
      .option("--signing-key <file>", "Ed25519 key (PEM) of one of the policy's approvers")
      .action((id: string, own: SharedOptions & ApprovalOptions) =>
        run<SharedOptions & ApprovalOptions>(async (context, options) => {
          const { runDecideWithdrawal } = await import("../commands/policy/approvals.js");
          return runDecideWithdrawal(context, { ...options, id, decision });
        })(own),
      );
  }
}

/** Adds the group `killswitch`. */
export function addKillSwitchCommands(program: Command, run: Runner): void {
  const killSwitch = program
    .command("killswitch")
    .description("what stops payments: new requests, signing, sending");
  judging(addShared(killSwitch.command("show")))
    .description(
      "what the home and the ledger say; exit 1 while something is stopped, 2 where the ledger " +
        "cannot be asked",
    )
    .action(
      run(async (context) =>
        (await import("../commands/policy/kill-switch.js")).runShowSwitch(context),
      ),
    );
  addShared(killSwitch.command("set"))
    .description("stop, in the home's file first: the signer obeys it without a database")
    .argument("<level>", "stop-new, stop-sign or stop-broadcast; each stops more")
    .requiredOption("--reason <text>", "why, for the record")
    .option(...OPERATOR)
    .action((level: string, own: SharedOptions & SetSwitchOptions) =>
      run<SharedOptions & SetSwitchOptions>(async (context, { reason, operator }) => {
        const { runSetSwitch } = await import("../commands/policy/kill-switch.js");
        return runSetSwitch(context, { level, reason, ...(operator && { operator }) });
      })(own),
    );
  addShared(killSwitch.command("lift"))
    .description("let everything go on; needs the ledger")
    .requiredOption("--reason <text>", "why, for the record")
    .option(...OPERATOR)
    .action(
      run<SharedOptions & SetSwitchOptions>(async (context, options) => {
        const { runLiftSwitch } = await import("../commands/policy/kill-switch.js");
        return runLiftSwitch(context, options);
      }),
    );
}
