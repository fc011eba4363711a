/** A database of which one statement is interrupted, by the server itself: counted, so that each comes up. */
import type { Sql, SqlDatabase } from "../../../runtime/sql/sql.js";
import { SqlError } from "../../../runtime/sql/sql-errors.js";

/**
 * What happens instead of a statement, or behind it: it is cancelled, as by a timeout of statements or
 * locks; its session ends before it; or it is done, commits among them, and the answer is lost.
 */
export const INTERRUPTIONS = ["cancelled", "session ends", "answer lost"] as const;

/** One of `INTERRUPTIONS`. */
export type Interruption = (typeof INTERRUPTIONS)[number];

const CANCEL_SELF = "SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(60)";
const END_SELF = "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(60)";

/** Counts statements and commits, and interrupts the one that it was told to. */
export class InterruptedSql implements SqlDatabase {
  #left = Number.POSITIVE_INFINITY;
  #kind: Interruption = "cancelled";

  constructor(private readonly inner: SqlDatabase) {}

  get url(): string {
    return this.inner.url;
  }

  /** Whether what was asked for has happened. */
  get hasHappened(): boolean {
    return this.#left <= 0;
  }

  /** Interrupts the statement or commit of this number from now on, the first being 1. */
  interrupt(kind: Interruption, place: number): void {
    this.#kind = kind;
    this.#left = place;
  }

  query<Row>(text: string, parameters?: readonly unknown[]): Promise<Row[]> {
    return this.#run<Row>(this.inner, text, parameters);
  }

  async transaction<T>(work: (tx: Sql) => Promise<T>): Promise<T> {
    const result = await this.inner.transaction((tx) => work(this.#counted(tx)));
    if (this.#isDue() && this.#kind === "answer lost") throw lostAnswer();
    return result;
  }

  snapshot<T>(
    work: (tx: Sql) => Promise<T>,
    options: { readonly timeLimitMs: number },
  ): Promise<T> {
    return this.inner.snapshot((tx) => work(this.#counted(tx)), options);
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  #counted(tx: Sql): Sql {
    return { query: (text, parameters) => this.#run(tx, text, parameters) };
  }

  async #run<Row>(sql: Sql, text: string, parameters?: readonly unknown[]): Promise<Row[]> {
    if (!this.#isDue()) return sql.query<Row>(text, parameters);
    if (this.#kind === "answer lost") {
      await sql.query<Row>(text, parameters);
      throw lostAnswer();
    }
    await sql.query(this.#kind === "cancelled" ? CANCEL_SELF : END_SELF);
    throw new Error("the server did not interrupt");
  }

  #isDue(): boolean {
    if (this.#left <= 0) return false;
    this.#left -= 1;
    return this.#left === 0;
  }
}

function lostAnswer(): SqlError {
  return new SqlError("DATABASE_UNAVAILABLE", "the answer was lost", { retriable: true });
}
