/** The image's entry: one volume, started, stopped, started again; no Docker is needed for that. */
import { spawn } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  createVolume,
  freeOffset,
  initVolume,
  type MeshContainer,
  startMeshContainer,
} from "../../helpers/mesh/mesh-container.js";
import { callMesh, NETWORK_IDENTIFIER } from "../../helpers/mesh/mesh-conversation.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { until } from "../../helpers/until.js";

const FAILED_START_MS = 240_000;

const ASK = { network_identifier: NETWORK_IDENTIFIER };

describe("a container of the image", () => {
  const volume = createVolume();
  let shared = { home: volume, portOffset: 0, port: 0 };
  let running: MeshContainer | undefined;

  beforeAll(async () => {
    const portOffset = await freeOffset(2);
    shared = { home: volume, portOffset, port: 8080 + portOffset };
    await initVolume(volume, portOffset);
  });

  afterAll(async () => {
    await running?.stop();
    rmSync(volume, { recursive: true, force: true });
  });

  /** Exit code and words of a start that has to fail. */
  async function failedStart(env: Record<string, string>): Promise<string> {
    // One that does not fail is ended, and its exit code is not 1.
    const timeout = FAILED_START_MS;
    const main = path.join(await compiledFolder(), "cli", "mesh-main.js");
    const args = [main, "--home", volume, "--port-offset", String(shared.portOffset)];
    const child = spawn(process.execPath, args, { timeout, env: { ...process.env, ...env } });
    let errors = "";
    child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    const code = await new Promise((resolve) => child.once("close", resolve));
    return `${String(code)} ${errors}`;
  }

  const height = async () => {
    const { reply } = await callMesh(running?.url ?? "", "/network/status", ASK);
    return Number(Reflect.get(Object(reply["current_block_identifier"]), "index"));
  };

  it("ONLINE makes blocks and serves them; the volume keeps them over a restart", async () => {
    running = await startMeshContainer({ mode: "ONLINE", ...shared });
    const request = { ...ASK, block_identifier: { index: 0 } };
    const { reply: genesis } = await callMesh(running.url, "/block", request);
    await until(async () => (await height()) >= 3, { timeoutMs: 20_000, what: "three blocks" });
    expect(
      await failedStart({ MODE: "ONLINE", NETWORK: "testnet", PORT: String(shared.port + 1) }),
    ).toMatch(/^1 mesh: A kit is already running/);
    expect(await running.stop()).toBe(0);
    await expect(fetch(`${running.url}/health`)).rejects.toThrow();
    running = await startMeshContainer({ mode: "ONLINE", ...shared });
    expect((await callMesh(running.url, "/block", request)).reply).toEqual(genesis);
    expect(await height()).toBeGreaterThanOrEqual(3);
    expect(await running.stop()).toBe(0);
    expect(
      await failedStart({ MODE: "ONLINE", NETWORK: "mainnet", PORT: String(shared.port) }),
    ).toMatch(/^1 mesh: NETWORK is mainnet, but the chain in .* is of testnet/);
  });

  it("OFFLINE needs no volume and answers for the network that it is told", async () => {
    const empty = createVolume();
    running = await startMeshContainer({
      mode: "OFFLINE",
      network: "MAINNET",
      ...shared,
      home: empty,
    });
    const { reply } = await callMesh(running.url, "/network/list", {});
    expect(reply["network_identifiers"]).toEqual([{ blockchain: "token", network: "mainnet" }]);
    expect((await fetch(`${running.url}/ready`)).status).toBe(200);
    expect(await running.stop()).toBe(0);
    expect(readdirSync(empty)).toEqual([]);
    rmSync(empty, { recursive: true });
  });

  it("tells all that is wrong with its variables and ends", async () => {
    const said = await failedStart({ MODE: "x", NETWORK: "y", PORT: "z" });
    expect(said).toMatch(/^1 mesh: MODE must.*NETWORK must.*PORT must/);
  });
});
