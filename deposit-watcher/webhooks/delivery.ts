/**
 * Pure: one delivery as it is sent, and what an answer means for it. The identifier stays the same at
 * each try; time and signatures are new.
 */
import { createHmac } from "node:crypto";
import { cleanForeignText } from "../../chain/evm/foreign-text.js";
import { errorCode, errorMessage } from "../../chain/errors.js";
import type { StoredEvent } from "../../ledger/events.js";
import type { DeliveryOutcome } from "../../ledger/webhooks/deliveries.js";
import { type PostAnswer, PostError } from "../../runtime/http/outgoing/guarded-post.js";

/** First pause, and the factor from each to the next: 10 s, 30 s, 90 s ... */
const FIRST_DELAY_MS = 10_000;
const DELAY_FACTOR = 3;

/** Longest pause, also where a receiver asks for a longer one: 4 h. */
const MAX_DELAY_MS = 14_400_000;

/** Shortest pause that a receiver may ask for. */
const MIN_DELAY_MS = 1_000;

/**
 * Tries whose pauses a receiver may make that short. Where it alone decided, as a proxy does that says
 * `Retry-After: 1` to everything, all tries would be over in seconds, and the webhook switched off.
 */
const HURRIED_TRIES = 3;

/** Tries of one delivery: the last one comes some 19 h after the first, 7 h where the receiver hurries. */
const MAX_TRIES = 12;

/** Answers below 500 that ask for another try: timeout, too early, too many requests. */
const RETRIED_STATUSES = new Set([408, 425, 429]);

/** Characters of an answer that are kept for people. */
const EXCERPT_CHARACTERS = 200;

/** Headers and body of one try. */
export interface WebhookMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The event's name for receivers: it never changes, whatever is sent again, and is used once. */
function eventId({ epoch, seq }: Pick<StoredEvent, "epoch" | "seq">): string {
  return `evt_${epoch}_${seq}`;
}

/**
 * The message of an event.
 * @param secrets all live ones: one signature for each, separated by commas
 */
export function createMessage(
  event: StoredEvent,
  { secrets, nowMs }: { readonly secrets: readonly string[]; readonly nowMs: number },
): WebhookMessage {
  const id = eventId(event);
  const { seq, epoch, type, data, at } = event;
  const body = JSON.stringify({ id, seq, epoch, type, data, at });
  const timestamp = Math.floor(nowMs / 1_000).toString();
  const signatures = secrets.map((secret) => {
    const hmac = createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`);
    return `v1=${hmac.digest("hex")}`;
  });
  return {
    headers: {
      "content-type": "application/json",
      "user-agent": "causeway-webhooks/1",
      "causeway-id": id,
      "causeway-timestamp": timestamp,
      "causeway-signature": signatures.join(","),
    },
    body,
  };
}

/** What an answer means; `tries` counts the one that it answers. */
export function judgeAnswer(answer: PostAnswer, tries: number, nowMs: number): DeliveryOutcome {
  const { status, retryAfter } = answer;
  if (status >= 200 && status < 300) return { kind: "delivered", status };
  const words = cleanForeignText(answer.excerpt, EXCERPT_CHARACTERS).trim();
  const isRedirect = status >= 300 && status < 400;
  const what = isRedirect ? `HTTP ${status}: redirects are not followed` : `HTTP ${status}`;
  const error = words === "" || isRedirect ? what : `${what}: ${words}`;
  const mayPass = RETRIED_STATUSES.has(status) || status >= 500;
  const asked = retryAfterMs(retryAfter, nowMs);
  const delayMs = asked === undefined ? delayAfter(tries) : Math.max(shortestAfter(tries), asked);
  return {
    kind: mayPass && tries < MAX_TRIES ? "retry" : "dead",
    status,
    error,
    delayMs: Math.min(delayMs, MAX_DELAY_MS),
  };
}

/** What it means that there was no answer; a target that is forbidden today may be moved again. */
export function judgeFault(fault: unknown, tries: number): DeliveryOutcome {
  const words = fault instanceof PostError ? errorMessage(fault) : errorCode(fault);
  const isFinal = fault instanceof PostError && fault.code === "INVALID_TARGET";
  return {
    kind: isFinal || tries >= MAX_TRIES ? "dead" : "retry",
    status: undefined,
    error: words,
    delayMs: delayAfter(tries),
  };
}

function delayAfter(tries: number): number {
  return Math.min(FIRST_DELAY_MS * DELAY_FACTOR ** Math.min(tries - 1, MAX_TRIES), MAX_DELAY_MS);
}

/** Shortest pause that may be asked for: behind the hurried tries ours begin, from the first one on. */
function shortestAfter(tries: number): number {
  return tries <= HURRIED_TRIES ? MIN_DELAY_MS : delayAfter(tries - HURRIED_TRIES);
}

/** Seconds or an HTTP date (RFC 9110, 10.2.3), as milliseconds from now; undefined for neither. */
function retryAfterMs(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^[0-9]{1,9}$/.test(text)) return Number(text) * 1_000;
  // JavaScript reads "-5" and "1.5" as dates of 2001.
  const dateMs = /^[A-Z][a-z]{2}, .+ GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : dateMs - nowMs;
}
