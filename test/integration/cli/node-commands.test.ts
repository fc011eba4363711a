import { afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { once } from "node:events";
import fs from "node:fs";
import { connect, type Socket } from "node:net";
import os from "node:os";
import path from "node:path";
import { DEFAULT_PORTS } from "../../../chain/networks.js";
import { createTestnet } from "../../../cli/home/network/testnet.js";
import { KEY_SPACE } from "../../../node/store/database.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { endedBy, endOf } from "../../helpers/processes/endings.js";
import { kitOffset, readyStatus, runCauseway } from "../../helpers/kit.js";
import {
  type NodeProcess,
  nodeReport,
  startNodeProcess,
} from "../../helpers/processes/node-process.js";
import { putRaw, rawRecords, withFlippedBit } from "../../helpers/raw-level.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { until } from "../../helpers/until.js";

/** Kits lie 20 apart: 7 beside them no port of a network meets one of a kit. */
/**
 * The full node lies 100 behind, at the place of another worker's kits: 6 is far enough from what
 * they add to theirs (0, 4, 13, 14) that none of a node's ports (1, 3 and 4 apart) meet.
 */
const OFFSET = kitOffset(0) + 6;
const TIMEOUT_MS = 600_000;

const folders: string[] = [];
const running: NodeProcess[] = [];

function newFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-nodes-"));
  folders.push(folder);
  return folder;
}

async function start(home: string, args: readonly string[] = []): Promise<NodeProcess> {
  const node = await startNodeProcess(home, args);
  running.push(node);
  return node;
}

/** Resolves when the node at this offset has that height. */
async function untilHeight(node: NodeProcess, offset: number, height: number): Promise<void> {
  const port = DEFAULT_PORTS.cometRpc + offset;
  await until(
    async () => {
      if (node.process.exitCode !== null) throw new Error(`it ended: ${node.errors()}`);
      const report = await nodeReport(port);
      return report !== undefined && report.height >= height && !report.isCatchingUp;
    },
    { timeoutMs: 60_000, what: `a node of height ${height} on port ${port}` },
  );
}

/** A client on each of a node's ports that says nothing: it is no reason to wait. */
async function connectToAll(offset: number): Promise<readonly Socket[]> {
  const names = ["jsonRpc", "webSocket", "cometRpc", "rest", "grpc", "metrics"] as const;
  const sockets = names.map((name) => connect(DEFAULT_PORTS[name] + offset, "127.0.0.1"));
  for (const socket of sockets) socket.on("error", () => undefined);
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  return sockets;
}

/** One validator and one full node, 200 ms blocks; written, not started. */
async function writeNetwork(): Promise<{ readonly validator: string; readonly full: string }> {
  const out = newFolder();
  const { nodes } = await createTestnet({
    out,
    validators: 1,
    fullNodes: 1,
    portOffset: OFFSET,
    blockIntervalMs: 200,
    clock: systemClock,
  });
  expect(nodes.map(({ name }) => name)).toEqual(["node0", "full0"]);
  return { validator: path.join(out, "node0"), full: path.join(out, "full0") };
}

async function statusOf(home: string): Promise<Record<string, unknown> & { code: number | null }> {
  const { code, stdout } = await runCauseway({ home }, ["status", "--json"]);
  return { ...(JSON.parse(stdout) as Record<string, unknown>), code };
}

async function readyStatusOf(home: string): ReturnType<typeof statusOf> {
  const { code, stdout } = await readyStatus({ home });
  return { ...(JSON.parse(stdout) as Record<string, unknown>), code };
}

function nodeIdIn(home: string): string {
  return fs.readFileSync(path.join(home, "config", "node_key.json"), "utf8");
}

beforeAll(() => compiledFolder(), TIMEOUT_MS);

afterEach(async () => {
  for (const node of running.splice(0)) {
    node.process.kill("SIGKILL");
    await node.ended;
  }
  for (const folder of folders.splice(0)) fs.rmSync(folder, { recursive: true, force: true });
}, TIMEOUT_MS);

describe("causeway start", () => {
  it(
    "ends with one sentence when a record of its store is damaged, and starts when it is mended",
    async () => {
      const { validator: home } = await writeNetwork();
      const first = await start(home);
      await untilHeight(first, OFFSET, 2);
      first.process.kill("SIGTERM");
      expect(await endOf(first)).toEqual(endedBy(0));
      const folder = path.join(home, "data", "chain");
      // Every account of this chain gets something or is looked at in each block or at the start.
      const accounts = (await rawRecords(folder)).filter(({ key }) => key[0] === KEY_SPACE.account);
      for (const { key, stored } of accounts) await putRaw(folder, key, withFlippedBit(stored, 60));
      const second = await start(home);
      expect(await second.ended).toBe(1);
      expect(second.errors()).toMatch(
        /^node: the store in .+ is damaged \(a record of account, .+\n$/,
      );
      expect(second.errors()).toContain(folder);
      for (const { key, stored } of accounts) await putRaw(folder, key, stored);
      await untilHeight(await start(home), OFFSET, 3);
    },
    TIMEOUT_MS,
  );

  it(
    "runs nodes that find each other, each in one process, and status tells of both",
    async () => {
      const homes = await writeNetwork();
      const validator = await start(homes.validator);
      const full = await start(homes.full);
      await untilHeight(full, OFFSET + 100, 3);
      const children = fs.readFileSync(
        `/proc/${full.process.pid}/task/${full.process.pid}/children`,
        "utf8",
      );
      expect(children).toBe("");

      const power = (votingPower: string) => ({ address: expect.any(String), votingPower });
      const common = { ready: true, code: 0, network: "chain_6940-1", catching_up: false };
      expect(await readyStatusOf(homes.validator)).toMatchObject({
        ...common,
        moniker: "node0",
        peers: 1,
        validator: power("100"),
      });
      const follower = await readyStatusOf(homes.full);
      expect(follower).toMatchObject({ ...common, peers: 1, validator: power("0") });
      expect(follower["height"]).toBeGreaterThanOrEqual(3);
      expect(follower["blockAgeSeconds"]).toBeLessThan(30);

      const second = await start(homes.full);
      expect(await second.ended).toBe(1);
      expect(second.errors()).toMatch(/^node: .+\n$/);

      const silent = await connectToAll(OFFSET);
      validator.process.kill("SIGTERM");
      // Not 0 would be the end that it makes of itself when its stop takes too long.
      expect(await endOf(validator)).toEqual(endedBy(0));
      for (const socket of silent) socket.destroy();
      expect(await statusOf(homes.validator)).toMatchObject({ ready: false, code: 1 });
      const lines = validator.output().trim().split("\n");
      expect(lines.length).toBeGreaterThan(3);
      for (const line of lines) expect(() => JSON.parse(line) as unknown).not.toThrow();
    },
    TIMEOUT_MS,
  );

  it(
    "says of a node that does not answer, or has no block yet, what it waits for",
    async () => {
      const { full } = await writeNetwork();
      const ask = ["query", "staking", "validators"];
      const silent = await runCauseway({ home: full }, ask);
      expect([silent.code, silent.stderr]).toEqual([
        1,
        expect.stringMatching(/got no answer \(ECONNREFUSED\)\. Start the kit, or the node that/),
      ]);

      await start(full);
      await until(
        async () => (await nodeReport(DEFAULT_PORTS.cometRpc + OFFSET + 100)) !== undefined,
        {
          timeoutMs: 60_000,
          what: "the node answers",
        },
      );
      const early = await runCauseway({ home: full }, ask);
      expect([early.code, early.stderr]).toEqual([
        1,
        expect.stringContaining("The node has no block yet, and so no state to be asked for"),
      ]);
    },
    TIMEOUT_MS,
  );

  it(
    "goes on after SIGKILL; a full node without data and node key syncs again as a new peer",
    async () => {
      const homes = await writeNetwork();
      const first = await start(homes.validator);
      await untilHeight(first, OFFSET, 3);
      first.process.kill("SIGKILL");
      expect(await first.ended).toBe("SIGKILL");
      await untilHeight(await start(homes.validator), OFFSET, 5);

      const full = await start(homes.full);
      await untilHeight(full, OFFSET + 100, 5);
      full.process.kill("SIGTERM");
      expect(await endOf(full)).toEqual(endedBy(0));

      // The copy, and then the original: without what a node makes itself, on other ports.
      const copy = path.join(newFolder(), "copy");
      fs.mkdirSync(copy);
      fs.cpSync(path.join(homes.full, "config"), path.join(copy, "config"), { recursive: true });
      const formerKey = nodeIdIn(homes.full);
      fs.rmSync(path.join(copy, "config", "node_key.json"));
      for (const file of ["config.toml", "app.toml"]) {
        const name = path.join(copy, "config", file);
        const text = fs.readFileSync(name, "utf8");
        const moved = text.replace(/127\.0\.0\.1:([0-9]+)"/g, (_, port: string) =>
          file === "config.toml" && Number(port) === DEFAULT_PORTS.p2p + OFFSET
            ? `127.0.0.1:${port}"`
            : `127.0.0.1:${Number(port) - 24}"`,
        );
        fs.writeFileSync(name, moved);
      }
      const copied = await start(copy);
      await untilHeight(copied, OFFSET + 76, 6);
      expect(nodeIdIn(copy)).not.toBe(formerKey);
      expect(fs.statSync(path.join(copy, "config", "node_key.json")).mode & 0o777).toBe(0o600);
      expect(fs.readdirSync(copy).toSorted()).toEqual(["config", "data"]);

      fs.rmSync(path.join(homes.full, "data"), { recursive: true });
      await untilHeight(await start(homes.full), OFFSET + 100, 6);
      expect(nodeIdIn(homes.full)).toBe(formerKey);
    },
    TIMEOUT_MS,
  );

  it(
    "starts the node of a kit's home alone, says so, and keeps the kit out meanwhile",
    async () => {
      const home = path.join(newFolder(), "kit");
      const init = ["init", "--port-offset", String(OFFSET), "--block-interval-ms", "200"];
      expect(await runCauseway({ home }, init)).toMatchObject({ code: 0 });
      const node = await start(home);
      await untilHeight(node, OFFSET, 2);
      expect(node.errors()).toContain("is a kit's home: this starts its node alone");
      expect(await runCauseway({ home }, ["init"])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("already running on the home"),
      });
      node.process.kill("SIGTERM");
      expect(await endOf(node)).toEqual(endedBy(0));
      expect(fs.existsSync(path.join(home, "kit.lock"))).toBe(false);
      expect(await runCauseway({ home }, ["init"])).toMatchObject({ code: 0 });
    },
    TIMEOUT_MS,
  );

  it(
    "refuses a folder that is no home, and says how to make one",
    async () => {
      const node = await start(newFolder());
      expect(await node.ended).toBe(1);
      expect(node.errors()).toMatch(/is no node's home .*causeway testnet/);
    },
    TIMEOUT_MS,
  );

  it(
    "says that a home cannot be read, and not to make another one",
    async () => {
      const home = newFolder();
      fs.mkdirSync(path.join(home, "config"));
      // What nobody may read is a matter of who starts it; a link that leads nowhere is one of all.
      fs.symlinkSync("genesis.json", path.join(home, "config", "genesis.json"));
      const node = await start(home);
      expect(await node.ended).toBe(1);
      expect(node.errors()).toMatch(/genesis\.json cannot be read \(ELOOP\)/);
      expect(node.errors()).not.toMatch(/causeway init/);
    },
    TIMEOUT_MS,
  );
});
