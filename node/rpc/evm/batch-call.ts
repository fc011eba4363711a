/**
 * One call of a batch. What has become large of it goes on when no other call of the batch does: its client
 * gets all answers together, so that they would all be in memory before the first of them is counted.
 */
import { Turns } from "../../../runtime/process/turns.js";
import { responseTooLarge, RpcFault } from "./errors.js";
import { TOO_MANY_LARGE } from "./large-lane.js";
import type { CallContext, Subscriber } from "./method.js";

/** Turns for the calls of one batch, of so many. */
export function batchTurns(callCount: number): Turns {
  const full = () => new RpcFault("LIMIT_EXCEEDED", TOO_MANY_LARGE);
  return new Turns({ maxRunning: 1, maxWaiting: callCount, full });
}

/** Context of one call of a batch. */
export class BatchCall implements CallContext {
  private ending: AbortController | undefined;
  private ownSignal: AbortSignal | undefined;
  private isRefused = false;
  private turn: Promise<void> | undefined;
  private leave: (() => void) | undefined;

  /** @param batch what its calls have in common */
  constructor(
    private readonly batch: CallContext,
    private readonly turns: Turns,
  ) {}

  get subscriber(): Subscriber | undefined {
    return this.batch.subscriber;
  }

  get signal(): AbortSignal {
    if (this.ownSignal === undefined) {
      this.ending = new AbortController();
      this.ownSignal = AbortSignal.any([this.batch.signal, this.ending.signal]);
      if (this.isRefused) this.refuse();
    }
    return this.ownSignal;
  }

  afterReply(callback: () => void): void {
    this.batch.afterReply(callback);
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
    this.leave?.();
    this.leave = undefined;
  }

  private async takeTurn(): Promise<void> {
    this.leave = await this.turns.enter(this.signal);
    await this.batch.becameLarge();
  }
}
