/**
 * Sessions, in memory alone: the console's end is everybody's logout, and what a session can open is
 * never on disk. A browser's cookie is known by its digest only.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../runtime/process/clock.js";
import type { ConsoleRole } from "../users/roles.js";

/** Who uses the console now. */
export interface Session {
  readonly user: string;
  readonly role: ConsoleRole;
  /** Opens the APIs for this user alone. */
  readonly apiKey: string;
  /** True while only the password may be changed. */
  readonly mustChange: boolean;
  /** What every form of this session carries. */
  readonly formToken: string;
  /** Forms of this session that were sent, by their keys: each is carried out once. */
  readonly sentForms: LRUCache<string, SentForm>;
  /** Where actions have led its user who has not come there yet: each tells once what was done. */
  readonly untold: LRUCache<string, true>;
}

/** A form that was sent. */
export interface SentForm {
  /** Digest of where it was sent and of all that was written. */
  readonly content: string;
  /** Where its sender is led. */
  readonly answer: Promise<string>;
}

/** Bounds of sessions. */
export interface SessionLimits {
  readonly idleMs: number;
  readonly maxMs: number;
  readonly maxSessions: number;
}

interface Kept {
  readonly session: Session;
  readonly startedMs: number;
  usedMs: number;
}

/** Forms of one session that are remembered as sent. */
const MAX_SENT_FORMS = 1_000;

/** Addresses of one session that may be led to: who does not come there is told nothing later. */
const MAX_UNTOLD = 100;

const TOKEN_BYTES = 32;

/** A random text for a cookie or a form. */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString("base64url");
}

/** Whether two texts are equal, in a time that does not tell how far they agree. */
export function isSameToken(left: string, right: string): boolean {
  const [a, b] = [left, right].map((text) => createHash("sha256").update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

/** All sessions of the process. */
export class SessionStore {
  private readonly sessions: LRUCache<string, Kept>;
  /** Ties the form of a login to the browser that asked for it. */
  private readonly loginSecret = randomBytes(TOKEN_BYTES);

  constructor(
    private readonly limits: SessionLimits,
    private readonly clock: Clock,
  ) {
    this.sessions = new LRUCache({ max: limits.maxSessions });
  }

  /** Sessions now, those included that ended by time and were not asked for since. */
  get size(): number {
    return this.sessions.size;
  }

  /** Begins a session. @param ledTo see `Session.untold` @returns what the browser's cookie holds */
  begin(who: Pick<Session, "user" | "role" | "apiKey" | "mustChange">, ledTo?: string): string {
    const id = newToken();
    const nowMs = this.clock.monotonicMs();
    const sentForms = new LRUCache<string, SentForm>({ max: MAX_SENT_FORMS });
    const untold = new LRUCache<string, true>({ max: MAX_UNTOLD });
    if (ledTo !== undefined) untold.set(ledTo, true);
    const session = { ...who, formToken: newToken(), sentForms, untold };
    this.sessions.set(digestOf(id), { session, startedMs: nowMs, usedMs: nowMs });
    return id;
  }

  /** The session of a cookie, used now; undefined for none, and for one that ended. */
  use(id: string | undefined): Session | undefined {
    if (id === undefined) return undefined;
    const digest = digestOf(id);
    const kept = this.sessions.get(digest);
    if (kept === undefined) return undefined;
    const nowMs = this.clock.monotonicMs();
    const { idleMs, maxMs } = this.limits;
    if (nowMs - kept.usedMs >= idleMs || nowMs - kept.startedMs >= maxMs) {
      this.sessions.delete(digest);
      return undefined;
    }
    kept.usedMs = nowMs;
    return kept.session;
  }

  /** Ends the session of a cookie. */
  end(id: string | undefined): void {
    if (id !== undefined) this.sessions.delete(digestOf(id));
  }

  /** Ends all sessions of a user. */
  endAllOf(user: string): void {
    for (const [digest, { session }] of this.sessions.entries()) {
      if (session.user === user) this.sessions.delete(digest);
    }
  }

  /** Ends all sessions with a key of the APIs that opens nothing any more; who has another one goes on. */
  endAllWith(apiKey: string): void {
    for (const [digest, { session }] of this.sessions.entries()) {
      if (session.apiKey === apiKey) this.sessions.delete(digest);
    }
  }

  /** What the form of a login carries for the browser with this cookie. */
  loginToken(cookie: string): string {
    return createHmac("sha256", this.loginSecret).update(cookie).digest("base64url");
  }
}

function digestOf(id: string): string {
  return createHash("sha256").update(id).digest("hex");
}
