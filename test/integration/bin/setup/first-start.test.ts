/** The first start of a clone installs and builds, once; the next one does neither, and needs nothing. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { cloneForEachTest } from "./fresh-clone.js";

describe("bin/causeway.mjs in a fresh clone", () => {
  let clone: string;

  const { runCommand, runScript, npmCalls, countOf } = cloneForEachTest((made) => {
    clone = made;
  });

  it("installs, builds and runs; the next run does only the last and is silent", async () => {
    const first = await runCommand();
    expect(first).toEqual({ code: 0, output: "ran status\n", errors: expect.any(String) });
    const calls = readFileSync(join(clone, "npm-calls"), "utf8");
    expect(calls).toBe("ci --no-audit --no-fund --include=optional\n");
    expect(first.errors).toContain("installing packages");
    expect(readFileSync(join(clone, "dist", "openapi", "data.yaml"), "utf8")).toContain("3.0.3");
    const second = await runCommand();
    expect(second).toEqual({ code: 0, output: "ran status\n", errors: "" });
  });

  it("says how many files it may open where that is too few", () => {
    const command = `ulimit -n 64 && exec "${process.execPath}" bin/causeway.mjs status`;
    const { status, stdout, stderr } = spawnSync("sh", ["-c", command], {
      cwd: clone,
      encoding: "utf8",
    });
    expect({ status, stdout, stderr }).toEqual({
      status: 1,
      stdout: "",
      stderr:
        "causeway: a process may open only 64 files here (ulimit -n), and 256 are needed at least; " +
        "allow 4096 or more\n",
    });
  });

  it("refuses a wrong flag of `npm start`, and shows its help, before it installs anything", async () => {
    const wrong = await runScript(["start.mjs", "--onec", "--home"]);
    expect(wrong).toEqual({
      code: 1,
      output: "",
      errors:
        'causeway: settings are wrong:\n  flag: --onec = "" (allowed: no such flag, see --help)\n' +
        '  flag: --home = "" (allowed: a value after the flag)\n',
    });
    const kept = await runScript(["start.mjs"], { npm_config_once: "true" });
    expect(kept.errors).toContain("allowed: behind two dashes: npm start -- --once");
    expect(kept.code).toBe(1);
    const help = await runScript(["start.mjs", "--help"]);
    expect(help).toEqual({ code: 0, output: expect.stringContaining("--once"), errors: "" });
    expect(countOf("npm-calls")).toBe(0);
  });

  it("leaves a wrong flag to the kit where all is in place, which tells it with all other faults", async () => {
    await runCommand();
    const kit = "console.log('kit', process.argv.slice(2).join(' '));";
    writeFileSync(join(clone, "dist", "cli", "kit-main.js"), kit);
    const wrong = await runScript(["start.mjs", "--onec"]);
    expect(wrong).toEqual({ code: 0, output: "kit --onec\n", errors: "" });
    expect(npmCalls()).toHaveLength(1);
    // Of other sources nothing is built for it.
    writeFileSync(join(clone, "chain", "units.ts"), "export const changed = 1;\n");
    expect((await runScript(["start.mjs", "--onec"])).errors).toContain("--onec");
    expect(countOf("tsc-calls")).toBe(1);
  });

  it("installs and builds once when three commands start together", async () => {
    const runs = await Promise.all([runCommand(), runCommand(), runCommand()]);
    expect(runs.map((run) => run.code)).toEqual([0, 0, 0]);
    expect(npmCalls()).toHaveLength(1);
    expect(countOf("tsc-calls")).toBe(1);
    expect(readdirSync(join(clone, ".cache"))).toEqual([]);
  });

  it("takes over the lock of a start that was killed", async () => {
    mkdirSync(join(clone, ".cache", "setup.lock"), { recursive: true });
    const owner = { pid: process.pid, startTicks: "1" };
    writeFileSync(join(clone, ".cache", "setup.lock", "owner.json"), JSON.stringify(owner));
    expect((await runCommand()).code).toBe(0);
  });

  it("needs nothing and writes nothing when all is in place", async () => {
    await runCommand();
    const before = readdirSync(clone);
    rmSync(join(clone, "tools"), { recursive: true });
    chmodSync(clone, 0o500);
    const run = await runCommand({ npm_execpath: "/nowhere/npm-cli.js", PATH: "/nowhere" });
    chmodSync(clone, 0o700);
    expect(run).toEqual({ code: 0, output: "ran status\n", errors: "" });
    expect(before).toEqual(expect.arrayContaining(readdirSync(clone)));
  });

  it("works through a link to the clone", async () => {
    const link = `${clone}-link`;
    symlinkSync(clone, link);
    const child = spawn(process.execPath, [join(link, "bin", "causeway.mjs"), "status"], {
      env: { PATH: process.env["PATH"], npm_execpath: join(clone, "tools", "npm-cli.mjs") },
    });
    const [code] = await once(child, "close");
    rmSync(link);
    expect(code).toBe(0);
  });
});
