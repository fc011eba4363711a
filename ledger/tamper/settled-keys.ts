/**
 * Up to which key of each kind every row is there. A key is drawn before its row is committed, and a recovery
 * or a rewind of a hundred thousand rows is open for longer than any time that could be named: such a row is
 * waited for by the transaction that writes it.
 */
import type { Sql } from "../../runtime/sql/sql.js";
import { writersOf } from "../table-writers.js";
import type { LinkKind } from "./link-rules.js";
import { LINKED_TABLES, newestKeys } from "./linked-rows.js";

/** Keys of one look, and who wrote then and has not ended since. */
interface Look {
  readonly keys: ReadonlyMap<LinkKind, number>;
  readonly writers: ReadonlySet<string>;
}

/** The looks of one chainer, one after the other. */
export class SettledKeys {
  #last: Look | undefined;

  /**
   * Looks, before rows without a link are read.
   * @returns keys below which nothing can come any more that is not seen from now on; none while somebody
   *   who wrote at the look before may still commit
   */
  async look(sql: Sql): Promise<ReadonlyMap<LinkKind, number>> {
    const present = await writersOf(sql, LINKED_TABLES);
    const open = [...(this.#last?.writers ?? [])].filter((writer) => present.has(writer));
    if (this.#last !== undefined && open.length > 0) {
      this.#last = { keys: this.#last.keys, writers: new Set(open) };
      return new Map();
    }
    const settled = this.#last?.keys ?? new Map<LinkKind, number>();
    const keys = await newestKeys(sql);
    // Behind the keys: who had drawn a lower one by then has ended, or is among these.
    this.#last = { keys, writers: await writersOf(sql, LINKED_TABLES) };
    return settled;
  }
}
