/**
 * A validator whose program does not know the planned upgrade: at its height the staged release goes on with
 * the chain, and at once whenever the older program is started again. Real processes, one of them of a copy of
 * this build that knows one upgrade more.
 */
import fs from "node:fs";
import { createServer } from "node:http";
import os from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { DEFAULT_PORTS } from "../../../chain/networks.js";
import { createTestnet } from "../../../cli/home/network/testnet.js";
import { NEWEST_APP_VERSION } from "../../../node/settings/app-version.js";
import { parseModuleParams } from "../../../node/settings/module-params.js";
import { systemClock } from "../../../runtime/process/clock.js";
import {
  childrenOf,
  isRunning,
  type ProcessIdentity,
} from "../../../runtime/process/process-identity.js";
import { runCommand, runTx } from "../../helpers/processes/command-line.js";
import { endedBy, endOf } from "../../helpers/processes/endings.js";
import { kitOffset } from "../../helpers/kit.js";
import {
  type NodeProcess,
  nodeReport,
  startNodeProcess,
} from "../../helpers/processes/node-process.js";
import { copyReleaseKnowing } from "../../helpers/processes/release-folder.js";
import { until } from "../../helpers/until.js";

const OFFSET = kitOffset(0);
const COMET = DEFAULT_PORTS.cometRpc + OFFSET;
const PATIENCE = { timeoutMs: 120_000 };

/**
 * Blocks from the proposal to the plan's height: deciding it and staging the release has to fit, which takes some
 * 25 of them and several times as many on a machine that is busy otherwise.
 */
const AHEAD = 200;

let folder: string;
let home: string;
let release: string;
let height: number;
let node: NodeProcess;

const heightOf = async () => (await nodeReport(COMET))?.height ?? 0;

async function untilHeight(wanted: number): Promise<void> {
  await until(
    async () => {
      if (node.process.exitCode !== null) throw new Error(`it ended: ${node.errors()}`);
      return (await heightOf()) >= wanted;
    },
    { ...PATIENCE, what: `height ${wanted}` },
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${node.output().slice(-3_000)}`);
  });
}

async function sent(...words: readonly string[]): Promise<void> {
  const { code, raw_log } = await runTx(home, [...words, "--from", "operator"]);
  expect([words.join(" "), code, raw_log]).toEqual([words.join(" "), 0, ""]);
}

/** The program that runs in the place of the older one. */
function successor(): ProcessIdentity {
  const found = childrenOf(node.process.pid ?? 0).find(({ pid }) =>
    fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(path.join(release, "dist")),
  );
  if (found === undefined) throw new Error(`nothing goes on\n${node.output().slice(-3_000)}`);
  return found;
}

/** Ends with the older program, whatever is sent to that. */
async function endTogether(signal: NodeJS.Signals, end: number | string): Promise<void> {
  const next = successor();
  node.process.kill(signal);
  expect(await endOf(node)).toEqual(endedBy(end));
  await until(() => !isRunning(next), { timeoutMs: 10_000, what: "the end of both" });
}

async function startAgain(): Promise<void> {
  const before = await heightOf();
  expect(before).toBe(0);
  node = await startNodeProcess(home);
  await untilHeight(height + 1);
}

beforeAll(async () => {
  folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "causeway-upgrade-")));
  const out = path.join(folder, "net");
  release = path.join(folder, "release");
  home = path.join(out, "node0");
  await copyReleaseKnowing(release, "next-rules");
  await createTestnet({
    out,
    validators: 1,
    fullNodes: 0,
    portOffset: OFFSET,
    blockIntervalMs: 200,
    modules: parseModuleParams({ "gov.voting_period": "3s", "gov.min_deposit": "1000" }),
    clock: systemClock,
  });
  // A validator that looks for its own signatures would not start on a chain that waits for it alone.
  const checks = { CAUSEWAY_CONFIG_CONSENSUS_DOUBLE_SIGN_CHECK_HEIGHT: "10" };
  node = await startNodeProcess(home, [], checks);
}, 600_000);

afterEach(() => expect(node.errors()).not.toContain("Unexpected fault"));

afterAll(async () => {
  node.process.kill("SIGKILL");
  await node.ended;
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
});

describe("causeway start, of a program that does not know the planned upgrade", () => {
  it("is told apart from one that will get over it", async () => {
    await untilHeight(2);
    height = (await heightOf()) + AHEAD;
    const plan = ["upgrade", "software-upgrade", "next-rules", "--upgrade-height", `${height}`];
    await sent(...plan, "--title", "Next", "--summary", "Rules", "--deposit", "1000atoken");
    await sent("gov", "vote", "1", "yes");
    const list = async () =>
      JSON.parse((await runCommand(home, ["upgrade", "list", "--json"])).out);
    await until(async () => (await list()).chain.plan !== undefined, {
      ...PATIENCE,
      what: "the plan",
    });
    const before = await runCommand(home, ["upgrade", "list"]);
    expect([before.code, before.out]).toEqual([
      1,
      expect.stringContaining("the node will halt before it"),
    ]);
    const words = ["upgrade", "stage", "next-rules", "--release", release];
    expect((await runCommand(home, words)).code).toBe(0);
    const after = await runCommand(home, ["upgrade", "list"]);
    expect([after.code, after.out]).toEqual([
      0,
      expect.stringContaining(`The chain plans next-rules at height ${height}.`),
    ]);
    expect(await heightOf()).toBeLessThan(height);
  });

  it("has the staged release make the block of the height, and those behind it", async () => {
    await untilHeight(height + 2);
    expect(node.output()).toContain(`UPGRADE \\"next-rules\\" NEEDED at height: ${height}`);
    expect(node.output()).toContain("the staged release goes on");
    const status = await fetch(`http://127.0.0.1:${COMET}/status`).then((answer) => answer.json());
    expect(status).toMatchObject({
      result: { node_info: { protocol_version: { app: `${NEWEST_APP_VERSION + 1}` } } },
    });
    const info = path.join(home, "data", "upgrade-info.json");
    expect(JSON.parse(fs.readFileSync(info, "utf8"))).toMatchObject({ name: "next-rules", height });
    await endTogether("SIGTERM", 0);
  });

  it("hands over at once when it is started again, and is not outlived where it is killed", async () => {
    await startAgain();
    expect(node.output()).toContain("the release that took over goes on");
    // Only the release that goes on has opened the store.
    expect(node.output().match(/"node started"/g)).toHaveLength(1);
    await endTogether("SIGKILL", "SIGKILL");
  });

  it("passes a Ctrl-C on", async () => {
    await startAgain();
    await endTogether("SIGINT", 0);
  });

  it("ends as the release ends, and starts it no second time", async () => {
    const taken = createServer();
    await new Promise<void>((resolve) =>
      taken.listen(DEFAULT_PORTS.jsonRpc + OFFSET, "127.0.0.1", () => resolve()),
    );
    node = await startNodeProcess(home);
    expect(await endOf(node)).toEqual(endedBy(1));
    await new Promise((resolve) => taken.close(resolve));
    expect(node.errors()).toContain("Free the port or use --port-offset N.");
    expect(node.output().match(/the release that took over goes on/g)).toHaveLength(1);
  });

  it("runs the node itself, and halts as ever, where the release is not any more what was staged", async () => {
    fs.appendFileSync(path.join(release, "dist", "cli", "main.js"), "\n// patched\n");
    node = await startNodeProcess(home);
    const words = `this chain runs by version ${NEWEST_APP_VERSION + 1} of its rules`;
    await until(() => node.output().includes(words), { ...PATIENCE, what: "the halt" });
    expect(node.errors()).toContain("The release that took over is not started");
    node.process.kill("SIGTERM");
    expect(await endOf(node)).toEqual(endedBy(0));
  });
});
