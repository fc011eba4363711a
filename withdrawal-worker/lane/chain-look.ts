/**
 * A look at the nonces of all wallets outside of any lane's round. What is taken back without a nonce may
 * have been paid with one that the database has lost, and a process that has just begun knows nothing of
 * it: its lanes wait for the leases of the one before, and the chain has been asked by nobody.
 */
import { checkNonces, type NonceLook } from "../../ledger/withdrawals/chain-nonces.js";
import { retry, withTimeout } from "../../runtime/process/task.js";
import { ApiError } from "../errors.js";
import type { ShownNonces } from "./shown-nonces.js";

/** Longest that somebody who takes a withdrawal back waits for the node. */
const PATIENCE_MS = 2_000;

/** Between the first looks of a process whose node does not answer, at first and at most. */
const [MIN_DELAY_MS, MAX_DELAY_MS] = [250, 5_000];

/** What looking takes. */
export interface ChainLookParts {
  readonly context: NonceLook;
  /** Told once the chain was asked. */
  readonly shown: ShownNonces;
  /** Ends with the process. */
  readonly signal: AbortSignal;
}

/** Looks for one process. */
export class ChainLook {
  readonly #parts: ChainLookParts;

  constructor(parts: ChainLookParts) {
    this.#parts = parts;
  }

  /**
   * Looks before something ends without a nonce. While the node is away a process that has asked it before
   * goes on by what its lanes were shown since.
   * @throws ApiError 503 UNAVAILABLE where it was never asked, and does not answer
   */
  async beforeEnding(): Promise<void> {
    const { shown, signal } = this.#parts;
    try {
      await withTimeout((each) => this.#look(each), {
        timeoutMs: PATIENCE_MS,
        signal,
        what: "the node",
      });
    } catch (cause) {
      if (shown.wasChainAsked) return;
      throw new ApiError(
        503,
        "UNAVAILABLE",
        "the node has not answered since this worker began, and the chain may have payments that the " +
          "ledger has lost: nothing is taken back before it was asked; try again",
        {},
        { cause },
      );
    }
  }

  /** Looks once, as soon as the node answers. */
  async first({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const delays = { minDelayMs: MIN_DELAY_MS, maxDelayMs: MAX_DELAY_MS };
    try {
      await retry(() => this.#look(signal), { signal, ...delays, isRetriable: () => true });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { context, shown } = this.#parts;
    await checkNonces(context, { knownHeight: 0, signal });
    shown.chainAsked();
  }
}
