/** `causeway status`: of the home that was named and no other, and of how well that one's kit is. */
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { createTestnet } from "../../../../cli/home/network/testnet.js";
import { createProgram } from "../../../../cli/program/program.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { journals } from "../../../helpers/chains/journal-chain.js";
import { RpcFault, startFakeNode } from "../../../helpers/chains/fake-node.js";
import { closers, listen, newFolder } from "../opened.js";

/** When a block was made that is this old now. */
const secondsAgo = (seconds: number): number => Math.floor(Date.now() / 1_000) - seconds;

/** When the chain of the answering kit began. */
const BEGAN_SECONDS = 1_790_000_000;

/** What `causeway status --json` of a home prints, and its exit code. */
async function statusOf(home: string, env: Readonly<Record<string, string>>) {
  const printed: string[] = [];
  let exitCode: number | undefined;
  const program = createProgram({
    version: "0",
    env,
    signal: new AbortController().signal,
    print: (line) => printed.push(line),
    warn: () => undefined,
    setExitCode: (code) => {
      exitCode = code;
    },
  });
  await program.parseAsync(["status", "--json", "--home", home], { from: "user" });
  return { ...JSON.parse(printed.join("\n")), exitCode };
}

/** Settings of a kit whose parts all answer, with a newest block of that age. */
async function answeringKit(
  blockAgeSeconds: number,
  intervalSeconds = 2,
): Promise<Record<string, string>> {
  const [block] = journals();
  // As somebody asks for the first time: what a command does before makes it no older.
  let newest: number | undefined;
  const node = await startFakeNode({
    eth_syncing: () => false,
    eth_getBlockByNumber: ([at]) => {
      const height = at === "latest" ? 7 : Number(at);
      newest ??= secondsAgo(blockAgeSeconds);
      const seconds = height === 0 ? BEGAN_SECONDS : newest - (7 - height) * intervalSeconds;
      return {
        number: `0x${height.toString(16)}`,
        hash: block?.["blockHash"],
        parentHash: block?.["parentHash"],
        timestamp: `0x${seconds.toString(16)}`,
      };
    },
  });
  closers.push(() => node.close());
  const anyPart = createHttpServer((_request, response) => void response.end('{"ready":true}'));
  const partAddress = `127.0.0.1:${await listen(anyPart)}`;
  return {
    CAUSEWAY_APP_JSON_RPC_ADDRESS: new URL(node.url).host,
    CAUSEWAY_SIDECAR_ONLINE_LISTEN: partAddress,
    CAUSEWAY_SIDECAR_OFFLINE_LISTEN: partAddress,
    CAUSEWAY_WATCHER_API_LISTEN: partAddress,
    CAUSEWAY_WORKER_API_LISTEN: partAddress,
  };
}

/** Address of a node's consensus RPC that has caught up, with a newest block of that age. */
async function answeringNode(blockAgeSeconds: number): Promise<string> {
  const result = () => ({
    node_info: { id: "ab".repeat(20), network: "local", moniker: "node0" },
    sync_info: {
      latest_block_height: "7",
      earliest_block_height: "1",
      latest_block_time: new Date(secondsAgo(blockAgeSeconds) * 1_000).toISOString(),
      catching_up: false,
    },
    validator_info: { address: "AB".repeat(20), voting_power: "100" },
    n_peers: "3",
  });
  const body = () => JSON.stringify({ result: result() });
  const server = createHttpServer((_request, response) => void response.end(body()));
  return `tcp://127.0.0.1:${await listen(server)}`;
}

describe("causeway status", () => {
  it("is not ready in a folder that is no home, whoever answers on the ports of one", async () => {
    const home = join(newFolder(), "mistyped");
    const { exitCode, ready, reason, parts } = await statusOf(home, await answeringKit(1));
    const answering = parts.filter((part: { ready: boolean }) => part.ready);
    expect(answering.map(({ part }: { part: string }) => part)).toEqual([
      "node",
      "sidecar-online",
      "sidecar-offline",
      "deposit-watcher",
      "withdrawal-worker",
    ]);
    expect({ exitCode, ready, reason }).toEqual({
      exitCode: 1,
      ready: false,
      reason: expect.stringContaining(`no home in ${home}`),
    });
  });

  it.each([
    [25, 0, ""],
    [95, 1, expect.stringMatching(/^its newest block is 9\d s old: the chain stands still/)],
    [-25, 0, ""],
    [-95, 1, expect.stringMatching(/^its newest block is 9\d s ahead of this machine's clock: /)],
  ])("of a kit whose newest block is %i s old ends with %i", async (age, code, reason) => {
    const home = newFolder();
    mkdirSync(join(home, "config"));
    const { exitCode, ready, parts } = await statusOf(home, await answeringKit(age));
    expect({ exitCode, ready, node: parts[0] }).toEqual({
      exitCode: code,
      ready: code === 0,
      node: { part: "node", url: expect.any(String), ready: code === 0, reason },
    });
  });

  it.each([
    [45, 0],
    [460, 1],
  ])("of a kit with a block each 30 s whose newest is %i s old ends with %i", async (age, code) => {
    const home = newFolder();
    mkdirSync(join(home, "config"));
    // By its genesis, and where it has none, on somebody's node, by the node's last blocks.
    const bySomebody = await statusOf(home, await answeringKit(age, 30));
    const genesis = { genesisTimeMs: BEGAN_SECONDS * 1_000, params: { blockIntervalMs: 30_000 } };
    writeFileSync(join(home, "config", "genesis.json"), JSON.stringify(genesis));
    writeFileSync(join(home, "config", "sidecar.toml"), "");
    const byGenesis = await statusOf(home, await answeringKit(age));
    expect([bySomebody.exitCode, byGenesis.exitCode]).toEqual([code, code]);
  });

  it("is not ready where the kit of another home answers, however well that one is", async () => {
    const home = newFolder();
    mkdirSync(join(home, "config"));
    writeFileSync(join(home, "config", "sidecar.toml"), "");
    const env = await answeringKit(1);
    const statusWhereBegan = async (seconds: number) => {
      const genesis = JSON.stringify({ genesisTimeMs: seconds * 1_000 + 250 });
      writeFileSync(join(home, "config", "genesis.json"), genesis);
      return statusOf(home, env);
    };
    const own = await statusWhereBegan(BEGAN_SECONDS);
    expect({ ready: own.ready, reason: own.reason, exitCode: own.exitCode }).toEqual({
      ready: true,
      reason: undefined,
      exitCode: 0,
    });
    const other = await statusWhereBegan(BEGAN_SECONDS + 60);
    expect(other.parts[0]).toMatchObject({ part: "node", ready: true });
    expect({ ready: other.ready, reason: other.reason, exitCode: other.exitCode }).toEqual({
      ready: false,
      reason:
        "the node's chain began 2026-09-21T14:13:20.000Z, this home's 2026-09-21T14:14:20.000Z; " +
        "another home's node answers: check --home and --port-offset",
      exitCode: 1,
    });
  });

  it("tells what the node refuses where it cannot say when its chain began", async () => {
    const home = newFolder();
    mkdirSync(join(home, "config"));
    writeFileSync(join(home, "config", "sidecar.toml"), "");
    writeFileSync(join(home, "config", "genesis.json"), JSON.stringify({ genesisTimeMs: 1 }));
    const node = await startFakeNode({
      eth_syncing: () => false,
      eth_getBlockByNumber: () => {
        throw new RpcFault(-32000, "state sync is going on");
      },
    });
    closers.push(() => node.close());
    const env = {
      ...(await answeringKit(1)),
      CAUSEWAY_APP_JSON_RPC_ADDRESS: new URL(node.url).host,
    };
    const { exitCode, reason, parts } = await statusOf(home, env);
    expect({ exitCode, reason, node: parts[0] }).toMatchObject({
      exitCode: 1,
      reason: undefined,
      node: { ready: false, reason: expect.stringContaining("state sync is going on") },
    });
  });

  it.each([
    [25, 0, undefined],
    [95, 1, expect.stringMatching(/^its newest block is 9\d s old: the chain stands still/)],
    [-25, 0, undefined],
    [-95, 1, expect.stringMatching(/^its newest block is 9\d s ahead of this machine's clock: /)],
  ])("of a node's home whose newest block is %i s old ends with %i", async (age, code, reason) => {
    const options = { out: newFolder(), validators: 1, fullNodes: 0, clock: systemClock };
    const { nodes } = await createTestnet({ ...options, portOffset: 15_000 });
    const env = { CAUSEWAY_CONFIG_RPC_LADDR: await answeringNode(age) };
    const status = await statusOf(nodes[0]?.home ?? "", env);
    expect(status).toMatchObject({ exitCode: code, ready: code === 0, height: 7 });
    expect(status.reason).toEqual(reason);
  });

  it("of a node's home judges the age by the interval of its chain", async () => {
    const options = { out: newFolder(), validators: 1, fullNodes: 0, clock: systemClock };
    const blockIntervalMs = 30_000;
    const { nodes } = await createTestnet({ ...options, portOffset: 15_000, blockIntervalMs });
    const codes = [45, 460].map(async (age) => {
      const env = { CAUSEWAY_CONFIG_RPC_LADDR: await answeringNode(age) };
      return (await statusOf(nodes[0]?.home ?? "", env)).exitCode;
    });
    expect(await Promise.all(codes)).toEqual([0, 1]);
  });

  it("of a node's home is not ready where the node of another home answers", async () => {
    const options = { out: newFolder(), validators: 1, fullNodes: 0, clock: systemClock };
    const { nodes } = await createTestnet({ ...options, portOffset: 15_000 });
    const env = { ...(await answeringKit(1)), CAUSEWAY_CONFIG_RPC_LADDR: await answeringNode(1) };
    const status = await statusOf(nodes[0]?.home ?? "", env);
    expect(status).toMatchObject({
      exitCode: 1,
      ready: false,
      reason: expect.stringContaining("another home's node answers"),
      height: 7,
    });
  });
});
