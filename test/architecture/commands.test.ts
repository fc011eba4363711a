/**
 * Commands that pages and the program's own words hand out, against the program: what is copied has every
 * option without which it ends with an error, as an emergency is no time to look for it.
 */
import fs from "node:fs";
import type { Command } from "commander";
import { describe, expect, it } from "@jest/globals";
import { createProgram } from "../../cli/program/program.js";

/** A command, and what it does not run without. */
interface Asked {
  readonly path: string;
  readonly takesArgument: boolean;
  readonly options: readonly string[];
}

const quiet = () => undefined;
const program = createProgram({
  version: "0",
  env: {},
  signal: new AbortController().signal,
  print: quiet,
  warn: quiet,
  setExitCode: quiet,
});

function commandsBelow(command: Command, path: readonly string[]): readonly Asked[] {
  const options = command.options.filter(({ mandatory }) => mandatory);
  const own: Asked = {
    path: path.join(" "),
    takesArgument: command.registeredArguments.some(({ required }) => required),
    options: options.map(({ long, flags }) => long ?? flags),
  };
  return [own, ...command.commands.flatMap((one) => commandsBelow(one, [...path, one.name()]))];
}

const asking = commandsBelow(program, []).filter(({ options }) => options.length > 0);

/** What of the required options a text does not have that begins with the command. */
function missingIn(text: string, { options }: Asked): readonly string[] {
  return options.filter((option) => !new RegExp(`${option}(?![a-z-])`).test(text));
}

function filesIn(folder: string, end: string): readonly string[] {
  return fs
    .readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(end))
    .map((name) => `${folder}/${name}`);
}

const pages = ["README.md", ...filesIn("docs", ".md"), ...filesIn("openapi", ".yaml")]
  .filter((file) => !file.startsWith("docs/adr/"))
  .map((file) => ({ file, text: fs.readFileSync(file, "utf8") }));

const FENCE = /```[^\n]*\n[\s\S]*?```/g;

/** Commands between backticks, without the words before their name. */
function spansOf(text: string): readonly { readonly span: string; readonly asked: Asked }[] {
  return [...text.matchAll(/`([^`]+)`/g)].flatMap(([, given = ""]) => {
    const span = given.replace(/^(npm run )?causeway (-- )?/, "");
    const asked = asking.find(({ path }) => span === path || span.startsWith(`${path} `));
    return asked === undefined ? [] : [{ span, asked }];
  });
}

/** Whether something is filled in for who copies it: a name alone, or one option, is what is talked about. */
function isFilledIn(span: string, { path, takesArgument }: Asked): boolean {
  const rest = span.slice(path.length + 1);
  if (rest === "" || rest.endsWith("…")) return false;
  return takesArgument ? !rest.startsWith("-") : (rest.match(/--[a-z]/g) ?? []).length > 1;
}

/** Cells of the column `what to do`. */
function remediesOf(text: string): readonly string[] {
  let column = -1;
  return text.split("\n").flatMap((line) => {
    if (!line.startsWith("|")) {
      column = -1;
      return [];
    }
    const cells = line.split("|").map((cell) => cell.trim());
    if (column >= 0) return [cells[column] ?? ""];
    column = cells.indexOf("what to do");
    return [];
  });
}

/** Sources whose texts people read, without comments, and with texts over several lines as one. */
const sources = ["chain", "cli", "console", "deposit-watcher", "explorer", "indexer", "ledger"]
  .concat("node", "rpc-client", "runtime", "sidecar", "withdrawal-worker")
  .flatMap((folder) => [...filesIn(folder, ".ts"), ...filesIn(folder, ".mjs")])
  .map((file) => ({
    file,
    text: fs
      .readFileSync(file, "utf8")
      .replaceAll(/^\s*(\/?\*|\/\/).*$/gm, "")
      .replaceAll(/["`']\s*\+\s*["`']/g, ""),
  }));

/** Names of commands in words about them; nobody is told to type these. */
const NAMED: readonly string[] = [
  "causeway killswitch set` and `lift` write it",
  "causeway killswitch set\\` or \\`lift\\`",
  "causeway upgrade stage` has named",
];

describe("commands that are handed out", () => {
  it("have what they need on pages, where something is filled in or an operator is told what to do", () => {
    const found = pages.flatMap(({ file, text }) => {
      const filledIn = spansOf(text.replaceAll(FENCE, "").replaceAll(/\s+/g, " ")).filter(
        ({ span, asked }) => isFilledIn(span, asked),
      );
      const told = remediesOf(text).flatMap(spansOf);
      return [...filledIn, ...told].flatMap(({ span, asked }) =>
        missingIn(span, asked).map((option) => `${file}: \`${span}\` lacks ${option}`),
      );
    });
    expect([...new Set(found)]).toEqual([]);
    expect(asking.length).toBeGreaterThan(25);
  });

  it("have it in what is to be copied into a shell", () => {
    let seen = 0;
    const found = pages.flatMap(({ file, text }) => {
      const lines = [...text.matchAll(FENCE)].flatMap(([block]) =>
        block.replaceAll("\\\n", "").split("\n"),
      );
      return lines.flatMap((line) => {
        const [, typed] = /(?:causeway -- |main\.js |rm operator )(.*)$/.exec(line) ?? [];
        const asked = asking.find(({ path }) => typed?.startsWith(`${path} `));
        if (typed === undefined || asked === undefined) return [];
        seen += 1;
        return missingIn(typed, asked).map((option) => `${file}: ${line} lacks ${option}`);
      });
    });
    expect(found).toEqual([]);
    expect(seen).toBeGreaterThan(20);
  });

  it("have it in the program's own words, but for a name in brackets", () => {
    let seen = 0;
    const found = sources.flatMap(({ file, text }) =>
      [...text.matchAll(/causeway (?:-- )?([a-z][a-z -]*[a-z])/g)].flatMap(
        ({ index, 0: start, 1: words = "" }) => {
          const asked = asking.find(({ path }) => `${words} `.startsWith(`${path} `));
          if (asked === undefined) return [];
          seen += 1;
          const [line = ""] = text.slice(index).split("\n");
          const end = start.length - words.length + asked.path.length;
          const isNamed =
            /^(\)|, with )/.test(line.slice(end)) || NAMED.some((name) => line.startsWith(name));
          if (isNamed) return [];
          // The next command has its own.
          const [own = ""] = line.slice("causeway".length).split("causeway");
          return missingIn(own, asked).map(
            (option) => `${file}: causeway${own.slice(0, 100)} lacks ${option}`,
          );
        },
      ),
    );
    expect(found).toEqual([]);
    expect(seen).toBeGreaterThan(25);
  });
});
