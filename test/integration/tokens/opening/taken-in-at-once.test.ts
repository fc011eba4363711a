/** A wallet and a token that two watchers take in at one block: what the one has of the other counts once. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { runBackfill } from "../../../../deposit-watcher/backfill.js";
import { PutOffMemory } from "../../../../deposit-watcher/put-off.js";
import { TokenBook } from "../../../../deposit-watcher/tokens/token-book.js";
import { readTokenStates } from "../../../../ledger/assets/token-state.js";
import { walletAccount } from "../../../../ledger/journal/accounts.js";
import { listWallets } from "../../../../ledger/wallets/wallet.js";
import { acquireWatchLease, releaseWatchLease } from "../../../../ledger/watch/watch-lease.js";
import type { EvmClient } from "../../../../rpc-client/evm-client.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { registerTestWallets, silentLog } from "../../../helpers/services/ledger.js";
import { openTokenBook } from "../../../helpers/services/watcher.js";
import { until } from "../../../helpers/until.js";
import { callOf, TokenBench, TOKENS } from "../token-bench.js";

const SECOND = testAddress(0x5ec);

const LISTED = TOKENS.filter(({ symbol }) => symbol === "PLAIN");

const { signal } = new AbortController();

let bench: TokenBench;

beforeEach(async () => {
  bench = await TokenBench.open();
  await bench.deploy();
  await bench.mine([callOf("PlainToken", "mint", [SECOND, 7n]), { to: SECOND, value: 30n }]);
  await bench.watch([]);
  await bench.caughtUp();
  await bench.stopWatching();
  await registerTestWallets(bench.database, SECOND);
});
afterEach(() => bench.close());

/** The watcher that books blocks books what the wallet held. */
async function bookPast(node: EvmClient): Promise<void> {
  const { database } = bench;
  const lease = await acquireWatchLease(database, { owner: "booking", leaseMs: 60_000 });
  if (lease === undefined) throw new Error("another watcher books");
  const metrics = { backfilled: () => undefined };
  const memory = new PutOffMemory();
  const guard = { assertStands: async () => undefined };
  await runBackfill({ database, guard, node, memory, log: silentLog, metrics }, { lease, signal });
  await releaseWatchLease(database, lease);
}

/** Another one starts, with a list that names the token. */
async function openToken(node: EvmClient): Promise<void> {
  await openTokenBook({ database: bench.database, node, log: silentLog }, LISTED, { signal });
}

/** A node behind whose first answer about balances something else happens. */
function nodeWith(method: "getBalance" | "tokenBalances", happens: () => Promise<void>) {
  let isOver = false;
  const once = async <T>(answer: Promise<T>): Promise<T> => {
    const answered = await answer;
    if (isOver) return answered;
    isOver = true;
    await happens();
    return answered;
  };
  const { node } = bench;
  return {
    ...node,
    getBalance: (...asked: Parameters<EvmClient["getBalance"]>) => {
      const answer = node.getBalance(...asked);
      return method === "getBalance" ? once(answer) : answer;
    },
    tokenBalances: (...asked: Parameters<EvmClient["tokenBalances"]>) => {
      const answer = node.tokenBalances(...asked);
      return method === "tokenBalances" ? once(answer) : answer;
    },
  };
}

it.each([
  {
    first: "the token is opened while the wallet's past is read",
    race: () => bookPast(nodeWith("getBalance", () => openToken(bench.node))),
  },
  {
    first: "the wallet's past is booked while the token is opened",
    race: () => openToken(nodeWith("tokenBalances", () => bookPast(bench.node))),
  },
])("where $first", async ({ race }) => {
  await race();
  await bench.watch(LISTED);
  await until(
    async () => (await listWallets(bench.database)).every(({ pastBooked }) => pastBooked),
    { timeoutMs: 20_000, what: "its past is booked" },
  );
  await bench.mine([]);
  await bench.caughtUp();
  const [row] = await bench.ledger.owner.query<{ units: string }>(
    `SELECT sum(amount_units)::text AS units FROM posting WHERE asset = 'PLAIN' AND debit = $1`,
    [walletAccount(SECOND)],
  );
  expect(row?.units).toBe("7");
  expect((await bench.reconcile()).clean).toBe(true);
});

it("follows a token from the start on, before the node has told what all addresses held of it", async () => {
  const node = { ...bench.node, tokenBalances: () => Promise.reject(new Error("it was asked")) };
  const parts = { database: bench.database, node, log: silentLog };
  const { tokens } = await TokenBook.open(parts, LISTED);
  expect(tokens.map(({ contract }) => contract)).toEqual(
    LISTED.map(({ contractAddress }) => contractAddress),
  );
  const states = [...(await readTokenStates(bench.database)).values()];
  expect(states.map(({ isOpened }) => isOpened)).toEqual(LISTED.map(() => false));
});
