/**
 * Packages of a clone: when they are installed again, what is kept until they are there, and why npm
 * failed.
 */
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { cloneForEachTest, integrity, LOCK } from "./fresh-clone.js";

/** What a package says that asks for another one where it can be had. */
const ASKING = { optionalDependencies: { native: "1.0.0" } };

describe("bin/causeway.mjs in a fresh clone", () => {
  let clone: string;

  const { runCommand, update, installed, npmCalls, countOf } = cloneForEachTest((made) => {
    clone = made;
  });

  it("installs again when a package is missing, damaged or of another version", async () => {
    await runCommand();
    rmSync(join(clone, "node_modules", "wanted"), { recursive: true });
    expect((await runCommand()).code).toBe(0);
    const newer = structuredClone(LOCK);
    newer.packages["node_modules/wanted"].version = "1.0.1";
    writeFileSync(join(clone, "package-lock.json"), JSON.stringify(newer));
    expect((await runCommand()).code).toBe(0);
    expect(npmCalls()).toHaveLength(3);
  });

  it("leaves the packages in place until all of another release are there", async () => {
    await runCommand();
    update("1.0.1");
    const refused = await runCommand({ FAKE_NPM_FAULT: "ENOTFOUND" });
    expect(refused.errors).toContain("the npm registry cannot be reached");
    expect(refused.errors).toContain("The packages that were in place still are.");
    expect(refused.code).toBe(1);
    expect(installed().version).toBe("1.0.0");
    expect(existsSync(join(clone, "node_modules", "wanted", "package.json"))).toBe(true);
    expect((await runCommand()).code).toBe(0);
    expect(installed().version).toBe("1.0.1");
    expect(readdirSync(join(clone, ".cache"))).toEqual([]);
  });

  it("goes on with the packages of before where a start was killed while it replaced them", async () => {
    await runCommand();
    const former = join(clone, ".cache", "node_modules.former");
    renameSync(join(clone, "node_modules"), former);
    expect((await runCommand()).code).toBe(0);
    // Behind both renames what is left of them is only in the way.
    cpSync(join(clone, "node_modules"), former, { recursive: true });
    update("1.0.1");
    expect((await runCommand()).code).toBe(0);
    expect([installed().version, npmCalls().length]).toEqual(["1.0.1", 2]);
    expect(readdirSync(join(clone, ".cache"))).toEqual([]);
  });

  /** A lock in which `wanted` asks for a package of some machines, which the npm of these tests leaves out. */
  function askFor(native: object, wanted: object = ASKING) {
    const { packages } = structuredClone(LOCK);
    const lock = {
      packages: {
        ...packages,
        "node_modules/wanted": { ...packages["node_modules/wanted"], ...wanted },
        "node_modules/native": { version: "1.0.0", integrity, optional: true, ...native },
      },
    };
    writeFileSync(join(clone, "package-lock.json"), JSON.stringify(lock));
  }

  const { platform, arch } = process;

  it.each([
    ["by system and processor", { os: [platform], cpu: [arch] }],
    ["by system alone", { os: ["aix", platform] }],
    ["by what it does not run on", { os: ["!aix"], cpu: ["any"] }],
  ])(
    "asks in an hour again for a package of this machine that npm went without: %s",
    async (_how, native) => {
      askFor(native);
      const run = await runCommand();
      expect(run.errors).toContain("npm went without what it calls optional: native. ");
      expect(run.code).toBe(0);
      expect(await runCommand()).toEqual({ code: 0, output: "ran status\n", errors: "" });
      const calls = () => readFileSync(join(clone, "npm-calls"), "utf8").trim().split("\n").length;
      expect(calls()).toBe(1);
      const noted = join(clone, ".cache", "went-without.json");
      const { atMs, ...rest } = JSON.parse(readFileSync(noted, "utf8"));
      const hourLater = () =>
        writeFileSync(noted, JSON.stringify({ ...rest, atMs: atMs - 3_600_001 }));
      hourLater();
      await runCommand();
      expect(calls()).toBe(2);
      // Without a network all goes on as before.
      hourLater();
      const offline = await runCommand({ FAKE_NPM_FAULT: "ENOTFOUND" });
      expect([offline.code, offline.output, calls()]).toEqual([0, "ran status\n", 3]);
      expect(offline.errors).toContain("the npm registry cannot be reached");
      expect((await runCommand()).errors).toBe("");
    },
  );

  it.each([
    ["of another system", { os: ["aix"], cpu: [arch] }, ASKING],
    ["of another processor", { os: [platform], cpu: ["s390"] }, ASKING],
    ["of another C library", { os: [platform], cpu: [arch], libc: ["another"] }, ASKING],
    ["not of this system", { os: [`!${platform}`], cpu: [arch] }, ASKING],
    ["of no one machine", {}, ASKING],
    ["that nobody who is here asks for", { os: [platform], cpu: [arch] }, {}],
  ])("needs no optional package %s", async (_which, native, wanted) => {
    askFor(native, wanted);
    expect((await runCommand()).code).toBe(0);
    expect(await runCommand()).toEqual({ code: 0, output: "ran status\n", errors: "" });
    expect(readFileSync(join(clone, "npm-calls"), "utf8").trim().split("\n")).toHaveLength(1);
  });

  it("installs nothing through a symbolic link, but works with what is complete behind one", async () => {
    const [own, shared] = [join(clone, "node_modules"), join(clone, "of-another-clone")];
    renameSync(own, shared);
    symlinkSync(shared, own);
    const incomplete = await runCommand();
    expect(incomplete.code).toBe(1);
    expect(incomplete.errors).toContain(
      `causeway: ${own} is a symbolic link to ${shared}, where 1 package is missing or of another ` +
        "version, and npm ci would empty that folder: remove the link, or bring that folder up to date",
    );
    expect(countOf("npm-calls")).toBe(0);
    expect(existsSync(join(shared, "typescript"))).toBe(true);
    rmSync(own);
    renameSync(shared, own);
    await runCommand();
    renameSync(own, shared);
    symlinkSync(shared, own);
    expect(await runCommand()).toEqual({ code: 0, output: "ran status\n", errors: "" });
  });

  it.each([
    ["ENOTFOUND", "the npm registry cannot be reached"],
    ["ENOSPC", "there is no space left on the device"],
    ["EUSAGE", "package.json and package-lock.json do not fit together"],
  ])("names the cause when npm fails with %s", async (code, sentence) => {
    const run = await runCommand({ FAKE_NPM_FAULT: code });
    expect(run.code).toBe(1);
    expect(run.errors).toContain(sentence);
    expect(run.output).toBe("");
  });
});
