/** When a staged release goes on in the place of a node: by the record, the plan and what both releases know. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { cloneFolder } from "../../../../cli/home/home.js";
import { strangeVariables } from "../../../../cli/home/strange-variables.js";
import { handOverAt, resumeHandOver } from "../../../../cli/upgrade/hand-over.js";
import { ownRelease, releaseFault } from "../../../../cli/upgrade/fitness.js";
import type { StagedUpgrade } from "../../../../cli/upgrade/records.js";
import { environmentAt } from "../../../../cli/upgrade/next-environment.js";
import { digestOf } from "../../../../cli/upgrade/release.js";
import { KNOWN_UPGRADES } from "../../../../node/settings/app-version.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { writeManifest, writeSmallRelease } from "../../../helpers/processes/release-folder.js";

const NEXT = [...KNOWN_UPGRADES, { name: "next", appVersion: 9 }];
const PLAN = { name: "next", height: 12, hasSignedHere: true };

const { signal } = new AbortController();
let folder: string;
let home: string;
let release: string;
let file: string;
let lines: string[];
let warnings: string[];

beforeEach(async () => {
  folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "causeway-hand-over-")));
  home = path.join(folder, "home");
  release = path.join(folder, "release");
  file = path.join(home, "upgrades", "next.json");
  fs.mkdirSync(path.dirname(file), { recursive: true });
  writeSmallRelease(release, { release: "9.0", upgrades: NEXT });
  [lines, warnings] = [[], []];
});

afterEach(() => fs.rmSync(folder, { recursive: true }));

async function record(own: object = {}): Promise<void> {
  const sha256 = await digestOf(release, signal);
  const staged = { name: "next", release, version: "9.0", upgrades: NEXT, sha256, state: "staged" };
  fs.writeFileSync(file, JSON.stringify({ ...staged, ...own }));
}

const stored = () => JSON.parse(fs.readFileSync(file, "utf8")) as Record<string, unknown>;

const log = createLogger({ component: "t", destination: { write: (line) => lines.push(line) } });

const start = (skipped: readonly number[] = []) => ({
  home,
  flags: ["--home", home],
  skipped: () => new Set(skipped),
  env: { PATH: process.env["PATH"] },
  signal,
  warn: (line: string) => warnings.push(line),
});

/** Reasons with which the node was ended. */
async function met(): Promise<readonly string[]> {
  const reasons: string[] = [];
  const handOver = (reason: string) => {
    reasons.push(`${reason}: ${String(stored()["state"])}`);
  };
  await handOverAt(PLAN, start(), { log, signal, handOver });
  return reasons;
}

describe("a node that meets the plan", () => {
  it("hands over to what is staged for it, and has recorded so before", async () => {
    await record();
    expect(await met()).toEqual(["upgrade next at height 12: switched"]);
    expect(stored()).toMatchObject({ state: "switched", height: 12, release });
  });

  it("hands over again where the plan that was met was given up and planned anew", async () => {
    await record({ state: "switched", height: 5 });
    expect(await met()).toEqual(["upgrade next at height 12: switched"]);
    expect(stored()).toMatchObject({ height: 12 });
  });

  it("has the release look for the key's signatures elsewhere unless it has made them itself", () => {
    const env = { CAUSEWAY_CONFIG_CONSENSUS_DOUBLE_SIGN_CHECK_HEIGHT: "10", HOME: "/home/a" };
    expect(environmentAt({ ...PLAN, hasSignedHere: false }, env)).toEqual(env);
    expect(environmentAt(PLAN, env)).toMatchObject({
      CAUSEWAY_CONFIG_CONSENSUS_DOUBLE_SIGN_CHECK_HEIGHT: "0",
      HOME: "/home/a",
    });
  });

  it.each([{ CAUSEWAY_CONFIG_CONSENSUS_DOUBLE_SIGN_CHECK_HEIGHT: "10" }, {}])(
    "leaves that look out for one start alone: the release after the next has it as %p says",
    (check) => {
      const env = { ...check, HOME: "/home/a" };
      const next = environmentAt(PLAN, env);
      expect(environmentAt({ ...PLAN, hasSignedHere: false }, next)).toEqual(env);
      // However often it was left out before.
      const third = environmentAt(PLAN, environmentAt(PLAN, next));
      expect(third).toEqual(next);
      expect(environmentAt({ ...PLAN, hasSignedHere: false }, third)).toEqual(env);
    },
  );

  it("gives the release no variable that it would be warned of", () => {
    expect(strangeVariables(environmentAt(PLAN, {}))).toEqual([]);
  });

  it("stays as it is where nothing is staged, without a word", async () => {
    expect([await met(), lines]).toEqual([[], []]);
  });

  it("stays halted and logs why where the release needs another Node than the one that runs this", async () => {
    await record();
    writeManifest(release, { engines: { node: ">=99" } });
    expect(await met()).toEqual([]);
    expect(lines.join("")).toContain("needs Node >=99, and this is ");
    expect(stored()).toMatchObject({ state: "staged" });
    writeManifest(release, { engines: { node: "^18 || >=20" } });
    expect(await met()).toEqual(["upgrade next at height 12: switched"]);
  });

  it("stays halted where the Node that runs this was taken away", async () => {
    await record();
    const own = await ownRelease();
    const gone = { ...own, node: { ...own.node, path: path.join(folder, "node") } };
    const staged = stored() as unknown as StagedUpgrade;
    expect(await releaseFault(staged, own, signal)).toBeUndefined();
    expect(await releaseFault(staged, gone, signal)).toBe(
      `${gone.node.path}, the Node that runs this, cannot be started (ENOENT)`,
    );
  });

  it.each([
    ["is not what was staged", { sha256: "ab".repeat(32) }],
    ["is older than this one", { upgrades: [{ name: "next", appVersion: 9 }] }],
    ["does not know the upgrade", { upgrades: KNOWN_UPGRADES }],
    ["is this very release", { release: fs.realpathSync(cloneFolder()) }],
    ["cannot be read", { release: "/nonexistent" }],
    ["is no record", { name: "other" }],
  ])("stays halted and logs why where the release %s", async (words, own) => {
    await record(own);
    const before = fs.readFileSync(file, "utf8");
    expect(await met()).toEqual([]);
    expect(lines.join("")).toContain(words);
    expect(lines.join("")).toContain('"level":"error"');
    expect(fs.readFileSync(file, "utf8")).toBe(before);
  });
});

describe("a program that is started again", () => {
  const resume = (skipped?: readonly number[]) => resumeHandOver(start(skipped), log);

  it("runs the node itself where nothing took over, or the upgrade is given up or known", async () => {
    await record();
    expect(await resume()).toBeUndefined();
    await record({ state: "switched", height: 12 });
    expect(await resume([12])).toBeUndefined();
    fs.renameSync(file, path.join(path.dirname(file), "sdk-refusals.json"));
    file = path.join(path.dirname(file), "sdk-refusals.json");
    await record({ name: "sdk-refusals", state: "switched", height: 12 });
    expect(await resume()).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  it("runs the node itself and says why where the release is not what took over", async () => {
    await record({ state: "switched", height: 12, sha256: "ab".repeat(32) });
    expect(await resume()).toBeUndefined();
    expect(warnings).toEqual([expect.stringMatching(/^The release that took over is not started/)]);
  });

  it("passes over entries that are no readable records, and finds plans of every name", async () => {
    fs.mkdirSync(path.join(path.dirname(file), "old.json"));
    await record({ state: "switched", height: 12, release: "/nonexistent", name: ".next" });
    const dotted = path.join(path.dirname(file), "%2Enext.json");
    fs.renameSync(file, dotted);
    expect(await resume()).toBeUndefined();
    expect(warnings).toEqual([
      expect.stringContaining("old.json is no record"),
      expect.stringContaining("/nonexistent"),
    ]);
  });

  it("takes the highest of several", async () => {
    await record({ state: "switched", height: 12, sha256: "ab".repeat(32) });
    const later = path.join(path.dirname(file), "later.json");
    const upgrades = [...NEXT, { name: "later", appVersion: 10 }];
    fs.writeFileSync(
      later,
      JSON.stringify({ ...stored(), name: "later", height: 30, upgrades, release: "/nonexistent" }),
    );
    expect(await resume()).toBeUndefined();
    expect(warnings).toEqual([expect.stringContaining("/nonexistent")]);
  });
});
