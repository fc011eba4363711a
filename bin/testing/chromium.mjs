/** Finds the browser that tests of pages use; nothing downloads one. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { SetupError } from "../setup/setup-error.mjs";

/** Names under which systems install it, the free one first. */
const PROGRAMS = [
  "chromium",
  "chromium-browser",
  "chromium-headless-shell",
  "google-chrome",
  "google-chrome-stable",
];

/** Where macOS keeps it. */
const MAC_PATHS = [
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/**
 * Path of Chromium or Chrome: what CHROMIUM names, else what the system has.
 * @param {{[name: string]: string | undefined}} [env]
 * @returns {string}
 * @throws {SetupError} with what to install
 */
export function findChromium(env = process.env) {
  const { CHROMIUM: given, PATH = "" } = env;
  if (given !== undefined && given !== "") {
    if (existsSync(given)) return given;
    throw new SetupError(`CHROMIUM names ${given}, which is not there`);
  }
  const folders = PATH.split(delimiter).filter((folder) => folder !== "");
  const places = PROGRAMS.flatMap((name) => folders.map((folder) => join(folder, name)));
  const found = [...places, ...MAC_PATHS].find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new SetupError(
    "tests in a browser need Chromium: `apt-get install chromium` on Debian, or any Chromium or Chrome, " +
      "named by CHROMIUM=/path/to/it",
  );
}
