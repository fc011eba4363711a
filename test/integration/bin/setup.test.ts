import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { firstWords } from "../../helpers/processes/endings.js";
import { until } from "../../helpers/until.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Stands in for npm: counts its calls, empties node_modules, as npm ci does first of all, and puts the
 * compiler and the one package of the lock file in place.
 */
const FAKE_NPM = `
import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
const tools = dirname(process.argv[1]);
const file = (name) => join(tools, "..", name);
appendFileSync(file("npm-calls"), process.argv.slice(2).join(" ") + "\\n");
if (process.env.FAKE_NPM_STUCK) {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => appendFileSync(file("npm-signals"), signal));
  }
  const script = spawn("sleep", ["300"], { stdio: "inherit" });
  writeFileSync(file("npm-pids.new"), process.pid + " " + script.pid);
  renameSync(file("npm-pids.new"), file("npm-pids"));
  await new Promise(() => setInterval(() => undefined, 1000));
}
rmSync("node_modules", { recursive: true, force: true });
if (process.env.FAKE_NPM_FAULT) {
  console.error("npm error code " + process.env.FAKE_NPM_FAULT);
  process.exit(1);
}
setTimeout(() => {
  cpSync(join(tools, "typescript"), "node_modules/typescript", { recursive: true });
  mkdirSync("node_modules/wanted", { recursive: true });
  writeFileSync("node_modules/wanted/package.json", "{}");
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
  const path = "node_modules/wanted";
  const installed = JSON.stringify({ packages: { [path]: packages[path] } });
  writeFileSync("node_modules/.package-lock.json", installed);
}, 300);
`;

/** Stands in for the compiler: writes what the commands import, and counts its calls. */
const FAKE_COMPILER = `
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
appendFileSync("tsc-calls", "x");
const out = process.argv[process.argv.indexOf("--outDir") + 1];
mkdirSync(out + "/cli", { recursive: true });
if (process.env.FAKE_TSC_SLOW_MS) {
  await new Promise((resolve) => setTimeout(resolve, Number(process.env.FAKE_TSC_SLOW_MS)));
}
if (process.env.FAKE_TSC_KILLED) process.kill(process.pid, "SIGKILL");
if (process.env.FAKE_TSC_FAULT) {
  console.log("chain/units.ts(1,1): error TS1005: broken");
  process.exit(2);
}
writeFileSync(out + "/cli/main.js", "console.log('ran', process.argv.slice(2).join(' '))");
`;

const integrity = "sha512-x";
const LOCK = {
  packages: {
    "": {},
    "node_modules/wanted": { version: "1.0.0", integrity },
    "node_modules/other-platform": { version: "1.0.0", integrity, optional: true },
    "node_modules/for-tests": { version: "1.0.0", integrity, dev: true },
    "node_modules/linked-for-tests": { resolved: "test/linked", link: true },
    "test/linked": { version: "1.0.0", dev: true },
    "node_modules/left-over": { version: "1.0.0", integrity, extraneous: true },
  },
};

/** What a package says that asks for another one where it can be had. */
const ASKING = { optionalDependencies: { native: "1.0.0" } };

describe("bin/causeway.mjs in a fresh clone", () => {
  let clone: string;

  beforeEach(() => {
    clone = mkdtempSync(join(tmpdir(), "causeway-clone-"));
    cpSync(join(ROOT, "bin"), join(clone, "bin"), { recursive: true });
    for (const name of ["cli/supervisor/kit-flags.mjs", "cli/home/npm-flags.mjs"]) {
      cpSync(join(ROOT, name), join(clone, name));
    }
    mkdirSync(join(clone, "chain"));
    mkdirSync(join(clone, "openapi"));
    mkdirSync(join(clone, "tools"));
    writeFileSync(join(clone, "chain", "units.ts"), "export {};\n");
    writeFileSync(join(clone, "openapi", "data.yaml"), "openapi: 3.0.3\n");
    for (const name of ["package.json", "tsconfig.json", "tsconfig.build.json"]) {
      writeFileSync(join(clone, name), '{"type":"module"}');
    }
    writeFileSync(join(clone, "package-lock.json"), JSON.stringify(LOCK));
    writeFileSync(join(clone, "tools", "npm-cli.mjs"), FAKE_NPM);
    const typescript = join(clone, "tools", "typescript");
    mkdirSync(typescript);
    writeFileSync(join(typescript, "package.json"), '{"bin":{"tsc":"./tsc.mjs"}}');
    writeFileSync(join(typescript, "tsc.mjs"), FAKE_COMPILER);
    cpSync(typescript, join(clone, "node_modules", "typescript"), { recursive: true });
  });

  afterEach(() => {
    rmSync(clone, { recursive: true, force: true });
  });

  const runCommand = (env: Record<string, string> = {}) =>
    runScript(["causeway.mjs", "status"], env);

  async function runScript([name, ...words]: readonly [string, ...string[]], env = {}) {
    const child = spawn(process.execPath, [join(clone, "bin", name), ...words], {
      env: {
        PATH: process.env["PATH"],
        npm_execpath: join(clone, "tools", "npm-cli.mjs"),
        ...env,
      },
    });
    let output = "";
    let errors = "";
    child.stdout.on("data", (chunk) => {
      output += String(chunk);
    });
    child.stderr.on("data", (chunk) => {
      errors += String(chunk);
    });
    const [code] = await once(child, "close");
    return { code: Number(code), output, errors };
  }

  /** Starts a command whose npm hangs with a script of its own; resolves when both run. */
  async function startStuck() {
    const child = spawn(process.execPath, [join(clone, "bin", "causeway.mjs"), "status"], {
      env: {
        PATH: process.env["PATH"],
        npm_execpath: join(clone, "tools", "npm-cli.mjs"),
        FAKE_NPM_STUCK: "1",
      },
      stdio: "ignore",
    });
    const ended = once(child, "exit");
    const path = join(clone, "npm-pids");
    await until(() => existsSync(path), { timeoutMs: 10_000 });
    return { child, ended, pids: readFileSync(path, "utf8").split(" ").map(Number) };
  }

  /** Zombies are gone for this purpose: only their parent's table still knows them. */
  function isRunning(pid: number) {
    try {
      return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
    } catch {
      return false;
    }
  }

  /** What an update does: another version of a package, and other sources. */
  function update(version: string) {
    const newer = structuredClone(LOCK);
    newer.packages["node_modules/wanted"].version = version;
    writeFileSync(join(clone, "package-lock.json"), JSON.stringify(newer));
    writeFileSync(join(clone, "chain", "units.ts"), `export const of = "${version}";\n`);
  }

  const installed = () => {
    const file = join(clone, "node_modules", ".package-lock.json");
    return (JSON.parse(readFileSync(file, "utf8")) as typeof LOCK).packages["node_modules/wanted"];
  };
  const npmCalls = () => readFileSync(join(clone, "npm-calls"), "utf8").trim().split("\n");

  const countOf = (name: string) =>
    existsSync(join(clone, name)) ? readFileSync(join(clone, name), "utf8").length : 0;

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

  it("builds by itself, too, as `npm run build`", async () => {
    expect((await runScript(["build.mjs"])).code).toBe(0);
    expect(existsSync(join(clone, "dist", ".stamp"))).toBe(true);
    expect(countOf("tsc-calls")).toBe(1);
  });

  it("builds again when a source changes, and leaves no drafts", async () => {
    await runCommand();
    writeFileSync(join(clone, "chain", "units.ts"), "export const changed = 1;\n");
    await runCommand();
    await runCommand();
    expect(countOf("tsc-calls")).toBe(2);
    expect(readdirSync(clone).filter((name) => name.startsWith("dist"))).toEqual(["dist"]);
  });

  it("builds again where a power cut has left names of files and not their content", async () => {
    await runCommand();
    truncateSync(join(clone, "dist", "cli", "main.js"));
    rmSync(join(clone, "dist", ".look"), { force: true });
    await runCommand();
    expect(countOf("tsc-calls")).toBe(2);
  });

  it("installs again when a package is missing, damaged or of another version", async () => {
    await runCommand();
    rmSync(join(clone, "node_modules", "wanted"), { recursive: true });
    expect((await runCommand()).code).toBe(0);
    const newer = structuredClone(LOCK);
    newer.packages["node_modules/wanted"].version = "1.0.1";
    writeFileSync(join(clone, "package-lock.json"), JSON.stringify(newer));
    expect((await runCommand()).code).toBe(0);
    expect(npmCalls()).toHaveLength(3);
  });

  it("leaves the packages in place until all of another release are there", async () => {
    await runCommand();
    update("1.0.1");
    const refused = await runCommand({ FAKE_NPM_FAULT: "ENOTFOUND" });
    expect(refused.errors).toContain("the npm registry cannot be reached");
    expect(refused.errors).toContain("The packages that were in place still are.");
    expect(refused.code).toBe(1);
    expect(installed().version).toBe("1.0.0");
    expect(existsSync(join(clone, "node_modules", "wanted", "package.json"))).toBe(true);
    expect((await runCommand()).code).toBe(0);
    expect(installed().version).toBe("1.0.1");
    expect(readdirSync(join(clone, ".cache"))).toEqual([]);
  });

  it("goes on with the packages of before where a start was killed while it replaced them", async () => {
    await runCommand();
    const former = join(clone, ".cache", "node_modules.former");
    renameSync(join(clone, "node_modules"), former);
    expect((await runCommand()).code).toBe(0);
    // Behind both renames what is left of them is only in the way.
    cpSync(join(clone, "node_modules"), former, { recursive: true });
    update("1.0.1");
    expect((await runCommand()).code).toBe(0);
    expect([installed().version, npmCalls().length]).toEqual(["1.0.1", 2]);
    expect(readdirSync(join(clone, ".cache"))).toEqual([]);
  });

  it("runs what is built while a kit runs from it, and builds when that has ended", async () => {
    await runCommand();
    const part = join(clone, "dist", "part.js");
    writeFileSync(part, "setInterval(() => undefined, 1000); console.log('up');");
    const kit = spawn(process.execPath, ["--no-warnings", part, "--home", "x"]);
    const ended = once(kit, "exit");
    await firstWords(kit);
    update("1.0.1");
    const beside = await runCommand();
    expect(beside).toMatchObject({ code: 0, output: "ran status\n" });
    expect(beside.errors).toContain(`process ${kit.pid} runs what is built in this clone`);
    expect([installed().version, countOf("tsc-calls")]).toEqual(["1.0.0", 1]);
    // Whoever starts something means the sources that are there.
    await runScript(["causeway.mjs", "start"]);
    expect([installed().version, countOf("tsc-calls")]).toEqual(["1.0.1", 2]);
    update("1.0.2");
    kit.kill("SIGKILL");
    await ended;
    expect(await runCommand()).toMatchObject({ code: 0, output: "ran status\n" });
    expect([installed().version, countOf("tsc-calls")]).toEqual(["1.0.2", 3]);
  });

  it("takes a node that `causeway start` runs for one, wherever that was typed", async () => {
    await runCommand();
    const serve = "if (process.argv[2] === 'start') setInterval(() => undefined, 1000);";
    const main = join(clone, "dist", "cli", "main.js");
    writeFileSync(main, `${readFileSync(main, "utf8")};${serve}`);
    const words = ["--no-warnings", "causeway.mjs", "start"];
    const node = spawn(process.execPath, words, { cwd: join(clone, "bin") });
    await firstWords(node);
    update("1.0.1");
    expect((await runCommand()).errors).toContain(`process ${node.pid} runs what is built`);
    node.kill("SIGKILL");
    await once(node, "exit");
    expect(npmCalls()).toHaveLength(1);
  });

  it("stops payments by what is built, and waits for no installing", async () => {
    await runCommand();
    update("1.0.1");
    const unreachable = { FAKE_NPM_FAULT: "ENOTFOUND" };
    for (const words of [
      ["killswitch", "set", "stop-sign"],
      ["withdrawals", "freeze"],
    ]) {
      const run = await runScript(["causeway.mjs", ...words], unreachable);
      expect(run).toMatchObject({ code: 0, output: `ran ${words.join(" ")}\n` });
      expect(run.errors).toContain("waits for no installing and building");
    }
    expect(npmCalls()).toHaveLength(1);
    expect((await runScript(["causeway.mjs", "killswitch", "lift"], unreachable)).code).toBe(1);
    // Cut off between two renames.
    const former = join(clone, ".cache", "node_modules.former");
    renameSync(join(clone, "node_modules"), former);
    const run = await runScript(["causeway.mjs", "withdrawals", "freeze"], unreachable);
    expect(run).toMatchObject({ code: 0, output: "ran withdrawals freeze\n" });
  });

  /** A lock in which `wanted` asks for a package of some machines, which the npm of these tests leaves out. */
  function askFor(native: object, wanted: object = ASKING) {
    const { packages } = structuredClone(LOCK);
    const lock = {
      packages: {
        ...packages,
        "node_modules/wanted": { ...packages["node_modules/wanted"], ...wanted },
        "node_modules/native": { version: "1.0.0", integrity, optional: true, ...native },
      },
    };
    writeFileSync(join(clone, "package-lock.json"), JSON.stringify(lock));
  }

  const { platform, arch } = process;

  it.each([
    ["by system and processor", { os: [platform], cpu: [arch] }],
    ["by system alone", { os: ["aix", platform] }],
    ["by what it does not run on", { os: ["!aix"], cpu: ["any"] }],
  ])(
    "asks in an hour again for a package of this machine that npm went without: %s",
    async (_how, native) => {
      askFor(native);
      const run = await runCommand();
      expect(run.errors).toContain("npm went without what it calls optional: native. ");
      expect(run.code).toBe(0);
      expect(await runCommand()).toEqual({ code: 0, output: "ran status\n", errors: "" });
      const calls = () => readFileSync(join(clone, "npm-calls"), "utf8").trim().split("\n").length;
      expect(calls()).toBe(1);
      const noted = join(clone, ".cache", "went-without.json");
      const { atMs, ...rest } = JSON.parse(readFileSync(noted, "utf8"));
      const hourLater = () =>
        writeFileSync(noted, JSON.stringify({ ...rest, atMs: atMs - 3_600_001 }));
      hourLater();
      await runCommand();
      expect(calls()).toBe(2);
      // Without a network all goes on as before.
      hourLater();
      const offline = await runCommand({ FAKE_NPM_FAULT: "ENOTFOUND" });
      expect([offline.code, offline.output, calls()]).toEqual([0, "ran status\n", 3]);
      expect(offline.errors).toContain("the npm registry cannot be reached");
      expect((await runCommand()).errors).toBe("");
    },
  );

  it.each([
    ["of another system", { os: ["aix"], cpu: [arch] }, ASKING],
    ["of another processor", { os: [platform], cpu: ["s390"] }, ASKING],
    ["of another C library", { os: [platform], cpu: [arch], libc: ["another"] }, ASKING],
    ["not of this system", { os: [`!${platform}`], cpu: [arch] }, ASKING],
    ["of no one machine", {}, ASKING],
    ["that nobody who is here asks for", { os: [platform], cpu: [arch] }, {}],
  ])("needs no optional package %s", async (_which, native, wanted) => {
    askFor(native, wanted);
    expect((await runCommand()).code).toBe(0);
    expect(await runCommand()).toEqual({ code: 0, output: "ran status\n", errors: "" });
    expect(readFileSync(join(clone, "npm-calls"), "utf8").trim().split("\n")).toHaveLength(1);
  });

  it("installs nothing through a symbolic link, but works with what is complete behind one", async () => {
    const [own, shared] = [join(clone, "node_modules"), join(clone, "of-another-clone")];
    renameSync(own, shared);
    symlinkSync(shared, own);
    const incomplete = await runCommand();
    expect(incomplete.code).toBe(1);
    expect(incomplete.errors).toContain(
      `causeway: ${own} is a symbolic link to ${shared}, where 1 package is missing or of another ` +
        "version, and npm ci would empty that folder: remove the link, or bring that folder up to date",
    );
    expect(countOf("npm-calls")).toBe(0);
    expect(existsSync(join(shared, "typescript"))).toBe(true);
    rmSync(own);
    renameSync(shared, own);
    await runCommand();
    renameSync(own, shared);
    symlinkSync(shared, own);
    expect(await runCommand()).toEqual({ code: 0, output: "ran status\n", errors: "" });
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

  it.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)("leaves nothing of a hanging npm when it gets %s", async (signal, code) => {
    const { child, ended, pids } = await startStuck();
    child.kill(signal);
    expect(await ended).toEqual([code, null]);
    await until(() => !pids.some(isRunning), { timeoutMs: 10_000 });
  });

  it("leaves nothing of it either where npm passes the terminal's own Ctrl-C on", async () => {
    const { child, ended, pids } = await startStuck();
    child.kill("SIGINT");
    await until(() => existsSync(join(clone, "npm-signals")), { timeoutMs: 10_000 });
    child.kill("SIGINT");
    expect(await ended).toEqual([130, null]);
    await until(() => !pids.some(isRunning), { timeoutMs: 10_000 });
  });

  it("ends the npm of a start that was killed before it installs itself", async () => {
    const { child, ended, pids } = await startStuck();
    child.kill("SIGKILL");
    await ended;
    expect(pids.every(isRunning)).toBe(true);
    expect((await runCommand()).code).toBe(0);
    await until(() => !pids.some(isRunning), { timeoutMs: 10_000 });
    expect(readdirSync(join(clone, ".cache"))).toEqual([]);
  });

  it.each([
    ["ENOTFOUND", "the npm registry cannot be reached"],
    ["ENOSPC", "there is no space left on the device"],
    ["EUSAGE", "package.json and package-lock.json do not fit together"],
  ])("names the cause when npm fails with %s", async (code, sentence) => {
    const run = await runCommand({ FAKE_NPM_FAULT: code });
    expect(run.code).toBe(1);
    expect(run.errors).toContain(sentence);
    expect(run.output).toBe("");
  });

  it("says from time to time that it is still building", async () => {
    const run = await runCommand({ FAKE_TSC_SLOW_MS: "9000" });
    expect(run.errors).toMatch(
      /causeway: building dist\n(causeway: still building dist after \d+ s\n)+$/,
    );
    expect(run.output).toBe("ran status\n");
  });

  it("shows the compiler's faults and keeps the former build", async () => {
    await runCommand();
    writeFileSync(join(clone, "chain", "units.ts"), "export const = ;\n");
    const run = await runCommand({ FAKE_TSC_FAULT: "1" });
    expect(run.code).toBe(1);
    expect(run.errors).toContain("chain/units.ts(1,1): error TS1005");
    expect(existsSync(join(clone, "dist", "cli", "main.js"))).toBe(true);
  });

  it("does not call the sources broken where the compiler was ended", async () => {
    const refused = await runCommand({ FAKE_TSC_KILLED: "1" });
    expect(refused.errors).toContain("the compiler was ended by SIGKILL");
    expect(refused.errors).not.toContain("do not compile");
    expect(refused.code).toBe(1);
  });

  it("says so where a helper program needs too long, and leaves nothing of it", async () => {
    const slow = {
      what: "the helper",
      command: process.execPath,
      args: ["-e", "setInterval(() => 0, 9999)"],
      cwd: clone,
      recordPath: join(clone, "child.json"),
      timeoutMs: 1_500,
    };
    writeFileSync(
      join(clone, "bin", "slow.mjs"),
      `import { runChild } from "./setup/child.mjs";
import { runSetup } from "./setup/setup-error.mjs";
await runSetup(() => runChild({ ...${JSON.stringify(slow)}, onOutput() {} }));`,
    );
    const { code, errors } = await runScript(["slow.mjs"]);
    expect(errors).toContain("the helper did not come to its end in 1.5 s");
    expect(code).toBe(1);
    expect(existsSync(slow.recordPath)).toBe(false);
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
