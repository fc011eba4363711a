/**
 * Holds a ledger against what the home remembers of it. One that is behind, or another one, is put
 * into recovery in the database itself, so that every process sees it; what is told to others is
 * remembered in the home first.
 */
import { errorCode, errorMessage } from "../../chain/errors.js";
import type { Logger } from "../../runtime/process/logger.js";
import { sleep } from "../../runtime/process/task.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { holdForIncident } from "../incidents.js";
import { HomeMark, type LedgerMark } from "./home-mark.js";
import { type LedgerState, lossOf, readLedgerState, toMark } from "./ledger-state.js";
import { inRecovery, refuseInRecovery, writeLoss } from "./recovery-incident.js";
import { addTold } from "./told-before.js";

/** What is answered where the database has lost what this process had it write, and nobody was told of it. */
export function commitLost(): LedgerError {
  return new LedgerError("COMMIT_LOST", "the ledger has lost what it had just written", {
    retriable: true,
  });
}

/**
 * A person may type before any service has met an older ledger: it is closed first, so that nothing is
 * decided by what it has forgotten.
 * @returns whether this home remembers a ledger at all: else nothing was found out
 * @throws HOME_MARK_UNUSABLE
 */
export async function closeIfBehind(database: SqlDatabase, home: string): Promise<boolean> {
  const guard = await LedgerGuard.open({ database, home, reporter: "causeway" });
  await guard.check();
  return guard.isRemembering;
}

/** Between two looks of a process that waits for nothing else: a ledger may be put back under it. */
const LOOK_PAUSE_MS = 1_000;

/** What is to be told. */
interface Told {
  /** Highest number of the events. */
  readonly eventSeq?: number;
  readonly addresses?: readonly { readonly index: number; readonly customerId: string }[];
}

/**
 * Holds the ledger against what the home remembers of it, and remembers there what this process has told
 * of.
 */
export class LedgerGuard {
  readonly #database: SqlDatabase;
  readonly #mark: HomeMark;
  readonly #reporter: string;
  #trouble: string | undefined;

  private constructor(database: SqlDatabase, mark: HomeMark, reporter: string) {
    this.#database = database;
    this.#mark = mark;
    this.#reporter = reporter;
  }

  /**
   * Opens the home's mark and holds the ledger against it.
   * @throws HOME_MARK_UNUSABLE
   */
  static async open(options: {
    readonly database: SqlDatabase;
    readonly home: string;
    /** Name of the process. */
    readonly reporter: string;
  }): Promise<LedgerGuard> {
    const { database, home, reporter } = options;
    return new LedgerGuard(database, await HomeMark.open(home), reporter);
  }

  /** Looks again and again until the signal fires; the next look is made whatever one fails by. */
  async follow({ signal, log }: { readonly signal: AbortSignal; readonly log: Logger }) {
    for (;;) {
      await sleep(LOOK_PAUSE_MS, { signal });
      await this.look(log).catch(() => undefined);
    }
  }

  /** Why the home cannot remember its ledger, by the last look; undefined where it can. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Whether the home has met a ledger: one that has not takes whichever there is for its own. */
  get isRemembering(): boolean {
    return this.#mark.value !== undefined;
  }

  /** All lower address indexes may have been given out. */
  get nextAddressIndex(): number {
    return this.#mark.value?.nextAddressIndex ?? 0;
  }

  /**
   * Puts the ledger into recovery when it is not what the home remembers; one that stands is
   * remembered as it is now, on disk when this resolves.
   * @returns why it is not what the home remembers
   * @throws HOME_MARK_UNUSABLE
   */
  async keep(): Promise<string | undefined> {
    const judged = await this.#judge();
    if (typeof judged === "string") return judged;
    await this.#mark.raise(toMark(judged));
    return undefined;
  }

  /**
   * As `keep`, for work that goes on all the same where the home cannot be written: an older ledger is found
   * by what was written before. It is told of once.
   */
  async look(log: Logger): Promise<void> {
    try {
      await this.keep();
      this.#trouble = undefined;
    } catch (error) {
      if (errorCode(error) !== "HOME_MARK_UNUSABLE") throw error;
      const reason = errorMessage(error);
      if (this.#trouble !== reason) log.error({ reason }, "the home cannot remember its ledger");
      this.#trouble = reason;
    }
  }

  /**
   * Before something committed is told to others: it is remembered first. What a standby that took over has
   * not got is told to nobody: an address would be the next customer's.
   * @throws COMMIT_LOST, RECOVERY, HOME_MARK_UNUSABLE
   */
  async beforeTelling(told: Told): Promise<void> {
    const { eventSeq = 0, addresses = [] } = told;
    const known = this.#mark.value;
    const isKnown =
      known !== undefined &&
      known.eventSeq >= eventSeq &&
      addresses.every(({ index }) => known.nextAddressIndex > index);
    if (isKnown && addresses.length === 0) return;
    const reason = isKnown ? undefined : await this.keep();
    if (reason !== undefined) throw inRecovery(reason);
    // After the home has remembered it: if the commit is lost from now on, the guard notices.
    if (await this.#has({ eventSeq, addresses })) return;
    throw commitLost();
  }

  async #has({ eventSeq, addresses }: Required<Told>): Promise<boolean> {
    const rows = await this.#database.query(
      `SELECT 1 FROM event_counter
        WHERE seq >= $1 AND NOT EXISTS (
          SELECT 1 FROM unnest($2::bigint[], $3::text[]) AS told (index, customer_id)
           WHERE NOT EXISTS (SELECT 1 FROM deposit_address d
                              WHERE d.index = told.index AND d.customer_id = told.customer_id))`,
      [
        eventSeq,
        addresses.map(({ index }) => index),
        addresses.map(({ customerId }) => customerId),
      ],
    );
    return rows.length > 0;
  }

  /**
   * Before something is told that nobody asked for now: as `beforeTelling`, but nothing of a ledger in
   * recovery, or of one that is behind and that nobody has found yet. A number that was told already is no
   * proof: in an older ledger it may stand for another event.
   * @throws RECOVERY, HOME_MARK_UNUSABLE
   */
  async beforeSending(told: { readonly eventSeq: number }): Promise<void> {
    const reason = await this.check();
    if (reason !== undefined) throw inRecovery(reason);
    await refuseInRecovery(this.#database);
    await this.beforeTelling(told);
  }

  /**
   * In a commit that books: the database may be another one since the guard has looked at it. Nothing is
   * closed by this: who looks next does.
   * @throws RECOVERY where the ledger is not what the home remembers
   */
  async assertStands(tx: Sql): Promise<void> {
    const mark = this.#mark.value;
    const reason = mark && lossOf(mark, await readLedgerState(tx, mark));
    if (reason !== undefined) throw inRecovery(reason);
  }

  /** Puts the ledger into recovery when it is not what the home remembers. @returns why it is not */
  async check(): Promise<string | undefined> {
    const judged = await this.#judge();
    return typeof judged === "string" ? judged : undefined;
  }

  /** @returns the ledger's account of itself, or why it was closed */
  async #judge(): Promise<LedgerState | string> {
    for (;;) {
      const mark = this.#mark.value;
      const state = await readLedgerState(this.#database, mark);
      if (mark === undefined || lossOf(mark, state) === undefined) return state;
      const reason = await closeLost(this.#database, { mark, reportedBy: this.#reporter });
      if (reason !== undefined) return reason;
      // It was recovered at this moment: what it says of itself is another thing now.
    }
  }
}

/**
 * Closes a ledger if it is behind still when no other commit can change it: it may have been
 * recovered since it was looked at, and that would be undone.
 * @returns why it is behind
 */
function closeLost(
  database: SqlDatabase,
  { mark, reportedBy }: { readonly mark: LedgerMark; readonly reportedBy: string },
): Promise<string | undefined> {
  return database.transaction(async (tx) => {
    await holdForIncident(tx, "RECOVERY");
    const reason = lossOf(mark, await readLedgerState(tx, mark));
    if (reason === undefined) return undefined;
    await writeLoss(tx, { reason, mark, reportedBy });
    await addTold(tx, mark);
    return reason;
  });
}
