/**
 * Index of logs: which pages of which blocks have logs of an address, of a first topic, and of both
 * together. Further topics are compared in the pages that it names. It is one entry for each such
 * term of a block, however many logs there are: a block of one token's transfers has three.
 */
import { type Address, addressToBytes } from "../../chain/address.js";
import { heightBytes, readHeight } from "../../chain/height-bytes.js";
import { type Hash32, type Height, hexToBytes } from "../../chain/hex.js";
import { allAtOnce, type Steps } from "../../chain/steps/steps.js";
import type { CommittedBlock } from "../view/event-bus.js";
import type { LogTerm } from "../view/chain-view.js";
import { decodeIndexes, encodeIndexes } from "./block-records.js";
import { type Database, storeKey, type StoreWrite } from "./database.js";

/** Kinds of terms: the first byte behind the key space's; each has one length. */
const ADDRESS_TERM = 1;
const TOPIC_TERM = 2;
const BOTH_TERM = 3;

/** Index entries of a block; part of its one atomic write. */
export function logIndexWrites(committed: CommittedBlock, starts: readonly number[]): StoreWrite[] {
  return allAtOnce(logIndexSteps(committed, starts));
}

/** The same in steps of a page each. */
export function* logIndexSteps(
  committed: CommittedBlock,
  starts: readonly number[],
): Steps<StoreWrite[]> {
  const pagesByTerm = new Map<string, number[]>();
  for (const [number, first] of starts.entries()) {
    const end = starts[number + 1] ?? committed.receipts.length;
    for (const name of termNames(committed, first, end)) {
      const pages = pagesByTerm.get(name);
      if (pages === undefined) pagesByTerm.set(name, [first]);
      else pages.push(first);
    }
    yield;
  }
  const at = heightBytes(committed.block.header.height);
  return [...pagesByTerm].map(([name, pages]) => ({
    key: storeKey("log", Buffer.from(name, "latin1"), at),
    value: encodeIndexes(pages),
  }));
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
    const name = Buffer.from(nameOf(term), "latin1");
    const range = {
      from: storeKey("log", name, heightBytes(from)),
      to: storeKey("log", name, heightBytes(to)),
    };
    for await (const [key, value] of this.database.entries(range)) {
      yield { height: readHeight(key, 1 + name.length), starts: decodeIndexes(value) };
    }
  }
}

/** Terms of the logs of some transactions, as the bytes of their keys. */
function termNames({ receipts }: CommittedBlock, first: number, end: number): Set<string> {
  const names = new Set<string>();
  let last: { readonly address: Address; readonly topic: Hash32 | undefined } | undefined;
  for (const { logs } of receipts.slice(first, end)) {
    for (const { address, topics } of logs) {
      const [topic] = topics;
      // Neighbours are often alike: transfers of the one token that everybody pays with.
      if (last?.address === address && last.topic === topic) continue;
      last = { address, topic };
      names.add(nameOf({ address }));
      if (topic === undefined) continue;
      names.add(nameOf({ topic }));
      names.add(nameOf({ address, topic }));
    }
  }
  return names;
}

function nameOf({ address, topic }: LogTerm): string {
  const kind = address === undefined ? TOPIC_TERM : topic === undefined ? ADDRESS_TERM : BOTH_TERM;
  const parts = [
    Uint8Array.of(kind),
    ...(address === undefined ? [] : [addressToBytes(address)]),
    ...(topic === undefined ? [] : [hexToBytes(topic)]),
  ];
  return Buffer.concat(parts).toString("latin1");
}
