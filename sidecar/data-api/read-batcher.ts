/** Reads of many requests in few requests to the node; answers at fixed heights are kept. */
import { errorCode } from "../../chain/errors.js";
import { Batcher } from "../../runtime/process/batcher.js";
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

/** Gathers the queries of one turn of the event loop, and those that come during a read. */
export class ReadBatcher<Query, Answer extends object> {
  private readonly kept: LRUCache<string, Answer>;
  private readonly pending = new Map<string, Promise<Answer>>();
  private readonly batcher: Batcher<Query, Answer>;

  constructor(private readonly options: ReadBatcherOptions<Query, Answer>) {
    this.kept = new LRUCache({ max: options.maxKept });
    this.batcher = new Batcher({
      run: options.read,
      maxBatchItems: MAX_BATCH_QUERIES,
      maxRunning: MAX_IN_FLIGHT,
      // Who waited behind a node that hangs is told so, instead of waiting for it a second time.
      endsWaiting: (error) => errorCode(error) === "NODE_TIMEOUT",
    });
  }

  /** The answer, from memory or with the next batch. Throws what `read` throws. */
  get(query: Query): Answer | Promise<Answer> {
    const key = this.options.keyOf(query);
    const known = this.kept.get(key) ?? this.pending.get(key);
    if (known !== undefined) return known;
    const answer = this.read(key, query).finally(() => this.pending.delete(key));
    this.pending.set(key, answer);
    return answer;
  }

  private async read(key: string, query: Query): Promise<Answer> {
    const answer = await this.batcher.addOne(query);
    if (this.options.isFinal(answer)) this.kept.set(key, answer);
    return answer;
  }
}
