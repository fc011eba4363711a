/** Clones in folders whose names mean something else to jest: parts of expressions, or names of our tests. */
import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";

const run = promisify(execFile);

const TESTS = ["e2e/kit", "network/long/blocks", "network/net", "sim/chain", "unit/a"];

const NO_GO = `export const hasGo = () => false;
export const [buildJudge, buildLightClient, buildGrpcurl, buildRpcClient] = [];`;

describe.each([
  ["c++"],
  ["causeway (1)"],
  ["(old"],
  ["[wip]x[b-a]"],
  ["a|b"],
  ["test/e2e/one"],
  ["test/network/long/test/unit/one"],
])("a clone in %s", (name) => {
  let parent: string;
  let clone: string;
  beforeEach(() => {
    parent = realpathSync(mkdtempSync(join(tmpdir(), "causeway-odd-")));
    clone = join(parent, name);
    for (const path of [
      "bin",
      "jest.config.mjs",
      "test/helpers/runner",
      "cli/home/test-variables.mjs",
    ]) {
      cpSync(resolve(path), join(clone, path), { recursive: true });
    }
    symlinkSync(realpathSync("node_modules"), join(clone, "node_modules"));
    // The same name twice: jest warns where it looks into what is built.
    for (const path of ["package.json", "dist/package.json", ".cache/compiled-1/package.json"]) {
      write(path, '{"name":"causeway","type":"module"}');
    }
    for (const path of TESTS) write(`test/${path}.test.ts`, "");
    write("bin/setup/prepare.mjs", "export const prepare = async () => undefined;");
    write("bin/testing/judge.mjs", NO_GO);
    const runner = join(clone, "bin", "testing", "jest.mjs");
    cpSync(runner, join(clone, "bin", "testing", "real-jest.mjs"));
    write(
      "bin/testing/jest.mjs",
      `import { readFileSync } from "node:fs";
import { runJest as runReal } from "./real-jest.mjs";
export { untilStopped } from "./real-jest.mjs";
export const runJest = async (words, options) => {
  const code = await runReal(["--listTests", ...words], options);
  const file = words.find((word) => word.startsWith("--outputFile=")).split("=")[1];
  console.log(readFileSync(file, "utf8"));
  return code;
};`,
    );
  });
  afterEach(() => rmSync(parent, { recursive: true, force: true }));

  function write(path: string, text: string) {
    mkdirSync(dirname(join(clone, path)), { recursive: true });
    writeFileSync(join(clone, path), text);
  }

  /** The tests that each of jest's runs is given, and what jest says. */
  async function listed(...words: string[]) {
    const main = join(clone, "bin", "test.mjs");
    const { stdout, stderr } = await run(process.execPath, [main, ...words], { cwd: clone }).catch(
      (error: { stdout: string; stderr: string }) => error,
    );
    const own = join(clone, "test");
    const lists = stdout.split("\n").filter((line) => line.startsWith("["));
    const runs = lists.map((line) =>
      (JSON.parse(line) as string[])
        .map((path) => path.slice(own.length + 1, -".test.ts".length))
        .toSorted(),
    );
    return { runs, stderr };
  }

  it("has its tests run by their places in it", async () => {
    expect(await listed()).toEqual({ runs: [["e2e/kit"], ["sim/chain", "unit/a"]], stderr: "" });
    expect(await listed("--unit", "--sim", "--network")).toEqual({
      runs: [["sim/chain", "unit/a"], ["network/net"], ["sim/chain"]],
      stderr: "",
    });
  });
});
