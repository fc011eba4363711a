import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");

/** Source files that a file reaches over relative imports, itself included. */
function reach(entry: string, seen = new Set<string>()): Set<string> {
  if (seen.has(entry)) return seen;
  seen.add(entry);
  const source = readFileSync(entry, "utf8");
  for (const [, specifier] of source.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)) {
    const file = resolve(dirname(entry), (specifier ?? "").replace(/\.js$/, ".ts"));
    expect({ entry, file, exists: existsSync(file) }).toMatchObject({ exists: true });
    reach(file, seen);
  }
  return seen;
}

const names = (entry: string) => [...reach(join(ROOT, entry))].map((file) => relative(ROOT, file));

describe("the offline server's imports", () => {
  const files = names("sidecar/main-offline.ts");

  it("reach everything that builds a transaction, and no client", () => {
    expect(files).toContain("sidecar/construction-api/offline.ts");
    expect(files).toContain("chain/transaction.ts");
    expect(files.filter((file) => file.startsWith("rpc-client/"))).toEqual([]);
    expect(files.filter((file) => /online|ws-|block-source|status\.ts/.test(file))).toEqual([]);
  });

  it("hold nothing that opens a connection", () => {
    const offending = files.filter((file) => {
      const source = readFileSync(join(ROOT, file), "utf8");
      return /\bfetch\(|\b(?:http|https|net|tls)\.(?:request|get|connect)\(|from "(?:ws|undici|node:net|node:tls|node:dgram|node:https)"/.test(
        source,
      );
    });
    expect(offending).toEqual([]);
  });

  it("are walked by a walk that would find a client", () => {
    expect(names("sidecar/main-online.ts")).toContain("rpc-client/http-post.ts");
  });
});
