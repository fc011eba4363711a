/** A break is told before anything is looked for that takes as long as a wallet has lived. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { toChecksumAddress } from "../../../chain/address.js";
import { present } from "../../../chain/errors.js";
import { reconcileOnce } from "../../../deposit-watcher/reconcile-loop.js";
import { TaskLeaseLostError } from "../../../ledger/task-lease.js";
import { NATIVE_ASSET } from "../../../ledger/journal/accounts.js";
import { lastRun } from "../../../ledger/books/reconcile-runs.js";
import { RpcError } from "../../../rpc-client/errors.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import { registerTestWallets, silentLog } from "../../helpers/services/ledger.js";
import { storeSigned } from "../../helpers/services/signed-payment.js";
import { HOT, STRANGER, WatcherBench } from "../../helpers/services/watcher.js";

const { signal } = new AbortController();
/** Blocks before and after what nobody asked for. */
const QUIET = 40;
/** Payments that are mined and not settled, each in a block of its own before the break. */
const ON_THEIR_WAY = 20;

let bench: WatcherBench;
/** Block of the last comparison in which all matched, that of the theft, and its transaction. */
let cleanHeight: number;
let height: number;
let theft: string;

const quiet = () => {
  for (let block = 0; block < QUIET; block += 1) bench.chain.mine();
};
const since = () => `${toChecksumAddress(HOT)} differs since block ${height}`;
const pruned = (method: string) =>
  new RpcError("pruned history unavailable", { rpcCode: 4444, method });

async function reconcileBy(node: Partial<WatcherBench["node"]>): Promise<string> {
  const parts = { database: bench.ledger.database, log: silentLog };
  await reconcileOnce({ ...parts, node: { ...bench.node, ...node } }, signal);
  const run = await lastRun(bench.ledger.database);
  return run?.findings.join("\n") ?? "";
}

const countRuns = async () => (await bench.ledger.owner.query("SELECT FROM reconcile_run")).length;

beforeAll(async () => {
  bench = await WatcherBench.open();
  bench.start();
  const { address } = await bench.register("alice");
  bench.pay([address, 1_000n]);
  quiet();
  await bench.caughtUp();
  await reconcileBy({});
  const clean = await lastRun(bench.ledger.database);
  expect(clean?.clean).toBe(true);
  cleanHeight = clean?.height ?? 0;
  for (let nonce = 0; nonce < ON_THEIR_WAY; nonce += 1) {
    const paid = bench.chain.payment(HOT, STRANGER, 3n, 21n);
    const payment = { asset: NATIVE_ASSET, wallet: HOT, destination: STRANGER, amountUnits: 3n };
    const { hash } = paid;
    await bench.ledger.owner.transaction((tx) =>
      storeSigned(tx, { ...payment, id: `w${nonce}`, nonce, hash }),
    );
    bench.chain.mine([paid]);
  }
  quiet();
  const taken = bench.chain.payment(HOT, STRANGER, 500n, 21n);
  theft = taken.hash;
  height = bench.chain.mine([taken]).height;
  quiet();
  await bench.caughtUp();
});
afterAll(() => bench.close());

it("is on record before it is looked into, and once", async () => {
  const before = await countRuns();
  const seen: (boolean | undefined)[] = [];
  const getBalances: WatcherBench["node"]["getBalances"] = async (queries, options) => {
    const isPast = queries.some(({ at }) => at !== bench.chain.head);
    if (isPast) seen.push((await lastRun(bench.ledger.database))?.clean);
    return bench.node.getBalances(queries, options);
  };
  expect(await reconcileBy({ getBalances })).toContain(`${since()}: ${theft}`);
  expect(seen[0]).toBe(false);
  expect(await countRuns()).toBe(before + 2);
  await reconcileBy({});
  expect(await countRuns()).toBe(before + 3);
});

it("is left to the process that has taken the work over: nothing is written that was not found out", async () => {
  const lost = new TaskLeaseLostError("TASK_LEASE_LOST", "another process does this work now");
  const lease = new AbortController();
  const getBalances: WatcherBench["node"]["getBalances"] = async (queries, options) => {
    if (queries.every(({ at }) => at === bench.chain.head)) {
      return bench.node.getBalances(queries, options);
    }
    // As who asks over HTTP rejects: with the signal's reason.
    lease.abort(lost);
    throw lost;
  };
  await reconcileBy({});
  const [before, run] = [await countRuns(), await lastRun(bench.ledger.database)];
  const parts = { database: bench.ledger.database, log: silentLog };
  const node = { ...bench.node, getBalances };
  await expect(reconcileOnce({ ...parts, node }, lease.signal)).rejects.toBe(lost);
  expect(await countRuns()).toBe(before);
  expect((await lastRun(bench.ledger.database))?.findings).toEqual(run?.findings);
});

it("is told where the node's journal has no end", async () => {
  let answers = 0;
  const accountJournal: WatcherBench["node"]["accountJournal"] = async (_, { from }) => {
    answers += 1;
    if (answers > 1_000) throw new Error("it is asked for ever");
    return { entries: [], next: from };
  };
  expect(await reconcileBy({ accountJournal })).toContain(since());
  expect(answers).toBeGreaterThan(0);
});

it("has its causes looked for from its block on, as a younger journal tells them", async () => {
  const asked: number[] = [];
  const accountJournal: WatcherBench["node"]["accountJournal"] = async (
    address,
    range,
    options,
  ) => {
    asked.push(range.from);
    if (range.from < height) throw pruned("causeway_getAccountJournal");
    return bench.node.accountJournal(address, range, options);
  };
  expect(await reconcileBy({ accountJournal })).toContain(`${since()}: ${theft}`);
  expect(asked[0]).toBe(height);
});

it("is found where the node has deleted the states from before the last clean comparison", async () => {
  const getBalances: WatcherBench["node"]["getBalances"] = async (queries, options) => {
    if (queries.some(({ at }) => Number(at) < cleanHeight)) throw pruned("eth_getBalance");
    return bench.node.getBalances(queries, options);
  };
  expect(await reconcileBy({ getBalances })).toContain(`${since()}: ${theft}`);
});

it("is not taken for the payments on their way before it, where the node tells no causes", async () => {
  const accountJournal = () => Promise.reject(pruned("causeway_getAccountJournal"));
  expect(await reconcileBy({ accountJournal })).toContain(since());
});

it("of more addresses than a run keeps is told once, too, and anew where another one is broken", async () => {
  const many = await WatcherBench.open();
  try {
    const { chain, ledger } = many;
    const wallets = Array.from({ length: 30 }, (_, place) => testAddress(0x700 + place));
    await registerTestWallets(ledger.database, ...wallets);
    many.start();
    many.pay(...wallets.map((wallet) => [wallet, 1_000n] as const));
    await many.caughtUp();
    const parts = { database: ledger.database, log: silentLog, node: many.node };
    const runsOf = async () => {
      const before = await ledger.owner.query("SELECT FROM reconcile_run");
      await reconcileOnce(parts, signal);
      return (await ledger.owner.query("SELECT FROM reconcile_run")).length - before.length;
    };
    expect(await runsOf()).toBe(1);
    expect((await lastRun(ledger.database))?.clean).toBe(true);
    chain.mine(wallets.slice(1).map((wallet) => chain.payment(wallet, STRANGER, 300n, 1n)));
    await many.caughtUp();
    expect(await runsOf()).toBe(2);
    expect((await lastRun(ledger.database))?.findings).toHaveLength(50);
    expect(await runsOf()).toBe(1);
    chain.mine([chain.payment(present(wallets[0], "wallet"), STRANGER, 300n, 1n)]);
    await many.caughtUp();
    expect([await runsOf(), await runsOf()]).toEqual([2, 1]);
  } finally {
    await many.close();
  }
});
