/**
 * Finished answers in memory, within a bound of bytes; whoever asks for the same meanwhile waits.
 */
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";

/** A finished answer. */
export interface FinishedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly etag: string;
  /** True where it can never change. */
  readonly isFinal: boolean;
}

/** Memory that an entry takes beside its body. */
const ENTRY_BYTES = 1_024;

/** How long an answer is given again that can change: shorter than a block takes. */
const LIVE_TTL_MS = 1_000;

/** Answers by key; a key names path, query and language. */
export class PageCache {
  private readonly answers: LRUCache<string, FinishedAnswer>;
  private readonly making = new Map<string, Promise<FinishedAnswer>>();

  constructor(maxBytes: number) {
    this.answers = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ body }, key) => body.length + key.length + ENTRY_BYTES,
    });
  }

  /** The answer if it is there. */
  get(key: string): FinishedAnswer | undefined {
    return this.answers.get(key);
  }

  /** The answer, made at most once at a time; faults are not kept. */
  make(key: string, work: () => Promise<FinishedAnswer>): Promise<FinishedAnswer> {
    const known = this.making.get(key);
    if (known !== undefined) return known;
    const made = work()
      .then((answer) => {
        this.answers.set(key, answer, answer.isFinal ? {} : { ttl: LIVE_TTL_MS });
        return answer;
      })
      .finally(() => this.making.delete(key));
    this.making.set(key, made);
    return made;
  }
}

/** Names the content of an answer. */
export function etagOf(body: Uint8Array): string {
  return `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"`;
}

/** Whether a client that sends `If-None-Match` has it already (RFC 9110, weak comparison). */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch
    .split(",")
    .some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
}
