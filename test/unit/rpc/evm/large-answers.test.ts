/** Large answers of many clients at once: a few are made up at a time, whatever method they are of. */
import { expect, it } from "@jest/globals";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parseAddress } from "../../../../chain/address.js";
import { RequestContext } from "../../../../node/rpc/evm/request-context.js";
import { ALICE, createTestNode, signLegacy } from "./fixture.js";

const CLIENTS = 12;
const BLOCKS = 6;
/** Each makes an answer larger than what is made up freely, as hex. */
const DATA_BYTES = 400_000;

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
