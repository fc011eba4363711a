/** The online sidecar as a process that is killed while it writes, or that has no space to write. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { toQuantity } from "../../../chain/hex.js";
import { IndexStore } from "../../../sidecar/index/index-store.js";
import { freePort } from "../../helpers/ports.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { itForRoot } from "../../helpers/processes/for-root.js";
import { until } from "../../helpers/until.js";
import {
  change,
  hashOf,
  journals,
  POOL,
  startFakeChain,
} from "../../helpers/chains/journal-chain.js";
import type { FakeNode } from "../../helpers/chains/fake-node.js";
import type { Reply } from "../../unit/sidecar/replies.js";
import { NETWORK, onlineServer } from "../../unit/sidecar/servers.js";

const forRoot = itForRoot();

interface Sidecar {
  readonly child: ChildProcess;
  readonly ended: Promise<NodeJS.Signals | null>;
  readonly output: () => string;
  post(route: string, fields?: Record<string, unknown>): Promise<{ text: string; body: Reply }>;
  ready(): Promise<{ ready: boolean; reason?: string }>;
}

let home: string;
let blocks: Record<string, unknown>[];
let node: FakeNode;
const children: ChildProcess[] = [];

beforeEach(async () => {
  home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-sidecar-"));
  blocks = journals();
  node = await startFakeChain({}, blocks);
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await node.close();
  fs.rmSync(home, { recursive: true, force: true });
});

async function startSidecar(failpoint = ""): Promise<Sidecar> {
  const port = await freePort();
  const main = path.join(await compiledFolder(), "sidecar", "main-online.js");
  const child = spawn(process.execPath, [main, "--home", home], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      CAUSEWAY_SIDECAR_ONLINE_LISTEN: `127.0.0.1:${port}`,
      CAUSEWAY_SIDECAR_NODE_URL: node.url,
      CAUSEWAY_SIDECAR_NODE_WS_URL: "ws://127.0.0.1:1",
      CAUSEWAY_SIDECAR_NODE_MAX_BLOCK_AGE_MS: "86400000",
      CAUSEWAY_FAILPOINT: failpoint,
    },
  });
  children.push(child);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const ended = new Promise<NodeJS.Signals | null>((resolve) =>
    child.once("exit", (_code, signal) => resolve(signal)),
  );
  const url = `http://127.0.0.1:${port}`;
  return {
    child,
    ended,
    output: () => output,
    async post(route, fields = {}) {
      const answer = await fetch(`${url}${route}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ network_identifier: NETWORK, ...fields }),
      });
      const text = await answer.text();
      return { text, body: JSON.parse(text) as Reply };
    },
    ready: async () =>
      (await (await fetch(`${url}/ready`)).json()) as { ready: boolean; reason?: string },
  };
}

/** Resolves when the sidecar answers and its tip has the height. */
function untilIndexed(sidecar: Sidecar, height: number): Promise<void> {
  const isThere = async () => {
    const { text } = await sidecar.post("/network/status").catch(() => ({ text: "" }));
    return text.includes(`"current_index":${height},`);
  };
  return until(isThere, { timeoutMs: 60_000, what: `block ${height} is indexed` }).catch(
    (error: unknown) => {
      throw new Error(`${String(error)}\n${sidecar.output()}`);
    },
  );
}

/** Blocks with a mint and, where asked, as much calldata as a reply shows. */
function extend(count: number, inputBytes = 0): void {
  for (let nth = 0; nth < count; nth++) {
    const height = blocks.length;
    blocks.push({
      blockHash: hashOf(`block ${height}`),
      blockNumber: toQuantity(height),
      parentHash: blocks[height - 1]?.["blockHash"],
      timestampMs: Date.now(),
      transactions: inputBytes === 0 ? [] : [padding(height, inputBytes)],
      blockChanges: [change({ reason: "MINT", to: POOL, amount: 5n })],
      minted: "0x5",
      burned: "0x0",
    });
  }
}

/** A transaction that is little but bytes that do not compress. */
function padding(height: number, inputBytes: number): Record<string, unknown> {
  const words = Array.from({ length: inputBytes / 32 }, (_unused, nth) =>
    hashOf(`padding ${height} ${nth}`).slice(2),
  );
  return {
    hash: hashOf(`transaction ${height}`),
    index: 0,
    status: "0x1",
    from: POOL,
    to: POOL,
    contractAddress: null,
    gasUsed: "0x5208",
    gasPrice: "0x1",
    nonce: toQuantity(height),
    input: `0x${words.join("")}`,
    changes: [],
    logs: [],
  };
}

/** Tip of the index of the home, which no process uses. */
async function tipOnDisk(): Promise<number> {
  const store = new IndexStore(path.join(home, "data", "sidecar"));
  await store.open();
  const tip = store.tip()?.index ?? -1;
  await store.close();
  return tip;
}

describe("a sidecar that is killed while it writes its index", () => {
  it.each([
    ["sidecar.before-index-write", -1],
    ["sidecar.before-index-write:3", 127],
    ["sidecar.after-index-write:2", 127],
    ["sidecar.after-index-write:4", 202],
  ])("at %s goes on from block %i and serves the same", async (failpoint, expectedTip) => {
    extend(200);
    const killed = await startSidecar(failpoint);
    expect(await killed.ended).toBe("SIGKILL");
    expect(await tipOnDisk()).toBe(expectedTip);
    const sidecar = await startSidecar();
    await untilIndexed(sidecar, 202);
    const reference = onlineServer(node.url);
    await reference.indexed(202);
    for (const index of [0, 1, 2, 63, 64, 127, 128, 200, 202]) {
      const { text } = await sidecar.post("/block", { block_identifier: { index } });
      const expected = (await reference.index.blocks.block(index)).body.toString("utf8");
      expect({ index, text }).toEqual({ index, text: expected });
    }
    await reference.rpc.close();
    const { body } = await sidecar.post("/search/transactions", { limit: 1 });
    expect((body as unknown as { total_count: number }).total_count).toBe(208);
  });
});

describe("a full disk", () => {
  forRoot("is told once, serving goes on, and the index goes on when there is space", async () => {
    const data = path.join(home, "data");
    fs.mkdirSync(data);
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=24m", "none", data]);
    if (mounted.status !== 0) {
      process.stdout.write("left out: no tmpfs can be mounted here\n");
      return;
    }
    try {
      const sidecar = await startSidecar();
      await untilIndexed(sidecar, 2);
      const known = await sidecar.post("/block", { block_identifier: { index: 1 } });
      fillBut(path.join(data, "ballast"), 100_000);
      extend(250, 1_024);
      const blockOf = (index: number) => sidecar.post("/block", { block_identifier: { index } });
      const isFailed = async () =>
        (await sidecar.post("/block", { block_identifier: {} })).body.code === 110;
      await until(isFailed, { timeoutMs: 60_000, what: "a write failed" });
      expect((await blockOf(1)).text).toBe(known.text);
      const { ready, reason } = await sidecar.ready();
      expect([ready, reason]).toEqual([false, expect.stringMatching(/index write failed$/)]);
      const told = sidecar.output().split("the index cannot be written: ").length - 1;
      expect(told).toBe(1);
      expect(sidecar.output()).toContain(path.join(data, "sidecar"));
      fs.rmSync(path.join(data, "ballast"));
      await untilIndexed(sidecar, 252);
      expect((await blockOf(1)).text).toBe(known.text);
      expect((await blockOf(252)).body.block.block_identifier.index).toBe(252);
      sidecar.child.kill("SIGTERM");
      await sidecar.ended;
      expect(await tipOnDisk()).toBe(252);
    } finally {
      for (const child of children.splice(0)) child.kill("SIGKILL");
      await until(() => spawnSync("umount", [data]).status === 0, { timeoutMs: 10_000 });
    }
  });
});

/** Fills a file system with a file, all but so many bytes. */
function fillBut(file: string, leftBytes: number): void {
  const chunk = Buffer.alloc(64 * 1024, 1);
  const handle = fs.openSync(file, "w");
  let size = 0;
  try {
    for (;;) size += fs.writeSync(handle, chunk);
  } catch (error) {
    expect(error).toMatchObject({ code: "ENOSPC" });
  }
  fs.ftruncateSync(handle, size - leftBytes);
  fs.closeSync(handle);
}
