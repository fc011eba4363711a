/** Which home a process of the kit means. */
import { resolve } from "node:path";
import { expect, it } from "@jest/globals";
import { readProcessArguments } from "../../../../runtime/process/process-arguments.js";

function homeOf(argv: readonly string[], named?: string): string {
  const { home, fault } = readProcessArguments(
    argv,
    named === undefined ? {} : { CAUSEWAY_HOME: named },
  );
  if (fault !== undefined) throw fault;
  return home;
}

it("is the flag, else the variable, else .causeway; nothing empty is the working folder", () => {
  expect(homeOf(["--home", "/a"], "/b")).toBe("/a");
  expect(homeOf([], "/b")).toBe("/b");
  expect(homeOf([])).toBe(resolve(".causeway"));
  expect(homeOf([], "")).toBe(resolve(".causeway"));
  expect(() => homeOf(["--home", ""], "/b")).toThrow("--home needs a folder");
});

it("tells what cannot be understood, with the home as far as it is known", () => {
  const cases: [string[], string][] = [
    [["--home", "/a", "--port-offset", "much"], "--port-offset must be a whole number from 0 to"],
    [["--bogus", "--home", "/a"], "'--bogus'"],
    [["--home", "/a", "--port-offset"], "--port-offset"],
  ];
  for (const [argv, text] of cases) {
    const { home, portOffset, fault } = readProcessArguments(argv, {});
    expect([home, portOffset]).toEqual(["/a", 0]);
    expect(fault?.message).toContain(text);
  }
});
