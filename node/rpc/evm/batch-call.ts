/**
 * One call of a batch. What has become large of it goes on when no other call of the batch does: its client
 * gets all answers together, so that they would all be in memory before the first of them is counted.
 */
import { inheritOwner } from "../../../runtime/process/work-owner.js";
import { Turns } from "../../../runtime/turns/turns.js";
import { responseTooLarge, RpcFault } from "./errors.js";
import { TOO_MANY_LARGE } from "./large-lane.js";
import type { CallContext, Subscriber } from "./method.js";

/** What the calls of one batch have in common. */
export class BatchOfCalls {
  readonly turns: Turns;
  /** Of calls that run, and have asked for a signal: one listener for all, where there may be a thousand. */
  private readonly endings = new Set<AbortController>();
  private isListening = false;

  constructor(
    readonly context: CallContext,
    callCount: number,
  ) {
    const full = () => new RpcFault("LIMIT_EXCEEDED", TOO_MANY_LARGE);
    this.turns = new Turns({ maxRunning: 1, maxWaiting: callCount, full });
  }

  /** Ends with the batch, or by itself. */
  addEnding(): AbortController {
    const { signal } = this.context;
    const ending = new AbortController();
    inheritOwner(ending.signal, [signal]);
    if (signal.aborted) {
      ending.abort(signal.reason);
      return ending;
    }
    this.endings.add(ending);
    if (!this.isListening) {
      this.isListening = true;
      const endAll = () => {
        for (const one of this.endings) one.abort(signal.reason);
      };
      signal.addEventListener("abort", endAll, { once: true });
      this.context.afterReply(() => signal.removeEventListener("abort", endAll));
    }
    return ending;
  }

  removeEnding(ending: AbortController): void {
    this.endings.delete(ending);
  }
}

/** Context of one call of a batch. */
export class BatchCall implements CallContext {
  private ending: AbortController | undefined;
  private isRefused = false;
  private turn: Promise<void> | undefined;
  private leave: (() => void) | undefined;

  constructor(private readonly batch: BatchOfCalls) {}

  get subscriber(): Subscriber | undefined {
    return this.batch.context.subscriber;
  }

  get client(): string {
    return this.batch.context.client;
  }

  get signal(): AbortSignal {
    if (this.ending === undefined) {
      this.ending = this.batch.addEnding();
      if (this.isRefused) this.refuse();
    }
    return this.ending.signal;
  }

  afterReply(callback: () => void): void {
    this.batch.context.afterReply(callback);
  }

  /** Whoever has its turn waits for nothing of the batch but the place that its calls have together. */
  becameLarge(): Promise<void> {
    this.turn ??= this.takeTurn();
    return this.turn;
  }

  /** Ends what runs for it: there is no room for its answer. */
  refuse(): void {
    this.isRefused = true;
    this.ending?.abort(responseTooLarge());
  }

  /** Its answer is made: the next one has its turn. */
  settled(): void {
    if (this.ending !== undefined) this.batch.removeEnding(this.ending);
    this.leave?.();
    this.leave = undefined;
  }

  private async takeTurn(): Promise<void> {
    this.leave = await this.batch.turns.enter(this.signal);
    await this.batch.context.becameLarge();
  }
}
