/** The search index against a search that reads every operation of every block. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type LevelStore, openLevelStore } from "../../../../runtime/files/level-store.js";
import { SLICE_MS } from "../../../../runtime/process/main-thread.js";
import { TOKEN_CURRENCY } from "../../../../sidecar/rosetta/identifiers.js";
import type { RosettaBlock } from "../../../../sidecar/rosetta/operations.js";
import {
  decodeChunk,
  decodeEntries,
  encodeChunk,
  extendChunk,
  intersectRuns,
  pushIndex,
  startChunk,
  subtractRuns,
  uniteRuns,
} from "../../../../sidecar/index/search/posting-codec.js";
import {
  ANY_TRANSACTION,
  addressTerm,
  currencyTerm,
  postingWrites,
  statusTerm,
  typeTerm,
} from "../../../../sidecar/index/search/search-postings.js";
import { ScanBudget } from "../../../../sidecar/index/search/scan-budget.js";
import {
  createTransactionSearch,
  type SearchCondition,
  type SearchQuery,
} from "../../../../sidecar/index/search/search-query.js";
import { createRandom, type Random } from "../../../helpers/random.js";
import { addressOf, bruteForce, randomChain, TOKENS, TYPES } from "./random-blocks.js";

const SEED = 20_260_731;
const QUERIES = 2_000;
const SHAPE = { heights: 700, maxTransactions: 40, accounts: 60 };

type Transaction = RosettaBlock["transactions"][number];

/** A condition with what it means. */
interface Meaning {
  readonly name: string;
  readonly condition: SearchCondition;
  readonly holds: (transaction: Transaction) => boolean;
}

const signal = new AbortController().signal;

function randomRuns(random: Random): { runs: number[]; set: Set<number> } {
  const runs: number[] = [];
  const set = new Set<number>();
  const density = 1 + random.integer(8);
  for (let index = random.integer(300); index < 400; index += 1) {
    if (random.integer(density) > 0) continue;
    set.add(index);
    pushIndex(runs, index);
  }
  return { runs, set };
}

const expand = (runs: readonly number[]) =>
  runs.flatMap((start, at) =>
    at % 2 === 0 ? Array.from({ length: (runs[at + 1] ?? 0) - start }, (_no, i) => start + i) : [],
  );

describe("postings", () => {
  it("combine as sets do, and never write a run that touches the next", () => {
    const random = createRandom(SEED);
    for (let round = 0; round < 300; round += 1) {
      const [left, right] = [randomRuns(random), randomRuns(random)];
      const results = [
        [
          intersectRuns(left.runs, right.runs),
          [...left.set].filter((index) => right.set.has(index)),
        ],
        [uniteRuns(left.runs, right.runs), [...new Set([...left.set, ...right.set])]],
        [
          subtractRuns(left.runs, right.runs),
          [...left.set].filter((index) => !right.set.has(index)),
        ],
      ] as const;
      for (const [runs, indexes] of results) {
        expect({ round, found: expand(runs) }).toEqual({
          round,
          found: indexes.toSorted((a, b) => a - b),
        });
        expect(runs.every((border, at) => at === 0 || border > (runs[at - 1] ?? 0))).toBe(true);
      }
    }
  });

  it("are the same after encoding, with heights and counts up to 2^53", () => {
    const runs = [0, 1, 3, 500];
    let chunk = startChunk(2 ** 52, { height: 2 ** 40, runs });
    chunk = extendChunk(chunk, { height: 2 ** 40 + 1, runs: [7, 8] });
    chunk = extendChunk(chunk, { height: Number.MAX_SAFE_INTEGER, runs: [200, 70_000] });
    const decoded = decodeChunk(encodeChunk(chunk));
    expect(decoded).toMatchObject({ before: 2 ** 52, count: 498 + 1 + 69_800, first: 2 ** 40 });
    expect(decodeEntries(decoded)).toEqual([
      { height: 2 ** 40, runs },
      { height: 2 ** 40 + 1, runs: [7, 8] },
      { height: Number.MAX_SAFE_INTEGER, runs: [200, 70_000] },
    ]);
    expect(() => decodeChunk(encodeChunk(chunk).subarray(0, 3))).toThrow("ends within a number");
    expect(() => extendChunk(chunk, { height: 5, runs })).toThrow("in the order of blocks");
  });
});

describe("a search", () => {
  const random = createRandom(SEED);
  const blocks = randomChain(random, SHAPE);
  const tip = blocks.length - 1;
  const folder = mkdtempSync(join(tmpdir(), "causeway-search-"));
  let store: LevelStore;

  beforeAll(async () => {
    store = await openLevelStore(folder, { cacheBytes: 1 << 20, writeBufferBytes: 1 << 20 });
    // Batches of different sizes, as while catching up and at the tip.
    for (let at = 0; at < blocks.length; ) {
      const size = 1 + random.integer(20);
      const writes = postingWrites(blocks.slice(at, at + size), (key) => store.get(key));
      await store.write(writes, { durable: false });
      at += size;
    }
  });

  afterAll(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const meanings: readonly (() => Meaning)[] = [
    () => {
      const address = addressOf(random.integer(SHAPE.accounts + 2));
      return {
        name: address,
        condition: { kind: "term", term: addressTerm(address) },
        holds: ({ operations }) =>
          operations.some(({ account }) => account.address.toLowerCase() === address),
      };
    },
    () => {
      const type = random.pick(TYPES);
      return {
        name: type,
        condition: { kind: "term", term: typeTerm(type) },
        holds: ({ operations }) => operations.some((operation) => operation.type === type),
      };
    },
    () => {
      const except = random.pick(TYPES);
      return {
        name: `no ${except}`,
        condition: { kind: "term", term: ANY_TRANSACTION, except: typeTerm(except) },
        holds: ({ operations }) => operations.every(({ type }) => type !== except),
      };
    },
    () => {
      const status = random.pick(["SUCCESS", "FAILURE"]);
      return {
        name: status,
        condition: { kind: "term", term: statusTerm(status) },
        holds: ({ operations }) => operations.some((operation) => operation.status === status),
      };
    },
    () => {
      const token = TOKENS.tokens[random.integer(3)];
      const wanted = token?.currency.metadata?.contractAddress;
      return {
        name: `currency ${wanted}`,
        condition: { kind: "term", term: currencyTerm(token?.currency ?? TOKEN_CURRENCY) },
        holds: ({ operations }) =>
          operations.some(({ amount }) => amount.currency.metadata?.contractAddress === wanted),
      };
    },
    () => {
      const height = random.integer(blocks.length);
      const transactions = blocks[height]?.transactions ?? [];
      const position = random.integer(transactions.length);
      const hash = transactions[position]?.transaction_identifier.hash;
      return {
        name: `hash ${hash}`,
        condition: { kind: "place", place: { height, position } },
        holds: ({ transaction_identifier }) => transaction_identifier.hash === hash,
      };
    },
    () => ({ name: "never", condition: { kind: "never" }, holds: () => false }),
  ];

  const known = new Map<string, ReadonlySet<Transaction>>();
  /** All transactions that a meaning holds for, every operation read. */
  const transactionsOf = ({ name, holds }: Meaning): ReadonlySet<Transaction> => {
    const found =
      known.get(name) ?? new Set(blocks.flatMap(({ transactions }) => transactions.filter(holds)));
    known.set(name, found);
    return found;
  };

  it(`finds what reading every operation finds, ${QUERIES} times (seed ${SEED})`, async () => {
    const search = createTransactionSearch(store);
    for (let round = 0; round < QUERIES; round += 1) {
      const operator = random.pick(["and", "or"] as const);
      // Rarely more than three, and rarely the two that narrow to nothing.
      const chosen = Array.from({ length: random.integer(4) }, () =>
        meanings[random.integer(random.integer(4) === 0 ? 7 : 5)]?.(),
      ).filter((meaning) => meaning !== undefined);
      const maxHeight = random.integer(3) === 0 ? tip : random.integer(blocks.length);
      const meant = chosen.map(transactionsOf);
      const holds = (transaction: Transaction) => {
        if (chosen.length === 0) return true;
        return operator === "and"
          ? meant.every((transactions) => transactions.has(transaction))
          : meant.some((transactions) => transactions.has(transaction));
      };
      const expected = bruteForce(blocks, maxHeight, holds);
      const offset = random.integer(random.pick([1, 5, expected.length + 3]));
      const query: SearchQuery = {
        operator,
        conditions: chosen.map(({ condition }) => condition),
        maxHeight,
        offset,
        limit: random.integer(30),
      };
      const label = { round, operator, names: chosen.map(({ name }) => name), maxHeight, offset };
      const found = await search(query, { signal });
      expect({ ...label, total: found.totalCount }).toEqual({ ...label, total: expected.length });
      expect({ ...label, places: found.places }).toEqual({
        ...label,
        places: expected.slice(offset, offset + query.limit),
      });
    }
  });

  it.each([
    ["one condition", "and", [typeTerm("CALL")]],
    ["and", "and", [statusTerm("SUCCESS"), typeTerm("FEE"), addressTerm(addressOf(0))]],
    ["or", "or", [statusTerm("FAILURE"), typeTerm("CALL"), addressTerm(addressOf(3))]],
  ] as const)(
    "pages through %s without a gap or a repetition while blocks arrive",
    async (_name, operator, terms) => {
      const maxHeight = tip - 200;
      const conditions = terms.map((term) => ({ kind: "term", term }) as const);
      const holds = ({ operations }: Transaction) => {
        const tests = terms.map((term) =>
          operations.some(
            ({ type, status, account }) =>
              typeTerm(type).equals(term) ||
              statusTerm(status).equals(term) ||
              addressTerm(account.address).equals(term),
          ),
        );
        return operator === "and" ? tests.every(Boolean) : tests.some(Boolean);
      };
      const expected = bruteForce(blocks, maxHeight, holds);
      expect(expected.length).toBeGreaterThan(1_500);
      // A store that grows between the pages: the last 200 blocks come one by one.
      const growing = await openLevelStore(join(folder, `growing-${_name}`), {
        cacheBytes: 1 << 20,
        writeBufferBytes: 1 << 20,
      });
      const add = (some: readonly RosettaBlock[]) =>
        growing.write(
          postingWrites(some, (key) => growing.get(key)),
          { durable: false },
        );
      await add(blocks.slice(0, maxHeight + 1));
      const search = createTransactionSearch(growing);
      const pages: unknown[] = [];
      for (let next = maxHeight + 1; pages.length < expected.length; next += 1) {
        const offset = pages.length;
        const page = await search(
          { operator, conditions, maxHeight, offset, limit: 97 },
          { signal },
        );
        expect(page.totalCount).toBe(expected.length);
        expect(page.places.length).toBeGreaterThan(0);
        pages.push(...page.places);
        await add(blocks.slice(next, next + 1));
      }
      await growing.close();
      expect(pages).toEqual(expected);
    },
  );

  it.each(["and", "or"] as const)("fetches pages of %s in any order", async (operator) => {
    const search = createTransactionSearch(store);
    const conditions = [typeTerm("CALL"), statusTerm("SUCCESS")].map(
      (term) => ({ kind: "term", term }) as const,
    );
    const expected = bruteForce(blocks, tip, ({ operations }) => {
      const isCall = operations.some(({ type }) => type === "CALL");
      const isSuccess = operations.some(({ status }) => status === "SUCCESS");
      return operator === "and" ? isCall && isSuccess : isCall || isSuccess;
    });
    for (const offset of [1_700, 1_100, 1_750, 0, 2_000, 1_020, expected.length - 3, 5]) {
      const query = { operator, conditions, maxHeight: tip, offset, limit: 40 };
      const { places, totalCount } = await search(query, { signal });
      expect({ offset, totalCount }).toEqual({ offset, totalCount: expected.length });
      expect({ offset, places }).toEqual({ offset, places: expected.slice(offset, offset + 40) });
    }
  });

  it("costs one record per term and block, however many transactions have it", () => {
    const full = blocks.toSorted((a, b) => b.transactions.length - a.transactions.length)[0];
    if (full === undefined) throw new Error("no block");
    const terms = new Set(
      full.transactions.flatMap(({ operations }) =>
        operations.flatMap(({ account, type, status, amount }) => [
          account.address,
          type,
          status,
          JSON.stringify(amount.currency),
        ]),
      ),
    );
    expect(full.transactions.length).toBeGreaterThan(30);
    expect(postingWrites([full], () => undefined)).toHaveLength(terms.size + 1);
  });

  it("that would read too much is refused with what to do, and a lower one works on", async () => {
    const search = createTransactionSearch(store);
    const conditions = [typeTerm("CALL"), statusTerm("SUCCESS")].map(
      (term) => ({ kind: "term", term }) as const,
    );
    const query = { operator: "and", conditions, maxHeight: tip, offset: 0, limit: 1 } as const;
    await expect(search(query, { signal, maxScannedPostings: 500 })).rejects.toMatchObject({
      code: "SEARCH_TOO_BROAD",
      details: { scanned: 500, narrow: expect.stringContaining("max_block") },
    });
    const low = await search({ ...query, maxHeight: 20 }, { signal, maxScannedPostings: 500 });
    expect(low.totalCount).toBeGreaterThan(0);
    // One condition is never too broad.
    const one = { ...query, conditions: conditions.slice(0, 1), offset: 2_000 };
    expect((await search(one, { signal, maxScannedPostings: 500 })).places).toHaveLength(1);
    // Nor is an account that some transactions name by its sub-accounts alone.
    const except = typeTerm("CALL");
    const condition = { kind: "term", term: ANY_TRANSACTION, except } as const;
    const account = { ...query, conditions: [condition] };
    const found = await search(account, { signal, maxScannedPostings: 500 });
    expect(found.places).toHaveLength(1);
  });

  it("of an account is never too broad, however long it is named by sub-accounts alone", async () => {
    const quiet = await openLevelStore(join(folder, "quiet"), {
      cacheBytes: 1 << 20,
      writeBufferBytes: 1 << 20,
    });
    const heights = [0, 1, 2, 9_000, 19_980];
    const [block] = randomChain(random, { heights: 1, maxTransactions: 1, accounts: 1 });
    const [transaction] = block?.transactions ?? [];
    const operation = { ...transaction?.operations[0], account: { address: addressOf(0) } };
    const long = Array.from({ length: 20_000 }, (_unused, index) => ({
      ...block,
      block_identifier: { index },
      transactions: [
        { operations: [{ ...operation, type: heights.includes(index) ? "CALL" : "FEE" }] },
      ],
    })) as unknown as RosettaBlock[];
    const writes = postingWrites(long, (key) => quiet.get(key));
    await quiet.write(writes, { durable: false });
    const condition = { kind: "term", term: ANY_TRANSACTION, except: typeTerm("FEE") } as const;
    const newest = heights.toReversed().map((height) => ({ height, position: 0 }));
    for (const [offset, places] of [
      [0, newest],
      [2, newest.slice(2)],
      [4, newest.slice(4)],
      [5, []],
    ] as const) {
      const query = { operator: "and", conditions: [condition], maxHeight: 19_999 } as const;
      const found = await createTransactionSearch(quiet)(
        { ...query, offset, limit: 1_000 },
        { signal, maxScannedPostings: 5_000 },
      );
      expect({ offset, found }).toEqual({ offset, found: { totalCount: 5, places } });
    }
    await quiet.close();
  });

  it("shares one slice of each turn of the event loop with all others", async () => {
    const stepsByTurn = [0];
    let timer: NodeJS.Immediate | undefined;
    const nextTurn = () => {
      stepsByTurn.push(0);
      timer = setImmediate(nextTurn);
    };
    nextTurn();
    const scan = async () => {
      const budget = new ScanBudget(signal);
      for (let step = 0; step < 5; step += 1) {
        const endMs = performance.now() + 1;
        while (performance.now() < endMs);
        stepsByTurn[stepsByTurn.length - 1] = (stepsByTurn.at(-1) ?? 0) + 1;
        await budget.spend(1_000);
      }
    };
    await Promise.all(Array.from({ length: 20 }, scan));
    clearImmediate(timer);
    // Each does its first step when it is started.
    expect(Math.max(...stepsByTurn.slice(2))).toBeLessThanOrEqual(SLICE_MS + 1);
    expect(stepsByTurn.reduce((sum, count) => sum + count, 0)).toBe(100);
  });

  it("ends when its client has gone", async () => {
    const search = createTransactionSearch(store);
    const gone = new AbortController();
    const conditions = [typeTerm("CALL"), statusTerm("SUCCESS")].map(
      (term) => ({ kind: "term", term }) as const,
    );
    const query = { operator: "and", conditions, maxHeight: tip, offset: 0, limit: 1 } as const;
    const running = search(query, { signal: gone.signal });
    gone.abort();
    await expect(running).rejects.toThrow("aborted");
    await expect(search(query, { signal: gone.signal })).rejects.toThrow("aborted");
  });
});
