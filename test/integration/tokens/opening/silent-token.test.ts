/** A token whose contract fails when it is asked what our addresses held: it alone waits, as the log says. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { TokenBook } from "../../../../deposit-watcher/tokens/token-book.js";
import { readTokenStates } from "../../../../ledger/assets/token-state.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { errorLog } from "../../../helpers/services/ledger.js";
import { derivation, STRANGER, WatcherBench } from "../../../helpers/services/watcher.js";

const CONTRACT = testAddress(0x70c3);
const LISTED = [
  { symbol: "PLAIN", contractAddress: CONTRACT, decimals: 6 },
  { symbol: "LATER", contractAddress: testAddress(0x70c4), decimals: 6 },
];

const { signal } = new AbortController();
const errors: Record<string, unknown>[] = [];

let bench: WatcherBench;

beforeEach(async () => {
  bench = await WatcherBench.open();
  bench.chain.token = CONTRACT;
  errors.length = 0;
});
afterEach(() => bench.close());

/** Books the blocks that there are, without tokens. */
async function watchCoins(): Promise<void> {
  const running = bench.start();
  await bench.caughtUp();
  await running.stop();
}

function openBook(): Promise<TokenBook> {
  const { node, ledger } = bench;
  return TokenBook.open({ database: ledger.database, node, log: errorLog(errors) }, LISTED);
}

/** No contract tells, or none tells of one account. @returns balances that are asked for from now on */
function silence(account?: Address): () => number {
  let asked = 0;
  bench.chain.override = (method, params) => {
    if (method !== "eth_call") return undefined;
    asked += 1;
    if (!JSON.stringify(params).includes(account?.slice(2) ?? "")) return undefined;
    return { error: { code: 3, message: "execution reverted" } };
  };
  return () => asked;
}

async function openedTokens(): Promise<string[]> {
  const states = await readTokenStates(bench.ledger.database);
  return [...states].filter(([, { isOpened }]) => isOpened).map(([symbol]) => symbol);
}

async function bookedUnits(): Promise<string | undefined> {
  const [row] = await bench.ledger.database.query<{ units: string }>(
    `SELECT coalesce(sum(amount_units), 0)::text AS units FROM posting WHERE asset = 'PLAIN'`,
  );
  return row?.units;
}

it("is not opened before its contract tells, while one that is not there yet is", async () => {
  const { chain } = bench;
  const { address } = await bench.register("alice");
  await bench.register("bob");
  chain.mine([chain.tokenPayment(STRANGER, { from: undefined, to: address, units: 7n })]);
  await watchCoins();
  const tokens = await openBook();
  const asked = silence();
  await tokens.openWaiting({ signal });
  await tokens.openWaiting({ signal });
  expect([await openedTokens(), await bookedUnits()]).toEqual([["LATER"], "0"]);
  // Two addresses and a wallet, of both tokens; then the one account that was not told of.
  expect(asked()).toBe(7);
  expect(errors).toEqual([
    {
      asset: "PLAIN",
      contract: CONTRACT,
      height: chain.head + 1,
      address,
      msg: "a token's contract does not tell what our addresses held before this block",
    },
  ]);
  chain.override = () => undefined;
  await tokens.openWaiting({ signal });
  expect([await openedTokens(), await bookedUnits()]).toEqual([["LATER", "PLAIN"], "7"]);
});

it("is asked of the one address that it did not tell of before it is asked of all again", async () => {
  for (const name of ["alice", "bob", "carol"]) await bench.register(name);
  const { address } = await bench.register("dave");
  await watchCoins();
  const tokens = await openBook();
  const asked = silence(address);
  await tokens.openWaiting({ signal });
  const before = asked();
  for (let round = 0; round < 3; round += 1) await tokens.openWaiting({ signal });
  expect([before > 4, asked() - before]).toEqual([true, 3]);
  bench.chain.override = () => undefined;
  await tokens.openWaiting({ signal });
  expect(await openedTokens()).toEqual(["LATER", "PLAIN"]);
});

it("is asked for ever more seldom where the node does not tell, which is said all the while", async () => {
  await bench.register("alice");
  await watchCoins();
  const clock = { ms: 0, monotonicMs: () => clock.ms };
  const { node, ledger, chain } = bench;
  const parts = { database: ledger.database, node, log: errorLog(errors), clock };
  const tokens = await TokenBook.open(parts, LISTED);
  const asked = new Set<number>();
  chain.override = (method, params) => {
    if (method !== "eth_call" || !JSON.stringify(params).includes(CONTRACT)) return undefined;
    asked.add(clock.ms);
    return { error: { code: 4444, message: "pruned history unavailable" } };
  };
  for (; clock.ms < 8_000; clock.ms += 500) {
    await expect(tokens.openWaiting({ signal })).rejects.toMatchObject({ rpc: { rpcCode: 4444 } });
  }
  expect([...asked]).toEqual([0, 500, 1_500, 3_500, 7_500]);
  expect(await openedTokens()).toEqual(["LATER"]);
  chain.override = () => undefined;
  clock.ms = 15_500;
  await tokens.openWaiting({ signal });
  expect(await openedTokens()).toEqual(["LATER", "PLAIN"]);
});

it("is asked for every few seconds where the node is only behind, and opened once it has the block", async () => {
  await bench.register("alice");
  await watchCoins();
  bench.chain.mine();
  await watchCoins();
  const clock = { ms: 0, monotonicMs: () => clock.ms };
  const { node, ledger, chain } = bench;
  const parts = { database: ledger.database, node, log: errorLog(errors), clock };
  const tokens = await TokenBook.open(parts, LISTED);
  const { head } = chain;
  const asked = new Set<number>();
  chain.override = (method, params) => {
    if (method !== "eth_getBlockByNumber" || Number(params[0]) !== head) return undefined;
    asked.add(clock.ms);
    return { result: null };
  };
  for (; clock.ms < 16_000; clock.ms += 500) {
    await expect(tokens.openWaiting({ signal })).rejects.toMatchObject({ code: "BAD_ANSWER" });
  }
  expect([...asked]).toEqual([0, 500, 1_500, 3_500, 7_500, 11_500, 15_500]);
  chain.override = () => undefined;
  clock.ms = 19_500;
  await tokens.openWaiting({ signal });
  expect(await openedTokens()).toEqual(["LATER", "PLAIN"]);
});

it("keeps no coins of a younger address waiting", async () => {
  const { chain } = bench;
  const later = derivation.addressAt(0);
  await watchCoins();
  const tokens = await openBook();
  await tokens.openWaiting({ signal });
  bench.pay([later, 5n]);
  chain.mine([chain.tokenPayment(STRANGER, { from: undefined, to: later, units: 7n })]);
  bench.start(undefined, undefined, undefined, { tokens, log: errorLog(errors) });
  await bench.caughtUp();
  silence();
  expect((await bench.register("bob")).address).toBe(later);
  await bench.backfilled();
  expect(await bench.deposits()).toEqual(["1-0-3 bob suspense 5"]);
  expect(errors).toEqual([
    {
      asset: "PLAIN",
      contract: CONTRACT,
      address: later,
      height: chain.head + 1,
      msg: "a token's contract does not tell what an address of ours held before this block",
    },
  ]);
});
