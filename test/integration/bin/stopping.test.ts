/** A run of the tests that somebody ends: Ctrl-C, a CI that cancels, a window that is closed. */
import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type BinClone, createBinClone } from "../../helpers/processes/bin-clone.js";
import { until } from "../../helpers/until.js";

/** A jest that ends some time behind the signal, as one does that waits for its tests' processes; another ends at once. */
const SLOW_JEST = `
const { appendFileSync, existsSync } = require("node:fs");
const { join } = require("node:path");
const runs = join(__dirname, "..", "..", "..", "runs");
const isFirst = !existsSync(runs);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => setTimeout(() => process.exit(1), 100));
}
const parent = Number(process.env.STARTED_BY ?? process.ppid);
if (isFirst) setInterval(() => process.ppid !== parent && process.exit(1), 100);
appendFileSync(runs, "run\\n");
`;

/** Loaded by a program before its own text: SIGTERM comes to it right behind its start of jest. */
const SIGNAL_AT_START = `
import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
const { spawn } = childProcess;
childProcess.spawn = (program, words, options) => {
  const env = { ...options.env, STARTED_BY: String(process.pid) };
  const child = spawn(program, words, { ...options, env });
  if (words.some((word) => word.endsWith("jest.js"))) process.kill(process.pid, "SIGTERM");
  return child;
};
syncBuiltinESMExports();
`;

const PROGRAMS = [
  ["test.mjs"],
  ["test.mjs", "--unit", "--sim"],
  ["faults.mjs"],
  ["soak.mjs"],
] as const;

describe.each(PROGRAMS)("bin/%s %s %s", (...words) => {
  let clone: BinClone;
  beforeEach(() => {
    clone = createBinClone(SLOW_JEST);
    clone.write("node_modules/jest/package.json", '{"type":"commonjs"}');
    mkdirSync(join(clone.folder, "tmp"));
  });
  afterEach(() => clone.remove());

  const runs = () => {
    try {
      return readFileSync(join(clone.folder, "runs"), "utf8");
    } catch {
      return ""; // Not yet.
    }
  };

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("ends at %s, and begins nothing more", async (signal, code) => {
    const temporary = join(clone.folder, "tmp");
    const program = clone.start(words, { TMPDIR: temporary });
    await until(() => runs() !== "", { timeoutMs: 20_000 });
    program.process.kill(signal);
    const { output, ...ended } = await program.ended;
    expect(ended).toEqual({ code, errors: "" });
    expect(output).not.toContain(" passed, ");
    expect(runs()).toBe("run\n");
    expect(readdirSync(temporary)).toEqual([]);
  });

  it("ends so, too, at a signal that comes as jest is started", async () => {
    clone.write("signal-at-start.mjs", SIGNAL_AT_START);
    const { href } = pathToFileURL(join(clone.folder, "signal-at-start.mjs"));
    const temporary = join(clone.folder, "tmp");
    const program = clone.start(words, { TMPDIR: temporary, NODE_OPTIONS: `--import=${href}` });
    const { output, ...ended } = await program.ended;
    expect(ended).toEqual({ code: 143, errors: "" });
    expect(output).not.toContain(" passed, ");
    expect(readdirSync(temporary)).toEqual([]);
  });
});
