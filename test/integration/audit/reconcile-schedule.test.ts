/** Breaks between books and chain: where they begin, and that they are looked for without being asked. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { toChecksumAddress } from "../../../chain/address.js";
import {
  isHaltedFarBelow,
  reconcileOnce,
  registerReconcileFigures,
  runReconcileLoop,
} from "../../../deposit-watcher/reconcile-loop.js";
import { divergenceText, explainBreaks } from "../../../ledger/books/break-causes.js";
import { DEPOSIT_ADDRESSES, walletAccount } from "../../../ledger/journal/accounts.js";
import { reconcile } from "../../../ledger/books/reconcile.js";
import { resumeCrediting } from "../../../ledger/incidents.js";
import {
  lastRun,
  listRuns,
  OTHER_WALLETS,
  reconciledAssets,
  recordRun,
} from "../../../ledger/books/reconcile-runs.js";
import { renderExplained, renderReport } from "../../../cli/ledger/reconcile-report.js";
import { RpcError } from "../../../rpc-client/errors.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { createReconcileChain } from "../../../rpc-client/reconcile-chain.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { recordIncident, silentLog } from "../../helpers/services/ledger.js";
import { HOT, STRANGER, WatcherBench } from "../../helpers/services/watcher.js";
import { until } from "../../helpers/until.js";

const { signal } = new AbortController();
/** Blocks before, between and after what nobody asked for. */
const QUIET = 40;

let bench: WatcherBench;
let deposit: string;
/** Balances that the bisection asked for. */
let asked = 0;
const metrics = createMetrics({ processMetrics: false });
const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };

const quiet = () => {
  for (let block = 0; block < QUIET; block += 1) bench.chain.mine();
};
const parts = () => ({
  database: bench.ledger.database,
  node: bench.node,
  log: silentLog,
});
const chain = () => {
  const real = createReconcileChain(bench.node, signal);
  const balances: typeof real.balances = (queries) => {
    asked += queries.length;
    return real.balances(queries);
  };
  return { ...real, balances };
};

beforeAll(async () => {
  bench = await WatcherBench.open();
  registerReconcileFigures(metrics, { database: bench.ledger.database, clock });
  bench.start();
  const { address } = await bench.register("alice");
  deposit = address;
  bench.pay([address, 1_000n]);
  quiet();
  await bench.caughtUp();
});
afterAll(() => bench.close());

const figure = async (name: string) =>
  new RegExp(`^causeway_reconcile_${name} (\\S+)$`, "m").exec(await metrics.page())?.[1];

describe("a reconciliation on a schedule", () => {
  it("is made by one process, kept, and counted", async () => {
    // Nothing says when: the age is this process's own, and the rest is not known.
    const startedAgo = Number(await figure("age_seconds"));
    expect(startedAgo).toBeGreaterThan(0);
    expect(startedAgo).toBeLessThanOrEqual(performance.now() / 1_000);
    expect([await figure("clean"), await figure("height")]).toEqual(["-1", "-1"]);
    const controller = new AbortController();
    const loops = ["one", "two"].map((owner) =>
      runReconcileLoop(
        {
          ...parts(),
          owner,
          intervalMs: 3_600_000,
          maxLagBlocks: 20,
          clock,
          isCatchingUp: () => false,
        },
        controller.signal,
      ),
    );
    await until(async () => (await lastRun(bench.ledger.database)) !== undefined, {
      timeoutMs: 10_000,
    });
    controller.abort();
    await Promise.all(loops);
    const rows = await bench.ledger.owner.query("SELECT clean, findings FROM reconcile_run");
    expect(rows).toEqual([{ clean: true, findings: [] }]);
    expect(await figure("clean")).toBe("1");
    expect(await figure("height")).toBe(`${bench.chain.head}`);
    expect(Number(await figure("age_seconds"))).toBeGreaterThanOrEqual(0);
    await expect(bench.ledger.owner.query("DELETE FROM reconcile_run")).rejects.toThrow();
  });

  it("is made by another watcher while the node of the one that began cannot be asked, or is behind", async () => {
    const { database } = bench.ledger;
    const away = createEvmClient(createJsonRpcClient({ url: "http://127.0.0.1:1" }));
    const behind = { ...bench.node, getBlockHeader: async () => undefined };
    for (const [owner, node] of Object.entries({ away, behind })) {
      const first = (await lastRun(database))?.id;
      let tries = 0;
      const getBlockHeader: typeof bench.node.getBlockHeader = (...terms) => {
        tries += 1;
        return node.getBlockHeader(...terms);
      };
      const shared = { intervalMs: 20, maxLagBlocks: 20, clock, isCatchingUp: () => false };
      const controller = new AbortController();
      // It has not asked its node yet, or stands far below the head of it, and may wait.
      const waiting = { isCatchingUp: () => true, clock: { ...clock, monotonicMs: () => 0 } };
      const own = { ...parts(), node: { ...bench.node, getBlockHeader }, owner };
      const loops = [runReconcileLoop({ ...own, ...shared, ...waiting }, controller.signal)];
      try {
        await until(() => tries > 0, { timeoutMs: 10_000, what: "the first one tries" });
        const other = { ...parts(), owner: "other", ...shared };
        loops.push(runReconcileLoop(other, controller.signal));
        const isMade = async () => (await lastRun(database))?.id !== first;
        await until(async () => (await isMade()) || tries >= 100, { timeoutMs: 10_000 });
        expect([owner, await isMade()]).toEqual([owner, true]);
      } finally {
        controller.abort();
        await Promise.all(loops);
      }
    }
  });

  it("is made behind a clock that was set back, whose last one is of a time to come", async () => {
    const { database, owner } = bench.ledger;
    await owner.query(
      `INSERT INTO reconcile_run (at, height, clean, findings, assets)
       SELECT at + interval '1 day', height, clean, findings, assets FROM reconcile_run`,
    );
    const before = await lastRun(database);
    const controller = new AbortController();
    const loop = runReconcileLoop(
      {
        ...parts(),
        owner: "back",
        intervalMs: 3_600_000,
        maxLagBlocks: 20,
        clock,
        isCatchingUp: () => false,
      },
      controller.signal,
    );
    try {
      await until(async () => (await lastRun(database))?.id !== before?.id, { timeoutMs: 10_000 });
    } finally {
      controller.abort();
      await loop;
    }
    expect(Number(await figure("age_seconds"))).toBeLessThan(60);
  });

  it("waits while the watcher catches up, and for one more interval at most", async () => {
    const { database } = bench.ledger;
    const lastId = async () => (await lastRun(database))?.id;
    let [nowMs, looks, isBehind] = [0, 0, true];
    const isCatchingUp = () => {
      looks += 1;
      return isBehind;
    };
    const controller = new AbortController();
    const loop = runReconcileLoop(
      {
        ...parts(),
        owner: "waiting",
        intervalMs: 20,
        maxLagBlocks: 20,
        clock: { ...clock, monotonicMs: () => nowMs },
        isCatchingUp,
      },
      controller.signal,
    );
    const first = await lastId();
    await until(() => looks >= 3, { timeoutMs: 10_000 });
    expect(await lastId()).toBe(first);
    nowMs += 20;
    await until(async () => (await lastId()) !== first, { timeoutMs: 10_000 });
    const second = await lastId();
    looks = 0;
    await until(() => looks >= 3, { timeoutMs: 10_000 });
    expect(await lastId()).toBe(second);
    isBehind = false;
    await until(async () => (await lastId()) !== second, { timeoutMs: 10_000 });
    controller.abort();
    await loop;
  });

  it("keeps no clean run far below the head, where an incident halts, and waits for the next", async () => {
    const { database } = bench.ledger;
    await bench.caughtUp();
    const found = { kind: "NODES_DISAGREE", height: undefined, message: "found" } as const;
    await recordIncident(database, { ...found, details: {} });
    for (let block = 0; block < 3; block += 1) bench.chain.mine();
    const lastId = async () => (await lastRun(database))?.id;
    const before = await lastId();
    expect(await reconcileOnce({ ...parts(), maxLagBlocks: 2 }, signal)).toBe(false);
    let [nowMs, looks, compared] = [0, 0, 0];
    const monotonicMs = () => {
      looks += 1;
      return nowMs;
    };
    const node = {
      ...bench.node,
      getBalances: (...queries: Parameters<typeof bench.node.getBalances>) => {
        compared += 1;
        return bench.node.getBalances(...queries);
      },
    };
    const controller = new AbortController();
    const loop = runReconcileLoop(
      {
        ...parts(),
        node,
        owner: "halted",
        intervalMs: 20,
        maxLagBlocks: 2,
        clock: { ...clock, monotonicMs },
        isCatchingUp: () => false,
      },
      controller.signal,
    );
    try {
      // It asks for the time twice ahead of a comparison, once behind it, and once at each look from then on.
      await until(() => looks >= 3, { timeoutMs: 10_000 });
      const first = compared;
      expect(first).toBeGreaterThan(0);
      await until(() => looks >= 7, { timeoutMs: 10_000 });
      expect([compared, await lastId()]).toEqual([first, before]);
      nowMs += 20;
      await until(() => compared > first, { timeoutMs: 10_000 });
      expect(await lastId()).toBe(before);
      await resumeCrediting(database, "test");
      await bench.caughtUp();
      nowMs += 20;
      await until(async () => (await lastId()) !== before, { timeoutMs: 10_000 });
    } finally {
      controller.abort();
      await loop;
    }
  });
});

describe("a break", () => {
  it("is followed to the block and the transaction that began it", async () => {
    const theft = bench.chain.payment(HOT, STRANGER, 500n, 21n);
    const { height } = bench.chain.mine([theft]);
    quiet();
    const second = bench.chain.payment(HOT, STRANGER, 7n, 21n);
    const later = bench.chain.mine([second]);
    quiet();
    await bench.caughtUp();
    const report = await reconcile(bench.ledger.database, chain());
    asked = 0;
    const explained = await explainBreaks(bench.ledger.database, chain(), report);
    expect(explained.divergences).toMatchObject([
      { account: walletAccount(HOT), address: HOT, height, causes: [{ txHash: theft.hash }] },
    ]);
    expect(explained.divergences.map(divergenceText)).toEqual([
      `${toChecksumAddress(HOT)} differs since block ${height}: ${theft.hash}`,
    ]);
    // The whole chain is some 120 blocks: seven halvings, and both ends.
    expect(asked).toBeLessThanOrEqual(10);
    // What came later is behind it, too.
    expect(explained.report.lines[0]?.breaks[0]?.causes).toMatchObject([
      { txHash: theft.hash, height },
      { txHash: second.hash, height: later.height },
    ]);
  });

  it("of a deposit address is followed, too, and all of it is kept and counted", async () => {
    const leak = bench.chain.payment(deposit as typeof HOT, STRANGER, 300n, 1n);
    const { height } = bench.chain.mine([leak]);
    quiet();
    await bench.caughtUp();
    await reconcileOnce(parts(), signal);
    const run = await lastRun(bench.ledger.database);
    expect(run?.clean).toBe(false);
    const text = run?.findings.join("\n") ?? "";
    expect(text).toContain(`${DEPOSIT_ADDRESSES}: ${toChecksumAddress(deposit as typeof HOT)}`);
    expect(text).toContain(`differs since block ${height}: ${leak.hash}`);
    expect(text).toContain(`${toChecksumAddress(HOT)} differs since block`);
    expect(await figure("clean")).toBe("0");
    expect(await figure("findings")).toBe(`${run?.findings.length}`);
  });

  it("is kept and told where the node does not tell what is behind it", async () => {
    const { head } = bench.chain;
    const pruned = (method: string) => {
      return new RpcError("pruned history unavailable", { rpcCode: 4444, method });
    };
    const node = {
      ...bench.node,
      accountJournal: () => Promise.reject(pruned("causeway_getAccountJournal")),
      getBalances: async (...query: Parameters<typeof bench.node.getBalances>) => {
        if (query[0].some(({ at }) => at !== head)) throw pruned("eth_getBalance");
        return bench.node.getBalances(...query);
      },
    };
    const before = await lastRun(bench.ledger.database);
    await reconcileOnce({ ...parts(), node }, signal);
    const run = await lastRun(bench.ledger.database);
    expect(run?.id).not.toBe(before?.id);
    expect(run?.clean).toBe(false);
    const text = run?.findings.join("\n") ?? "";
    expect(text).toContain(`${toChecksumAddress(HOT)} does not match`);
    expect(text).toContain(
      `${toChecksumAddress(HOT)}: the node does not tell since when it differs: ` +
        "eth_getBalance: pruned history unavailable",
    );
    const { database } = bench.ledger;
    const broken = createReconcileChain(node, signal);
    const report = await reconcile(database, broken);
    expect(renderExplained(await explainBreaks(database, broken, report))).toContain(
      "  the node does not tell its transactions: causeway_getAccountJournal: pruned history unavailable",
    );
    // What is wrong with the books themselves passes.
    const wrong = { ...broken, balances: () => Promise.resolve([]) };
    await expect(reconcile(database, wrong)).rejects.toThrow();
  });

  it("from before the first watched block is said to be that", async () => {
    const lowest = { ...reportOf(1), height: 0, tokens: [] };
    const amounts = { ledgerUnits: 1n, chainUnits: 0n, differenceUnits: -1n };
    const unsought = { causes: [], moreCauses: 0 };
    const line = { account: walletAccount(HOT), inFlight: [], moreBreaks: 0, ...amounts };
    const lines = [{ ...line, breaks: [{ address: STRANGER, ...amounts, ...unsought }] }];
    const { database } = bench.ledger;
    const { divergences } = await explainBreaks(database, chain(), { ...lowest, lines });
    expect(divergences).toMatchObject([{ height: undefined, causes: [] }]);
    expect(divergences.map(divergenceText).join("")).toMatch(/before the first block/);
  });
});

/** A report of so many wallets, each with as many units as its place, and of deposit addresses with 1,000. */
const reportOf = (wallets: number): Parameters<typeof reconciledAssets>[0] => {
  const line = (account: string, units: bigint) => {
    const inFlight = [{ what: "on its way", amountUnits: 1n }];
    const even = { differenceUnits: 0n, breaks: [], moreBreaks: 0 };
    return { account, ledgerUnits: units - 1n, inFlight, chainUnits: units, ...even };
  };
  const books = {
    lines: [
      ...Array.from({ length: wallets }, (_, place) => line(`wallet ${place}`, BigInt(place + 1))),
      line(DEPOSIT_ADDRESSES, 1_000n),
    ],
    internalBreaks: [],
    availableUnits: 0n,
    heldUnits: 0n,
    ownAvailableUnits: 0n,
    ownHeldUnits: 0n,
    coldUnits: 0n,
    inTransitUnits: 0n,
    decided: [],
  };
  const nobody = { recoveredPayments: { count: 0, amountUnits: 0n }, halted: undefined };
  const block = {
    height: 1,
    blockHash: undefined,
    otherBlockHash: undefined,
    uncompared: undefined,
    clean: true,
  };
  return { ...books, ...block, ...nobody, tokens: [{ ...books, asset: "USD", contract: HOT }] };
};

it.each([49, 50, 200])("loses no coins of %i wallets in what is kept of a run", (wallets) => {
  for (const { asset, accounts } of reconciledAssets(reportOf(wallets))) {
    const sum = (read: (account: (typeof accounts)[number]) => string) =>
      accounts.reduce((total, account) => total + BigInt(read(account)), 0n);
    const units = BigInt((wallets * (wallets + 1)) / 2) + 1_000n;
    expect([asset, sum(({ chainUnits }) => chainUnits)]).toEqual([asset, units]);
    expect(sum(({ inFlightUnits }) => inFlightUnits)).toBe(BigInt(wallets + 1));
    expect(sum(({ ledgerUnits }) => ledgerUnits)).toBe(units - BigInt(wallets + 1));
    expect(accounts.length).toBe(50);
    expect(accounts.some(({ account }) => account === OTHER_WALLETS)).toBe(wallets > 49);
    expect(accounts.at(-1)?.account).toBe(DEPOSIT_ADDRESSES);
  }
});

it("does not end with a plain word of clean where an incident keeps blocks from being booked", () => {
  const lastLine = (behindBlocks: number, halted?: string) =>
    renderReport({ ...reportOf(2), halted }, behindBlocks).at(-1);
  for (const behindBlocks of [0, 3]) {
    expect(lastLine(behindBlocks)).toBe("Clean: every account matches to the last atoken.");
  }
  expect(lastLine(3, "HASH_CHANGED: a block")).toBe(
    "Clean at height 1, and HALTED: every account matches to the last atoken. " +
      "Nothing is said of the 3 blocks since, which the watcher does not book.",
  );
});

it("keeps no clean run while the watcher is halted far below the head", () => {
  const report = { clean: true, height: 7, halted: "HASH_CHANGED: a block" };
  expect(isHaltedFarBelow(report, 27, 20)).toBe(false);
  expect(isHaltedFarBelow(report, 28, 20)).toBe(true);
  expect(isHaltedFarBelow({ ...report, halted: undefined }, 28, 20)).toBe(false);
  // What does not match is told, wherever it is.
  expect(isHaltedFarBelow({ ...report, clean: false }, 28, 20)).toBe(false);
});

it("is read for charts without what it found of other assets", async () => {
  const { database } = bench.ledger;
  const assets = reconciledAssets(reportOf(3));
  await recordRun(database, { height: 1, clean: true, findings: [], assets });
  const page = { afterId: 0, limit: 1, order: "newest" } as const;
  expect((await listRuns(database, page))[0]?.assets).toEqual(assets);
  const [coins] = await listRuns(database, { ...page, asset: "TOKEN" });
  expect(coins?.assets).toEqual(assets.filter(({ asset }) => asset === "TOKEN"));
});
