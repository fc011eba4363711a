/** `causeway doctor` on the home of a kit whose network has several validators. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { runDoctorChecks } from "../../../../cli/probe/doctor.js";
import { checkBlockAge, nodeLogOf } from "../../../../cli/probe/doctor-checks.js";
import { homePaths } from "../../../../cli/home/home.js";
import { createTestnet } from "../../../../cli/home/network/testnet.js";
import { loadGenesis } from "../../../../node/settings/genesis.js";
import type { EvmClient } from "../../../../rpc-client/evm-client.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { servePages } from "../../../helpers/http/page-server.js";
import { freePort } from "../../../helpers/ports.js";

const VALIDATORS = 4;
const HEIGHT = 900;

const closers: (() => Promise<void> | void)[] = [];

let home: string;
let portOffset: number;
let chainId: bigint;
let genesisMs: number;

/** The chain's homes lie in `nodes`, and the kit's own has no settings of a node. */
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "causeway-doctor-network-"));
  closers.push(() => rmSync(home, { recursive: true, force: true }));
  portOffset = ((await freePort()) % 8_000) + 12_000;
  const out = join(home, "nodes");
  const wanted = { out, validators: VALIDATORS, fullNodes: 0, portOffset, clock: systemClock };
  await createTestnet(wanted);
  const { config, genesis } = homePaths(home);
  mkdirSync(config, { mode: 0o700 });
  cpSync(homePaths(join(out, "node0")).genesis, genesis);
  writeFileSync(join(config, "sidecar.toml"), "");
  const { evmChainId, genesisTimeMs } = loadGenesis(genesis);
  [chainId, genesisMs] = [evmChainId, genesisTimeMs];
});

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** @returns host and port */
async function serve(pages: Readonly<Record<string, string>>): Promise<string> {
  const server = await servePages(pages);
  closers.push(() => server.close());
  return server.place;
}

/** Changes a setting in a file of the first node, where it stands as it was written. */
function edit(name: string, key: string, value: string): void {
  const file = join(home, "nodes", "node0", "config", `${name}.toml`);
  const text = readFileSync(file, "utf8");
  const changed = text.replace(new RegExp(`^${key} = .*$`, "m"), `${key} = "${value}"`);
  expect(changed).not.toBe(text);
  writeFileSync(file, changed);
}

/** What the doctor finds, by the ids of its checks; the first node answers `ageMs` behind its newest block. */
async function findings({ ageMs = 1_000 } = {}) {
  const node_info = { id: "ab".repeat(20), network: "chain_6940-1", moniker: "m" };
  const nowMs = genesisMs + 10_000_000;
  const sync_info = {
    latest_block_height: `${HEIGHT}`,
    earliest_block_height: "1",
    latest_block_time: new Date(nowMs - ageMs).toISOString(),
    catching_up: false,
  };
  const validator_info = { address: "", voting_power: "0" };
  const comet = await serve({
    "/status": JSON.stringify({ result: { node_info, sync_info, validator_info } }),
    "/net_info": JSON.stringify({ result: { n_peers: "0" } }),
  });
  edit("config", "laddr", `tcp://${comet}`);
  const page = `cometbft_consensus_height ${HEIGHT}\ncauseway_network_height ${HEIGHT + 50}\n`;
  edit("config", "prometheus_listen_addr", await serve({ "/metrics": page }));
  const blockMs = (height: number) => (height === 0 ? genesisMs : nowMs - ageMs);
  const evm = {
    chainId: async () => chainId,
    blockNumber: async () => HEIGHT,
    isSyncing: async () => false,
    getBlockHeader: async (asked: number | "latest") => {
      const height = asked === "latest" ? HEIGHT : asked;
      return { height, timestampSeconds: Math.floor(blockMs(height) / 1_000) };
    },
  } as unknown as EvmClient;
  const found = await runDoctorChecks({
    paths: homePaths(home),
    env: {},
    portOffset,
    clock: { nowMs: () => nowMs, monotonicMs: () => 0 },
    signal: new AbortController().signal,
    readLedgerSwitch: async () => undefined,
    readLedgerPolicy: async () => undefined,
    createEvm: () => evm,
  });
  return new Map(found.map((finding) => [finding.id, finding]));
}

it("judges the settings that the kit's first node reads", async () => {
  edit("app", "pruning", "everything");
  const found = await findings();
  expect(found.get("history")).toMatchObject({
    severity: "warn",
    value: 'blocks from 1 on; pruning = "everything", min-retain-blocks = 0',
  });
  expect(found.get("peers")).toMatchObject({ severity: "warn", value: "0, expected 3 at least" });
  expect(found.get("height-lag")).toMatchObject({ severity: "warn", value: "50 blocks" });
});

it("names the log that the first node of several has", async () => {
  expect((await findings({ ageMs: 9_000_000 })).get("block-age")).toMatchObject({
    severity: "fail",
    remedy: "the chain stands still; see logs/node0.log",
  });
});

it("names no log here of somebody else's node", () => {
  const silent = { blockAgeSeconds: undefined, blockIntervalMs: 2_000 };
  expect(checkBlockAge(silent, nodeLogOf([])).remedy).toBe("start it; see the log of that node");
});
