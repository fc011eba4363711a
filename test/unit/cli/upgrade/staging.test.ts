/** `causeway upgrade stage`, `list`, `unstage` and `known`: what is recorded, and what is refused with which words. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ownRelease, prospectFault } from "../../../../cli/upgrade/fitness.js";
import type { StagedUpgrade } from "../../../../cli/upgrade/records.js";
import { KNOWN_UPGRADES } from "../../../../node/settings/app-version.js";
import { runCommand } from "../../../helpers/processes/command-line.js";
import { itForRoot } from "../../../helpers/processes/for-root.js";
import { writeManifest, writeSmallRelease } from "../../../helpers/processes/release-folder.js";

const NEXT = [...KNOWN_UPGRADES, { name: "next", appVersion: 9 }];

const closers: (() => Promise<void>)[] = [];

let folder: string;
let home: string;
let release: string;
let record: string;

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-staging-"));
  home = path.join(folder, "home");
  release = path.join(fs.realpathSync(folder), "release");
  record = path.join(home, "upgrades", "next.json");
  fs.mkdirSync(path.join(home, "config"), { recursive: true });
  fs.writeFileSync(path.join(home, "config", "genesis.json"), "{}");
  writeSmallRelease(release, { schemaVersion: 1, release: "9.0", upgrades: NEXT });
});

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  fs.rmSync(folder, { recursive: true });
});

/** Has a node answer for the home that tells of a plan. */
async function serveNode(plan: { readonly name: string; readonly height: number } | undefined) {
  // QueryCurrentPlanResponse { Plan plan = 1 }, Plan { string name = 1; int64 height = 3 }.
  const bytes = (field: number, content: Buffer) =>
    Buffer.concat([Buffer.from([(field << 3) | 2, content.length]), content]);
  const value =
    plan === undefined
      ? Buffer.alloc(0)
      : bytes(1, Buffer.concat([bytes(1, Buffer.from(plan.name)), Buffer.from([24, plan.height])]));
  const response = { code: 0, log: "", value: value.toString("base64") };
  const server = createServer((request, answer) => {
    request.resume();
    answer.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: { response } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const { port } = server.address() as AddressInfo;
  const text = `[rpc]\nladdr = "tcp://127.0.0.1:${port}"\n`;
  fs.writeFileSync(path.join(home, "config", "config.toml"), text);
}

const stage = (...flags: readonly string[]) =>
  runCommand(home, ["upgrade", "stage", "next", "--release", release, ...flags]);

const readRecord = () => JSON.parse(fs.readFileSync(record, "utf8")) as Record<string, unknown>;

const program = () => path.join(release, "dist", "cli", "main.js");

const hashOf = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");

describe("upgrade stage", () => {
  it("records a release that knows the upgrade, with the SHA-256 of what `sha256sum` prints of it", async () => {
    fs.writeFileSync(path.join(release, "dist", ".look"), "of this machine");
    fs.writeFileSync(path.join(release, "dist", "cli", ".whole"), "{}");
    const lines = [".stamp", "cli/main.js"].map((name) => {
      return `${hashOf(fs.readFileSync(path.join(release, "dist", name)))}  ${name}\n`;
    });
    const sha256 = hashOf(lines.join(""));
    const { code, out } = await stage("--sha256", sha256.toUpperCase());
    expect([code, out]).toEqual([0, expect.stringContaining(`sha256 ${sha256}`)]);
    expect(readRecord()).toEqual({
      schemaVersion: 1,
      name: "next",
      release,
      version: "9.0",
      upgrades: NEXT,
      sha256,
      state: "staged",
    });
    expect(fs.statSync(path.dirname(record)).mode & 0o777).toBe(0o700);
    expect(fs.readdirSync(path.dirname(record))).toEqual(["next.json"]);
  });

  it("refuses what runs anything else than --sha256 says, and records nothing", async () => {
    const other = "ab".repeat(32);
    const { code, err } = await stage("--sha256", other);
    expect([code, err]).toEqual([1, expect.stringContaining(`, not ${other}. Nothing is staged.`)]);
    expect((await stage("--sha256", "abc")).err).toContain("64 hex digits");
    expect(fs.existsSync(record)).toBe(false);
  });

  it("refuses a release that does not know the upgrade, and says what it knows", async () => {
    writeSmallRelease(release, { schemaVersion: 1, release: "9.0", upgrades: KNOWN_UPGRADES });
    const { code, err } = await stage();
    expect([code, err]).toEqual([
      1,
      `The release in ${release} does not know the upgrade "next"; it knows: sdk-refusals.`,
    ]);
  });

  it.each([
    ["dist/cli/main.js", "is not installed and built"],
    ["dist/.stamp", "is not installed and built"],
    ["node_modules/.package-lock.json", "is not installed and built"],
    ["package.json", "is no clone of Causeway"],
    [".", "There is no folder"],
  ])("refuses a release without %s: it %s", async (missing, words) => {
    fs.rmSync(path.join(release, missing), { recursive: true });
    const { code, err } = await stage();
    expect([code, err]).toEqual([1, expect.stringContaining(words)]);
  });

  it("refuses a release that needs another Node, before it is tried", async () => {
    writeManifest(release, { engines: { node: ">=99.1" } });
    fs.writeFileSync(program(), "a syntax error");
    const { code, err } = await stage();
    expect([code, err]).toEqual([
      1,
      `The release in ${release} needs Node >=99.1, and this is ${process.versions.node}.`,
    ]);
  });

  it("refuses a release that is older than the command, and one with a link in its program", async () => {
    fs.writeFileSync(program(), `console.error("error: unknown command"); process.exit(1);`);
    const older = await stage();
    expect([older.code, older.err]).toEqual([
      1,
      `The release in ${release} does not tell which upgrades it knows (error: unknown command): it is older ` +
        "than `causeway upgrade`, or does not run here, and is started by hand.",
    ]);
    fs.symlinkSync(os.tmpdir(), path.join(release, "dist", "more"));
    expect((await stage()).err).toContain("more is neither a file nor a folder");
  });

  itForRoot()(
    "refuses, typed as root, what the user of the home could not read at the height",
    async () => {
      fs.chmodSync(folder, 0o755);
      const packages = path.join(release, "node_modules", "level");
      fs.mkdirSync(packages);
      fs.chownSync(home, 1_000, 1_000);
      for (const [what, mode] of [
        [folder, 0o700],
        [program(), 0o600],
        [path.join(release, "dist"), 0o711],
        [packages, 0o700],
      ] as const) {
        const before = fs.statSync(what).mode;
        fs.chmodSync(what, mode);
        const { code, err } = await stage();
        expect([what, code, err]).toEqual([
          what,
          1,
          `The release in ${release} is not open to the user of ${home} (1000), which the node runs as: open ` +
            "it and the folders above it to that user, or stage it as that user.",
        ]);
        expect(fs.existsSync(record)).toBe(false);
        fs.chmodSync(what, before);
      }
      expect((await stage()).code).toBe(0);
      expect(fs.statSync(record).uid).toBe(1_000);
      // Of root's own home root reads it.
      fs.chownSync(home, 0, 0);
      fs.rmSync(path.dirname(record), { recursive: true });
      fs.chmodSync(program(), 0o600);
      expect((await stage()).code).toBe(0);
    },
  );

  it("leaves what is staged unless it is told to replace it; the same again changes nothing", async () => {
    await stage();
    const first = fs.readFileSync(record, "utf8");
    expect((await stage()).code).toBe(0);
    expect(fs.readFileSync(record, "utf8")).toBe(first);
    fs.appendFileSync(program(), "// patched\n");
    const refused = await stage();
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("--replace")]);
    expect(fs.readFileSync(record, "utf8")).toBe(first);
    expect((await stage("--replace")).code).toBe(0);
    expect(readRecord()["sha256"]).not.toBe(JSON.parse(first).sha256);
  });

  it("goes on handing over where the release that took over is replaced", async () => {
    await stage();
    fs.writeFileSync(record, JSON.stringify({ ...readRecord(), state: "switched", height: 7 }));
    fs.appendFileSync(program(), "// patched\n");
    expect((await stage("--replace")).code).toBe(0);
    expect(readRecord()).toMatchObject({ state: "switched", height: 7 });
  });

  it("writes only into a node's home, and over no file that it does not understand", async () => {
    const words = ["upgrade", "stage", "next", "--release", release];
    const { code, err } = await runCommand(path.join(folder, "elsewhere"), words);
    expect([code, err]).toEqual([1, expect.stringContaining("is no node's home")]);
    fs.mkdirSync(path.dirname(record));
    fs.writeFileSync(record, "{}");
    expect((await stage("--replace")).err).toContain("move it aside");
    expect(fs.readFileSync(record, "utf8")).toBe("{}");
  });

  it("keeps a plan of any name in the folder of the records", async () => {
    const name = "../../v 9";
    writeSmallRelease(release, { release: "9.0", upgrades: [{ name, appVersion: 9 }] });
    const { code } = await runCommand(home, ["upgrade", "stage", name, "--release", release]);
    expect(code).toBe(0);
    expect(fs.readdirSync(path.dirname(record))).toEqual(["%2E.%2F..%2Fv%209.json"]);
  });

  it("says in a kit's home that `npm start` does not look at it", async () => {
    fs.writeFileSync(path.join(home, "config", "sidecar.toml"), "");
    expect((await stage()).out).toContain("`npm start` does not look at it");
  });
});

describe("upgrade list", () => {
  const list = async () => {
    const { code, out } = await runCommand(home, ["upgrade", "list", "--json"]);
    return { code, ...(JSON.parse(out) as Record<string, unknown>) };
  };

  it("tells what is staged, that no node tells of a plan, and what this release knows", async () => {
    await stage();
    // What could not be looked at is not well, and nothing was found to be wrong.
    expect(await list()).toMatchObject({
      code: 2,
      staged: [{ name: "next", release, state: "staged" }],
      chain: { reason: expect.any(String) },
      known: KNOWN_UPGRADES,
    });
    expect((await runCommand(home, ["upgrade", "list"])).out).toContain("as it was staged");
  });

  it("ends with 0 where the plan is known and what is staged goes on, or no plan is there", async () => {
    await serveNode(undefined);
    expect(await list()).toMatchObject({ code: 0, staged: [], chain: {} });
    await serveNode({ name: "next", height: 30 });
    expect(await list()).toMatchObject({ code: 1, missing: expect.stringContaining("will halt") });
    await stage();
    expect(await list()).toMatchObject({ code: 0, chain: { plan: { name: "next", height: 30 } } });
  });

  it("ends with 1 where a release would not be started at the height, whatever it runs", async () => {
    await stage();
    const upgrades = [{ name: "next", appVersion: 9 }];
    fs.writeFileSync(record, JSON.stringify({ ...readRecord(), upgrades }));
    expect(await list()).toMatchObject({
      code: 1,
      staged: [{ fault: expect.stringContaining("is older than this one") }],
    });
  });

  it("does not hold a release against this one for an upgrade over which this one gets by itself", async () => {
    await stage();
    const staged = { ...readRecord(), name: "next" } as unknown as StagedUpgrade;
    const upgrades = [...NEXT, { name: "later", appVersion: 10 }];
    const own = { ...(await ownRelease()), upgrades };
    const { signal } = new AbortController();
    expect(await prospectFault(staged, own, signal)).toBeUndefined();
    fs.appendFileSync(program(), "// changed\n");
    expect(await prospectFault(staged, own, signal)).toContain("is not what was staged");
  });

  it("does not tell of a halt at a height that the settings give up", async () => {
    await serveNode({ name: "next", height: 30 });
    const app = path.join(home, "config", "app.toml");
    fs.writeFileSync(app, 'skip-upgrades = ["29"]\n');
    expect(await list()).toMatchObject({ code: 1, givenUp: false });
    fs.writeFileSync(app, 'skip-upgrades = ["30"]\n');
    const given = await list();
    expect(given).toMatchObject({ code: 0, givenUp: true });
    expect(given).not.toHaveProperty("missing");
    expect((await runCommand(home, ["upgrade", "list"])).out).toContain(
      "The chain plans next at height 30, which the settings give up here (skip-upgrades).",
    );
  });

  it("ends with 1 where a release is not any more what was staged, or a record is none", async () => {
    await stage();
    fs.appendFileSync(program(), "// changed\n");
    expect(await list()).toMatchObject({
      code: 1,
      staged: [{ fault: expect.stringContaining("runs is not what was staged") }],
    });
    fs.writeFileSync(record, "no JSON");
    expect(await list()).toMatchObject({
      code: 1,
      staged: [{ fault: expect.stringContaining("is no record") }],
    });
  });

  it("finds nothing in a home where nothing was ever staged", async () => {
    expect(await list()).toMatchObject({ code: 2, staged: [] });
    expect(fs.existsSync(path.dirname(record))).toBe(false);
  });
});

describe("upgrade unstage", () => {
  const unstage = (...flags: readonly string[]) =>
    runCommand(home, ["upgrade", "unstage", "next", ...flags]);

  it("takes back what is staged; there has to be something", async () => {
    expect((await unstage()).err).toBe('Nothing is staged for the upgrade "next".');
    expect(fs.existsSync(path.dirname(record))).toBe(false);
    await stage();
    expect((await unstage()).code).toBe(0);
    expect(fs.existsSync(record)).toBe(false);
  });

  it("keeps a release that has taken over, unless it is told that nobody needs it", async () => {
    await stage();
    fs.writeFileSync(record, JSON.stringify({ ...readRecord(), state: "switched", height: 7 }));
    const { code, err } = await unstage();
    expect([code, err]).toEqual([1, expect.stringContaining("add --switched")]);
    expect(fs.existsSync(record)).toBe(true);
    expect((await unstage("--switched")).code).toBe(0);
    expect(fs.existsSync(record)).toBe(false);
  });
});

it("upgrade known tells what another release reads before it stages this one", async () => {
  const { code, out } = await runCommand(home, ["upgrade", "known", "--json"]);
  expect([code, JSON.parse(out)]).toEqual([
    0,
    { schemaVersion: 1, release: expect.any(String), upgrades: KNOWN_UPGRADES },
  ]);
});

describe("the drill of docs/operations.md", () => {
  const operations = fs.readFileSync("docs/operations.md", "utf8");
  const [, section = ""] = operations.split("### Going on by itself");
  const [, inNew = "", inRunning = ""] = section.split("```sh\n").map((text) => {
    return text.split("```", 1)[0] ?? "";
  });

  it("names homes in the clone that runs the node alone, whose folder they are in", async () => {
    expect(inNew).toContain("npm run build");
    expect(inNew).not.toContain("--home");
    const lines = inRunning.split("\n").filter((line) => line !== "");
    const words = lines.map((line) => line.split(" #")[0]?.trim().split(/ +/) ?? []);
    expect(words.map((line) => line.slice(0, 6).join(" "))).toEqual([
      "npm run causeway -- upgrade stage",
      "npm run causeway -- upgrade list",
    ]);
    await stage();
    const values = { NAME: "next", HEX: String(readRecord()["sha256"]) };
    fs.rmSync(record);
    const typed = words.map((line) =>
      line.slice(4).map((word) => {
        if (word === "/path/of/the/release") return release;
        return word === "NAME" || word === "HEX" ? values[word] : word;
      }),
    );
    // The last home counts, as in a script that names one.
    expect(await runCommand(home, typed[0] ?? [])).toMatchObject({ code: 0, err: "" });
    expect(readRecord()).toMatchObject({ release, state: "staged" });
    expect(await runCommand(home, typed[1] ?? [])).toMatchObject({ code: 2, err: "" });
  });
});
