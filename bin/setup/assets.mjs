/** Files beside the TypeScript sources that programs read at run time, and the source folders. */
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Folders with TypeScript sources of the product. */
export const SOURCE_FOLDERS = [
  "chain",
  "runtime",
  "rpc-client",
  "node",
  "openapi",
  "sidecar",
  "web",
  "explorer",
  "console",
  "deposit-watcher",
  "withdrawal-worker",
  "indexer",
  "ledger",
  "cli",
  "contracts",
  "proto",
];

/** API files. */
const API_FILE = /^openapi\/.*\.ya?ml$/;
const YAML_ENDING = /\.ya?ml$/;

/** What is copied into the build as it is: API files, compiled contracts, scripts, web files. */
const ASSET_PATTERNS = [
  API_FILE,
  /^contracts\/artifacts\/.*\.json$/,
  /^proto\/.*\.binpb$/,
  /^(?!openapi\/|contracts\/|proto\/).*\.(mjs|json|html|css|svg)$/,
];

/** All files below a folder as paths relative to `root`, sorted; none if it is missing. */
export function listFiles(root, folder) {
  let entries;
  try {
    entries = readdirSync(join(root, folder), { withFileTypes: true });
  } catch (error) {
    if (error.code === "ENOENT") {
      return [];
    }
    throw error;
  }
  return entries
    .toSorted((left, right) => (left.name < right.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      // Asked of the system only where the entry does not tell: every command walks all sources.
      const isFolder = entry.isSymbolicLink()
        ? statSync(join(root, path)).isDirectory()
        : entry.isDirectory();
      return isFolder ? listFiles(root, path) : [path];
    });
}

/** Source files and files to copy in one list, relative to `root`. */
export function productFiles(root) {
  return SOURCE_FOLDERS.flatMap((folder) => listFiles(root, folder)).filter(
    (path) => path.endsWith(".ts") || isAsset(path),
  );
}

/** Source files of the product, relative to `root`. */
export function sourceFiles(root) {
  return SOURCE_FOLDERS.flatMap((folder) => listFiles(root, folder)).filter((path) =>
    path.endsWith(".ts"),
  );
}

/**
 * Copies those files into a build. Beside API files lies the same as JSON, which programs read in a
 * moment: YAML took a third of the offline sidecar's start.
 */
export async function copyAssets(root, target) {
  // Looked for here, because this file is read before the packages are installed. It only saves time.
  const yaml = await import("yaml").catch(() => undefined);
  for (const path of assetFiles(root)) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    // With the mode that the compiler's files get, not with the clone's: an image is read by another user.
    writeFileSync(join(target, path), readFileSync(join(root, path)));
    if (yaml === undefined || !API_FILE.test(path)) continue;
    const file = JSON.stringify(yaml.parse(readFileSync(join(root, path), "utf8")));
    writeFileSync(join(target, path.replace(YAML_ENDING, ".json")), file);
  }
}

/** Files to copy into the build, relative to `root`. */
function assetFiles(root) {
  return SOURCE_FOLDERS.flatMap((folder) => listFiles(root, folder)).filter(isAsset);
}

function isAsset(path) {
  return ASSET_PATTERNS.some((pattern) => pattern.test(path));
}
