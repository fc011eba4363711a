/**
 * The service that is asked about each withdrawal before it is paid: one POST, `{withdrawalId,
 * customerId, asset, destination, amountUnits}`, and `{"decision": "allow" | "deny" | "review",
 * "reference"?, "withdrawalId"?}` back. Whatever else comes, or nothing, means that it is asked again,
 * and that nothing is paid meanwhile. The wallet's round waits a moment for the answers; what comes
 * later is there for the next one.
 */
import { errorMessage } from "../../../chain/errors.js";
import { hasRepeatedField } from "../../../chain/encoding/json-fields.js";
import { cleanForeignText } from "../../../chain/evm/foreign-text.js";
import type { Screening } from "../../../ledger/policy/policy.js";
import {
  SCREENING_VERDICTS,
  type ScreeningAnswer,
} from "../../../ledger/policy/screening-verdicts.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import type { QueuedWithdrawal } from "../../../ledger/withdrawals/nonce-slots.js";
import { NodeFault } from "../../../rpc-client/errors.js";
import { createHttpPoster, type HttpPoster } from "../../../rpc-client/http-post.js";
import { type Clock, systemClock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { RareLine } from "../../../runtime/process/rare-line.js";
import { sleep, TaskError, withTimeout } from "../../../runtime/process/task.js";
import { type AskLine, AskOrder, type Ranked, type Rank } from "./ask-order.js";

/** An answer is a word and a reference. */
const MAX_ANSWER_BYTES = 65_536;

/** Questions at once, those included that a round before has left without an answer. */
const PARALLEL = 8;

/** Of these places so many are kept from questions beside others of the same customer. */
const KEPT_FOR_FIRST = 1;

/** And so many from all that was never asked, for what had no answer before. */
const KEPT_FOR_AGAIN = 1;

/** Questions at once, of all wallets, that had no answer before. */
const PARALLEL_AGAIN = 5;

/** Questions that one round has: a service that is slow must not hold up what it has answered. */
const MAX_ASKED = 64;

/** How long all payments of a wallet wait for answers, also those that nobody asks about. */
const PATIENCE_MS = 2_000;

/** How long they wait for what had no answer before: an answer that comes later is there the next time. */
const PATIENCE_AGAIN_MS = 250;

/** Answers that are kept for the next rounds, the latest: of what was taken back nobody asks again. */
const MAX_KEPT = 1_000;

const MAX_REFERENCE_CHARACTERS = 200;

/** Asks a screening service. */
export interface Screener {
  /** Answers that came; withdrawals without one are asked about again. */
  ask(
    screening: Screening,
    withdrawals: readonly QueuedWithdrawal[],
    options: { readonly signal: AbortSignal },
  ): Promise<readonly ScreeningAnswer[]>;
}

/** Keeps connections to the service that the policy names. */
export function createScreener(
  log: Logger,
  clock: Clock = systemClock,
): Screener & { close(): void } {
  let service: Service | undefined;
  return {
    ask(screening, withdrawals, options) {
      if (service?.isOf(screening) !== true) {
        service?.close();
        service = new Service(screening, { log, clock });
      }
      return service.ask(withdrawals, options);
    },
    close: () => service?.close(),
  };
}

/** Questions that are begun for one round. */
interface Turn {
  readonly line: AskLine;
  begun: number;
  isOver: boolean;
  /** Customers of whom one that was never asked before had no answer in time. */
  readonly late: Set<string>;
  hasAnswer: boolean;
}

/** A question that the service has not answered yet. */
interface Open {
  readonly turn: Turn;
  readonly rank: Rank;
}

/** One service: what it has been asked, and what it has answered since whoever asked went on. */
class Service {
  readonly #screening: Screening;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #poster: HttpPoster;
  readonly #closing = new AbortController();
  readonly #order: AskOrder;
  readonly #open = new Map<WithdrawalId, Open>();
  readonly #unanswered: RareLine;
  /** It has answered the last question that had no answer before: it may have been away, and be back. */
  #answersAgain = false;
  readonly #answers = new Map<WithdrawalId, ScreeningAnswer>();
  /** Nobody was answered in time: until then nothing is asked. */
  #restsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(screening: Screening, parts: { readonly log: Logger; readonly clock: Clock }) {
    const { url, timeoutMs } = screening;
    this.#screening = screening;
    this.#log = parts.log;
    this.#clock = parts.clock;
    this.#order = new AskOrder(parts.clock);
    this.#unanswered = new RareLine(parts.clock);
    this.#poster = createHttpPoster({ url, timeoutMs, maxResponseBytes: MAX_ANSWER_BYTES });
  }

  isOf({ url, timeoutMs }: Screening): boolean {
    return this.#screening.url === url && this.#screening.timeoutMs === timeoutMs;
  }

  close(): void {
    this.#closing.abort();
    this.#poster.close();
  }

  async ask(
    withdrawals: readonly QueuedWithdrawal[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<readonly ScreeningAnswer[]> {
    if (this.#clock.monotonicMs() >= this.#restsUntilMs) await this.#askNew(withdrawals, signal);
    return withdrawals.flatMap(({ id }) => {
      const answer = this.#answers.get(id);
      this.#answers.delete(id);
      return answer ?? [];
    });
  }

  /** What was asked for a round before had its time: nobody waits for it again. */
  async #askNew(withdrawals: readonly QueuedWithdrawal[], signal: AbortSignal): Promise<void> {
    const unasked = withdrawals.filter(({ id }) => this.#isUnasked(id));
    const line = this.#order.line(unasked);
    const turn: Turn = { line, begun: 0, isOver: false, late: new Set(), hasAnswer: false };
    try {
      await withTimeout(() => this.#askAll(turn), { timeoutMs: PATIENCE_MS, signal });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof TaskError)) throw error;
    } finally {
      turn.isOver = true;
    }
  }

  #isUnasked(id: WithdrawalId): boolean {
    return !this.#open.has(id) && !this.#answers.has(id);
  }

  async #askAll(turn: Turn): Promise<void> {
    await Promise.all(Array.from({ length: PARALLEL }, () => this.#work(turn)));
    // What one customer asks for says little of the service: the others would wait for nothing.
    if (turn.late.size <= 1 || turn.hasAnswer) return;
    this.#restsUntilMs = this.#clock.monotonicMs() + this.#screening.timeoutMs;
  }

  async #work(turn: Turn): Promise<void> {
    while (!turn.isOver) {
      const next = this.#next(turn);
      if (next === undefined) return;
      const asked = this.#askOne(turn, next);
      if (next.rank !== "again") await asked;
      else await this.#waitBriefly(asked);
    }
  }

  /** Wallets may come to the same withdrawal: who is asked about by now is passed over. */
  #next(turn: Turn): Ranked | undefined {
    for (; turn.begun < MAX_ASKED; ) {
      const next = turn.line.next((rank) => this.#hasPlace(turn, rank));
      if (next === undefined || this.#isUnasked(next.withdrawal.id)) return next;
    }
    return undefined;
  }

  /**
   * Whether one more may be asked for a round, beside its own questions and those that rounds before have
   * left. A customer's first has a place of its own, where others have left more than there are.
   */
  #hasPlace(turn: Turn, rank: Rank): boolean {
    const ranks = [...this.#open.values()]
      .filter((open) => open.turn === turn || open.turn.isOver)
      .map((open) => open.rank);
    if (rank === "first") return ranks.length < PARALLEL || !ranks.includes("first");
    const shared = PARALLEL - KEPT_FOR_FIRST;
    if (ranks.length >= shared) return false;
    if (rank === "further") {
      return ranks.filter((own) => own !== "again").length < shared - KEPT_FOR_AGAIN;
    }
    const again = [...this.#open.values()].filter((open) => open.rank === "again");
    return again.length < PARALLEL_AGAIN;
  }

  async #waitBriefly(asked: Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    const waitMs = this.#answersAgain ? PATIENCE_MS : PATIENCE_AGAIN_MS;
    await Promise.race([asked, sleep(waitMs, { signal }).catch(() => undefined)]);
  }

  async #askOne(turn: Turn, { withdrawal, rank }: Ranked): Promise<void> {
    const { id, customerId } = withdrawal;
    turn.begun += 1;
    this.#open.set(id, { turn, rank });
    this.#order.begin(withdrawal);
    try {
      const answer = await ask(this.#poster, withdrawal, { signal: this.#closing.signal });
      turn.hasAnswer = true;
      if (rank === "again") this.#answersAgain = true;
      this.#order.answered(id);
      this.#keep(answer);
    } catch (error) {
      // The policy names another service by now, or the process ends.
      if (this.#closing.signal.aborted) return;
      if (rank === "again") this.#answersAgain = false;
      this.#order.failed(id);
      this.#unanswered.happened((times) =>
        this.#log.warn({ id, reason: errorMessage(error), times }, "screening did not answer"),
      );
      if (rank === "again" || !isLate(error)) return;
      turn.late.add(customerId);
      turn.isOver = true;
    } finally {
      this.#open.delete(id);
    }
  }

  #keep(answer: ScreeningAnswer): void {
    this.#answers.set(answer.withdrawalId, answer);
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= MAX_KEPT) return;
      this.#answers.delete(oldest);
    }
  }
}

/** @throws where nothing came, or something that is no answer */
async function ask(
  poster: HttpPoster,
  withdrawal: QueuedWithdrawal,
  options: { readonly signal: AbortSignal },
): Promise<ScreeningAnswer> {
  const { id, customerId, asset, destination, amountUnits } = withdrawal;
  const terms = { withdrawalId: id, customerId, asset, destination };
  const body = JSON.stringify({ ...terms, amountUnits: amountUnits.toString() });
  const reply = await poster.post(body, options);
  if (reply.status !== 200) throw new TypeError(`status ${reply.status}`);
  return readAnswer(withdrawal, reply.body);
}

function isLate(error: unknown): boolean {
  return error instanceof NodeFault && error.code === "NODE_TIMEOUT";
}

function readAnswer({ id }: QueuedWithdrawal, body: Buffer): ScreeningAnswer {
  const value: unknown = JSON.parse(body.toString("utf8"));
  // Of two decisions the one that the service meant may be the other.
  if (hasRepeatedField(body, value)) throw new TypeError("a field of the answer is there twice");
  const read = (name: string): unknown => Reflect.get(Object(value), name);
  const [decision, given] = [read("decision"), read("reference")];
  // Sent twice or too late, it may come where the answer to another question is waited for.
  if ((read("withdrawalId") ?? id) !== id)
    throw new TypeError("the answer is about another withdrawal");
  const verdict = SCREENING_VERDICTS.find((known) => known === decision);
  if (verdict === undefined) throw new TypeError("the answer names no decision");
  const reference = typeof given === "string" ? given : "";
  return {
    withdrawalId: id,
    verdict,
    reference: cleanForeignText(reference, MAX_REFERENCE_CHARACTERS),
  };
}
