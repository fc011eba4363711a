/** Commands that ask the node of a home, where another home's node has its ports. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { formatNodeStatus } from "../../../../cli/probe/node-status.js";
import { startFakeNode } from "../../../helpers/chains/fake-node.js";
import { runCommand } from "../../../helpers/processes/command-line.js";

/** When the chain of the node that answers began. */
const BEGAN_SECONDS = 1_790_000_000;

const closers: (() => Promise<void> | void)[] = [];

let home: string;
/** What the other home's consensus RPC, or its Mesh API, was asked for. */
let asked: string[];
let consensusUrl: string;
/** What went to standard error. */
let told: string[];

beforeEach(async () => {
  told = [];
  const spy = jest.spyOn(process.stderr, "write").mockImplementation((text) => {
    told.push(String(text));
    return true;
  });
  closers.push(() => spy.mockRestore());
  asked = [];
  home = mkdtempSync(join(tmpdir(), "causeway-own-node-"));
  closers.push(() => rmSync(home, { recursive: true }));
  const evm = await startFakeNode({
    eth_getBlockByNumber: () => ({
      number: "0x0",
      hash: `0x${"11".repeat(32)}`,
      parentHash: `0x${"00".repeat(32)}`,
      timestamp: `0x${BEGAN_SECONDS.toString(16)}`,
    }),
  });
  closers.push(() => evm.close());
  const consensus = createServer((request, response) => {
    asked.push(request.url ?? "");
    request.resume();
    response.end(JSON.stringify({ error: { message: "asked" } }));
  });
  await new Promise<void>((resolve) => consensus.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise<void>((resolve) => consensus.close(() => resolve())));
  const address = `127.0.0.1:${(consensus.address() as AddressInfo).port}`;
  consensusUrl = `http://${address}`;
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "config.toml"), `[rpc]\nladdr = "tcp://${address}"\n`);
  writeFileSync(join(home, "config", "sidecar.toml"), `[online]\nlisten = "${address}"\n`);
  const evmAddress = new URL(evm.url).host;
  writeFileSync(join(home, "config", "app.toml"), `[json-rpc]\naddress = "${evmAddress}"\n`);
  writeFileSync(join(home, "some.key"), `0x${"11".repeat(32)}\n`, { mode: 0o600 });
});

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** Says in the home's genesis when its chain began. */
function homeBegan(seconds: number): void {
  const genesis = JSON.stringify({ genesisTimeMs: seconds * 1_000 });
  writeFileSync(join(home, "config", "genesis.json"), genesis);
}

const SEND = ["tx", "bank", "send", `0x${"22".repeat(20)}`, "1atoken", "--yes", "--from"];

describe("a home whose ports another home's node has", () => {
  it.each([
    ["query a block", ["query", "block"]],
    ["query a balance", ["query", "bank", "balances", `0x${"22".repeat(20)}`]],
    ["query a transaction", ["query", "tx", "A".repeat(64)]],
    ["query blocks", ["query", "blocks", "--query", "block.height > 1"]],
    ["wait for a transaction", ["query", "wait-tx", "A".repeat(64)]],
    ["send", SEND],
    ["check the Mesh API", ["mesh-check"]],
  ])("does not %s there", async (_what, words) => {
    const all = words === SEND ? [...words, join(home, "some.key")] : words;
    homeBegan(BEGAN_SECONDS + 60);
    const refused = await runCommand(home, all);
    expect(refused.code).not.toBe(0);
    expect(`${refused.err}${told.join("")}`).toContain("another home's node answers");
    expect({ asked, out: refused.out }).toEqual({ asked: [], out: "" });

    homeBegan(BEGAN_SECONDS);
    await runCommand(home, all);
    expect(asked.length).toBeGreaterThan(0);
  });

  it("asks a node that is named, whoever's it is", async () => {
    homeBegan(BEGAN_SECONDS + 60);
    await runCommand(home, ["query", "block", "--node", consensusUrl]);
    expect(asked.length).toBeGreaterThan(0);
  });
});

it("of a kit of several validators it is the first one, by its own settings", async () => {
  const first = join(home, "nodes", "node0", "config");
  mkdirSync(first, { recursive: true });
  for (const name of ["config.toml", "app.toml"]) {
    renameSync(join(home, "config", name), join(first, name));
  }
  const ask = (beganSeconds: number) => {
    const genesis = { genesisTimeMs: beganSeconds * 1_000, validators: [{}, {}] };
    writeFileSync(join(home, "config", "genesis.json"), JSON.stringify(genesis));
    return runCommand(home, ["query", "block"]);
  };
  expect((await ask(BEGAN_SECONDS + 60)).err).toContain("another home's node answers");
  expect(asked).toEqual([]);
  await ask(BEGAN_SECONDS);
  expect(asked.length).toBeGreaterThan(0);
});

it("a block ahead of the clock is told in words, as everywhere", () => {
  const status = {
    nodeId: "aa",
    moniker: "node0",
    network: "causeway_6940-1",
    height: 7,
    oldestHeight: 1,
    catching_up: false,
    peers: 3,
    validator: { address: "BB", votingPower: "0" },
  };
  const ageIn = (blockAgeSeconds: number) =>
    formatNodeStatus({ ...status, blockAgeSeconds })[2]?.trim();
  expect([1.2, -95].map(ageIn)).toEqual([
    "block age    1 s old",
    "block age    95 s ahead of this machine's clock",
  ]);
});
