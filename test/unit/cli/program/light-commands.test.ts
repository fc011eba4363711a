/** What `causeway status` and the help load: a command that is asked often must start at once. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";

/** Imports that are there at run time, before anything is called. */
const STATIC_IMPORT = /^(?:import|export)\s(?!type\b)[^;]*?from\s+"([^"]+)"/gm;

/** Packages that a file loads with all that it imports. */
function packagesOf(entry: string): Set<string> {
  const [seen, packages, pending] = [new Set<string>(), new Set<string>(), [entry]];
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    for (const [, target = ""] of readFileSync(file, "utf8").matchAll(STATIC_IMPORT)) {
      if (target.startsWith(".")) {
        pending.push(path.join(path.dirname(file), target).replace(/\.js$/, ".ts"));
      } else if (!target.startsWith("node:"))
        packages.add(target.replace(/(?<=^@[^/]+\/[^/]+)\/.*/, ""));
    }
  }
  expect(seen.size).toBeGreaterThan(5);
  return packages;
}

describe("a command that is asked often", () => {
  it("loads the words of all commands and the code of none", () => {
    expect([...packagesOf("cli/main.ts")].toSorted()).toEqual(["commander", "smol-toml"]);
  });

  it("loads for the status what reads settings and asks a node", () => {
    expect([...packagesOf("cli/commands/status.ts")].toSorted()).toEqual([
      "@scure/base",
      "hash-wasm",
      "smol-toml",
    ]);
  });
});
