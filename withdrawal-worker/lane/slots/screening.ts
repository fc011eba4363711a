/**
 * The service that is asked about each withdrawal before it is paid: one POST, `{withdrawalId,
 * customerId, asset, destination, amountUnits}`, and `{"decision": "allow" | "deny" | "review",
 * "reference"?, "withdrawalId"?}` back. Whatever else comes, or nothing, means that it is asked again,
 * and that nothing is paid meanwhile. The wallet's round waits a moment for the answers; what comes
 * later is there for the next one.
 */
import { errorMessage } from "../../../chain/errors.js";
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
import { TaskError, withTimeout } from "../../../runtime/process/task.js";

/** An answer is a word and a reference. */
const MAX_ANSWER_BYTES = 65_536;

/** Questions at once, those included that a round before has left without an answer. */
const PARALLEL = 8;

/** Questions that one round has: a service that is slow must not hold up what it has answered. */
const MAX_ASKED = 64;

/** How long all payments of a wallet wait for answers, also those that nobody asks about. */
const PATIENCE_MS = 2_000;

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
  readonly waiting: QueuedWithdrawal[];
  isOver: boolean;
  /** One had no answer in time. */
  isLate: boolean;
  hasAnswer: boolean;
}

/** One service: what it has been asked, and what it has answered since whoever asked went on. */
class Service {
  readonly #screening: Screening;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #poster: HttpPoster;
  readonly #closing = new AbortController();
  readonly #asked = new Map<WithdrawalId, Turn>();
  readonly #answers = new Map<WithdrawalId, ScreeningAnswer>();
  /** Nobody was answered in time: until then nothing is asked. */
  #restsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(screening: Screening, parts: { readonly log: Logger; readonly clock: Clock }) {
    const { url, timeoutMs } = screening;
    this.#screening = screening;
    this.#log = parts.log;
    this.#clock = parts.clock;
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
    const unasked = withdrawals.filter(({ id }) => !this.#asked.has(id) && !this.#answers.has(id));
    const waiting = unasked.slice(0, MAX_ASKED);
    const turn: Turn = { waiting, isOver: false, isLate: false, hasAnswer: false };
    try {
      await withTimeout(() => this.#askAll(turn), { timeoutMs: PATIENCE_MS, signal });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof TaskError)) throw error;
    } finally {
      turn.isOver = true;
    }
  }

  async #askAll(turn: Turn): Promise<void> {
    const left = [...this.#asked.values()].filter(({ isOver }) => isOver);
    const length = Math.max(0, PARALLEL - left.length);
    await Promise.all(Array.from({ length }, () => this.#work(turn)));
    if (!turn.isLate || turn.hasAnswer) return;
    this.#restsUntilMs = this.#clock.monotonicMs() + this.#screening.timeoutMs;
  }

  async #work(turn: Turn): Promise<void> {
    while (!turn.isOver) {
      const next = turn.waiting.shift();
      if (next === undefined) return;
      this.#asked.set(next.id, turn);
      const options = { signal: this.#closing.signal, log: this.#log };
      const answer = await askOne(this.#poster, next, options).finally(() => {
        this.#asked.delete(next.id);
      });
      if (answer === "late") {
        turn.isLate = true;
        turn.isOver = true;
      } else if (answer !== undefined) {
        turn.hasAnswer = true;
        this.#keep(answer);
      }
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

/** The answer; "late" where none came in time, undefined where something else did. */
async function askOne(
  poster: HttpPoster,
  withdrawal: QueuedWithdrawal,
  { signal, log }: { readonly signal: AbortSignal; readonly log: Logger },
): Promise<ScreeningAnswer | "late" | undefined> {
  const { id, customerId, asset, destination, amountUnits } = withdrawal;
  const terms = { withdrawalId: id, customerId, asset, destination };
  const body = JSON.stringify({ ...terms, amountUnits: amountUnits.toString() });
  try {
    const reply = await poster.post(body, { signal });
    if (reply.status !== 200) throw new TypeError(`status ${reply.status}`);
    return readAnswer(withdrawal, reply.body.toString("utf8"));
  } catch (error) {
    // The policy names another service by now, or the process ends.
    if (signal.aborted) return undefined;
    log.warn({ id, reason: errorMessage(error) }, "screening did not answer");
    return error instanceof NodeFault && error.code === "NODE_TIMEOUT" ? "late" : undefined;
  }
}

function readAnswer({ id }: QueuedWithdrawal, text: string): ScreeningAnswer {
  const value: unknown = JSON.parse(text);
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
