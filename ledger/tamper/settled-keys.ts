/**
 * Up to which key of each kind every row is there. A key is drawn before its row is committed, and a recovery
 * or a rewind of a hundred thousand rows is open for longer than any time that could be named: such a row is
 * waited for by the transaction that writes it. A standby without the last commits, or an older copy, may
 * answer instead of the database that was looked at before: nothing that was seen there counts any more.
 */
import type { Sql } from "../../runtime/sql/sql.js";
import { writersOf } from "../table-writers.js";
import type { LinkKind } from "./link-rules.js";
import { LINKED_TABLES, type NewestKeys, newestKeys } from "./linked-rows.js";

/** Keys of one look, where they were read, and who wrote then and has not ended since. */
interface Look extends NewestKeys {
  readonly writers: ReadonlySet<string>;
}

/** The looks of one chainer, one after the other. */
export class SettledKeys {
  #last: Look | undefined;

  /**
   * Looks, before rows without a link are read.
   * @returns keys below which nothing can come any more that is not seen from now on; none while somebody
   *   who wrote at the look before may still commit, or where it was at another database
   */
  async look(sql: Sql): Promise<ReadonlyMap<LinkKind, number>> {
    const present = await writersOf(sql, LINKED_TABLES);
    const open = [...(this.#last?.writers ?? [])].filter((writer) => present.has(writer));
    if (this.#last !== undefined && open.length > 0) {
      this.#last = { ...this.#last, writers: new Set(open) };
      return new Map();
    }
    const before = this.#last;
    const newest = await newestKeys(sql);
    // Behind the keys: who had drawn a lower one by then has ended, or is among these.
    this.#last = { ...newest, writers: await writersOf(sql, LINKED_TABLES) };
    return before !== undefined && follows(newest, before) ? before.keys : new Map();
  }
}

/** Whether keys may be of the database whose keys were read before. */
function follows(newest: NewestKeys, before: NewestKeys): boolean {
  if (newest.place !== before.place) return false;
  return [...before.keys].every(([kind, key]) => (newest.keys.get(kind) ?? 0) >= key);
}
