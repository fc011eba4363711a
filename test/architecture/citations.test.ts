/** Whatever comments and pages cite must exist: decisions, files, npm scripts, `causeway` commands. */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import type { Command } from "commander";
import { createProgram } from "../../cli/program/program.js";
import { productSources } from "../helpers/sources/source-tree.js";

const PAGES = ["README.md", ...markdownBelow("docs")];
const OWN_FOLDERS = fs
  .readdirSync(".", { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !/^(\.|node_modules|dist)/.test(entry.name))
  .map(({ name }) => name);
const OWN_FILES = OWN_FOLDERS.flatMap(filesBelow);

function markdownBelow(folder: string): string[] {
  return filesBelow(folder).filter((file) => file.endsWith(".md"));
}

function filesBelow(folder: string): string[] {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const child = path.posix.join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(child) : [child];
  });
}

interface Citation {
  readonly cited: string;
  readonly place: string;
}

/** Every match of a pattern's first group in pages and in the comments of the product. */
function citations(pattern: RegExp, texts: readonly { path: string; text: string }[]): Citation[] {
  return texts.flatMap(({ path: file, text }) =>
    [...text.matchAll(pattern)].map((match) => ({ cited: match[1] ?? "", place: file })),
  );
}

const pages = PAGES.map((file) => ({ path: file, text: fs.readFileSync(file, "utf8") }));
const comments = productSources().map(({ path: file, text }) => ({
  path: file,
  text: [...text.matchAll(/\/\*\*[\s\S]*?\*\/|\/\/.*/g)].map(([comment]) => comment).join("\n"),
}));
const cited = [...pages, ...comments];

/** A path that is not there may be the end of one, as pages shorten them within a paragraph. */
function isOwnFile(name: string): boolean {
  return (
    fs.existsSync(name) || OWN_FILES.some((file) => file === name || file.endsWith(`/${name}`))
  );
}

/** Names of a command and of all below it, as typed behind `causeway`. */
function commandNames(command: Command, before = ""): string[] {
  return command.commands.flatMap((child) => {
    const name = `${before}${child.name()}`;
    return [name, ...commandNames(child, `${name} `)];
  });
}

describe("citations", () => {
  it("of decisions name one of docs/decisions.md", () => {
    const text = fs.readFileSync("docs/decisions.md", "utf8");
    const listed = [...text.matchAll(/^\| (D[0-9]+) \|/gm)].map((match) => match[1]);
    const decided = new Set(listed);
    // A number stands for one decision, for ever.
    expect(listed).toHaveLength(decided.size);
    const all = citations(/\b(D[0-9]{1,2})\b/g, cited);
    expect(all.length).toBeGreaterThan(80);
    expect(all.filter(({ cited: id }) => !decided.has(id))).toEqual([]);
  });

  it("of ADRs name a page", () => {
    const numbers = new Set(fs.readdirSync("docs/adr").map((file) => Number(file.slice(0, 4))));
    const all = citations(/\b(?:ADR |adr\/)([0-9]{1,4})\b/g, cited);
    expect(all.length).toBeGreaterThan(5);
    expect(all.filter(({ cited: number }) => !numbers.has(Number(number)))).toEqual([]);
  });

  it("of files name a file of the project", () => {
    const inPages = citations(/`([\w./-]+\.(?:ts|mjs|md|yaml|sol))`/g, pages);
    const inComments = citations(/((?:[\w-]+\/)+[\w-]+\.(?:ts|mjs|md|yaml|sol))\b/g, comments);
    // The guide's own programs stand in its chapters, where other tests run them.
    const isOfGuide = ({ cited: name, place }: Citation) =>
      place.startsWith("docs/guide/") && /^[a-z-]+\.mjs$/.test(name);
    const missing = [...inPages, ...inComments].filter(
      (citation) => !isOfGuide(citation) && !isOwnFile(citation.cited),
    );
    expect(inPages.length + inComments.length).toBeGreaterThan(60);
    expect(missing).toEqual([]);
  });

  it("of links in pages lead somewhere", () => {
    const broken = pages.flatMap(({ path: file, text }) =>
      [...text.matchAll(/\]\((?!https?:)([^)#\s]+)(#[^)]*)?\)/g)]
        .map((match) => match[1] ?? "")
        .filter((target) => !fs.existsSync(path.join(path.dirname(file), target)))
        .map((target) => `${file} -> ${target}`),
    );
    expect(broken).toEqual([]);
  });

  it("of npm scripts and commands name what can be typed", () => {
    const manifest = JSON.parse(fs.readFileSync("package.json", "utf8")) as {
      scripts: Record<string, string>;
    };
    const scripts = citations(/\bnpm run (?:--silent )?([a-z][a-z:-]*)/g, cited);
    expect(scripts.length).toBeGreaterThan(10);
    expect(scripts.filter(({ cited: name }) => manifest.scripts[name] === undefined)).toEqual([]);

    const program = createProgram({
      version: "0",
      env: {},
      signal: new AbortController().signal,
      print: () => undefined,
      warn: () => undefined,
      setExitCode: () => undefined,
    });
    const names = new Set(commandNames(program));
    const typed = citations(
      /(?:`causeway|npm run causeway --) ([a-z][a-z-]*(?: [a-z]+(?:-[a-z]+)*)?)/g,
      cited,
    );
    expect(typed.length).toBeGreaterThan(15);
    const unknown = typed.filter(({ cited: words }) => {
      const [first = ""] = words.split(" ");
      return !names.has(words) && (!names.has(first) || hasChildren(names, first));
    });
    expect(unknown).toEqual([]);
  });
});

/** A group such as `tokens` needs its second word; a command's second word is an argument. */
function hasChildren(names: ReadonlySet<string>, group: string): boolean {
  return [...names].some((name) => name.startsWith(`${group} `));
}
