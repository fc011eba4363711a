/**
 * When a command runs what is built in the place of building the present sources: nothing is changed under
 * what runs from this clone, and what stops payments waits for nothing.
 */
import { existsSync, readFileSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { PRODUCT } from "./compile.mjs";
import { hasWholePackages } from "./install.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url)).replace(/[/\\]$/, "");

/** The commands that stop payments, by their first words. */
const STOPS = ["killswitch set", "withdrawals freeze"];

/**
 * Whether a command runs what is built, although that is of other sources; it has been said then.
 * @param {string[]} words the command line
 * @param {(text: string) => void} say
 */
export async function runsAsBuilt(words, say) {
  const isStop = STOPS.includes(words.slice(0, 2).join(" "));
  // Who starts something asks for the present sources.
  const pid = words[0] === "start" ? undefined : processFromHere();
  if (!isStop && pid === undefined) return false;
  const isThere = existsSync(join(ROOT, PRODUCT.folder, ".stamp"));
  if (!isThere || !(await hasWholePackages({ say }))) return false;
  say(
    pid === undefined
      ? "this runs what is built, although the sources have changed: what stops payments waits for no " +
          "installing and building; `npm run build` does both"
      : `process ${pid} runs what is built in this clone, and so does this command, although the sources have ` +
          "changed: they are installed and built by the first command after that process has ended",
  );
  return true;
}

/** A process of a kit, or a node, that runs from this clone; undefined where there is none, or nobody tells. */
function processFromHere() {
  return pids().find((pid) => pid !== process.pid && runsFromHere(pid));
}

function pids() {
  try {
    return readdirSync("/proc").flatMap((name) => (/^[0-9]+$/.test(name) ? [Number(name)] : []));
  } catch {
    return []; // Only Linux tells.
  }
}

/** The script may be called through a link, and behind flags of Node's that have a value of their own. */
function runsFromHere(pid) {
  try {
    const [program = "", ...words] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    if (basename(program) !== basename(process.execPath)) return false;
    const folder = readlinkSync(`/proc/${pid}/cwd`);
    return words.some((word, index) => {
      const path =
        word === "" || word.startsWith("-") ? undefined : realPath(resolve(folder, word));
      if (path === join(ROOT, "bin", "causeway.mjs")) return words[index + 1] === "start";
      return path?.startsWith(join(ROOT, PRODUCT.folder, "/")) === true;
    });
  } catch {
    return false; // It has ended, or is somebody else's.
  }
}

function realPath(path) {
  try {
    return realpathSync(path);
  } catch {
    return undefined; // Most words are no paths.
  }
}
