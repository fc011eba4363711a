/**
 * The style sheet, the icon and the scripts: read once, named by their content, so that they are kept
 * for ever.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { gzipSync } from "node:zlib";
import { etagOf, type FinishedAnswer } from "./finished-answer.js";

/** Types of the files that there are. */
const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The files as they are served. */
export interface Assets {
  /** "/assets/<version>/style.css" for "style.css". */
  path(name: string): string;
  /** The answer to a path below "/assets"; undefined for none. */
  answer(path: string): FinishedAnswer | undefined;
}

/** Time that browsers may keep what never changes under its name. */
const FOR_EVER = "public, max-age=31536000, immutable";

/** Style sheet and icon of all pages; the build copies them beside the code. */
const COMMON = new URL("../assets/", import.meta.url);

/**
 * Reads all files of the folders, the common ones among them. The version in the path is a hash over
 * all of them: scripts import each other by relative paths, so they change their names together.
 */
export function loadAssets(...folders: readonly URL[]): Assets {
  const files = new Map<string, Buffer>();
  const read = (folder: URL, below: string) => {
    for (const entry of readdirSync(new URL(below, folder), { withFileTypes: true })) {
      const name = `${below}${entry.name}`;
      if (entry.isDirectory()) read(folder, `${name}/`);
      else if (extname(name) in TYPES) files.set(name, readFileSync(new URL(name, folder)));
    }
  };
  for (const folder of [COMMON, ...folders]) read(folder, "");
  const hash = createHash("sha256");
  const names = [...files.keys()].toSorted();
  for (const name of names) hash.update(`${name}\0`).update(files.get(name) ?? "");
  const version = hash.digest("base64url").slice(0, 16);
  const answers = new Map(
    [...files].map(([name, body]) => {
      const headers = { "content-type": TYPES[extname(name)] ?? "" };
      const etag = etagOf(body);
      return [name, { status: 200, headers, body, packed: gzipSync(body), etag, isFinal: true }];
    }),
  );
  return {
    path: (name) => `/assets/${version}/${name}`,
    answer(path) {
      const [, , given = "", ...rest] = path.split("/");
      const name = rest.join("/");
      const found = answers.get(name);
      if (found === undefined) return undefined;
      // A page of an older version may still ask: it gets the file that there is, for now.
      const isFinal = given === version;
      const caching = { "cache-control": isFinal ? FOR_EVER : "no-cache" };
      return { ...found, headers: { ...found.headers, ...caching }, isFinal };
    },
  };
}
