/** A token whose contract fails when it is asked what our addresses held: it alone waits, as the log says. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { TokenBook } from "../../../deposit-watcher/tokens/token-book.js";
import { readTokenStates } from "../../../ledger/assets/token-state.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import { errorLog } from "../../helpers/services/ledger.js";
import { derivation, STRANGER, WatcherBench } from "../../helpers/services/watcher.js";

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

/** Balances that are asked for from now on. */
function silence(): () => number {
  let asked = 0;
  bench.chain.override = (method) => {
    if (method !== "eth_call") return undefined;
    asked += 1;
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
  // One account each time, beside what the other token is asked for once.
  expect(asked()).toBeLessThanOrEqual(5);
  expect(errors).toEqual([
    {
      asset: "PLAIN",
      contract: CONTRACT,
      height: chain.head + 1,
      msg: "a token's contract does not tell what our addresses held before this block",
    },
  ]);
  chain.override = () => undefined;
  await tokens.openWaiting({ signal });
  expect([await openedTokens(), await bookedUnits()]).toEqual([["LATER", "PLAIN"], "7"]);
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
