/** Whom the check asks about, and that its verdict depends on nothing but the chain. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../../chain/address.js";
import type { Hash32 } from "../../../../../chain/hex.js";
import type { JournaledBlock } from "../../../../../rpc-client/journal-codec.js";
import type { TokenBalanceQuery } from "../../../../../rpc-client/tokens/token-balances.js";
import { IndexStore } from "../../../../../sidecar/index/index-store.js";
import {
  checkTokens,
  readContractChanges,
} from "../../../../../sidecar/index/tokens/token-check.js";
import { TokenLedger } from "../../../../../sidecar/index/tokens/token-ledger.js";
import type {
  BlockTokenMoves,
  TokenMove,
} from "../../../../../sidecar/rosetta/token-operations.js";
import { hashOf } from "../../../../helpers/chains/journal-chain.js";
import { GOLD, REGISTRY } from "../../../../helpers/chains/known-tokens.js";

const gold = parseAddress(GOLD.metadata.contractAddress.toLowerCase());
const rpc = { signal: new AbortController().signal };
const account = (nth: number) => parseAddress(`0x${(nth + 0x100).toString(16).padStart(40, "0")}`);

let folder: string;
let store: IndexStore;
let ledger: TokenLedger;
let asked: Address[];
/** States that they were asked of. */
let askedAt: Set<unknown>;
let blockHash: Hash32;
/** What the contract says; everybody not named has what the ledger has. */
let said: Map<Address, bigint | undefined>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "causeway-check-"));
  store = new IndexStore(join(folder, "sidecar"));
  await store.open();
  ledger = new TokenLedger(store);
  asked = [];
  said = new Map();
  blockHash = hashOf("block 9");
});

afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const token = REGISTRY.byAddress(gold);

function mintTo(to: Address, units = 1n): TokenMove {
  if (token === undefined) throw new Error("no token");
  return { type: "ERC20_MINT", token, from: undefined, to, units };
}

const client = {
  tokenBalances(queries: readonly TokenBalanceQuery[]) {
    asked.push(...queries.map((query) => query.account));
    for (const { at } of queries) askedAt.add(at);
    return Promise.resolve(
      queries.map((query) =>
        said.has(query.account)
          ? said.get(query.account)
          : ledger.balance(query.token, query.account),
      ),
    );
  },
  accountHeights: () => Promise.resolve({ heights: [], next: undefined }),
  manyAccountHeights: () => Promise.resolve([]),
};

const NO_MOVES: BlockTokenMoves = {
  byTransaction: [],
  contracts: new Set(),
  malformed: new Map(),
  unaccompanied: new Set(),
};

/** A block in which the contract changed without a log. */
async function check(
  transactions: readonly { from: Address; to: Address }[] = [],
  moves: BlockTokenMoves = NO_MOVES,
) {
  asked = [];
  askedAt = new Set();
  const options = { registry: REGISTRY, ledger, client, verifyHolders: 256 };
  const journal = { height: 9, hash: blockHash, transactions } as unknown as JournaledBlock;
  const changed = new Set([gold]);
  const verdict = await checkTokens(options, { journal, moves, changed }, rpc);
  ledger.apply(9, [], verdict);
  return verdict;
}

async function flush(): Promise<void> {
  await store.commit(ledger.pendingWrites());
  ledger.clearPending();
}

const holders = (count: number) => Array.from({ length: count }, (_unused, nth) => account(nth));
const none = { lies: new Map(), cursors: new Map() };

describe("the check of a token that changed", () => {
  it("asks about all holders while they are few, written or pending", async () => {
    ledger.apply(
      1,
      holders(100).map((to) => mintTo(to)),
      none,
    );
    await flush();
    ledger.apply(
      2,
      holders(256)
        .slice(100)
        .map((to) => mintTo(to)),
      none,
    );
    expect((await check()).lies.size).toBe(0);
    expect(asked.toSorted()).toEqual(holders(256).toSorted());
    said.set(account(255), 7n);
    expect([...(await check()).lies]).toEqual([
      [gold, `balanceOf(${account(255)}) is 7, its logs add up to 1`],
    ]);
    expect(ledger.quarantineOf(gold)?.height).toBe(9);
  });

  it.each([
    ["at once", false],
    ["in batches", true],
  ])(
    "asks about many in turns, the same whether blocks are written %s",
    async (_name, isFlushed) => {
      ledger.apply(
        1,
        holders(300).map((to) => mintTo(to)),
        none,
      );
      if (isFlushed) await flush();
      const rounds: Address[][] = [];
      for (let round = 0; round < 6; round++) {
        await check();
        rounds.push(asked);
        if (isFlushed) await flush();
      }
      const sorted = holders(300).toSorted();
      const expected = Array.from({ length: 6 }, (_unused, round) =>
        Array.from({ length: 64 }, (_item, nth) => sorted[(round * 64 + nth) % 300]),
      );
      expect(rounds).toEqual(expected);
    },
  );

  it("asks for the state after that very block: another one's would condemn the token for ever", async () => {
    await check([{ from: account(1), to: gold }]);
    expect([...askedAt]).toEqual([blockHash]);
  });

  it("asks about whoever called the contract, though no log names him", async () => {
    said.set(account(1), undefined);
    expect((await check([{ from: account(1), to: gold }])).lies.size).toBe(0);
    expect(asked).toEqual([account(1)]);
    said.set(account(1), 5n);
    expect((await check([{ from: account(1), to: account(2) }])).lies.size).toBe(0);
    expect(asked).toEqual([]);
    expect([...(await check([{ from: account(1), to: gold }])).lies.values()]).toEqual([
      `balanceOf(${account(1)}) is 5, its logs add up to 0`,
    ]);
  });

  it("does not believe one that does not answer for somebody whom its log named", async () => {
    ledger.apply(1, [mintTo(account(1))], none);
    said.set(account(1), undefined);
    expect([...(await check()).lies.values()]).toEqual([
      `balanceOf(${account(1)}) does not answer, its logs add up to 1`,
    ]);
    asked = [];
    expect((await check()).lies.size).toBe(0);
    expect(asked).toEqual([]);
  });

  it("asks about a sample of very many that are named, which the block's hash decides", async () => {
    const named = (moves: readonly TokenMove[]) => ({
      ...NO_MOVES,
      byTransaction: [moves],
      contracts: new Set([gold]),
    });
    const many = holders(1_000).map((to) => mintTo(to, 0n));
    expect((await check([], named(many))).lies.size).toBe(0);
    const first = asked;
    expect(first.length).toBe(256);
    expect(new Set(first).size).toBe(256);
    await check([], named(many.toReversed()));
    expect(asked).toEqual(first);
    blockHash = hashOf("another block 9");
    await check([], named(many));
    expect(asked.filter((one) => first.includes(one)).length).toBeLessThan(128);
    // What nobody can have is found among any number.
    const stolen = { ...mintTo(account(2)), type: "ERC20_TRANSFER" as const, from: account(1) };
    expect((await check([], named([...many, stolen]))).lies.size).toBe(1);
  });

  it("does not believe more than 256 bits can count", async () => {
    said.set(account(1), undefined);
    const moves = [mintTo(account(1), 2n ** 255n), mintTo(account(1), 2n ** 255n)];
    const told = { ...NO_MOVES, byTransaction: [moves], contracts: new Set([gold]) };
    expect((await check([], told)).lies.size).toBe(1);
  });

  it("does not believe more given than there was", async () => {
    const move = { ...mintTo(account(2)), type: "ERC20_TRANSFER" as const, from: account(1) };
    said.set(account(1), 2n ** 256n - 1n).set(account(2), 1n);
    const { lies } = await check([], {
      ...NO_MOVES,
      byTransaction: [[move]],
      contracts: new Set([gold]),
    });
    expect([...lies.values()][0]).toMatch(/add up to -1$/);
  });
});

describe("what the ledger keeps", () => {
  it("is the balance at every height, before and after it is written", async () => {
    ledger.apply(3, [mintTo(account(1), 5n)], none);
    await flush();
    ledger.apply(5, [mintTo(account(1), 2n ** 255n), mintTo(account(1), 1n)], none);
    await flush();
    const at = (height: number) => store.balanceAt(gold, account(1), height);
    expect([await at(2), await at(3), await at(4), await at(5), await at(99)]).toEqual([
      0n,
      5n,
      5n,
      2n ** 255n + 6n,
      2n ** 255n + 6n,
    ]);
    expect([...store.holdings(account(1))]).toEqual([[gold, 3]]);
    expect(store.holder(gold, account(1))).toEqual({ height: 5, units: 2n ** 255n + 6n });
  });

  it("is dropped when it was not written", async () => {
    ledger.apply(3, [mintTo(account(1), 5n)], none);
    await ledger.load();
    expect(ledger.balance(gold, account(1))).toBe(0n);
    expect(ledger.pendingWrites()).toEqual([]);
  });
});

describe("the heights at which contracts changed", () => {
  it("are read to the last page, of believed tokens only", async () => {
    const calls: unknown[] = [];
    const paged = {
      ...client,
      manyAccountHeights: (contracts: readonly Address[], range: unknown) => {
        calls.push([contracts, range]);
        return Promise.resolve([{ heights: [3, 4], next: 7 }]);
      },
      accountHeights: (contract: Address, range: unknown) => {
        calls.push([contract, range]);
        return Promise.resolve({ heights: [7], next: undefined });
      },
    };
    const silver = REGISTRY.tokens[1]?.contractAddress ?? gold;
    ledger.apply(1, [], { lies: new Map([[silver, "lies"]]), cursors: new Map() });
    const options = { registry: REGISTRY, ledger, client: paged, verifyHolders: 256 };
    const changes = await readContractChanges(options, { from: 3, to: 9 }, rpc);
    expect([...changes.keys()]).toEqual([3, 4, 7]);
    expect(calls).toEqual([
      [[gold], { from: 3, to: 9 }],
      [gold, { from: 7, to: 9 }],
    ]);
  });
});
