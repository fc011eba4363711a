/** A fresh clone of the commands alone, with an npm and a compiler that say what they were called with. */
import { afterEach, beforeEach } from "@jest/globals";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../../../helpers/until.js";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

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

/** What npm says of packages that are whole. */
export const integrity = "sha512-x";
/** The lock of the clone's packages. */
export const LOCK = {
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

/** The clone, anew for each test of a file, and what is done in it. */
export function cloneForEachTest(take: (clone: string) => void) {
  let clone = "";

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
    take(clone);
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

  return { runCommand, runScript, startStuck, update, installed, npmCalls, countOf };
}
