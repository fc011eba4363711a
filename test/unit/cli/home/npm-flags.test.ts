/** Flags in front of the `--`, which npm keeps: `withdrawals release --wallet=…` would release all. */
import { expect, it } from "@jest/globals";
import { keptByNpm } from "../../../../cli/home/npm-flags.mjs";
import { createProgram } from "../../../../cli/program/program.js";
import { flagsOf } from "../../../../cli/shared-options.js";

const flags = flagsOf(
  createProgram({
    version: "0",
    env: {},
    signal: new AbortController().signal,
    print: () => undefined,
    warn: () => undefined,
    setExitCode: () => undefined,
  }),
);
const keysOf = (env: Record<string, string>) =>
  keptByNpm(env, flags, "npm run causeway").map(({ key }) => key);

it("are found whichever command has them, one fault for each", () => {
  const env = {
    npm_config_home: "/kit",
    npm_config_wallet: "0xab",
    npm_config_accept_foreign: "true",
  };
  expect(keysOf(env).toSorted()).toEqual(["--accept-foreign", "--home", "--wallet"]);
});

it("are no settings of npm itself", () => {
  const own = [
    "json",
    "yes",
    "offline",
    "dry_run",
    "scope",
    "key",
    "description",
    "tag",
    "noproxy",
  ];
  expect(keysOf(Object.fromEntries(own.map((name) => [`npm_config_${name}`, "x"])))).toEqual([]);
});
