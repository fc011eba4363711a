/**
 * Index of ABCI events by block: which types of events a height has, and which amounts moved in
 * it. Accounts are found by their own history and transactions by their hashes, so nothing of
 * those is written again; a search reads the blocks it finds here and checks each event. That is
 * one or two small entries per transfer instead of one for each of its twenty attributes.
 */
import { searchTermSteps } from "../../../chain/abci-event.js";
import { heightBytes, readHeight } from "../../../chain/encoding/height-bytes.js";
import { bigintToBytes, type Height } from "../../../chain/hex.js";
import { allAtOnce, type Steps } from "../../../chain/steps/steps.js";
import type { Atoken } from "../../../chain/units.js";
import type { CommittedBlock } from "../../view/event-bus.js";
import { type Database, storeKey, type StoreWrite } from "../database.js";

/** Kinds of terms: the first byte behind the key space's. */
const TYPE_TERM = 1;
const AMOUNT_TERM = 2;

const NOTHING = new Uint8Array(0);

/** Index entries of a block; part of its one atomic write. */
export function eventWrites(committed: CommittedBlock): StoreWrite[] {
  return allAtOnce(eventSteps(committed));
}

/** The same in steps. */
export function* eventSteps(committed: CommittedBlock): Steps<StoreWrite[]> {
  const at = heightBytes(committed.block.header.height);
  const { types, amounts } = yield* searchTermSteps(committed);
  const terms = [...[...types].map(typeTerm), ...[...amounts].map(amountTerm)];
  return terms.map((term) => ({ key: storeKey("event", term, at), value: NOTHING }));
}

/** Reads of the index; heights ascend, both ends of a range are included. */
export class EventStore {
  constructor(private readonly database: Database) {}

  /** Blocks with an event of that type. */
  heightsOfType(type: string, from: Height, to: Height): AsyncIterable<Height> {
    return this.heights(typeTerm(type), from, to);
  }

  /** Blocks with an event that has the amount in an attribute; it is greater than zero. */
  heightsOfAmount(amountAtoken: Atoken, from: Height, to: Height): AsyncIterable<Height> {
    return this.heights(amountTerm(amountAtoken), from, to);
  }

  private async *heights(term: Buffer, from: Height, to: Height): AsyncIterable<Height> {
    const range = {
      from: storeKey("event", term, heightBytes(from)),
      to: storeKey("event", term, heightBytes(to)),
    };
    for await (const [key] of this.database.entries(range)) {
      yield readHeight(key, 1 + term.length);
    }
  }
}

/** The length in front keeps a term from being the beginning of another. */
function termOf(kind: number, bytes: Uint8Array): Buffer {
  const term = Buffer.allocUnsafe(2 + bytes.length);
  term[0] = kind;
  term[1] = bytes.length;
  term.set(bytes, 2);
  return term;
}

/** Types are our own short names; a longer one of a query's has no entry. */
function typeTerm(type: string): Buffer {
  return termOf(TYPE_TERM, Buffer.from(type, "utf8").subarray(0, 255));
}

function amountTerm(amountAtoken: Atoken): Buffer {
  return termOf(AMOUNT_TERM, bigintToBytes(amountAtoken).subarray(0, 255));
}
