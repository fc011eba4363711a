/**
 * The service that is asked about each withdrawal before it is paid: one POST, `{withdrawalId,
 * customerId, asset, destination, amountUnits}`, and `{"decision": "allow" | "deny" | "review",
 * "reference"?}` back. Whatever else comes, or nothing, means that it is asked again, and that nothing
 * is paid meanwhile. The wallet's round waits for the answers: a service that hangs is waited for once.
 */
import { errorMessage } from "../../chain/errors.js";
import { cleanForeignText } from "../../chain/evm/foreign-text.js";
import type { Screening } from "../../ledger/policy/policy.js";
import {
  SCREENING_VERDICTS,
  type ScreeningAnswer,
} from "../../ledger/policy/screening-verdicts.js";
import type { QueuedWithdrawal } from "../../ledger/withdrawals/nonce-slots.js";
import { NodeFault } from "../../rpc-client/errors.js";
import { createHttpPoster, type HttpPoster } from "../../rpc-client/http-post.js";
import { type Clock, systemClock } from "../../runtime/process/clock.js";
import type { Logger } from "../../runtime/process/logger.js";

/** An answer is a word and a reference. */
const MAX_ANSWER_BYTES = 65_536;

/** Questions at once. */
const PARALLEL = 8;

/** Questions of one round: a service that is slow must not hold up what it has answered. */
const MAX_ASKED = 64;

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
  let known: { readonly screening: Screening; readonly poster: HttpPoster } | undefined;
  /** Nobody was answered in time: until then nothing is asked. */
  let restsUntilMs = Number.NEGATIVE_INFINITY;
  const posterFor = (screening: Screening) => {
    const isSame =
      known?.screening.url === screening.url && known.screening.timeoutMs === screening.timeoutMs;
    if (known !== undefined && isSame) return known.poster;
    known?.poster.close();
    const { url, timeoutMs } = screening;
    const poster = createHttpPoster({ url, timeoutMs, maxResponseBytes: MAX_ANSWER_BYTES });
    known = { screening, poster };
    restsUntilMs = Number.NEGATIVE_INFINITY;
    return poster;
  };
  return {
    async ask(screening, withdrawals, { signal }) {
      const poster = posterFor(screening);
      if (clock.monotonicMs() < restsUntilMs) return [];
      const waiting = withdrawals.slice(0, MAX_ASKED);
      const answers: ScreeningAnswer[] = [];
      let isLate = false;
      const work = async () => {
        while (!isLate) {
          const next = waiting.shift();
          if (next === undefined) return;
          const answer = await askOne(poster, next, { signal, log });
          if (answer === "late") isLate = true;
          else if (answer !== undefined) answers.push(answer);
        }
      };
      await Promise.all(Array.from({ length: PARALLEL }, work));
      if (isLate && answers.length === 0) restsUntilMs = clock.monotonicMs() + screening.timeoutMs;
      return answers;
    },
    close: () => known?.poster.close(),
  };
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
    signal.throwIfAborted();
    log.warn({ id, reason: errorMessage(error) }, "screening did not answer");
    return error instanceof NodeFault && error.code === "NODE_TIMEOUT" ? "late" : undefined;
  }
}

function readAnswer({ id }: QueuedWithdrawal, text: string): ScreeningAnswer {
  const value: unknown = JSON.parse(text);
  const read = (name: string): unknown => Reflect.get(Object(value), name);
  const [decision, given] = [read("decision"), read("reference")];
  const verdict = SCREENING_VERDICTS.find((known) => known === decision);
  if (verdict === undefined) throw new TypeError("the answer names no decision");
  const reference = typeof given === "string" ? given : "";
  return {
    withdrawalId: id,
    verdict,
    reference: cleanForeignText(reference, MAX_REFERENCE_CHARACTERS),
  };
}
