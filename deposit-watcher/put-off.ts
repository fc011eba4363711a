/**
 * What a node does not tell of one address, wallet or token is put off: it keeps no other waiting, and the
 * round ends with the fault once all had their turn.
 */
import { isOfOneQuestion, isPruned, NodeFault, RpcError } from "../rpc-client/errors.js";
import { DepositError } from "./errors.js";

/** What a round has put off. */
export class PutOff {
  /** How much it is. */
  count = 0;
  #begun = 0;
  #first: { readonly place: number; readonly error: unknown } | undefined;

  /**
   * Does one thing, which is put off where a node answers and does not tell.
   * @throws all other faults: a node that cannot be asked tells of nothing else either
   */
  async unlessUntold(work: () => Promise<void>): Promise<void> {
    const place = this.#begun;
    this.#begun += 1;
    try {
      await work();
    } catch (error) {
      if (!isUntold(error)) throw error;
      this.count += 1;
      if (place < (this.#first?.place ?? Infinity)) this.#first = { place, error };
    }
  }

  /** @throws why the first that was begun was put off: each round the same, whichever was answered first */
  throwFirst(): void {
    if (this.#first !== undefined) throw this.#first.error;
  }
}

/** Whether a node answered and did not tell of one address, wallet or token. */
export function isUntold(error: unknown): boolean {
  return isOfOneQuestion(nodesOwn(error));
}

/** Throws of faults that came beside each other the first that is no node's, or else the first. */
export function throwGravest(results: readonly PromiseSettledResult<unknown>[]): void {
  const faults = results.flatMap((result): unknown[] => {
    return result.status === "rejected" ? [result.reason] : [];
  });
  const grave = faults.find((fault) => !isOfNode(fault)) ?? faults[0];
  if (grave !== undefined) throw grave;
}

/**
 * An answer of the second node about the past.
 * @param what it was asked for, behind "has deleted"
 * @throws NOT_READY where it has deleted that; its other faults
 */
export async function answerOfSecond<T>(
  asked: Promise<T> | undefined,
  what: string,
): Promise<T | undefined> {
  try {
    return await asked;
  } catch (cause) {
    if (!isPruned(cause)) throw cause;
    const message =
      `the second node has deleted ${what}, which is booked when it shows that, too: name one that ` +
      "keeps old states in node.second-json-rpc-url, or none";
    throw new DepositError("NOT_READY", message, { cause, retriable: true });
  }
}

function isOfNode(fault: unknown): boolean {
  const own = nodesOwn(fault);
  return own instanceof RpcError || own instanceof NodeFault;
}

/** What is told in other words has the node's own as its cause. */
function nodesOwn(error: unknown): unknown {
  return error instanceof DepositError ? error.cause : error;
}
