/**
 * The logs of a block as they are stored: one transaction may write tens of thousands. Whoever reads them
 * gives others their turns, and a search that is refused for their number is to cost next to nothing.
 */
import { beforeAll, describe, expect, it } from "@jest/globals";
import { addressToBytes, parseAddress } from "../../../../../chain/address.js";
import { encodeRlp, type RlpInput } from "../../../../../chain/encoding/rlp-writer.js";
import { type Hash32, hexToBytes, parseHash32 } from "../../../../../chain/hex.js";
import type { Log, Receipt } from "../../../../../chain/receipt.js";
import { packBloom, receiptFields } from "../../../../../chain/records/block-items.js";
import { encodeHashPage, encodeReceiptPage } from "../../../../../chain/records/pages.js";
import type { Steps } from "../../../../../chain/steps/steps.js";
import { StoredPage } from "../../../../../node/store/blocks/stored-page.js";
import { turnsOf } from "../../../../helpers/effort/turns.js";
import { ALICE, BOB, createTestNode, signLegacy } from "../fixture.js";

const MOST = 5;
const MANY = 20_000;
const seldom = parseAddress(`0x${"bb".repeat(20)}`);
const often = parseAddress(`0x${"aa".repeat(20)}`);
const word = (digit: string): Hash32 => parseHash32(`0x${digit.repeat(64)}`);
const ofSeldom: Log = { address: seldom, topics: [word("1")], data: Uint8Array.of(1, 2, 3) };
const ofOften: Log = { address: often, topics: [word("1"), word("2")], data: new Uint8Array(0) };

/** A node with one block of transactions, the logs of which are these. */
async function nodeWith(...logs: readonly (readonly Log[])[]) {
  const node = createTestNode({ logResults: MOST, cacheBytes: 1 });
  const raws = await Promise.all(
    logs.map((_, nonce) => {
      // What may have many logs is answered in slices.
      const fields = { nonce, to: BOB.address, gasLimit: 30_000_000n };
      return signLegacy(ALICE, fields);
    }),
  );
  const { block, receipts } = node.chain.add(
    raws.map((raw, index) => ({ raw, logs: logs[index] ?? [] })),
  );
  const hashes = Buffer.from(encodeHashPage(block.transactions));
  /** Has the node read the block's only page as it is stored. */
  const store = (page: Uint8Array) => {
    const bytes = Buffer.from(page);
    const [own] = [...node.chain.pages(1)];
    if (own === undefined) throw new Error("no page");
    /** Behind its first pause nothing more can be read of it. */
    const open = () => {
      let isGone = false;
      const there = <Read>(read: () => Read) => {
        if (isGone) throw new Error("the block was pruned in a pause");
        return read();
      };
      const read = (space: string) => there(() => (space === "hashPage" ? hashes : bytes));
      const stored = new StoredPage(0, logs.length, read);
      const transactions = () => there(() => own.transactions());
      const journal = () => there(() => own.journal());
      return { ...own, transactions, journal, stored, pause: () => (isGone = true) };
    };
    node.chain.pageLogs = function* pageLogs(_height, _start, isWanted) {
      const { stored, pause } = open();
      for (const match of stored.logs(isWanted)) {
        if (match === undefined) pause();
        yield match;
      }
    };
    node.chain.receiptSteps = function* receiptSteps(_height, index) {
      const { stored, pause } = open();
      return yield* noted(stored.oneReceiptSteps(index), pause);
    };
    node.chain.pages = function* pages() {
      const { stored, pause, ...rest } = open();
      yield { ...rest, receiptSteps: () => noted(stored.receiptSteps(), pause) };
    };
  };
  const search = (filter: object) =>
    node.ask("eth_getLogs", { fromBlock: "0x1", toBlock: "0x1", ...filter });
  return { ...node, block, receipts, store, search };
}

/** The same work; `pause` is told of each pause. */
function* noted<Result>(steps: Steps<Result>, pause: () => void): Steps<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    pause();
    yield;
  }
}

/** A page of one receipt with these logs, whatever they are. */
function pageOf(receipt: Receipt | undefined, logs: readonly RlpInput[]): Uint8Array {
  if (receipt === undefined) throw new Error("no receipt");
  return encodeRlp([0, [...receiptFields(receipt).slice(0, -1), logs, packBloom(receipt)]]);
}

const TOO_MANY = { code: -32602, message: `query returned more than ${MOST} results` };
const item = (address: string, topics: readonly Uint8Array[]): RlpInput => [
  addressToBytes(parseAddress(address)),
  [...topics],
  new Uint8Array(0),
];

describe("a search in stored logs", () => {
  it("gives the same as one in memory, in the same order and places", async () => {
    const node = await nodeWith([ofOften, ofSeldom, ofOften], [], [ofSeldom, ofOften]);
    const filters = [
      {},
      { address: seldom },
      { address: [seldom, often], topics: [word("1")] },
      { topics: [null, word("2")] },
      { topics: [null, word("3")], address: often },
    ];
    const search = () => Promise.all(filters.map((filter) => node.search(filter)));
    const known = await search();
    node.store(encodeReceiptPage(node.receipts, 0));
    expect(await search()).toEqual(known);
    expect(known.map(({ result }) => (result as unknown[]).length)).toEqual([5, 2, 5, 3, 0]);
  });

  it("is refused at the first log above the bound, and none is decoded for it", async () => {
    const node = await nodeWith([ofOften]);
    // No topic has one byte: a log of these cannot be decoded, and the last is no log at all.
    const undecodable = item(often, [Uint8Array.of(255)]);
    const logs = [...Array.from({ length: MOST + 1 }, () => undecodable), 1];
    node.store(pageOf(node.receipts[0], logs));
    expect((await node.search({})).error).toEqual(TOO_MANY);
    expect((await node.search({ address: often })).error).toEqual(TOO_MANY);
  });

  it("decodes of a page only what is wanted", async () => {
    const node = await nodeWith([ofOften, ofSeldom]);
    const wanted = item(seldom, [hexToBytes(word("1"))]);
    const undecodable = item(often, [Uint8Array.of(255)]);
    node.store(pageOf(node.receipts[0], [undecodable, wanted, undecodable]));
    const { result } = await node.search({ address: seldom });
    expect(result).toMatchObject([{ address: seldom, logIndex: "0x1" }]);
  });
});

it("receipts, journals and ranges are the same of stored pages as of those in memory", async () => {
  const many = Array.from({ length: 300 }, () => ofOften);
  const node = await nodeWith([ofOften, ofSeldom], many, [], [ofSeldom]);
  const ask = () =>
    Promise.all([
      ...node.block.transactions.map(({ tx }) => node.call("eth_getTransactionReceipt", tx.hash)),
      node.call("eth_getTransactionLogs", node.block.transactions[1]?.tx.hash),
      node.call("eth_getBlockReceipts", "0x1"),
      node.call("causeway_getBlockJournal", node.block.hash),
      node.call("causeway_getBlockRange", "0x1", "0x1"),
    ]);
  const known = await ask();
  node.store(encodeReceiptPage(node.receipts, 0));
  expect(await ask()).toEqual(known);
});

describe("others get their turns", () => {
  let node: Awaited<ReturnType<typeof nodeWith>>;
  beforeAll(async () => {
    const logs = Array.from({ length: MANY }, () => ofOften);
    node = await nodeWith([...logs, ...Array.from({ length: MOST + 1 }, () => ofSeldom)]);
    node.store(encodeReceiptPage(node.receipts, 0));
  });

  const OF_BLOCK: readonly [string, () => readonly unknown[]][] = [
    ["eth_getTransactionReceipt", () => [node.block.transactions[0]?.tx.hash]],
    ["eth_getTransactionLogs", () => [node.block.transactions[0]?.tx.hash]],
    ["eth_getBlockReceipts", () => ["0x1"]],
    ["causeway_getBlockJournal", () => [node.block.hash]],
    ["causeway_getBlockRange", () => ["0x1", "0x1"]],
  ];
  it.each(OF_BLOCK)("while %s decodes many logs", async (method, params) => {
    // Their texts alone are worth some thirty.
    expect(await turnsOf(() => node.call(method, ...params()))).toBeGreaterThan(80);
  });

  it("while few logs are looked for among many", async () => {
    const filter = { address: often, topics: [null, word("3")] };
    expect(await turnsOf(() => node.search(filter))).toBeGreaterThan(50);
  });

  it("while there are found to be too many behind many others", async () => {
    let answer: unknown;
    const work = async () => (answer = await node.search({ address: seldom }));
    expect(await turnsOf(work)).toBeGreaterThan(50);
    expect(answer).toMatchObject({ error: TOO_MANY });
  });
});
