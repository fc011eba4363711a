/**
 * What an export tells of each deposit, withdrawal and account, until all of it is read: one record for each,
 * and as many as the program's memory holds. An export is written as a stream, and has no bound.
 */
import { getHeapStatistics } from "node:v8";
import { AuditError } from "../errors.js";

/** Bytes of a record with its identifier and its place in a map: some 170 were measured. */
const RECORD_BYTES = 250;

/** Part of the heap that records may fill; the rest is for the lines that are read. */
const RECORDS_SHARE = 0.75;

/** Entries of one map: no map of the engine takes 2^24. */
export const MAP_ENTRIES = 8_000_000;

/** Records that fit into this program's memory. */
export function recordsThatFit(): number {
  return Math.floor((getHeapStatistics().heap_size_limit * RECORDS_SHARE) / RECORD_BYTES);
}

/** Room for the records of one export. */
export class RecordRoom {
  #left: number;

  constructor(private readonly most: number) {
    this.#left = most;
  }

  /** Takes room for one more. @throws TOO_LARGE */
  take(): void {
    if (this.#left === 0) {
      const message =
        "The export tells of more than the memory of this program holds, which is " +
        `${this.most} deposits, withdrawals, accounts and names: run the command again with more, such as ` +
        "NODE_OPTIONS=--max-old-space-size=16000 (megabytes).";
      throw new AuditError("TOO_LARGE", message);
    }
    this.#left -= 1;
  }
}

/** Records by identifier, in the order in which they were first told of. */
export class ToldRows<T extends object> {
  readonly #maps: Map<string, T>[] = [];

  constructor(
    private readonly room: RecordRoom,
    private readonly create: () => T,
    private readonly mapEntries = MAP_ENTRIES,
  ) {}

  /** The record of a row; a new one where none is there. @throws TOO_LARGE */
  of(id: string): T {
    const found = this.get(id);
    if (found !== undefined) return found;
    this.room.take();
    const record = this.create();
    let last = this.#maps.at(-1);
    if (last === undefined || last.size >= this.mapEntries) {
      last = new Map();
      this.#maps.push(last);
    }
    last.set(id, record);
    return record;
  }

  /** The record of a row; undefined where none is there. */
  get(id: string): T | undefined {
    for (const map of this.#maps) {
      const found = map.get(id);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** All rows that are known, each once. */
  *[Symbol.iterator](): Generator<[id: string, record: T]> {
    for (const map of this.#maps) yield* map;
  }
}

/** Texts of which many lines say the same one: each is kept once. */
export class SameTexts {
  readonly #texts = new Map<string, string>();

  constructor(private readonly room: RecordRoom) {}

  /** The text itself, as the first line had it. @throws TOO_LARGE */
  one(text: string): string {
    const found = this.#texts.get(text);
    if (found !== undefined) return found;
    this.room.take();
    if (this.#texts.size < MAP_ENTRIES) this.#texts.set(text, text);
    return text;
  }
}
