/** Which home a process of the kit means. */
import { resolve } from "node:path";
import { expect, it } from "@jest/globals";
import { parseProcessArguments } from "../../../../runtime/process/process-arguments.js";

const homeOf = (argv: readonly string[], home?: string) =>
  parseProcessArguments(argv, home === undefined ? {} : { CAUSEWAY_HOME: home }).home;

it("is the flag, else the variable, else .causeway; nothing empty is the working folder", () => {
  expect(homeOf(["--home", "/a"], "/b")).toBe("/a");
  expect(homeOf([], "/b")).toBe("/b");
  expect(homeOf([])).toBe(resolve(".causeway"));
  expect(homeOf([], "")).toBe(resolve(".causeway"));
  expect(() => homeOf(["--home", ""], "/b")).toThrow("--home needs a folder");
});
