/** docs/consensus-scenarios.md lists each of CometBFT's tests once, and only tests that exist. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { readScenarios } from "./cometbft-scenarios.js";

const ROOT = new URL("../../../", import.meta.url);
const page = readFileSync(new URL("docs/consensus-scenarios.md", ROOT), "utf8");

interface Row {
  readonly section: string;
  readonly name: string;
  readonly text: string;
}

/** Rows of all tables, with the heading above. */
function readRows(): Row[] {
  let section = "";
  const rows: Row[] = [];
  for (const line of page.split("\n")) {
    if (line.startsWith("## ")) section = line.slice(3);
    const [, name, text] = /^\| (\S+) \| (.+) \|$/.exec(line) ?? [];
    if (name !== undefined && text !== undefined) rows.push({ section, name, text });
  }
  return rows.filter(({ name }) => name !== "CometBFT" && name !== "name");
}

const rows = readRows();
const files = new Map(
  rows
    .filter(({ section }) => section === "Files")
    .map(({ name, text }) => [name.replaceAll("`", ""), text.replaceAll("`", "")]),
);
const scenarios = rows.filter(({ section }) => section !== "Files");

/** Why a row's right side does not stand; empty when it does. */
function faultsOf({ name, text }: Row): string[] {
  const faults: string[] = [];
  let source: string | undefined;
  for (const [, alias, quoted] of text.matchAll(/`([a-z0-9]+)`|"([^"]+)"/g)) {
    if (alias !== undefined) {
      const file = files.get(alias);
      if (file === undefined || !existsSync(new URL(file, ROOT))) faults.push(`${name}: ${alias}`);
      else source = readFileSync(new URL(file, ROOT), "utf8");
    } else if (quoted !== undefined && source?.includes(quoted) !== true) {
      faults.push(`${name}: no test "${quoted}"`);
    }
  }
  return faults;
}

describe("the page of consensus scenarios", () => {
  it("lists each of CometBFT's tests, each once, by file", () => {
    const { tests } = readScenarios();
    const listed = Object.keys(tests).map((file) => {
      return [file, scenarios.filter(({ section }) => section === file).map(({ name }) => name)];
    });
    const wanted = Object.entries(tests).map(([file, names]) => {
      return [file, names.map((name) => name.replace(/^Test/, ""))];
    });
    expect(listed).toEqual(wanted);
    expect(scenarios).toHaveLength(Object.values(tests).flat().length);
  });

  it("names tests that exist", () => {
    expect(scenarios.flatMap(faultsOf)).toEqual([]);
    const named = scenarios.filter(({ text }) => text.includes("`"));
    expect(named.length).toBeGreaterThan(100);
  });
});
