/** What scripts may add to any command of `causeway`, whichever it is. */
import type { Command } from "commander";
import { expect, it } from "@jest/globals";
import { createProgram } from "../../../../cli/program/program.js";

const program = createProgram({
  version: "0",
  env: {},
  signal: new AbortController().signal,
  print: () => undefined,
  warn: () => undefined,
  setExitCode: () => undefined,
});

/** Commands that do something, by all their words; those of `tx` are made when they are asked for. */
function doers(command: Command, words: readonly string[] = []): readonly [string, Command][] {
  const own = [...words, command.name()];
  if (command.name() === "tx") return [];
  if (command.commands.length === 0) return [[own.slice(1).join(" "), command]];
  return command.commands.flatMap((one) => doers(one, own));
}

it("every command takes --json, --port-offset and --home", () => {
  const commands = doers(program);
  expect(commands.length).toBeGreaterThan(100);
  for (const [name, { options }] of commands) {
    const flags = options.map(({ long }) => long);
    const wanted = ["--json", "--port-offset", "--home"];
    expect({ name, missing: wanted.filter((flag) => !flags.includes(flag)) }).toEqual({
      name,
      missing: [],
    });
  }
});
