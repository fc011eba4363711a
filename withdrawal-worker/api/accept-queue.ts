/** Gathers requests that arrive while the database is busy, so that one commit serves many. */
import { AppError } from "../../chain/errors.js";
import type { Atoken } from "../../chain/units.js";
import type { HashedPolicy } from "../../ledger/policy/policy.js";
import {
  type AcceptOutcome,
  acceptWithdrawals,
  answerRepeats,
  type WithdrawalRequest,
} from "../../ledger/withdrawals/withdrawals.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { Clock } from "../../runtime/process/clock.js";
import { Batcher } from "../../runtime/process/batcher.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import type { WorkerError } from "../errors.js";
import { WORKER_FAILPOINTS } from "../failpoints.js";
import type { PolicySource } from "../lane/lane-context.js";
import { isPolicyFault } from "../lane/lane-faults.js";

/** Requests in one commit: enough that commits do not bound the rate, small enough to stay quick. */
const MAX_BATCH = 100;

/** Half of a busy commit's cost does not depend on how many requests it holds. */
const GATHER_MS = 8;

/** What an `AcceptQueue` needs beside the database. */
export interface AcceptQueueOptions {
  /** Told after a commit that holds at least one new withdrawal. */
  readonly onAccepted: () => void;
  /** Smallest amount of a new request; 0 takes any. */
  readonly minimumAtoken: Atoken;
  readonly policy: PolicySource;
  /** Whether the home's own kill switch stops new requests; the ledger's is read with them. */
  readonly isStopped: () => boolean;
  readonly clock: Clock;
  /** Once it has fired, nothing is gathered any more. */
  readonly signal: AbortSignal;
}

/** Accepts withdrawal requests; bounded by the HTTP server's open requests. */
export class AcceptQueue {
  readonly #database: SqlDatabase;
  readonly #options: AcceptQueueOptions;
  readonly #batcher: Batcher<WithdrawalRequest, AcceptOutcome | Error>;

  constructor(database: SqlDatabase, options: AcceptQueueOptions) {
    this.#database = database;
    this.#options = options;
    this.#batcher = new Batcher({
      run: (requests) => this.#commit(requests),
      maxBatchItems: MAX_BATCH,
      gather: { waitMs: GATHER_MS, signal: options.signal },
    });
  }

  /** Resolves when the request's outcome is committed. Rejects with the database's fault. */
  async accept(request: WithdrawalRequest): Promise<AcceptOutcome> {
    const outcome = await this.#batcher.addOne(request);
    if (outcome instanceof Error) throw outcome;
    return outcome;
  }

  async #commit(requests: readonly WithdrawalRequest[]): Promise<(AcceptOutcome | Error)[]> {
    try {
      const { clock, minimumAtoken, isStopped } = this.#options;
      const policy = await this.#policy();
      if (isPolicyFault(policy)) {
        const answers = await answerRepeats(this.#database, requests);
        return answers.map((answer) => answer ?? policy);
      }
      const rules = { minimumAtoken, nowMs: clock.nowMs(), policy, isStopped: isStopped() };
      const outcomes = await acceptWithdrawals(this.#database, requests, rules);
      if (outcomes.some(({ outcome }) => outcome === "accepted")) {
        failpoint(WORKER_FAILPOINTS.afterAcceptCommit);
        this.#options.onAccepted();
      }
      return [...outcomes];
    } catch (error) {
      const isOutage = error instanceof AppError && error.retriable;
      if (requests.length === 1 || isOutage) {
        const fault = error instanceof Error ? error : new Error(String(error));
        return requests.map(() => fault);
      }
      // One request must not take down those that happened to arrive with it.
      const outcomes: (AcceptOutcome | Error)[] = [];
      for (const request of requests) outcomes.push(...(await this.#commit([request])));
      return outcomes;
    }
  }

  /** What new requests are judged by, or why none are. */
  async #policy(): Promise<HashedPolicy | WorkerError> {
    try {
      return await this.#options.policy.current();
    } catch (error) {
      if (isPolicyFault(error)) return error;
      throw error;
    }
  }
}
