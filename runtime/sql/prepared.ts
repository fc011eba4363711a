/**
 * Which statements the server keeps prepared. Planning a read of five tables costs it several times
 * what running it does; a statement that comes again is planned once for each connection. The server
 * itself goes back to a plan for the values at hand where a general one would be dearer.
 */
import { createHash } from "node:crypto";

/** Times that a text is seen before it is kept: what comes once would only take memory. */
const SEEN_BEFORE_KEPT = 3;

/** Texts kept, for each connection in the server's memory; more than the processes have by far. */
const MAX_KEPT = 200;

/** Texts that are counted; beyond it the counts begin anew. */
const MAX_COUNTED = 1_000;

/** Names of prepared statements, one table for all connections of a process. */
export class PreparedNames {
  private readonly names = new Map<string, string>();
  private readonly counts = new Map<string, number>();
  private generation = 0;

  /** The name that a text is kept under; undefined while it is not. */
  nameOf(text: string): string | undefined {
    const known = this.names.get(text);
    if (known !== undefined || this.names.size >= MAX_KEPT) return known;
    const count = (this.counts.get(text) ?? 0) + 1;
    if (count < SEEN_BEFORE_KEPT) {
      if (this.counts.size >= MAX_COUNTED) this.counts.clear();
      this.counts.set(text, count);
      return undefined;
    }
    this.counts.delete(text);
    const digest = createHash("sha256").update(text).digest("hex").slice(0, 32);
    const name = `causeway_${this.generation}_${digest}`;
    this.names.set(text, name);
    return name;
  }

  /** Other names from here on: tables have changed under what was prepared. */
  renew(): void {
    this.generation += 1;
    this.names.clear();
    this.counts.clear();
  }
}
