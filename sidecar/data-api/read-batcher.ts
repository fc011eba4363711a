/** Reads of many requests in few requests to the node; answers at fixed heights are kept. */
import { LRUCache } from "lru-cache";

/** How reads are gathered. */
export interface ReadBatcherOptions<Query, Answer extends object> {
  /** Names a query; equal names have equal answers for ever. */
  readonly keyOf: (query: Query) => string;
  /** Answers in the order of the queries. */
  readonly read: (queries: readonly Query[]) => Promise<readonly Answer[]>;
  /** Whether an answer may be given again. */
  readonly isFinal: (answer: Answer) => boolean;
  /** Answers kept; each costs some 200 bytes. */
  readonly maxKept: number;
}

/** Queries of one batch: what the node takes in one HTTP request, two calls each. */
const MAX_BATCH_QUERIES = 250;

/** Batches in flight; one that waits grows meanwhile. */
const MAX_IN_FLIGHT = 2;

interface Waiting<Query, Answer> {
  readonly query: Query;
  readonly key: string;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Gathers the queries of one turn of the event loop, and those that come during a read. */
export class ReadBatcher<Query, Answer extends object> {
  private readonly kept: LRUCache<string, Answer>;
  private readonly pending = new Map<string, Promise<Answer>>();
  private waiting: Waiting<Query, Answer>[] = [];
  private inFlight = 0;
  private isScheduled = false;

  constructor(private readonly options: ReadBatcherOptions<Query, Answer>) {
    this.kept = new LRUCache({ max: options.maxKept });
  }

  /** The answer, from memory or with the next batch. Throws what `read` throws. */
  get(query: Query): Answer | Promise<Answer> {
    const key = this.options.keyOf(query);
    const known = this.kept.get(key) ?? this.pending.get(key);
    if (known !== undefined) return known;
    const answer = new Promise<Answer>((resolve, reject) => {
      this.waiting.push({ query, key, resolve, reject });
    });
    this.pending.set(key, answer);
    this.schedule();
    return answer;
  }

  private schedule(): void {
    if (this.isScheduled || this.waiting.length === 0 || this.inFlight >= MAX_IN_FLIGHT) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      const batch = this.waiting.splice(0, MAX_BATCH_QUERIES);
      this.inFlight += 1;
      void this.answer(batch).finally(() => {
        this.inFlight -= 1;
        this.schedule();
      });
      this.schedule();
    });
  }

  private async answer(batch: readonly Waiting<Query, Answer>[]): Promise<void> {
    try {
      const answers = await this.options.read(batch.map(({ query }) => query));
      batch.forEach(({ key, resolve, reject }, position) => {
        const answer = answers[position];
        if (answer === undefined) return reject(new Error("an answer is missing"));
        if (this.options.isFinal(answer)) this.kept.set(key, answer);
        resolve(answer);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      for (const { key } of batch) this.pending.delete(key);
    }
  }
}
