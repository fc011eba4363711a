/** Builds dist/ when the sources changed since the last build; readers never see half a build. */
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { assetFiles, listFiles, sourceFiles } from "./assets.mjs";
import { runChild } from "./child.mjs";
import { SetupError } from "./install.mjs";
import { isAlive, isMain, withLock } from "./lock.mjs";

const ROOT = fileURLToPath(new URL("../", import.meta.url)).replace(/[/\\]$/, "");

/** The product as it runs. */
export const PRODUCT = { project: "tsconfig.build.json", folder: "dist", extraSources: [] };

/** The product together with the benchmarks, which need development packages. */
export const BENCH = {
  project: "tsconfig.bench.json",
  folder: ".cache/bench",
  extraSources: ["test/bench"],
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
      await buildNow(target);
    }
  });
}

function isBuilt(target) {
  try {
    return readFileSync(join(ROOT, target.folder, ".stamp"), "utf8") === stampOf(target);
  } catch {
    return false;
  }
}

/** Hash over everything that decides the build's content. */
function stampOf(target) {
  const hash = createHash("sha256");
  const settings = ["package.json", "package-lock.json", "tsconfig.json", target.project];
  const extra = target.extraSources.flatMap((folder) => listFiles(ROOT, folder));
  for (const path of [...settings, ...sourceFiles(ROOT), ...assetFiles(ROOT), ...extra]) {
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(ROOT, path)))
      .update("\0");
  }
  return hash.digest("hex");
}

async function buildNow(target) {
  const final = join(ROOT, target.folder);
  removeLeftovers(final);
  // Taken first: a file that is edited meanwhile makes the next start build again.
  const stamp = stampOf(target);
  const draft = `${final}.${process.pid}`;
  try {
    await compile(target.project, draft);
    for (const path of assetFiles(ROOT)) {
      mkdirSync(dirname(join(draft, path)), { recursive: true });
      copyFileSync(join(ROOT, path), join(draft, path));
    }
    writeFileSync(join(draft, ".stamp"), stamp);
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

/** Removes drafts of builds that were killed, and finishes a swap that was. */
function removeLeftovers(final) {
  const parent = dirname(final);
  mkdirSync(parent, { recursive: true });
  const pattern = new RegExp(`^${final.slice(parent.length + 1)}\\.([0-9]+)(\\.old)?$`);
  for (const name of readdirSync(parent)) {
    const pid = pattern.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) {
      rmSync(join(parent, name), { recursive: true, force: true });
    }
  }
}

if (isMain(import.meta.url)) {
  // Not awaited here: that file imports this one, and each would wait for the other.
  void import("./prepare.mjs").then(({ prepare, runSetup }) =>
    runSetup(() => prepare({ isDevWanted: false, say: (text) => console.log(text) })),
  );
}
