/**
 * Folders of many files that are made once and then believed. After a power cut the name of a file may be
 * on the disk and its content not; forcing thousands of files there takes longer than asking their sizes.
 */
import { lstatSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The sizes of all files below the folder, by their paths; written last. */
const LIST = ".whole";

/** Says of a folder that everything is in it. */
export function markWhole(folder) {
  writeFileSync(join(folder, LIST), JSON.stringify(sizesBelow(folder, "")));
}

/** Whether everything is there that was when the folder was marked. */
export function isWhole(folder) {
  try {
    const sizes = Object.entries(JSON.parse(readFileSync(join(folder, LIST), "utf8")));
    return sizes.every(([path, size]) => lstatSync(join(folder, path)).size === size);
  } catch {
    return false; // Not marked, or not whole.
  }
}

function sizesBelow(folder, prefix) {
  const sizes = {};
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = `${prefix}${entry.name}`;
    const place = join(folder, entry.name);
    if (entry.isDirectory()) Object.assign(sizes, sizesBelow(place, `${path}/`));
    else if (path !== LIST) sizes[path] = lstatSync(place).size;
  }
  return sizes;
}
