/** What passes by itself: a single odd answer is no incident, a database that refuses is waited for. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { parseHash32 } from "../../../chain/hex.js";
import { readinessOf } from "../../../deposit-watcher/readiness.js";
import { createWatcherMetrics } from "../../../deposit-watcher/watcher-metrics.js";
import { openIncident } from "../../../ledger/incidents.js";
import { MAX_LEASE_MS } from "../../../ledger/lease.js";
import type { DataApiClient } from "../../../rpc-client/data-api/data-api-client.js";
import { NodeFault, RpcError } from "../../../rpc-client/errors.js";
import type { EvmClient } from "../../../rpc-client/evm-client.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { createGate } from "../../helpers/gate.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { derivation, WatcherBench } from "../../helpers/services/watcher.js";
import { until } from "../../helpers/until.js";

let bench: WatcherBench;

beforeEach(async () => {
  bench = await WatcherBench.open();
});
afterEach(() => bench.close());

/** Answers the next `count` fitting calls of a method with a lie. @returns how many were told */
function lie(
  method: string,
  count: number,
  answer: (params: readonly unknown[]) => unknown,
): { readonly told: number } {
  const state = { told: 0 };
  bench.chain.override = (asked, params) => {
    const result = asked === method && state.told < count ? answer(params) : undefined;
    if (result === undefined) return undefined;
    state.told += 1;
    return { result };
  };
  return state;
}

/** A header as the node shows it, with another hash. */
async function oddHeader(height: string): Promise<unknown> {
  const call = { jsonrpc: "2.0", id: 1, method: "eth_getBlockByNumber", params: [height, false] };
  const answer = await fetch(bench.chain.url, { method: "POST", body: JSON.stringify(call) });
  const { result } = (await answer.json()) as { result: Record<string, unknown> };
  return { ...result, hash: `0x${"ab".repeat(32)}` };
}

describe("what a watcher sees that stands by", () => {
  it("halts nobody, and nobody is told that it does", async () => {
    const { address } = await bench.register("alice");
    // The lease stays its own, however long this machine does something else.
    const first = bench.start(undefined, undefined, MAX_LEASE_MS);
    await bench.caughtUp();
    // A node of its own, which has another block where the ledger has booked one.
    let looks = 0;
    const getBlockHeader: EvmClient["getBlockHeader"] = async (at, options) => {
      looks += 1;
      const header = await bench.node.getBlockHeader(at, options);
      return header && { ...header, hash: parseHash32(`0x${"ab".repeat(32)}`) };
    };
    const halts: boolean[] = [];
    const metrics = {
      ...createWatcherMetrics(createMetrics({ processMetrics: false })),
      halted: (isHalted: boolean) => void halts.push(isHalted),
    };
    const node = { ...bench.node, getBlockHeader };
    const standby = bench.start(undefined, undefined, undefined, { node, metrics });
    await until(() => looks > 4, { timeoutMs: 20_000, what: "it has looked often enough" });
    expect(standby.watcher.status.problem).toContain("is not the one that is booked");
    expect(halts).not.toContain(true);
    expect(await openIncident(bench.ledger.database)).toBeUndefined();
    bench.pay([address, 5n]);
    bench.chain.mine();
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 5"]);
    expect([...first.faults, ...standby.faults]).toEqual([]);
  });
});

describe("a watcher that cannot book", () => {
  const unreachable = () =>
    Promise.reject(new NodeFault("NODE_UNREACHABLE", "no connection", { retriable: true }));
  const epoch = async () => {
    const rows = await bench.ledger.database.query<{ epoch: string }>(
      `SELECT lease_epoch::text AS epoch FROM watch_lease WHERE lease_owner IS NOT NULL`,
    );
    return rows[0]?.epoch;
  };

  it.each(["node", "Data API"])("leaves booking to others: without its %s", async (what) => {
    const { address } = await bench.register("alice");
    let isDown = false;
    const node: EvmClient = {
      ...bench.node,
      blockNumber: (options) =>
        isDown && what === "node" ? unreachable() : bench.node.blockNumber(options),
    };
    const source: DataApiClient = {
      ...bench.source,
      block: (height, options) => (isDown ? unreachable() : bench.source.block(height, options)),
    };
    const broken = bench.start(undefined, undefined, 300, { node, source });
    await bench.caughtUp();
    expect(await epoch()).toBe("1");
    isDown = true;
    const healthy = bench.start(undefined, undefined, 300);
    bench.pay([address, 5n]);
    bench.chain.mine();
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 5"]);
    await healthy.stop();
    // Nobody else is there: it goes on by itself.
    isDown = false;
    bench.pay([address, 6n]);
    await bench.caughtUp();
    expect([...broken.faults, ...healthy.faults]).toEqual([]);
  });

  it("halts nobody by a node that is behind, while the one that books starts again", async () => {
    const first = bench.start();
    bench.chain.mine();
    bench.chain.mine();
    await bench.caughtUp();
    let looks = 0;
    const blockNumber = () => {
      looks += 1;
      return Promise.resolve(0);
    };
    const node = { ...bench.node, blockNumber };
    const late = bench.start(undefined, undefined, undefined, { node });
    await until(() => looks > 0, { timeoutMs: 10_000, what: "it looks" });
    await first.stop();
    const enough = looks + 6;
    await until(() => looks >= enough, { timeoutMs: 20_000, what: "it has looked often enough" });
    expect(await openIncident(bench.ledger.database)).toBeUndefined();
    const again = bench.start();
    bench.chain.mine();
    await bench.caughtUp();
    expect([...late.faults, ...again.faults]).toEqual([]);
  });

  it("says why all the while, and tries for a whole lease each time", async () => {
    const { address } = await bench.register("alice");
    let isDown = true;
    let asked = 0;
    const block: DataApiClient["block"] = (height, options) => {
      asked += 1;
      return isDown ? unreachable() : bench.source.block(height, options);
    };
    const { watcher, faults } = bench.start(undefined, undefined, 1_000, {
      source: { ...bench.source, block },
    });
    bench.pay([address, 5n]);
    bench.chain.mine();
    const given = async () =>
      (await epoch()) === undefined && watcher.status.problem === "no connection";
    await until(given, { timeoutMs: 20_000, what: "it has given the lease back" });
    const shown = new Set<string | undefined>();
    const before = asked;
    const taken = async () => {
      shown.add(watcher.status.problem);
      return asked >= before + 6;
    };
    // Three blocks a look, and more than one look in the next turn.
    await until(taken, { timeoutMs: 20_000, what: "it has tried again, twice" });
    expect([...shown]).toStrictEqual(["no connection"]);
    isDown = false;
    await bench.caughtUp();
    expect(faults).toEqual([]);
  });

  it("writes what it has found, where no other is there", async () => {
    const { watcher } = bench.start(undefined, undefined, 100);
    bench.chain.mine();
    await bench.caughtUp();
    bench.chain.toldHead = 0;
    await until(async () => (await epoch()) === undefined, {
      timeoutMs: 10_000,
      what: "it has given the lease back",
    });
    await until(() => watcher.status.incident?.kind === "HEIGHT_WENT_BACK", {
      timeoutMs: 10_000,
      what: "halted",
    });
    // Who books after that is whose checks pass.
    expect(await epoch()).toBeUndefined();
  });
});

describe("a round that waits for an answer", () => {
  it("is not ready once it has come no further for half a minute", async () => {
    const answer = createGate();
    let asked = 0;
    const blockNumber: EvmClient["blockNumber"] = async (options) => {
      asked += 1;
      if (asked === 2) await answer.opened;
      return bench.node.blockNumber(options);
    };
    const { watcher } = bench.start(undefined, undefined, undefined, {
      node: { ...bench.node, blockNumber },
    });
    await until(() => asked === 2, { timeoutMs: 20_000, what: "the second look at the head" });
    // Whole milliseconds: the clock counts in fractions, which a sum would round.
    const standsSinceMs = Math.ceil(watcher.status.progressedAtMs ?? Number.NaN);
    const early = readinessOf(watcher.status, 20, standsSinceMs + 29_998);
    const late = readinessOf(watcher.status, 20, standsSinceMs + 30_000);
    // Before anything is expected: a watcher that waits could not be stopped.
    answer.open();
    expect(early).toEqual({ ready: true });
    expect(late).toEqual({
      ready: false,
      reason: "the present round has come no further for 30 s",
    });
    await until(() => watcher.status.progressedAtMs === undefined, { timeoutMs: 20_000 });
    expect(readinessOf(watcher.status, 20, standsSinceMs + 30_000)).toEqual({ ready: true });
  });
});

describe("a past that a node does not tell of", () => {
  it("is what /ready names all the while, and the log once, while blocks go on", async () => {
    const { node } = bench;
    bench.chain.mine();
    const pruned = new RpcError("pruned", { rpcCode: 4444, method: "eth_getBalance" });
    let [isPruned, refusals] = [true, 0];
    bench.secondNode = {
      ...node,
      getBalances: (queries, options) => {
        const isRefused = isPruned && queries.some(({ at }) => at === 1);
        if (!isRefused) return node.getBalances(queries, options);
        refusals += 1;
        return Promise.reject(pruned);
      },
    };
    const warnings: unknown[] = [];
    const log: Logger = Object.assign(Object.create(silentLog), {
      warn: (_fields: unknown, text: string) => void warnings.push(text),
    });
    const running = bench.start(undefined, undefined, undefined, { log });
    await bench.caughtUp();
    const { address } = await bench.register("alice");
    // Of the blocks that pay to it, none asks what it had before its first.
    bench.chain.mine();
    const readiness = () => readinessOf(running.watcher.status, 20, performance.now());
    await until(() => !readiness().ready, { timeoutMs: 10_000, what: "it is not ready" });
    const shown = new Set<string>();
    const enough = refusals + 4;
    const hasGoneOn = async () => {
      bench.pay([address, 5n]);
      await bench.caughtUp();
      // Its past is told and booked.
      await bench.register("bob");
      shown.add(JSON.stringify(readiness()));
      return refusals >= enough;
    };
    await until(hasGoneOn, { timeoutMs: 20_000, what: "it has looked again, and booked blocks" });
    expect([...shown].map((text) => JSON.parse(text))).toEqual([
      { ready: false, reason: expect.stringMatching(/^the past of .*second node has deleted/) },
    ]);
    expect(warnings).toEqual(["round failed, trying again"]);
    isPruned = false;
    await bench.backfilled();
    await until(() => readiness().ready, { timeoutMs: 10_000, what: "it is ready" });
    expect(running.faults).toEqual([]);
  });

  it("is none where old blocks are gone and the address had nothing and sent nothing, as all nodes say", async () => {
    const { node, ledger } = bench;
    const had = derivation.addressAt(1);
    const [sent, sentElsewhere] = [derivation.addressAt(2), derivation.addressAt(3)];
    bench.pay([had, 5n]);
    const nonceOf =
      (sender: Address): EvmClient["getTransactionCount"] =>
      async (address, at, options) =>
        address === sender ? 1n : node.getTransactionCount(address, at, options);
    const pruned = new RpcError("pruned", { rpcCode: 4444, method: "causeway_getAccountJournal" });
    const accountJournal = () => Promise.reject(pruned);
    bench.secondNode = { ...node, getTransactionCount: nonceOf(sentElsewhere) };
    const own = { node: { ...node, accountJournal, getTransactionCount: nonceOf(sent) } };
    const running = bench.start(undefined, undefined, undefined, own);
    await bench.caughtUp();
    for (const name of ["empty", "had", "sent", "elsewhere", "more"]) await bench.register(name);
    const waiting = async () => {
      const rows = await ledger.database.query<{ address: string }>(
        "SELECT address FROM deposit_address WHERE NOT backfilled ORDER BY index",
      );
      return rows.map(({ address }) => address);
    };
    const left = [had, sent, sentElsewhere];
    await until(async () => (await waiting()).length === left.length, { timeoutMs: 10_000 });
    expect(await waiting()).toEqual(left);
    const problem = `the node has deleted blocks up to 1, in which ${had} may have had coins`;
    await until(() => running.watcher.status.pastProblem?.startsWith(problem) === true, {
      timeoutMs: 10_000,
      what: "the watcher says what it waits for",
    });
    bench.pay([derivation.addressAt(0), 7n]);
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["2-0-3 empty detected 7"]);
  });

  it("is named no longer once the node is back and tells of others", async () => {
    const { node } = bench;
    const [first, second] = [derivation.addressAt(0), derivation.addressAt(1)];
    bench.pay([first, 5n], [second, 6n]);
    const answer = createGate();
    let isAway = true;
    const getBalance: EvmClient["getBalance"] = async (account, at, options) => {
      if (isAway) throw new NodeFault("NODE_TIMEOUT", "no answer", { retriable: true });
      if (account === second) await answer.opened;
      return node.getBalance(account, at, options);
    };
    let booked = 0;
    const metrics = {
      ...createWatcherMetrics(createMetrics({ processMetrics: false })),
      backfilled: (count: number) => void (booked += count),
    };
    const own = { node: { ...node, getBalance }, metrics };
    const running = bench.start(undefined, undefined, undefined, own);
    await bench.caughtUp();
    await bench.register("alice");
    await bench.register("bob");
    const readiness = () => readinessOf(running.watcher.status, 20, performance.now());
    await until(() => !readiness().ready, { timeoutMs: 10_000, what: "it is not ready" });
    isAway = false;
    await until(() => booked > 0, { timeoutMs: 10_000, what: "the first past is booked" });
    const meanwhile = readiness();
    // Before anything is expected: a watcher that waits could not be stopped.
    answer.open();
    expect(meanwhile).toEqual({ ready: true });
    await bench.backfilled();
    expect(running.faults).toEqual([]);
  });
});

describe("a single odd answer", () => {
  it.each([1, 2])("about a balance, told %s times, is looked at again", async (count) => {
    const { address } = await bench.register("alice");
    const state = lie("eth_getBalance", count, ([asked, at]) =>
      asked === address && at === "0x1" ? "0x63" : undefined,
    );
    bench.pay([address, 5n]);
    bench.chain.mine();
    const running = bench.start();
    await bench.caughtUp();
    expect(state.told).toBe(count);
    expect(await openIncident(bench.ledger.database)).toBeUndefined();
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 5"]);
    expect(running.faults).toEqual([]);
  });

  it("about the booked block is looked at again; one that stays is an incident", async () => {
    const first = bench.start();
    await bench.caughtUp();
    await first.stop();
    bench.chain.mine();
    const header = await oddHeader("0x0");
    const once = lie("eth_getBlockByNumber", 2, ([at]) => (at === "0x0" ? header : undefined));
    const second = bench.start();
    await bench.caughtUp();
    expect(once.told).toBe(2);
    expect(await openIncident(bench.ledger.database)).toBeUndefined();
    await second.stop();
    const odd = await oddHeader("0x1");
    lie("eth_getBlockByNumber", 1_000, ([at]) => (at === "0x1" ? odd : undefined));
    bench.chain.mine();
    bench.start();
    await until(async () => (await openIncident(bench.ledger.database)) !== undefined, {
      timeoutMs: 20_000,
      what: "the incident",
    });
  });
});

describe("a database", () => {
  it.each([
    ["is read-only", "default_transaction_read_only = on", /read-only transaction/],
    ["gives up what takes long", "statement_timeout = '1ms'", /statement timeout/],
  ])("that %s is waited for; /ready says so meanwhile", async (_what, setting, problem) => {
    const { address } = await bench.register("alice");
    const running = bench.start();
    await bench.caughtUp();
    await bench.alterDatabase(`SET ${setting}`);
    bench.pay([address, 5n]);
    bench.chain.mine();
    await until(() => Promise.resolve(problem.test(running.watcher.status.problem ?? "")), {
      timeoutMs: 20_000,
      what: "the watcher names its problem",
    });
    expect(readinessOf(running.watcher.status, 20, performance.now())).toMatchObject({
      ready: false,
    });
    await bench.alterDatabase("RESET ALL");
    // The test's own connections were ended, too.
    await until(
      () =>
        bench.caughtUp().then(
          () => true,
          () => false,
        ),
      {
        timeoutMs: 20_000,
        what: "the watcher goes on",
      },
    );
    expect(running.faults).toEqual([]);
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 5"]);
  });
});
