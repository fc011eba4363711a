/**
 * A search in the logs of a block as they are stored: one transaction may write tens of thousands, and
 * a search that is refused for their number is to cost next to nothing.
 */
import { beforeAll, describe, expect, it } from "@jest/globals";
import { addressToBytes, parseAddress } from "../../../../chain/address.js";
import { encodeRlp, type RlpInput } from "../../../../chain/encoding/rlp-writer.js";
import { type Hash32, hexToBytes, parseHash32 } from "../../../../chain/hex.js";
import type { Log, Receipt } from "../../../../chain/receipt.js";
import { packBloom, receiptFields } from "../../../../chain/records/block-items.js";
import { encodeHashPage, encodeReceiptPage } from "../../../../chain/records/pages.js";
import { StoredPage } from "../../../../node/store/block-records.js";
import { turnsOf } from "../../../helpers/turns.js";
import { ALICE, BOB, createTestNode, signLegacy } from "./fixture.js";

const MOST = 5;
const MANY = 20_000;
const seldom = parseAddress(`0x${"bb".repeat(20)}`);
const often = parseAddress(`0x${"aa".repeat(20)}`);
const word = (digit: string): Hash32 => parseHash32(`0x${digit.repeat(64)}`);
const ofSeldom: Log = { address: seldom, topics: [word("1")], data: Uint8Array.of(1, 2, 3) };
const ofOften: Log = { address: often, topics: [word("1"), word("2")], data: new Uint8Array(0) };

/** A node with one block of three transactions, the logs of which are these. */
async function nodeWith(...logs: readonly (readonly Log[])[]) {
  const node = createTestNode({ logResults: MOST, cacheBytes: 1 });
  const raws = await Promise.all(
    logs.map((_, nonce) => signLegacy(ALICE, { nonce, to: BOB.address })),
  );
  const { block, receipts } = node.chain.add(
    raws.map((raw, index) => ({ raw, logs: logs[index] ?? [] })),
  );
  const hashes = Buffer.from(encodeHashPage(block.transactions));
  /** Has the node read the block's only page as it is stored. */
  const store = (page: Uint8Array) => {
    const bytes = Buffer.from(page);
    const read = (space: string) => (space === "hashPage" ? hashes : bytes);
    const stored = new StoredPage(0, logs.length, read);
    node.chain.pageLogs = (_height, _start, isWanted) => stored.logs(isWanted);
  };
  const search = (filter: object) =>
    node.ask("eth_getLogs", { fromBlock: "0x1", toBlock: "0x1", ...filter });
  return { ...node, receipts, store, search };
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

describe("others get their turns", () => {
  let node: Awaited<ReturnType<typeof nodeWith>>;
  beforeAll(async () => {
    const logs = Array.from({ length: MANY }, () => ofOften);
    node = await nodeWith([...logs, ...Array.from({ length: MOST + 1 }, () => ofSeldom)]);
    node.store(encodeReceiptPage(node.receipts, 0));
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
