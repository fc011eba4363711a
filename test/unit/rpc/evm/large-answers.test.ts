/** Large answers of many clients at once: a few are made up at a time, whatever method they are of. */
import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { parseAddress } from "../../../../chain/address.js";
import { RECORDS_VERSION } from "../../../../chain/records/records-version.js";
import type { LogTest } from "../../../../node/view/chain-view.js";
import { PAGE_TRANSACTIONS } from "../../../../node/view/block-pages.js";
import type { EvmRpcLimits } from "../../../../node/rpc/evm/options.js";
import { RequestContext } from "../../../../node/rpc/evm/request-context.js";
import { Turns } from "../../../../runtime/turns/turns.js";
import { ALICE, BOB, createTestNode, signLegacy, type TestAnswer, transfer } from "./fixture.js";

const CLIENTS = 12;
const BLOCKS = 6;
/** Each makes an answer larger than what is made up freely, as hex. */
const DATA_BYTES = 400_000;

const KEYS = Array.from({ length: 1_024 }, (_, key) => `0x${key.toString(16)}`);

type Asked = ReturnType<Awaited<ReturnType<typeof startNode>>["ask"]>;
type Call = readonly [string, ...unknown[]];

async function startNode(limits: Partial<EvmRpcLimits> = {}) {
  const node = createTestNode({ cacheBytes: 1, ...limits });
  const address = parseAddress(`0x${"aa".repeat(20)}`);
  for (let nonce = 0; nonce < BLOCKS; nonce++) {
    const raw = await signLegacy(ALICE, { nonce });
    const log = { address, topics: [], data: new Uint8Array(DATA_BYTES) };
    node.chain.add([{ raw, logs: [log] }]);
  }
  /** Pages of logs that were read, which is what a search keeps; in all, and by each search. */
  const read = { pages: 0, bySearch: new Map<LogTest, number>(), mostGrowing: 0 };
  const { chain } = node;
  const pageLogs = chain.pageLogs.bind(chain);
  chain.pageLogs = (height, start, isWanted) => {
    read.pages += 1;
    read.bySearch.set(isWanted, (read.bySearch.get(isWanted) ?? 0) + 1);
    const counts = [...read.bySearch.values()];
    const growing = counts.filter((pages) => pages > SMALL_PAGES && pages < WHOLE_PAGES);
    read.mostGrowing = Math.max(read.mostGrowing, growing.length);
    return pageLogs(height, start, isWanted);
  };
  /** Asks and leaves the answer where it is until it is taken. */
  const askFrom = (remoteAddress: string, ...calls: readonly Call[]) => {
    const context = new RequestContext(60_000, undefined, { remoteAddress });
    const body = calls.map(([method, ...params], id) => ({ jsonrpc: "2.0", id, method, params }));
    const text = JSON.stringify(calls.length === 1 ? body[0] : body);
    const made = Promise.resolve(node.api.dispatcher.handle(Buffer.from(text), context));
    const client = { isMade: false, context, made, size: 0 };
    const watch = async () => {
      const reply = await made;
      client.isMade = true;
      client.size = reply?.reduce((sum, piece) => sum + piece.length, 0) ?? 0;
    };
    void watch();
    return client;
  };
  const ask = (...calls: readonly Call[]) => askFrom("", ...calls);
  return { ...node, read, ask, askFrom };
}

// Work is cut into slices by this clock: as it stands still, a busy machine needs no more turns than others.
beforeEach(() => {
  jest.spyOn(performance, "now").mockReturnValue(performance.now());
});

afterEach(() => {
  jest.restoreAllMocks();
});

/** Lets everything go on that does not wait for a place. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await nextTurn();
}

/** Pages that a search has read when it stops as a large one, and in all, one of them twice. */
const SMALL_PAGES = 2;
const WHOLE_PAGES = BLOCKS + 1;
const WHOLE_RANGE = { fromBlock: "0x1", toBlock: "latest" };

it("finishes two large searches at a time, the next ones as these are handed over", async () => {
  const { ask, read } = await startNode();
  const clients = Array.from({ length: CLIENTS }, () => ask(["eth_getLogs", WHOLE_RANGE]));
  await settle();
  expect(clients.filter(({ isMade }) => isMade)).toHaveLength(2);
  // The others stopped where they became large.
  expect(read.pages).toBeLessThanOrEqual(2 * (BLOCKS + 1) + (CLIENTS - 2) * 2);
  while (clients.some(({ isMade }) => !isMade)) {
    for (const client of clients.filter(({ isMade }) => isMade)) client.context.finish();
    await settle();
  }
  for (const { size } of clients) expect(size).toBeGreaterThan(2 * DATA_BYTES * BLOCKS);
});

it("makes raw receipts up two at a time, too", async () => {
  const { ask, chain } = await startNode();
  const address = parseAddress(`0x${"aa".repeat(20)}`);
  const log = { address, topics: [], data: new Uint8Array(DATA_BYTES) };
  const raws = [0, 1, 2].map((more) => signLegacy(ALICE, { nonce: BLOCKS + more }));
  chain.add((await Promise.all(raws)).map((raw) => ({ raw, logs: [log] })));
  const clients = Array.from({ length: 5 }, () => ask(["debug_getRawReceipts", "latest"]));
  await settle();
  expect(clients.filter(({ isMade }) => isMade)).toHaveLength(2);
});

it.each([
  ["ranges of blocks", ["causeway_getBlockRange", 1, BLOCKS]],
  ["ranges of records", ["causeway_getBlockRange", 1, BLOCKS, null, RECORDS_VERSION]],
  ["raw blocks", ["debug_getRawBlock", "latest"]],
  ["journals of accounts", ["causeway_getAccountJournal", BOB.address, 1, BLOCKS + 1]],
  ["proofs of many keys", ["eth_getProof", BOB.address, KEYS]],
] as const)("makes %s up two at a time, too", async (_, call) => {
  const { ask, chain } = await startNode();
  const raw = await signLegacy(ALICE, { nonce: BLOCKS, data: `0x${"11".repeat(2 * DATA_BYTES)}` });
  const change = () => transfer(ALICE.address, BOB.address, 1n);
  chain.add([{ raw }], Array.from({ length: 5_000 }, change));
  const clients = Array.from({ length: 5 }, () => ask(call));
  await settle();
  expect(clients.filter(({ isMade }) => isMade)).toHaveLength(2);
  const few = ask(["eth_getProof", BOB.address, KEYS.slice(0, 100)]);
  await settle();
  expect(few.isMade).toBe(true);
  while (clients.some(({ isMade }) => !isMade)) {
    for (const client of clients.filter(({ isMade }) => isMade)) client.context.finish();
    await settle();
  }
  expect(new Set(clients.map(({ size }) => size)).size).toBe(1);
});

it("counts a batch as one, whose calls go on one after the other", async () => {
  const { ask, read } = await startNode();
  const search = ["eth_getLogs", WHOLE_RANGE] as const;
  const batches = Array.from({ length: 3 }, () => ask(search, search, search));
  await settle();
  // One of each of the two that have a place.
  expect(read.mostGrowing).toBeLessThanOrEqual(2);
  expect(batches.filter(({ isMade }) => isMade)).toHaveLength(2);
  for (const { context } of batches.filter(({ isMade }) => isMade)) context.finish();
  await settle();
  expect(batches.every(({ isMade }) => isMade)).toBe(true);
});

it.each([
  ["eth_getBlockReceipts", ["latest"]],
  ["eth_getBlockByNumber", ["latest", true]],
] as const)(
  "makes no more for %s than an answer holds, once for all who ask",
  async (method, params) => {
    const { chain, post } = await startNode({ responseBytes: 2 * 1024 * 1024 });
    const log = { address: parseAddress(BOB.address), topics: [], data: new Uint8Array(10_000) };
    const raw = await signLegacy(ALICE, { nonce: BLOCKS, data: `0x${"11".repeat(10_000)}` });
    chain.add(Array.from({ length: 5 * PAGE_TRANSACTIONS }, () => ({ raw, logs: [log] })));
    const { pages } = chain;
    let pageCount = 0;
    chain.pages = function* counted(height) {
      for (const page of pages(height)) {
        pageCount += 1;
        yield page;
      }
    };
    const ask = () => post({ jsonrpc: "2.0", id: 1, method, params });
    const refusal = { error: { code: -32003, message: "response too large" } };
    expect(await Promise.all([ask(), ask()])).toMatchObject([refusal, refusal]);
    expect(await ask()).toMatchObject(refusal);
    expect(pageCount).toBe(1);
  },
);

/** Takes the answer. */
async function isRefused({ made, context }: Asked): Promise<boolean> {
  const reply = (await made) ?? [];
  context.finish();
  return reply.reduce((sum, piece) => sum + piece.length, 0) < 1_000;
}

/** Blocks of more than a page, each of whose texts becomes large with the first. */
async function startLargeBlocks() {
  const node = await startNode();
  const { chain } = node;
  const raw = await signLegacy(ALICE, { nonce: BLOCKS, data: `0x${"11".repeat(2 * DATA_BYTES)}` });
  const small = await signLegacy(ALICE, { nonce: BLOCKS + 1 });
  const log = { address: parseAddress(BOB.address), topics: [], data: new Uint8Array(600_000) };
  const changes = Array.from({ length: 8_000 }, () => transfer(ALICE.address, BOB.address, 1n));
  const others = Array.from({ length: PAGE_TRANSACTIONS }, () => ({ raw: small }));
  for (let block = 0; block < BLOCKS; block++) {
    chain.add([{ raw, logs: [log], changes }, ...others]);
  }
  const large = chain.blocks.slice(-BLOCKS).map(({ block: { hash } }) => hash);
  /** Pages that were read, by height. */
  const pagesRead = new Map<number, number>();
  const { pages } = chain;
  chain.pages = function* counted(height) {
    for (const page of pages(height)) {
      pagesRead.set(height, (pagesRead.get(height) ?? 0) + 1);
      yield page;
    }
  };
  // What a test before began of a turn is over: all are made up side by side.
  await settle();
  return { ...node, large, pagesRead };
}

it("makes up a text of one client without a wait for all that another has asked for", async () => {
  const { askFrom, large } = await startLargeBlocks();
  const [wanted, ...others] = large;
  const made: string[] = [];
  const ask = async (from: string, hash: unknown) => {
    expect(await isRefused(askFrom(from, ["eth_getBlockReceipts", hash]))).toBe(false);
    made.push(from);
  };
  await Promise.all([...others.map((hash) => ask("192.0.2.1", hash)), ask("198.51.100.1", wanted)]);
  // Two of the other's are made already, and one may have been the next.
  expect(made.indexOf("198.51.100.1")).toBeLessThanOrEqual(3);
});

it.each(["eth_getBlockReceipts", "causeway_getBlockJournal"])(
  "makes up what two clients ask for when the first of them has its turn: %s",
  async (method) => {
    const { askFrom, large } = await startLargeBlocks();
    const made: string[] = [];
    const ask = async (from: string, hash: unknown) => {
      expect(await isRefused(askFrom(from, [method, hash]))).toBe(false);
      made.push(from);
    };
    const many = large.map((hash) => ask("192.0.2.1", hash));
    await Promise.all([...many, ask("198.51.100.1", large.at(-1))]);
    // Two are made already, and one may have been the next; with its own the other's last is made.
    expect(made.indexOf("198.51.100.1")).toBeLessThanOrEqual(4);
    expect(made).toHaveLength(BLOCKS + 1);
  },
);

it("makes up journals of blocks in a lane of their own", async () => {
  const { ask, large } = await startLargeBlocks();
  const enter = jest.spyOn(Turns.prototype, "enter");
  const receipts = large.map((hash) => ask(["eth_getBlockReceipts", hash]));
  const all = [...receipts, ask(["causeway_getBlockJournal", large.at(-1)])];
  expect(await Promise.all(all.map(isRefused))).not.toContain(true);
  const lanes = enter.mock.contexts;
  const counts = [...new Set(lanes)].map((lane) => lanes.filter((one) => one === lane).length);
  expect(counts.toSorted((a, b) => a - b)).toEqual([1, BLOCKS]);
});

it("makes up no more of a block's receipts once all who asked have gone, unless it has begun", async () => {
  const { ask, large, pagesRead } = await startLargeBlocks();
  const call = (at: number) => ["eth_getBlockReceipts", large[at]] as const;
  const receipts = large.map((_, at) => ask(call(at)));
  const shared = ask(call(BLOCKS - 1));
  // All have come to the line, and two of them have their turn.
  while ([...pagesRead.values()].filter((count) => count > 1).length < BLOCKS) {
    await Promise.resolve();
  }
  for (const { context } of receipts) context.cancel();
  expect(await isRefused(shared)).toBe(false);
  const refused = await Promise.all(receipts.map(isRefused));
  expect(refused).toEqual([false, false, true, true, true, false]);
  expect(await isRefused(ask(call(3)))).toBe(false);
});

/** Asks for the same many times in a batch that has room for one answer, which is given. */
async function askInFullBatch(
  { ask }: Pick<Awaited<ReturnType<typeof startNode>>, "ask">,
  call: readonly [string, ...unknown[]],
): Promise<unknown> {
  const batch = ask(...Array.from({ length: CLIENTS }, () => call));
  const reply = await batch.made;
  batch.context.finish();
  const [first, ...others] = JSON.parse(reply?.map(String).join("") ?? "") as TestAnswer[];
  expect(others).toHaveLength(CLIENTS - 1);
  for (const { error } of others) {
    expect(error).toEqual({ code: -32003, message: "response too large" });
  }
  return first?.result;
}

it("makes up one large search of a batch at a time, and none behind those that fill it", async () => {
  const node = await startNode({ batchResponseBytes: 1024 * 1024 });
  expect(await askInFullBatch(node, ["eth_getLogs", WHOLE_RANGE])).toHaveLength(BLOCKS);
  const { bySearch, mostGrowing } = node.read;
  expect(mostGrowing).toBe(1);
  // One that comes before those that are made already is made as well.
  const whole = [...bySearch.values()].filter((pages) => pages === WHOLE_PAGES);
  expect(whole.length).toBeLessThan(CLIENTS / 2);
});

it("makes up raw receipts of a batch one after the other, too, and none beyond an answer's most", async () => {
  const bounds = { batchResponseBytes: 1024 * 1024, responseBytes: 8 * 1024 * 1024 };
  const node = await startNode(bounds);
  const { chain } = node;
  const log = { address: parseAddress(BOB.address), topics: [], data: new Uint8Array(DATA_BYTES) };
  let nonce = BLOCKS;
  const add = async (count: number) => {
    const raws = Array.from({ length: count }, () => signLegacy(ALICE, { nonce: nonce++ }));
    chain.add((await Promise.all(raws)).map((raw) => ({ raw, logs: [log] })));
  };
  let receipts = 0;
  const { pages } = chain;
  chain.pages = function* counted(height) {
    for (const page of pages(height)) {
      const rawReceipts = function* each() {
        for (const raw of page.rawReceipts()) {
          receipts += 1;
          yield raw;
        }
      };
      yield { ...page, rawReceipts };
    }
  };
  await add(8);
  expect(await askInFullBatch(node, ["debug_getRawReceipts", "latest"])).toHaveLength(8);
  expect(receipts).toBeLessThan((CLIENTS / 2) * 8);
  await add(40);
  receipts = 0;
  expect(
    await node.post({ jsonrpc: "2.0", id: 1, method: "debug_getRawReceipts", params: ["latest"] }),
  ).toMatchObject({
    error: { code: -32003, message: "response too large" },
  });
  expect(receipts).toBeLessThan(15);
});

it("makes up what a batch has of all kinds, each as it is alone", async () => {
  const { ask, chain } = await startNode();
  const raw = await signLegacy(ALICE, { nonce: BLOCKS, data: `0x${"11".repeat(2 * DATA_BYTES)}` });
  const change = () => transfer(ALICE.address, BOB.address, 1n);
  chain.add([{ raw }], Array.from({ length: 5_000 }, change));
  const calls = [
    ["eth_getProof", BOB.address, KEYS],
    ["eth_getLogs", { fromBlock: "0x1", toBlock: "0x2" }],
    ["causeway_getBlockRange", 1, BLOCKS],
    ["eth_getFilterChanges", "0x1"],
    ["debug_getRawBlock", "latest"],
    ["causeway_getBlockRange", 1, BLOCKS, null, RECORDS_VERSION],
    ["causeway_getAccountJournal", BOB.address, 1, BLOCKS + 1],
    ["eth_getLogs", { fromBlock: "0x3", toBlock: "0x4" }],
  ] as const;
  const resultOf = async (client: ReturnType<typeof ask>): Promise<unknown> => {
    const reply = await client.made;
    client.context.finish();
    return JSON.parse(reply?.map(String).join("") ?? "");
  };
  const answers = (await resultOf(ask(...calls))) as TestAnswer[];
  for (const [index, call] of calls.entries()) {
    const alone = (await resultOf(ask(call))) as TestAnswer;
    expect([call[0], isDeepStrictEqual(answers[index], { ...alone, id: index })]).toEqual([
      call[0],
      true,
    ]);
  }
});

it("refuses a large answer where hundreds wait already", async () => {
  const { ask } = await startNode();
  const clients = Array.from({ length: 260 }, () => ask(["eth_getLogs", WHOLE_RANGE]));
  await settle();
  await settle();
  const texts = clients.filter(({ isMade, size }) => isMade && size < 1_000);
  expect(texts).toHaveLength(2);
  const [refusal] = await Promise.all(texts.map(({ made }) => made));
  expect(JSON.parse(refusal?.map(String).join("") ?? "")).toMatchObject({
    error: { code: -32005, message: "too many large answers are asked for at once" },
  });
  for (const { context } of clients) context.cancel();
});

/** Large answers that are taken in: two are made, the others wait. */
const MOST_LARGE = 2 + 256;

it("has clients take turns with them, and refuses the last of who waits for most", async () => {
  const { askFrom } = await startNode();
  const proof = ["eth_getProof", BOB.address, KEYS.slice(0, 200)] as const;
  const many = Array.from({ length: MOST_LARGE }, () => askFrom("10.0.0.1", proof));
  await settle();
  const [first, second, next] = many;
  expect(many.filter(({ isMade }) => isMade)).toEqual([first, second]);
  const other = askFrom("127.0.0.1", proof, proof);
  await settle();
  const last = many.at(-1);
  if (last === undefined) throw new Error("nothing was asked");
  expect(await isRefused(last)).toBe(true);
  first?.context.finish();
  second?.context.finish();
  await settle();
  expect([next?.isMade, other.isMade, await isRefused(other)]).toEqual([true, true, false]);
});

it("lets small answers pass, and gives a place back whose client is gone", async () => {
  const { ask } = await startNode();
  const clients = Array.from({ length: 4 }, () => ask(["eth_getLogs", WHOLE_RANGE]));
  await settle();
  const small = ask(["eth_getLogs", { fromBlock: "0x1", toBlock: "0x1" }]);
  await settle();
  expect(small.isMade).toBe(true);
  const [waiting, next] = clients.filter(({ isMade }) => !isMade);
  waiting?.context.cancel();
  await settle();
  expect(waiting?.isMade).toBe(true);
  expect(waiting?.size).toBeLessThan(1_000);
  waiting?.context.finish();
  await settle();
  expect(next?.isMade).toBe(false);
  clients.find(({ size }) => size > 1_000)?.context.finish();
  await settle();
  expect(next?.isMade).toBe(true);
});

it("bounds what batches hold of answers that wait for a slow call, all batches together", async () => {
  const batchResponseBytes = 1024 * 1024;
  const BATCHES = 40;
  const node = createTestNode({ batchResponseBytes });
  const { calls } = node;
  calls.result = { outcome: "success", returnData: new Uint8Array(600_000), gasUsed: 21_000n };
  const slow = new AbortController();
  const answer = calls.call.bind(calls);
  calls.call = async (request, height, options) => {
    const isSlow = request.to === undefined && !slow.signal.aborted;
    if (isSlow) await once(slow.signal, "abort");
    return answer(request, height, options);
  };
  const entry = (to?: string) => ({ jsonrpc: "2.0", id: 1, method: "eth_call", params: [{ to }] });
  const body = Buffer.from(JSON.stringify([entry(), entry(ALICE.address), entry(ALICE.address)]));
  const start = () => {
    const context = new RequestContext(60_000, undefined);
    return { context, made: Promise.resolve(node.api.dispatcher.handle(body, context)) };
  };
  const batches = Array.from({ length: BATCHES }, start);
  await settle();
  slow.abort();
  await settle();
  let refused = 0;
  const handedOver = new Set<unknown>();
  while (handedOver.size < BATCHES) {
    for (const batch of batches.filter((one) => !handedOver.has(one))) {
      const reply = await Promise.race([batch.made, nextTurn()]);
      if (reply === undefined) continue;
      handedOver.add(batch);
      const answers = JSON.parse(reply.map(String).join("")) as object[];
      expect(answers).toHaveLength(3);
      refused += answers.filter((one) => JSON.stringify(one).includes("-32005")).length;
      batch.context.finish();
    }
  }
  // There is room for ten of the largest batches; each was given one answer of 1.2 MB and waits.
  expect(refused).toBeGreaterThanOrEqual(BATCHES - 10);

  // What is handed over makes room again.
  const after = start();
  expect((await after.made)?.map(String).join("")).not.toContain("-32005");
  after.context.finish();
});
