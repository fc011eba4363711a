/** Commands about the operator console's users. */
import type { Command } from "commander";
import type { ConsoleUserOptions } from "../commands/console-users.js";
import { addShared, type Runner, type SharedOptions } from "../shared-options.js";

type Flags = SharedOptions & ConsoleUserOptions;

const CONSOLE_HOME = [
  "--console-home <dir>",
  "home of a console that runs apart (else the same home)",
] as const;

const OUT = ["--out <file>", "write the password there (mode 600) instead of showing it"] as const;

/** Adds the group `console`. */
export function addConsoleCommands(program: Command, run: Runner): void {
  const user = program
    .command("console")
    .description("the operator console")
    .command("user")
    .description("who may use the operator console");
  addShared(user.command("add"))
    .description("a new user; the password is shown once, and replaced at the first login")
    .argument("<name>", "a lower-case letter, then letters, digits, - and _")
    .requiredOption("--role <role>", "viewer, operator, approver or admin")
    .option(...OUT)
    .option(...CONSOLE_HOME)
    .action((name: string, own: Flags & { role: string }) =>
      run<Flags & { role: string }>(async (context, options) => {
        const { runAddConsoleUser } = await import("../commands/console-users.js");
        return runAddConsoleUser(context, { ...options, name });
      })(own),
    );
  addShared(user.command("reset"))
    .description("another password, and another API key: the former one ends")
    .argument("<name>", "the user")
    .option(...OUT)
    .option(...CONSOLE_HOME)
    .action((name: string, own: Flags) =>
      run<Flags>(async (context, options) => {
        const { runResetConsoleUser } = await import("../commands/console-users.js");
        return runResetConsoleUser(context, { ...options, name });
      })(own),
    );
  addShared(user.command("remove"))
    .description("end a user: the API key is revoked, open sessions with it")
    .argument("<name>", "the user")
    .option(...CONSOLE_HOME)
    .action((name: string, own: Flags) =>
      run<Flags>(async (context, options) => {
        const { runRemoveConsoleUser } = await import("../commands/console-users.js");
        return runRemoveConsoleUser(context, { ...options, name });
      })(own),
    );
  addShared(user.command("list"))
    .description("all users with their roles and keys")
    .option(...CONSOLE_HOME)
    .action(
      run<Flags>(async (context, options) => {
        const { runListConsoleUsers } = await import("../commands/console-users.js");
        return runListConsoleUsers(context, options);
      }),
    );
}
