/** A node that joins by state sync: from a snapshot of its peers, proven by headers. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fs from "node:fs";
import path from "node:path";
import { errorCode } from "../../chain/errors.js";
import { until } from "../helpers/until.js";
import { comet, evmBatch } from "./calls.js";
import { type NetworkNode, type RunningNetwork, untilHeight, writeNetwork } from "./network.js";
import {
  deployContracts,
  expectSameState,
  snapshotFolder,
  strike,
  startLiar,
  untilJoined,
  untilSnapshot,
  writeAppSetting,
  writeStateSync,
} from "./state-sync-stage.js";

const SNAPSHOT_INTERVAL = 50;
const TRUST_HEIGHT = 5;

/** Keys that a node must not show as the pruned error, with the heights that it does not have. */
const PRUNED = { code: 4444, message: "pruned history unavailable" };

/** Changes a bit of a chunk; one that has made room for a newer one meanwhile is offered to nobody. */
function damage(chunk: string): void {
  try {
    const bytes = fs.readFileSync(chunk);
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    fs.writeFileSync(chunk, bytes);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
}

describe("a node that joins by state sync", () => {
  let network: RunningNetwork;
  let [first, second, joining, deceived]: NetworkNode[] = [];
  let contracts: readonly string[] = [];

  beforeAll(async () => {
    network = await writeNetwork({ validators: 2, fullNodes: 2, blockIntervalMs: 100 });
    [first, second] = network.validators;
    [joining, deceived] = network.fullNodes;
    for (const node of network.validators) {
      writeAppSetting(node, "snapshot-interval", String(SNAPSHOT_INTERVAL));
    }
    await Promise.all(network.validators.map((node) => node.start()));
    await untilHeight(network.validators, 2);
    contracts = await deployContracts(network, 30);
    await untilSnapshot(network.validators, SNAPSHOT_INTERVAL);
    await untilHeight(network.validators, SNAPSHOT_INTERVAL + 3);
  });
  afterAll(async () => {
    await network?.remove();
  });

  it("believes nothing when two servers differ", async () => {
    if (first === undefined || second === undefined || deceived === undefined) throw new Error();
    const liar = await startLiar(second, (answer) =>
      answer.replace(/"app_hash":"./, '"app_hash":"F'),
    );
    await writeStateSync(deceived, {
      trusted: first,
      trustHeight: TRUST_HEIGHT,
      servers: [first.cometUrl, liar.url],
    });
    const node = deceived;
    try {
      await node.start();
      await until(async () => /LIGHT_DIVERGENCE/.test(node.output), {
        timeoutMs: 60_000,
        what: "the lie is found",
      });
    } finally {
      liar.server.close();
    }
    expect(node.output).toMatch(new RegExp(`127.0.0.1:${first.ports.cometRpc} and `));
    expect(node.output).toContain(liar.url.replace("http://", ""));
    expect((await node.status()).sync_info).toMatchObject({
      latest_block_height: "0",
      catching_up: true,
    });
    const raw = { method: "eth_sendRawTransaction", params: ["0x01"] };
    const [answer] = await evmBatch(node, [raw]);
    expect(JSON.stringify(answer)).toContain("state sync failed");
    expect(fs.existsSync(path.join(node.home, "data", "chain.restoring"))).toBe(false);
    await node.stop();
  });

  it("restores the newest snapshot, passes over a damaged one, and follows", async () => {
    if (first === undefined || second === undefined || joining === undefined) throw new Error();
    const servers = network.validators.map(({ cometUrl }) => cometUrl.replace("http", "tcp"));
    await writeStateSync(joining, { trusted: first, trustHeight: TRUST_HEIGHT, servers });
    for (const name of fs.readdirSync(path.join(second.home, "data", "snapshots"))) {
      // What is being written or deleted has a name that is no height.
      if (/^[0-9]+$/.test(name)) damage(path.join(snapshotFolder(second, Number(name)), "chunk-0"));
    }
    const startedMs = performance.now();
    const node = joining;
    await node.start();
    await strike(node, () => /state sync (fetches|restores)/.test(node.output));
    const seconds = await untilJoined(joining, startedMs);
    const { sync_info } = await comet<{
      sync_info: { earliest_block_height: string };
    }>(joining, "status");
    const { earliest_block_height } = sync_info;
    console.log(`joined at ${earliest_block_height} in ${seconds.toFixed(1)} s`);
    expect(Number(earliest_block_height)).toBeGreaterThanOrEqual(SNAPSHOT_INTERVAL);
    await untilHeight([first, second, joining], (await first.height()) + 5);
    await expectSameState(joining, first, [...contracts, `0x${"0".repeat(37)}801`]);
    const below = `0x${(Number(earliest_block_height) - 1).toString(16)}`;
    const pruned = await evmBatch(joining, [
      { method: "eth_getBalance", params: [contracts[0], below] },
      { method: "eth_call", params: [{ to: contracts[0] }, below] },
      { method: "eth_getBalance", params: [contracts[0], "0x0"] },
    ]);
    for (const { error } of pruned) expect(error).toMatchObject(PRUNED);
  });

  it("goes on after kill -9, and does not sync the state again", async () => {
    if (first === undefined || second === undefined || joining === undefined) throw new Error();
    await joining.kill();
    await joining.start();
    await untilJoined(joining, performance.now());
    expect(joining.output).toContain("state sync is ignored");
    await untilHeight([first, joining], (await first.height()) + 3);
    await expectSameState(joining, second, contracts);
    expect(fs.readdirSync(path.join(joining.home, "data")).toSorted()).not.toContain("statesync");
    await joining.stop();
  });
});
