/**
 * Whom a screening service is asked about next. What it leaves without an answer comes behind all that it was
 * never asked about, and no customer's questions take all the places of the others.
 */
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import type { QueuedWithdrawal } from "../../../ledger/withdrawals/nonce-slots.js";
import type { Clock } from "../../../runtime/process/clock.js";
import { ClientLines } from "../../../runtime/turns/client-lines.js";

/** Questions without an answer that are remembered, some MB; beyond them the oldest are new again. */
const MAX_REMEMBERED = 10_000;

/** What was not asked about for so long is forgotten: most likely its withdrawal was taken back. */
const REMEMBERED_MS = 3_600_000;

/** The first pause of a question that had no answer; it doubles each time. */
const FIRST_PAUSE_MS = 1_000;

/** The longest: so late does a service that answers again hear of what it left without an answer before. */
const MAX_PAUSE_MS = 60_000;

/**
 * What a question is: about a customer of whom nothing else is without an answer; another one that was never
 * asked; or one that had no answer before.
 */
export type Rank = "first" | "further" | "again";

/** A withdrawal that is asked about now. */
export interface Ranked {
  readonly withdrawal: QueuedWithdrawal;
  readonly rank: Rank;
}

/** Customers' lines, of which turns go from customer to customer. */
interface Waiting {
  readonly client: string;
  readonly withdrawal: QueuedWithdrawal;
}

/** What was asked and has no answer. */
interface Unanswered {
  readonly customerId: string;
  /** When it was asked last, monotonic. */
  readonly askedMs: number;
  /** Its pause, and until when it is not asked again; 0 while its first answer is waited for. */
  readonly pauseMs: number;
  readonly pausedUntilMs: number;
}

/** What one service was asked about without an answer yet; losing it costs each such question once more. */
export class AskOrder {
  /** Those that were asked longest ago first. */
  readonly #unanswered = new Map<WithdrawalId, Unanswered>();
  readonly #countOf = new Map<string, number>();

  constructor(private readonly clock: Pick<Clock, "monotonicMs">) {}

  /**
   * Orders what may be asked about, without what pauses.
   * @param withdrawals those first that have waited longer
   */
  line(withdrawals: readonly QueuedWithdrawal[]): AskLine {
    this.#forgetOld();
    const nowMs = this.clock.monotonicMs();
    const again = withdrawals.flatMap((withdrawal) => {
      const former = this.#unanswered.get(withdrawal.id);
      return former === undefined || former.pausedUntilMs > nowMs ? [] : [{ withdrawal, former }];
    });
    again.sort((a, b) => a.former.askedMs - b.former.askedMs);
    return new AskLine(
      withdrawals.filter(({ id }) => !this.#unanswered.has(id)),
      again.map(({ withdrawal }) => withdrawal),
      (customerId) => this.#countOf.has(customerId),
    );
  }

  /** It is asked about now. */
  begin({ id, customerId }: QueuedWithdrawal): void {
    const { pauseMs = 0 } = this.#unanswered.get(id) ?? {};
    this.answered(id);
    const askedMs = this.clock.monotonicMs();
    this.#unanswered.set(id, { customerId, askedMs, pauseMs, pausedUntilMs: 0 });
    this.#countOf.set(customerId, 1 + (this.#countOf.get(customerId) ?? 0));
  }

  /** No answer came: it pauses, twice as long as the time before. */
  failed(id: WithdrawalId): void {
    const former = this.#unanswered.get(id);
    if (former === undefined) return;
    const pauseMs = Math.min(MAX_PAUSE_MS, Math.max(FIRST_PAUSE_MS, 2 * former.pauseMs));
    const pausedUntilMs = this.clock.monotonicMs() + pauseMs;
    this.#unanswered.set(id, { ...former, pauseMs, pausedUntilMs });
  }

  /** Nobody asks about it any more. */
  answered(id: WithdrawalId): void {
    const former = this.#unanswered.get(id);
    if (former === undefined) return;
    this.#unanswered.delete(id);
    const count = (this.#countOf.get(former.customerId) ?? 0) - 1;
    if (count > 0) this.#countOf.set(former.customerId, count);
    else this.#countOf.delete(former.customerId);
  }

  #forgetOld(): void {
    const sinceMs = this.clock.monotonicMs() - REMEMBERED_MS;
    for (const [id, { askedMs }] of this.#unanswered) {
      if (this.#unanswered.size <= MAX_REMEMBERED && askedMs >= sinceMs) return;
      this.answered(id);
    }
  }
}

/** What one round may ask about. */
export class AskLine {
  readonly #unasked: ClientLines<Waiting>;
  readonly #again: ClientLines<Waiting>;

  /**
   * @param unasked never asked, those before that have waited longer
   * @param again had no answer, those before that were asked longest ago
   * @param isOpen whether a customer has a question without an answer
   */
  constructor(
    unasked: readonly QueuedWithdrawal[],
    again: readonly QueuedWithdrawal[],
    private readonly isOpen: (customerId: string) => boolean,
  ) {
    this.#unasked = linesOf(unasked);
    this.#again = linesOf(again);
  }

  /** Takes out who is next. @param hasPlace whether there is a place for such a question */
  next(hasPlace: (rank: Rank) => boolean): Ranked | undefined {
    const ways: Record<Rank, () => QueuedWithdrawal | undefined> = {
      first: () => this.#unasked.next((customer) => !this.isOpen(customer))?.withdrawal,
      further: () => this.#unasked.next()?.withdrawal,
      again: () => this.#again.next()?.withdrawal,
    };
    for (const rank of ["first", "further", "again"] as const) {
      const withdrawal = hasPlace(rank) ? ways[rank]() : undefined;
      if (withdrawal !== undefined) return { withdrawal, rank };
    }
    return undefined;
  }
}

/** Customers' lines, in the order in which the first of each comes. */
function linesOf(withdrawals: readonly QueuedWithdrawal[]): ClientLines<Waiting> {
  const lines = new ClientLines<Waiting>();
  for (const withdrawal of withdrawals) lines.add({ client: withdrawal.customerId, withdrawal });
  return lines;
}
