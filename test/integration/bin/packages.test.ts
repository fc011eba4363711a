/**
 * The joined packages offer what the usual ones do: each is loaded by Node itself, in a process of
 * its own, from both places.
 */
import { execFile } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "@jest/globals";

const run = promisify(execFile);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-packages-"));

/** Names and kinds of what every imported package exports, as seen from a file in `place`. */
async function exportsSeenFrom(place: string, names: readonly string[]) {
  const file = path.join(place, `look-${process.pid}.mjs`);
  fs.writeFileSync(
    file,
    `const all = {};
     for (const name of ${JSON.stringify(names)}) {
       const found = await import(name);
       all[name] = Object.keys(found).filter((key) => key !== "module.exports")
         .map((key) => key + " " + typeof found[key]).sort();
     }
     console.log(JSON.stringify(all));
     process.exit(0);`,
  );
  try {
    const { stdout } = await run(process.execPath, ["--no-warnings", file]);
    return JSON.parse(stdout) as Record<string, string[]>;
  } finally {
    fs.rmSync(file);
  }
}

/** What the build does, in a process of its own; with a cache of its own where one is named. */
async function joinInto(place: string, cache?: string): Promise<void> {
  expect(await joining(place, cache)).toBe("true\n");
}

/** What that says, and whether it has joined them; another program joins where one is named. */
async function joining(place: string, cache?: string, program?: string): Promise<string> {
  const script = `import(${JSON.stringify(path.resolve("bin/setup/packages.mjs"))})
    .then(({ joinPackages }) =>
      joinPackages(${JSON.stringify(place)}, { say: console.log, ...${JSON.stringify({ cache })} }))
    .then((isDone) => console.log(isDone));`;
  const env = { ...process.env, ...(program !== undefined && { ESBUILD_BINARY_PATH: program }) };
  const { stdout } = await run(process.execPath, ["-e", script], { env });
  return stdout;
}

describe("joined packages", () => {
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

  it("export what the usual ones do, from few files", async () => {
    const place = path.join(folder, "product");
    await joinInto(place);
    // Not below the clone: here are only the joined ones and, for native code, a way to the clone.
    const joined = path.join(place, "node_modules");
    const names = packageNames(joined);
    expect(names).toEqual(expect.arrayContaining(["express", "libp2p", "typeorm", "zod"]));
    const left = fs.readdirSync(path.resolve("node_modules"));
    for (const name of left.filter((one) => !fs.existsSync(path.join(joined, one)))) {
      fs.symlinkSync(path.resolve("node_modules", name), path.join(joined, name));
    }
    const usual = await exportsSeenFrom(path.resolve(".cache"), names);
    expect(await exportsSeenFrom(place, names)).toEqual(usual);
    const files = fs.readdirSync(joined, { recursive: true, withFileTypes: true });
    expect(files.filter((file) => /\.[cm]?js$/.test(file.name)).length).toBeLessThan(200);
  });

  it("are made anew where a power cut has left their names and not their content", async () => {
    const cache = path.join(folder, "cache");
    fs.cpSync(path.resolve(".cache/packages"), cache, { recursive: true });
    // Of the present sources, also where this test runs alone.
    await joinInto(path.join(folder, "before-the-cut"), cache);
    for (const file of fs.readdirSync(cache, { recursive: true, withFileTypes: true })) {
      if (file.isFile()) fs.truncateSync(path.join(file.parentPath, file.name));
    }
    const place = path.join(folder, "after-the-cut");
    await joinInto(place, cache);
    expect(packageNames(path.join(place, "node_modules"))).toContain("express");
  });

  it.each([
    ["must not be run", { text: "#!/bin/sh\n", mode: 0o644 }],
    ["is another one", { text: "#!/bin/sh\necho none\n", mode: 0o755 }],
  ])("are gone without where the program that joins them %s", async (_how, { text, mode }) => {
    const program = path.join(folder, "esbuild");
    fs.writeFileSync(program, text);
    fs.chmodSync(program, mode);
    const place = path.join(folder, "usual");
    const said = await joining(place, path.join(folder, "cache-without"), program);
    expect(said).toMatch(/^packages are not joined, .*: esbuild does not run: .*\nfalse\n$/);
    expect(fs.existsSync(place)).toBe(false);
    fs.rmSync(program);
  });
});

/** Every name that can be imported from the joined packages. */
function packageNames(joined: string): string[] {
  return fs
    .readdirSync(joined)
    .filter((name) => !name.startsWith("."))
    .flatMap((name) =>
      name.startsWith("@")
        ? fs.readdirSync(path.join(joined, name)).map((part) => `${name}/${part}`)
        : [name],
    )
    .flatMap((name) => {
      const file = path.join(joined, name, "package.json");
      const { exports } = JSON.parse(fs.readFileSync(file, "utf8")) as { exports: object };
      return Object.keys(exports).map((subpath) => `${name}${subpath.slice(1)}`);
    });
}
