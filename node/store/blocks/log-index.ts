/**
 * Index of logs: which pages of which blocks have logs of an address, of a first topic, and of both
 * together. Further topics are compared in the pages that it names. It is one entry for each such
 * term of a block, however many logs there are: a block of one token's transfers has three.
 */
import type { Address } from "../../../chain/address.js";
import { HEIGHT_BYTES, heightBytes, readHeight } from "../../../chain/encoding/height-bytes.js";
import { type Hash32, type Height, writeHex } from "../../../chain/hex.js";
import type { Log } from "../../../chain/receipt.js";
import { allAtOnce, type Steps } from "../../../chain/steps/steps.js";
import type { CommittedBlock } from "../../view/event-bus.js";
import type { LogTerm } from "../../view/chain-view.js";
import { decodeIndexes, encodeIndexes } from "../../../chain/records/outline.js";
import { type Database, newStoreKey, type StoreWrite } from "../database.js";

/** Kinds of terms: the first byte behind the key space's; each has one length. */
const ADDRESS_TERM = 1;
const TOPIC_TERM = 2;
const BOTH_TERM = 3;
const TERM_BYTES = { [ADDRESS_TERM]: 20, [TOPIC_TERM]: 32, [BOTH_TERM]: 52 };

/** Index entries of a block; part of its one atomic write. */
export function logIndexWrites(committed: CommittedBlock, starts: readonly number[]): StoreWrite[] {
  return allAtOnce(logIndexSteps(committed, starts));
}

/** The same in steps of a page, and of some entries, each. */
export function* logIndexSteps(
  committed: CommittedBlock,
  starts: readonly number[],
): Steps<StoreWrite[]> {
  const terms = new BlockTerms();
  for (const [number, first] of starts.entries()) {
    const end = starts[number + 1] ?? committed.receipts.length;
    for (let index = first; index < end; index++) {
      terms.add(committed.receipts[index]?.logs ?? [], first);
    }
    yield;
  }
  return yield* terms.writes(heightBytes(committed.block.header.height));
}

/** First transactions of pages, ascending. */
type Pages = number[];

/** Terms of a block's logs; nothing is encoded before each is there once. */
class BlockTerms {
  private readonly byTopic = new Map<Hash32, Pages>();
  private readonly byAddress = new Map<
    Address,
    { readonly pages: Pages; readonly byTopic: Map<Hash32, Pages> }
  >();

  /** Takes in the logs of the next transaction, which lies in a page. */
  add(logs: readonly Log[], page: number): void {
    let last: Log | undefined;
    for (const log of logs) {
      const { address, topics } = log;
      const [topic] = topics;
      // Neighbours are often alike: transfers of the one token that everybody pays with.
      if (last?.address === address && last.topics[0] === topic) continue;
      last = log;
      let own = this.byAddress.get(address);
      if (own === undefined) {
        own = { pages: [], byTopic: new Map() };
        this.byAddress.set(address, own);
      }
      note(own.pages, page);
      if (topic === undefined) continue;
      note(pagesOf(this.byTopic, topic), page);
      note(pagesOf(own.byTopic, topic), page);
    }
  }

  *writes(at: Uint8Array): Steps<StoreWrite[]> {
    const writes: StoreWrite[] = [];
    for (const [topic, pages] of this.byTopic) {
      writes.push({ key: keyOf({ topic }, at), value: encodeIndexes(pages) });
      yield;
    }
    for (const [address, { pages, byTopic }] of this.byAddress) {
      writes.push({ key: keyOf({ address }, at), value: encodeIndexes(pages) });
      for (const [topic, both] of byTopic) {
        writes.push({ key: keyOf({ address, topic }, at), value: encodeIndexes(both) });
        yield;
      }
    }
    return writes;
  }
}

function pagesOf(terms: Map<Hash32, Pages>, topic: Hash32): Pages {
  const known = terms.get(topic);
  if (known !== undefined) return known;
  const pages: Pages = [];
  terms.set(topic, pages);
  return pages;
}

function note(pages: Pages, page: number): void {
  if (pages.at(-1) !== page) pages.push(page);
}

/** Reads of the index. */
export class LogIndex {
  constructor(private readonly database: Database) {}

  /**
   * Heights with logs of a term, ascending, both ends of the range included, and the first
   * transactions of the pages that these logs are in.
   */
  async *pages(
    term: LogTerm,
    from: Height,
    to: Height,
  ): AsyncIterable<{ height: Height; starts: readonly number[] }> {
    const range = { from: keyOf(term, heightBytes(from)), to: keyOf(term, heightBytes(to)) };
    const heightAt = range.from.length - HEIGHT_BYTES;
    for await (const [key, value] of this.database.entries(range)) {
      yield { height: readHeight(key, heightAt), starts: decodeIndexes(value) };
    }
  }
}

/** A term's entry in a block. */
function keyOf({ address, topic }: LogTerm, at: Uint8Array): Buffer {
  const kind = address === undefined ? TOPIC_TERM : topic === undefined ? ADDRESS_TERM : BOTH_TERM;
  const key = newStoreKey("log", 1 + TERM_BYTES[kind] + at.length);
  key[1] = kind;
  let end = 2;
  if (address !== undefined) end = writeHex(key, end, address);
  if (topic !== undefined) end = writeHex(key, end, topic);
  key.set(at, end);
  return key;
}
