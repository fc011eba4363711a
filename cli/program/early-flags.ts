/**
 * Options in front of their command, as some command lines take them: `causeway --home DIR doctor`. Here a
 * word that no command is asked of would be an unknown option, and nobody would learn where it belongs.
 */
import type { Command, Option } from "commander";
import { CliError } from "../errors.js";
import { faultCodeOf } from "../shared-options.js";
import { shellWord } from "../shell-word.js";

/**
 * Refuses options of commands that stand before the command, and says the line to type. What no command
 * has is left to the command line's own rules, as are words behind a command that does something.
 * @param setFaultCode told of the exit code of the command that was meant
 * @throws CliError USAGE
 */
export function refuseEarly(
  program: Command,
  words: readonly string[],
  setFaultCode: (code: number) => void,
): void {
  const early: string[] = [];
  const names: string[] = [];
  let command: Command | undefined = program;
  let at = 0;
  while (at < words.length && command !== undefined && isGroup(command)) {
    const word = words[at] ?? "";
    if (word.startsWith("-")) {
      const option = isOwn(command, word) ? undefined : optionOf(program, word);
      if (option === undefined) break;
      const count = option.required && !word.includes("=") ? 2 : 1;
      early.push(...words.slice(at, at + count));
      at += count;
    } else {
      command = command.commands.find((one) => isNamed(one, word));
      names.push(word);
      at += 1;
    }
  }
  const [first] = early;
  if (first === undefined) return;
  const rest = words.slice(at);
  if (rest.length === 0 && command !== undefined && isGroup(command)) names.push("COMMAND");
  setFaultCode(faultCodeOf(command ?? program));
  const flag = first.replace(/=.*$/s, "");
  throw new CliError(
    "USAGE",
    `options come behind the command, ${flag} too: npm run causeway -- ${lineOf(names, early, rest)}`,
  );
}

/** The line to type: the options come last, or before what `--` keeps from being any. */
function lineOf(
  names: readonly string[],
  early: readonly string[],
  rest: readonly string[],
): string {
  const end = rest.indexOf("--");
  const cut = end < 0 ? rest.length : end;
  return [...names, ...rest.slice(0, cut), ...early, ...rest.slice(cut)]
    .map((word) => shellWord(word))
    .join(" ");
}

/** Whether a command only leads to others; one that does something itself takes its options anywhere. */
function isGroup(command: Command): boolean {
  return command.commands.length > 0 && command.options.every(({ long }) => long !== "--home");
}

function isNamed(command: Command, word: string): boolean {
  return command.name() === word || command.aliases().includes(word);
}

function isOwn(command: Command, word: string): boolean {
  return command.options.some((option) => isTyped(option, word));
}

/** The option of a typed word, of whichever command has it first. */
function optionOf(command: Command, word: string): Option | undefined {
  const own = command.options.find((option) => isTyped(option, word));
  if (own !== undefined) return own;
  for (const below of command.commands) {
    const found = optionOf(below, word);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isTyped({ long, short }: Option, word: string): boolean {
  return word === short || word.replace(/=.*$/s, "") === long;
}
