/** Large answers of many clients at once: a few are made up at a time, whatever method they are of. */
import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parseAddress } from "../../../../chain/address.js";
import { RECORDS_VERSION } from "../../../../chain/records/records-version.js";
import { RequestContext } from "../../../../node/rpc/evm/request-context.js";
import { ALICE, BOB, createTestNode, signLegacy, transfer } from "./fixture.js";

const CLIENTS = 12;
const BLOCKS = 6;
/** Each makes an answer larger than what is made up freely, as hex. */
const DATA_BYTES = 400_000;

const KEYS = Array.from({ length: 1_024 }, (_, key) => `0x${key.toString(16)}`);

async function startNode() {
  const node = createTestNode({ cacheBytes: 1 });
  const address = parseAddress(`0x${"aa".repeat(20)}`);
  for (let nonce = 0; nonce < BLOCKS; nonce++) {
    const raw = await signLegacy(ALICE, { nonce });
    const log = { address, topics: [], data: new Uint8Array(DATA_BYTES) };
    node.chain.add([{ raw, logs: [log] }]);
  }
  /** Pages of logs that were read, which is what a search keeps. */
  const read = { pages: 0 };
  const { chain } = node;
  const pageLogs = chain.pageLogs.bind(chain);
  chain.pageLogs = (height, start, isWanted) => {
    read.pages += 1;
    return pageLogs(height, start, isWanted);
  };
  /** Asks and leaves the answer where it is until it is taken. */
  const ask = (...calls: readonly (readonly [string, ...unknown[]])[]) => {
    const context = new RequestContext(60_000, undefined);
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
  return { ...node, read, ask };
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

it("counts a batch as one, whose calls do not wait for each other", async () => {
  const { ask } = await startNode();
  const search = ["eth_getLogs", WHOLE_RANGE] as const;
  const batches = Array.from({ length: 3 }, () => ask(search, search, search));
  await settle();
  expect(batches.filter(({ isMade }) => isMade)).toHaveLength(2);
  for (const { context } of batches.filter(({ isMade }) => isMade)) context.finish();
  await settle();
  expect(batches.every(({ isMade }) => isMade)).toBe(true);
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
