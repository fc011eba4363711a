/**
 * Finished answers in memory, within a bound of bytes; whoever asks for the same meanwhile waits.
 */
import { LRUCache } from "lru-cache";
import { type FinishedAnswer, packAnswer } from "../../web/server/finished-answer.js";

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
      sizeCalculation: ({ body, packed }, key) =>
        body.length + (packed?.length ?? 0) + key.length + ENTRY_BYTES,
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
      .then(packAnswer)
      .then((answer) => {
        this.answers.set(key, answer, answer.isFinal ? {} : { ttl: LIVE_TTL_MS });
        return answer;
      })
      .finally(() => this.making.delete(key));
    this.making.set(key, made);
    return made;
  }
}
