/**
 * What a node does not tell of one address, wallet or token is put off: it keeps no other waiting, and the
 * round ends with the fault once all had their turn.
 */
import { isBehind, isOfOneQuestion, isPruned, NodeFault, RpcError } from "../rpc-client/errors.js";
import { type Clock, systemClock } from "../runtime/process/clock.js";
import { DepositError } from "./errors.js";

/** The first wait of what was put off; it doubles each time. */
const FIRST_DELAY_MS = 500;

/** The longest: a node that was exchanged for one that tells is asked again by then. */
const MAX_DELAY_MS = 300_000;

/** The longest where a node is only behind: it has come to the block before, or syncs for hours. */
const MAX_BEHIND_DELAY_MS = 4_000;

/** Things remembered, some tens of MB; what is put off beyond them is asked again in each round. */
const MAX_REMEMBERED = 200_000;

/** What rounds have put off, and when it is asked for again: not all of it, each half second, for ever. */
export class PutOffMemory {
  readonly #waiting = new Map<string, { readonly untilMs: number; readonly delayMs: number }>();
  #rewinds = 0;
  /** Why the first of a round was put off: it stands for those that are not asked for. */
  reason: unknown;

  constructor(private readonly clock: Pick<Clock, "monotonicMs"> = systemClock) {}

  /** A round begins: on a chain that came back shorter all is asked for anew. */
  begin(rewinds: number): void {
    if (rewinds !== this.#rewinds) this.#waiting.clear();
    this.#rewinds = rewinds;
  }

  /** Whether its wait is not over yet. */
  isWaiting(what: string): boolean {
    return (this.#waiting.get(what)?.untilMs ?? 0) > this.clock.monotonicMs();
  }

  /** Notes that asking for it failed once more, and doubles its wait. @param maxDelayMs the longest */
  wait(what: string, maxDelayMs = MAX_DELAY_MS): void {
    const former = this.#waiting.get(what);
    if (former === undefined && this.#waiting.size >= MAX_REMEMBERED) return;
    const delayMs = Math.min(maxDelayMs, 2 * (former?.delayMs ?? FIRST_DELAY_MS / 2));
    this.#waiting.set(what, { delayMs, untilMs: this.clock.monotonicMs() + delayMs });
  }

  /** It is done. A node that tells at last of one thing may tell of all: nothing waits any more. */
  done(what: string): void {
    if (this.#waiting.has(what)) this.#waiting.clear();
  }
}

/** What a round has put off. */
export class PutOff {
  /** Things put off in this round. */
  count = 0;
  #begun = 0;
  #first: { readonly place: number; readonly error: unknown } | undefined;

  constructor(private readonly memory: PutOffMemory) {}

  /**
   * Does one thing, which is put off where a node answers and does not tell; nothing while it waits. It waits
   * for seconds at most where the node is only behind.
   * @param what its name
   * @throws all other faults: a node that cannot be asked tells of nothing else either
   */
  async unlessUntold(what: string, work: () => Promise<void>): Promise<void> {
    const place = this.#begun;
    this.#begun += 1;
    if (this.memory.isWaiting(what)) return this.#note(place, this.memory.reason);
    try {
      await work();
      this.memory.done(what);
    } catch (error) {
      if (!isUntold(error)) throw error;
      // A node that lacks the newest blocks has them a moment later.
      this.memory.wait(what, isBehind(nodesOwn(error)) ? MAX_BEHIND_DELAY_MS : MAX_DELAY_MS);
      this.#note(place, error);
    }
  }

  #note(place: number, error: unknown): void {
    this.count += 1;
    if (place >= (this.#first?.place ?? Infinity)) return;
    this.#first = { place, error };
    this.memory.reason = error;
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

/**
 * An answer of the first node about the past.
 * @param what it was asked for, behind "has deleted"
 * @throws NOT_READY where it has deleted that; its other faults
 */
export async function answerOfFirst<T>(asked: Promise<T>, what: string): Promise<T> {
  return asked.catch((cause: unknown) => {
    if (!isPruned(cause)) throw cause;
    const message =
      `the node has deleted ${what}, which is booked when it shows that: name one that keeps old ` +
      "blocks and states in node.json-rpc-url";
    throw new DepositError("NOT_READY", message, { cause, retriable: true });
  });
}

function isOfNode(fault: unknown): boolean {
  const own = nodesOwn(fault);
  return own instanceof RpcError || own instanceof NodeFault;
}

/** What is told in other words has the node's own as its cause. */
function nodesOwn(error: unknown): unknown {
  return error instanceof DepositError ? error.cause : error;
}
