/** Flags that the SDK's command line has and this one has nothing for: refused with the reason. */
import { type Command, Option } from "commander";
import { CliError } from "./errors.js";

/** Has a command refuse flags, in words and not as unknown ones; its help does not show them. */
export function refuseFlags(command: Command, flags: readonly string[], reason: string): Command {
  for (const flag of flags) {
    const option = new Option(flag).hideHelp();
    command.addOption(option);
    command.on(`option:${option.name()}`, () => {
      throw new CliError("USAGE", `${option.long ?? flag} is not taken here. ${reason}`);
    });
  }
  return command;
}
