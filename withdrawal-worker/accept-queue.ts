/** Gathers requests that arrive while the database is busy, so that one commit serves many. */
import { AppError } from "../chain/errors.js";
import {
  type AcceptOutcome,
  acceptWithdrawals,
  type WithdrawalRequest,
} from "../ledger/withdrawals.js";
import { failpoint } from "../runtime/failpoint.js";
import type { SqlDatabase } from "../runtime/sql.js";
import { WORKER_FAILPOINTS } from "./failpoints.js";

/** Requests in one commit: enough that commits do not bound the rate, small enough to stay quick. */
const MAX_BATCH = 100;

interface WaitingRequest {
  readonly request: WithdrawalRequest;
  readonly resolve: (outcome: AcceptOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** Accepts withdrawal requests; bounded by the HTTP server's open requests. */
export class AcceptQueue {
  readonly #database: SqlDatabase;
  readonly #onAccepted: () => void;
  #waiting: WaitingRequest[] = [];
  #isRunning = false;

  /** @param onAccepted told after a commit that holds at least one new withdrawal */
  constructor(database: SqlDatabase, onAccepted: () => void) {
    this.#database = database;
    this.#onAccepted = onAccepted;
  }

  /** Resolves when the request's outcome is committed. Rejects with the database's fault. */
  accept(request: WithdrawalRequest): Promise<AcceptOutcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      if (!this.#isRunning) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MAX_BATCH);
      await this.#commit(batch);
    }
    this.#isRunning = false;
  }

  async #commit(batch: readonly WaitingRequest[]): Promise<void> {
    try {
      const outcomes = await acceptWithdrawals(
        this.#database,
        batch.map(({ request }) => request),
      );
      if (outcomes.some(({ outcome }) => outcome === "accepted")) {
        failpoint(WORKER_FAILPOINTS.afterAcceptCommit);
        this.#onAccepted();
      }
      outcomes.forEach((outcome, index) => batch[index]?.resolve(outcome));
    } catch (error) {
      const isOutage = error instanceof AppError && error.retriable;
      if (batch.length === 1 || isOutage) {
        for (const { reject } of batch) reject(error);
        return;
      }
      // One request must not take down those that happened to arrive with it.
      for (const entry of batch) await this.#commit([entry]);
    }
  }
}
