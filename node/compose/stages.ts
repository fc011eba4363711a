/**
 * The parts of a process as they come up, one after the other, each with its end. When one cannot
 * start, those before it are ended in reverse: no socket, lock or thread of theirs is left.
 */
import { setMaxListeners } from "node:events";
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";

/** Started parts. */
export class Stages {
  private readonly started: Service[] = [];
  private readonly ending = new AbortController();
  /** Fires when the process shall end, and when the stages are unwound. */
  readonly signal: AbortSignal;

  constructor(
    private readonly log: Logger,
    processSignal: AbortSignal,
  ) {
    this.signal = AbortSignal.any([processSignal, this.ending.signal]);
    setMaxListeners(0, this.signal);
  }

  /**
   * Starts a part and remembers how it ends; a part that does not start has nothing to end.
   * @throws the signal's reason where it has fired: who is told to end opens nothing any more
   */
  async start<T>(
    name: string,
    start: () => T | Promise<T>,
    stop: (part: T) => Promise<unknown>,
  ): Promise<T> {
    this.signal.throwIfAborted();
    const part = await start();
    this.add({ name, stop: async () => void (await stop(part)) });
    return part;
  }

  /** Adds parts that have started, in the order in which they did. */
  add(...services: readonly Service[]): void {
    this.started.push(...services);
  }

  /** All parts, to be stopped in reverse order. */
  services(): readonly Service[] {
    return [...this.started];
  }

  /** Ends all parts in reverse; a fault in one does not keep the others from ending. */
  async unwind(): Promise<void> {
    this.ending.abort(new DOMException("a later stage cannot start", "AbortError"));
    for (const service of this.started.splice(0).toReversed()) {
      await service.stop().catch((err: unknown) => {
        this.log.error({ stage: service.name, err }, "a stage did not end");
      });
    }
  }
}
