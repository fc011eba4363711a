/** Builds dist/ when the sources changed since the last build; readers never see half a build. */
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { copyAssets, listFiles, productFiles } from "./assets.mjs";
import { runChild } from "./child.mjs";
import { isAlive, withLock } from "./lock.mjs";
import { joinPackages } from "./packages.mjs";
import { SetupError } from "./setup-error.mjs";
import { withSignsOfLife } from "./signs-of-life.mjs";
import { isWhole, markWhole } from "./whole-folder.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url)).replace(/[/\\]$/, "");

/** The product as it runs. */
export const PRODUCT = { project: "tsconfig.build.json", folder: "dist", extraSources: [] };

/** The product together with benchmarks and state tests, which need development packages. */
export const BENCH = {
  project: "tsconfig.bench.json",
  folder: ".cache/bench",
  extraSources: ["test/bench", "test/evm"],
};

/** Longest that the compiler may take; it needs a few seconds. */
const COMPILE_TIMEOUT_MS = 300_000;

/**
 * Builds one target if its stamp differs from the sources.
 * @param {{target?: typeof PRODUCT, say: (text: string) => void}} options
 * @throws {SetupError} with the compiler's faults
 */
export async function build({ target = PRODUCT, say }) {
  if (isBuilt(target)) {
    return;
  }
  await withLock(join(ROOT, ".cache", "setup.lock"), { say }, async () => {
    if (!isBuilt(target)) {
      say(`building ${target.folder}`);
      const words = (seconds) => `still building ${target.folder} after ${seconds} s`;
      await withSignsOfLife(say, words, () => buildNow(target, say));
    }
  });
}

/**
 * Whether the build is of the present sources, and whole. Every command asks this, so files that look as they
 * did at the last answer (name, size, time of change) are not read again while the machine runs.
 * @param {typeof PRODUCT} target
 */
export function isBuilt(target) {
  const folder = join(ROOT, target.folder);
  try {
    const look = lookOf(target);
    if (readIfPresent(join(folder, ".look")) === look) return true;
    if (readFileSync(join(folder, ".stamp"), "utf8") !== stampOf(target)) return false;
    if (!isWhole(folder)) return false;
    writeLook(folder, look);
    return true;
  } catch {
    return false;
  }
}

/** Everything that decides the build's content, relative to the clone. */
function inputs(target) {
  const settings = ["package.json", "package-lock.json", "tsconfig.json", target.project];
  const extra = target.extraSources.flatMap((folder) => listFiles(ROOT, folder));
  return [...settings, ...productFiles(ROOT), ...extra];
}

/** Hash over names and contents. */
function stampOf(target) {
  const hash = createHash("sha256");
  for (const path of inputs(target)) {
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(ROOT, path)))
      .update("\0");
  }
  return hash.digest("hex");
}

/** Hash over names, sizes and times of change, which cannot be set, in one run of the machine. */
function lookOf(target) {
  // What a build loses without a word, it loses at a power cut.
  const hash = createHash("sha256").update(`${bootId()}\0`);
  for (const path of inputs(target)) {
    const { size, mtimeMs, ctimeMs, ino } = statSync(join(ROOT, path));
    hash.update(`${path}\0${size} ${mtimeMs} ${ctimeMs} ${ino}\0`);
  }
  return hash.digest("hex");
}

function bootId() {
  return readIfPresent("/proc/sys/kernel/random/boot_id") ?? ""; // Only Linux tells.
}

function readIfPresent(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // A build of an older version, or of another clone.
  }
}

/** Only saves time: a folder that cannot be written is read in full at every start. */
function writeLook(folder, look) {
  const draft = join(folder, `.look.${process.pid}`);
  try {
    writeFileSync(draft, look);
    renameSync(draft, join(folder, ".look"));
  } catch {
    rmSync(draft, { force: true });
  }
}

async function buildNow(target, say) {
  const final = join(ROOT, target.folder);
  removeLeftovers(final);
  // Taken first: a file that is edited meanwhile makes the next start build again.
  const look = lookOf(target);
  const stamp = stampOf(target);
  const draft = `${final}.${process.pid}`;
  try {
    await compile(target.project, draft);
    await copyAssets(ROOT, draft);
    await joinPackages(draft, { say });
    writeFileSync(join(draft, ".stamp"), stamp);
    markWhole(draft);
    writeLook(draft, look);
    const old = `${draft}.old`;
    if (existsSync(final)) {
      renameSync(final, old);
    }
    renameSync(draft, final);
    rmSync(old, { recursive: true, force: true });
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw error instanceof SetupError
      ? error
      : new SetupError(`${final} cannot be built: ${error.message}`);
  }
}

async function compile(project, outFolder) {
  const manifestPath = join(ROOT, "node_modules", "typescript", "package.json");
  const program = JSON.parse(readFileSync(manifestPath, "utf8")).bin.tsc;
  let output = "";
  const code = await runChild({
    what: "the compiler",
    command: process.execPath,
    args: [
      join(dirname(manifestPath), program),
      "-p",
      project,
      "--outDir",
      outFolder,
      "--pretty",
      "false",
    ],
    cwd: ROOT,
    recordPath: join(ROOT, ".cache", "setup-child.json"),
    timeoutMs: COMPILE_TIMEOUT_MS,
    onOutput(text) {
      output += text;
    },
  });
  if (code !== 0) {
    throw new SetupError(
      `the sources do not compile:\n${output.split("\n").slice(0, 40).join("\n")}`,
    );
  }
}

/**
 * Removes drafts of builds that were killed, and finishes a swap that was. In a container each start may
 * have the id of the one that was killed; the clone's lock is held, so nobody builds beside this process.
 */
export function removeLeftovers(final) {
  const parent = dirname(final);
  mkdirSync(parent, { recursive: true });
  const pattern = new RegExp(`^${final.slice(parent.length + 1)}\\.([0-9]+)(\\.old)?$`);
  for (const name of readdirSync(parent)) {
    const pid = pattern.exec(name)?.[1];
    if (pid !== undefined && (Number(pid) === process.pid || !isAlive(Number(pid)))) {
      rmSync(join(parent, name), { recursive: true, force: true });
    }
  }
}
