/** The image's entry as a process: MODE, NETWORK, PORT and a data volume. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import { DEFAULT_PORTS } from "../../../chain/networks.js";
import { findBlockedPorts } from "../../../cli/home/ports.js";
import { kitOffset } from "../kit.js";
import { compiledFolder } from "../services/services.js";
import { until } from "../until.js";

/** Time for keys, genesis, node and server on a busy machine. */
const START_TIMEOUT_MS = 60_000;

/** Steps and bound as for kits: ports of two containers never meet, all stay usable. */
const OFFSET_STEP = 20;
const MAX_OFFSET = 30_000;

/** Blocks come quickly, so that a test sees several of them. */
const BLOCK_INTERVAL_MS = 200;

/** What the container would be given. */
export interface MeshContainerOptions {
  readonly mode: "ONLINE" | "OFFLINE";
  readonly network?: string;
  readonly port: number;
  readonly home: string;
  /** Moves the node's inner ports, which containers have to themselves. */
  readonly portOffset: number;
}

/** A container that is up. */
export interface MeshContainer {
  readonly url: string;
  readonly process: ChildProcess;
  output(): string;
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>;
}

/** A port offset with which all ports of a container are free, tried from the slot's own on. */
export async function freeOffset(slot: number): Promise<number> {
  for (let offset = kitOffset(slot); offset < MAX_OFFSET; offset += OFFSET_STEP) {
    const ports = Object.values(DEFAULT_PORTS).map((port) => port + offset);
    if (findBlockedPorts(ports.map((port) => ({ port }))).length > 0) continue;
    if ((await Promise.all(ports.map(isFree))).every((free) => free)) return offset;
  }
  throw new Error("no ports are free");
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "0.0.0.0", () => probe.close(() => resolve(true)));
  });
}

/** A new, empty volume. */
export function createVolume(): string {
  return fs.mkdtempSync(path.join(os.tmpdir(), "causeway-mesh-"));
}

/**
 * Fills a volume ahead of its first start, so that its chain has short blocks.
 * @param params of the modules, as `--param` takes them
 */
export async function initVolume(
  home: string,
  portOffset: number,
  params: readonly string[] = [],
): Promise<void> {
  const main = path.join(await compiledFolder(), "cli", "main.js");
  const result = spawnSync(
    process.execPath,
    [
      main,
      "init",
      "--home",
      home,
      "--port-offset",
      String(portOffset),
      "--block-interval-ms",
      String(BLOCK_INTERVAL_MS),
      ...params.flatMap((param) => ["--param", param]),
    ],
    { encoding: "utf8" },
  );
  if (result.status !== 0) throw new Error(`init failed: ${result.stdout}${result.stderr}`);
}

/** Starts the entry and waits until it says that it is ready. */
export async function startMeshContainer(options: MeshContainerOptions): Promise<MeshContainer> {
  const { mode, network = "testnet", port, home, portOffset } = options;
  const main = path.join(await compiledFolder(), "cli", "mesh-main.js");
  const args = [main, "--home", home, "--port-offset", String(portOffset)];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, MODE: mode, NETWORK: network, PORT: String(port) },
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  await until(
    () => {
      if (child.exitCode !== null) throw new Error(`the container ended:\n${output}`);
      return output.includes('{"ready":true,"name":"mesh"}');
    },
    { timeoutMs: START_TIMEOUT_MS, what: "the container is ready" },
  ).catch((error: unknown) => {
    child.kill("SIGTERM");
    throw new Error(`${String(error)}\n${output}`);
  });
  return {
    url: `http://127.0.0.1:${port}`,
    process: child,
    output: () => output,
    async stop() {
      child.kill("SIGTERM");
      return exited;
    },
  };
}
