/**
 * The deposit watcher's own process, killed with SIGKILL at each named failpoint of its way: after
 * a restart every deposit is there exactly once, and ledger and chain agree.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { HDNodeWallet, Mnemonic } from "ethers";
import { createReconcileChain } from "../../rpc-client/reconcile-chain.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { BookingLease } from "../../deposit-watcher/booking-lease.js";
import { WATCHER_FAILPOINTS } from "../../deposit-watcher/watcher.js";
import { commitBlockStep } from "../../ledger/blocks/block-step.js";
import { readCursor } from "../../ledger/watch/watch-cursor.js";
import { listEvents } from "../helpers/events.js";
import { reconcile } from "../../ledger/books/reconcile.js";
import { addWebhook } from "../../ledger/webhooks/subscriptions.js";
import { silentLog } from "../helpers/services/ledger.js";
import { freePort } from "../helpers/ports.js";
import { Receiver } from "../helpers/services/receiver.js";
import { until } from "../helpers/until.js";
import { derivation, HOT, WatcherBench } from "../helpers/services/watcher.js";

const dist =
  process.env["CAUSEWAY_TEST_DIST"] ?? fileURLToPath(new URL("../../dist", import.meta.url));
const entry = join(dist, "deposit-watcher", "main.js");

const PHRASE = "test test test test test test test test test test test junk";
const API_KEY = "key-of-the-test";

let bench: WatcherBench;
let home: string;
let port: number;
const children = new Set<ChildProcess>();

beforeAll(() => {
  // The test is about processes: without the compiled program it shows nothing.
  if (!existsSync(entry)) throw new Error(`${entry} is missing: npm run build comes first`);
});

beforeEach(async () => {
  bench = await WatcherBench.open();
  home = mkdtempSync(join(tmpdir(), "causeway-watcher-"));
  port = await freePort();
  mkdirSync(join(home, "config"));
  const account = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(PHRASE), "m/44'/60'/0'/0");
  writeFileSync(join(home, "config", "deposit.xpub"), account.neuter().extendedKey);
  writeFileSync(join(home, "config", "api.key"), API_KEY);
  writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: HOT.slice(2) }));
});

afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  await bench.close();
  rmSync(home, { recursive: true, force: true });
});

/** What a restart after a kill waits for. */
const LEASE_MS = 300;

/** Runs out soon, and of nobody who runs, however busy the machine is. */
const KEPT_LEASE_MS = 5_000;

/** Starts the process; `ended` resolves with its exit code or signal. */
function start(
  failpoint?: string,
  at: { readonly home: string; readonly port: number } = { home, port },
  leaseMs = LEASE_MS,
) {
  const child = spawn(process.execPath, [entry, "--home", at.home], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"],
      DATABASE_URL: bench.ledger.url,
      CAUSEWAY_WATCHER_API_LISTEN: `127.0.0.1:${at.port}`,
      CAUSEWAY_WATCHER_WATCHER_LEASE_MS: String(leaseMs),
      CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: bench.chain.url,
      CAUSEWAY_WATCHER_NODE_DATA_API_URL: bench.chain.url,
      CAUSEWAY_WATCHER_NODE_WEB_SOCKET_URL: bench.chain.url.replace("http", "ws"),
      CAUSEWAY_WATCHER_WATCHER_POLL_INTERVAL_MS: "20",
      CAUSEWAY_WATCHER_WEBHOOKS_ALLOW_LOCAL: "true",
      ...(failpoint === undefined ? {} : { CAUSEWAY_FAILPOINT: failpoint }),
    },
  });
  children.add(child);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const ended = once(child, "exit").then(([code, signal]) => {
    children.delete(child);
    return String(signal ?? code);
  });
  return { child, ended, output: () => output };
}

async function register(customerId: string): Promise<number> {
  const reply = await fetch(`http://127.0.0.1:${port}/v1/addresses`, {
    method: "POST",
    headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ customerId }),
  });
  expect(reply.status).toBe(201);
  return (JSON.parse(await reply.text()) as { index: number }).index;
}

async function isReady(at = port): Promise<boolean> {
  const reply = await fetch(`http://127.0.0.1:${at}/ready`).catch(() => undefined);
  return reply?.status === 200;
}

/** Work that passes every failpoint once: payments, a registration with a past, an incident. */
async function work(): Promise<void> {
  const first = await bench.register("alice");
  bench.pay([first.address, 5n], [derivation.addressAt(first.index + 1), 7n]);
  bench.chain.mine();
  await bench.caughtUp();
  await register("bob").catch(() => undefined);
  bench.pay([first.address, 6n]);
  bench.chain.mine();
}

describe("a watcher killed between a webhook's delivery and its record", () => {
  it("delivers it again, under the same id", async () => {
    const receiver = await Receiver.open();
    try {
      const { database, owner } = bench.ledger;
      await addWebhook(database, {
        url: receiver.url("/events"),
        events: ["*"],
        description: undefined,
      });
      const victim = start("watcher.after-webhook-sent");
      const { address } = await bench.register("alice");
      bench.pay([address, 5n]);
      expect(await victim.ended).toBe("SIGKILL");
      const [first] = receiver.ids("/events");
      expect(first).toBe("evt_1_1");
      // What runs out by itself, later.
      await owner.query(`UPDATE task_lease SET expires_at = now()`);
      await owner.query(`UPDATE webhook_delivery SET next_try_at = now()`);
      start();
      bench.chain.mine();
      const delivered = `SELECT seq FROM webhook_delivery WHERE status = 'delivered'`;
      await until(async () => (await owner.query(delivered)).length === 2, {
        timeoutMs: 20_000,
        what: "both events are delivered",
      });
      expect(receiver.ids("/events").filter((id) => id === first).length).toBeGreaterThan(1);
      expect(new Set(receiver.ids("/events"))).toEqual(new Set(["evt_1_1", "evt_1_2"]));
    } finally {
      receiver.close();
    }
  });
});

describe("a watcher killed with SIGKILL", () => {
  const steps = WATCHER_FAILPOINTS.filter((name) => name !== "watcher.after-incident");
  it.each(steps)("at %s loses and doubles nothing", async (name) => {
    const victim = start(name);
    const working = work().catch(() => undefined);
    expect(await victim.ended).toBe("SIGKILL");
    start();
    await until(() => isReady(), { timeoutMs: 20_000, what: "the watcher is ready again" });
    await working;
    const registered = await bench.ledger.database.query<{ address: string }>(
      `SELECT address FROM deposit_address WHERE index = 1`,
    );
    if (registered.length === 0) await register("bob");
    await bench.caughtUp();
    await bench.backfilled();
    expect((await bench.deposits()).toSorted()).toEqual([
      "1-0-3 alice credited 5",
      "1-1-3 bob suspense 7",
      "3-0-3 alice credited 6",
    ]);
    const events = await listEvents(bench.ledger.database, { afterSeq: 0, limit: 100 });
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    const credited = events.filter(({ type }) => type === "deposit.credited");
    expect(credited.map(({ data }) => data["depositId"])).toEqual(["1-0-3", "3-0-3"]);
    const { signal } = new AbortController();
    const report = await reconcile(bench.ledger.database, createReconcileChain(bench.node, signal));
    expect(report.clean).toBe(true);
  });

  it("at watcher.after-incident stays halted after the restart", async () => {
    const block = bench.chain.mine();
    const parentHash = keccak256Hex(Buffer.from("wrong"));
    bench.chain.dataApiBlocks.set(1, { ...block, parentHash });
    expect(await start("watcher.after-incident").ended).toBe("SIGKILL");
    start();
    await until(
      async () => {
        const reply = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined);
        return reply?.status === 503 && (await reply.text()).includes("PARENT_MISMATCH");
      },
      { timeoutMs: 20_000, what: "/ready tells the incident" },
    );
  });
});

describe("two watchers on one ledger", () => {
  const epoch = async () => {
    const [row] = await bench.ledger.database.query<{ lease_epoch: string }>(
      `SELECT lease_epoch::text FROM watch_lease`,
    );
    return Number(row?.lease_epoch);
  };

  it("book each block once, whichever is stopped, resumed as a zombie, or killed", async () => {
    const { address } = await bench.register("alice");
    const other = { home: `${home}-b`, port: await freePort() };
    cpSync(home, other.home, { recursive: true });
    const first = start(undefined, undefined, KEPT_LEASE_MS);
    await until(() => isReady(), { timeoutMs: 20_000, what: "the first is ready" });
    await until(async () => (await epoch()) === 1, {
      timeoutMs: 20_000,
      what: "it holds the lease",
    });
    const second = start(undefined, other, KEPT_LEASE_MS);
    await until(() => isReady(other.port), { timeoutMs: 20_000, what: "the second stands by" });
    expect(await epoch()).toBe(1);
    const pay = async (amount: bigint) => {
      bench.pay([address, amount]);
      bench.chain.mine();
      await bench.caughtUp();
    };
    await pay(5n);
    first.child.kill("SIGSTOP");
    // The lease of the stopped one runs out, and the other books.
    await pay(6n);
    expect(await epoch()).toBe(2);
    first.child.kill("SIGCONT");
    await pay(7n);
    expect(await epoch()).toBe(2);
    second.child.kill("SIGKILL");
    await second.ended;
    await pay(8n);
    expect(await epoch()).toBe(3);
    expect((await bench.deposits()).map((row) => row.split(" ").slice(2).join(" "))).toEqual([
      "credited 5",
      "credited 6",
      "credited 7",
      "credited 8",
    ]);
    rmSync(other.home, { recursive: true, force: true });
  });

  it("write nothing under a lease that went to the other", async () => {
    const { database } = bench.ledger;
    const parts = { database, log: silentLog, leaseMs: 100 };
    const zombie = new BookingLease({ ...parts, owner: "zombie" });
    const lease = await zombie.take();
    if (lease === undefined) throw new Error("no lease");
    const heir = new BookingLease({ ...parts, owner: "heir" });
    await until(async () => (await heir.take()) !== undefined, {
      timeoutMs: 10_000,
      what: "the lease runs out",
    });
    const from = await readCursor(database);
    const block = { height: 0, blockHash: bench.chain.genesisHash };
    const nothing = { deposits: [], walletInflows: [], outflows: [] };
    const assertStands = async () => undefined;
    const followed = { walletCount: 1, tokenCount: 0, lastAssignment: 0 };
    const step = { lease, assertStands, from, ...followed, ...block, ...nothing };
    const late = commitBlockStep(database, step, () => false);
    await expect(late).rejects.toMatchObject({ code: "WATCH_LEASE_LOST" });
    const incident = { kind: "HASH_CHANGED", height: 0, message: "stale", details: {} } as const;
    await expect(zombie.record(incident)).rejects.toMatchObject({ code: "WATCH_LEASE_LOST" });
    expect(await readCursor(database)).toEqual(from);
    expect(await database.query(`SELECT 1 FROM incident`)).toEqual([]);
    // Told that it has lost it, it stands by.
    zombie.forget(lease);
    await zombie.record(incident);
    expect(await database.query(`SELECT 1 FROM incident`)).toEqual([]);
  });
});

describe("the watcher's process", () => {
  it("serves, ends on SIGTERM with 0, and names what is wrong at the start in one sentence", async () => {
    const good = start();
    await until(() => isReady(), { timeoutMs: 20_000, what: "ready" });
    expect(good.output()).toContain(`{"ready":true,"name":"deposit-watcher"}`);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(metrics).toMatch(/causeway_watcher_cursor_height 0/);
    const second = start();
    expect(await second.ended).toBe("1");
    expect(second.output()).toContain(`port ${port}`);
    good.child.kill("SIGTERM");
    expect(await good.ended).toBe("0");
    writeFileSync(join(home, "config", "hot-wallet.json"), "{}");
    const bad = start();
    expect(await bad.ended).toBe("1");
    expect(bad.output()).toContain("hot-wallet.json is not a keystore");
  });
});
