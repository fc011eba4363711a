import { afterEach, describe, expect, it } from "@jest/globals";
import { present } from "../../../../chain/errors.js";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CliError } from "../../../../cli/errors.js";
import { createHomeFolders, homePaths, type HomePaths } from "../../../../cli/home/home.js";
import { createKit, type Kit, type KitPart } from "../../../../cli/supervisor/kit.js";
import { createChildRecord, findOrphans } from "../../../../cli/supervisor/orphans.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import type { Guardian } from "../../../../runtime/process/guardian.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { until } from "../../../helpers/until.js";

const PARTS: readonly KitPart[] = [
  "node",
  "sidecar-online",
  "sidecar-offline",
  "deposit-watcher",
  "withdrawal-worker",
  "indexer",
  "explorer",
  "console",
];

const folders: string[] = [];
const kits: Kit[] = [];

afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.stop();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

interface Trial {
  readonly kit: Kit;
  readonly paths: HomePaths;
  readonly lines: string[];
  readonly faults: readonly CliError[];
  readonly watched: Set<number>;
  /** Ends with its signal what the kit has of its home. */
  readonly losing: AbortController;
  /** File that tells the build that the kit was started from. */
  readonly stampFile: string;
  /** Starts and stops of the children, in order. */
  readonly events: () => readonly string[];
}

/** A kit of tiny children that write down when they start and stop; `broken` ones exit at once. */
async function createTrial(
  broken: readonly string[] = [],
  nodeNames: readonly string[] = ["node"],
): Promise<Trial> {
  const folder = mkdtempSync(join(tmpdir(), "causeway-kit-"));
  folders.push(folder);
  const paths = homePaths(join(folder, "home"));
  await createHomeFolders(paths);
  const record = join(folder, "events");
  writeFileSync(record, "");
  const stampFile = join(folder, ".stamp");
  writeFileSync(stampFile, "this release");
  const script = (part: KitPart): string => {
    const path = join(folder, `${part}.mjs`);
    const body = broken.includes(part)
      ? `console.error("${part} is broken on purpose"); process.exitCode = 1;`
      : `import { appendFileSync } from "node:fs";
         import { basename } from "node:path";
         // Several nodes run the same script; each is known by its home.
         const home = process.argv[process.argv.indexOf("--home") + 1];
         const name = "${part}" === "node" ? basename(home) : "${part}";
         if (${JSON.stringify(broken)}.includes(name)) {
           console.error("node: " + name + " is broken on purpose");
           process.exit(1);
         }
         const note = (what) => appendFileSync(${JSON.stringify(record)}, what + " " + name + "\\n");
         process.on("SIGTERM", () => { note("stop"); process.exit(0); });
         process.on("disconnect", () => process.exit(0));
         process.on("SIGUSR2", () =>
           process.send({ finished: true, reason: "all is done" }, () => process.exit(0)));
         note("start");
         process.send({ ready: true, name: "${part}" });
         setInterval(() => undefined, 1000);`;
    writeFileSync(path, body);
    return path;
  };
  const lines: string[] = [];
  const watched = new Set<number>();
  const guardian: Guardian = {
    watch: ({ pid }) => void watched.add(pid),
    forget: (pid) => void watched.delete(pid),
    close: () => undefined,
  };
  const faults: CliError[] = [];
  const losing = new AbortController();
  const nodes = nodeNames.map((name, index) => {
    const node = { name, home: join(paths.home, "nodes", name), portStep: 100 * index };
    mkdirSync(join(node.home, "config"), { recursive: true });
    writeFileSync(join(node.home, "config", "config.toml"), `port-offset = ${node.portStep}\n`);
    return node;
  });
  const kit = createKit({
    paths,
    nodes,
    portOffset: 0,
    env: { ...process.env, DATABASE_URL: "postgres://nowhere/none" },
    guardian,
    children: createChildRecord(paths.children, losing.signal),
    clock: systemClock,
    log: createLogger({ component: "test", level: "silent" }),
    signal: new AbortController().signal,
    lost: losing.signal,
    isPatient: false,
    print: (line) => lines.push(line),
    onFatal: (error) => faults.push(error),
    restartDelays: { firstMs: 1, maxMs: 1 },
    stampFile,
    scripts: {
      node: script("node"),
      "sidecar-online": script("sidecar-online"),
      "sidecar-offline": script("sidecar-offline"),
      "deposit-watcher": script("deposit-watcher"),
      "withdrawal-worker": script("withdrawal-worker"),
      treasury: script("treasury"),
      indexer: script("indexer"),
      explorer: script("explorer"),
      console: script("console"),
    },
    without: new Set(["treasury"]),
  });
  kits.push(kit);
  const events = (): string[] => readFileSync(record, "utf8").trim().split("\n");
  return { kit, paths, lines, faults, watched, losing, stampFile, events };
}

/** Ends one of the kit's processes as the system does. */
function kill(record: string, part: string): void {
  const children: { name: string; pid: number }[] = JSON.parse(readFileSync(record, "utf8"));
  const child = children.find(({ name }) => name === part);
  process.kill(present(child, `the process of ${part}`).pid, "SIGKILL");
}

describe("the kit", () => {
  it("starts its parts in order and stops them in reverse, leaving none", async () => {
    const { kit, paths, lines, watched, events } = await createTrial();
    await kit.start();
    expect(watched.size).toBe(PARTS.length);
    expect(new Set(lines.map((line) => line.trim().split(/\s+/)[0]))).toEqual(new Set(PARTS));
    await kit.stop();
    expect(watched.size).toBe(0);
    expect(await findOrphans(paths.children)).toEqual([]);
    const order = events();
    const place = (event: string): number => order.indexOf(event);
    expect(place("start node")).toBe(0);
    expect(place("start sidecar-online")).toBeLessThan(place("start deposit-watcher"));
    expect(place("start deposit-watcher")).toBeLessThan(place("start withdrawal-worker"));
    for (const page of ["indexer", "explorer", "console"]) {
      expect(place(`stop ${page}`)).toBeLessThan(PARTS.length + 3);
    }
    expect(place("stop withdrawal-worker")).toBe(PARTS.length + 3);
    expect(place("stop deposit-watcher")).toBe(PARTS.length + 4);
    expect(place("stop node")).toBe(order.length - 1);
    expect(order).toHaveLength(2 * PARTS.length);
  });

  it("starts the nodes of a network before all that needs one, and stops them last", async () => {
    const nodeNames = ["node0", "node1", "node2", "node3"];
    const { kit, watched, events } = await createTrial([], nodeNames);
    await kit.start();
    expect(watched.size).toBe(PARTS.length - 1 + nodeNames.length);
    await kit.stop();
    expect(watched.size).toBe(0);
    const order = events();
    const started = nodeNames.map((name) => `start ${name}`);
    expect(new Set(order.slice(0, 4))).toEqual(new Set(started));
    expect(new Set(order.slice(-4))).toEqual(new Set(nodeNames.map((name) => `stop ${name}`)));
  });

  it("goes on without a validator that does not start while the others can decide, and says so", async () => {
    const nodeNames = ["node0", "node1", "node2", "node3"];
    const { kit, faults, lines, watched, events } = await createTrial(["node2"], nodeNames);
    await kit.start();
    expect(faults).toEqual([]);
    expect(watched.size).toBe(PARTS.length - 1 + 3);
    const said = lines.filter((line) => line.includes("The kit goes on without it"));
    expect(said).toHaveLength(1);
    expect(said[0]).toContain("node2 is broken on purpose");
    expect(said[0]).toContain("3 of 4 validators");
    await kit.stop();
    expect(events()).toContain("stop node3");
  });

  it.each([
    ["the first, which serves it", ["node0"], 4],
    ["a third of them", ["node1"], 3],
    ["more of them than can be spared", ["node1", "node3"], 4],
  ])("ends without %s", async (_what, broken, count) => {
    const nodeNames = Array.from({ length: count }, (_, index) => `node${index}`);
    const { kit, faults } = await createTrial(broken, nodeNames);
    await expect(kit.start()).rejects.toMatchObject({ code: "CHILD_FAILED" });
    expect(faults).toHaveLength(1);
  });

  it("records its children, so that the next start can wait for orphans", async () => {
    const { kit, paths, watched } = await createTrial();
    await kit.start();
    const record = (): number[] =>
      JSON.parse(readFileSync(paths.children, "utf8")).map(({ pid }: { pid: number }) => pid);
    await until(() => record().length >= PARTS.length, { timeoutMs: 10_000 });
    expect(new Set(record())).toEqual(watched);
  });

  it("ends all of its children at once, and leaves their record, where another kit has the home", async () => {
    const { kit, paths, lines, faults, watched, losing, events } = await createTrial();
    await kit.start();
    await until(() => readFileSync(paths.children, "utf8").includes("console"), {
      timeoutMs: 10_000,
    });
    const told = lines.length;
    writeFileSync(paths.children, "of another kit");
    losing.abort();
    await until(() => watched.size === 0, { timeoutMs: 10_000 });
    await kit.stop();
    expect(events().filter((event) => event.startsWith("stop"))).toEqual([]);
    expect(events()).toHaveLength(PARTS.length);
    expect(readFileSync(paths.children, "utf8")).toBe("of another kit");
    expect([lines.slice(told), faults]).toEqual([[], []]);
  });

  const dispensable = ["indexer", "explorer", "console"] as const;
  it.each(dispensable)("goes on without the %s, and says so", async (part) => {
    const { kit, faults, lines, watched, events } = await createTrial([part]);
    await kit.start();
    expect(faults).toEqual([]);
    expect(watched.size).toBe(PARTS.length - 1);
    const said = lines.filter((line) => line.includes("The kit goes on without it."));
    expect(said).toHaveLength(1);
    expect(said[0]).toContain(`${part} is broken on purpose`);
    await kit.stop();
    expect(events()).not.toContain(`start ${part}`);
    expect(events().at(-1)).toBe("stop node");
  });

  it("starts nothing again from another build than it was started from", async () => {
    const { kit, paths, lines, faults, stampFile, events } = await createTrial();
    await kit.start();
    const end = (part: string): void => kill(paths.children, part);
    const starts = (part: string) => events().filter((event) => event === `start ${part}`).length;
    await until(() => readFileSync(paths.children, "utf8").includes("console"), {
      timeoutMs: 10_000,
    });
    end("deposit-watcher");
    await until(() => starts("deposit-watcher") === 2, { timeoutMs: 10_000 });
    writeFileSync(stampFile, "the next release");
    end("explorer");
    const words = "was built anew while this kit runs";
    await until(() => lines.some((line) => line.includes(words)), { timeoutMs: 10_000 });
    expect(faults).toEqual([]);
    end("withdrawal-worker");
    await until(() => faults.length > 0, { timeoutMs: 10_000 });
    expect(faults[0]).toMatchObject({
      code: "CHILD_FAILED",
      message: expect.stringContaining(words),
    });
    expect([starts("explorer"), starts("withdrawal-worker")]).toEqual([1, 1]);
  });

  it("ends, with four validators, too, where one of them ends behind another build: its home is sound", async () => {
    const nodeNames = ["node0", "node1", "node2", "node3"];
    const { kit, paths, lines, faults, stampFile } = await createTrial([], nodeNames);
    await kit.start();
    await until(() => readFileSync(paths.children, "utf8").includes("node2"), {
      timeoutMs: 10_000,
    });
    writeFileSync(stampFile, "the next release");
    kill(paths.children, "node2");
    await until(() => faults.length > 0, { timeoutMs: 10_000 });
    expect(faults[0]?.message).toContain("was built anew while this kit runs");
    expect(lines.filter((line) => line.includes("goes on without"))).toEqual([]);
  });

  it("goes on without a node whose work is done, and says so", async () => {
    const { kit, paths, lines, faults, events } = await createTrial();
    await kit.start();
    const children: { name: string; pid: number }[] = JSON.parse(
      readFileSync(paths.children, "utf8"),
    );
    const node = present(
      children.find(({ name }) => name === "node"),
      "the node's process",
    );
    process.kill(node.pid, "SIGUSR2");
    const told = () => lines.filter((line) => line.startsWith("  node: "));
    await until(() => told().length > 0, { timeoutMs: 10_000 });
    expect(told()).toEqual([
      "  node: its work is done (all is done); it is not started again, and all others go on",
    ]);
    expect(faults).toEqual([]);
    expect(events().filter((event) => event.startsWith("stop"))).toEqual([]);
    await kit.stop();
    expect(events().filter((event) => event === "start node")).toHaveLength(1);
    expect(events()).toContain("stop withdrawal-worker");
  });

  it("says why when a part cannot be started, and can be stopped all the same", async () => {
    const { kit, faults, watched, events, lines } = await createTrial(["deposit-watcher"]);
    await expect(kit.start()).rejects.toMatchObject({ code: "CHILD_FAILED" });
    expect(faults[0]?.message).toContain("deposit-watcher is broken on purpose");
    expect(lines.filter((line) => line.includes("starting it again"))).toHaveLength(4);
    await kit.stop();
    expect(watched.size).toBe(0);
    expect(events()).not.toContain("start withdrawal-worker");
    expect(events().at(-1)).toBe("stop node");
  });
});
