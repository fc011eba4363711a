/** Follows the head: it wakes open pages, and nothing depends on it. */
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import { createWakeup } from "../../runtime/process/task.js";
import { subscribeNewHeads } from "../../rpc-client/ws-subscription.js";
import type { HeadEvent } from "../server/live-streams.js";
import type { ChainSource } from "./chain-source.js";

/** What the tracker works with. */
export interface HeadTrackerOptions {
  readonly chain: Pick<ChainSource, "head">;
  readonly wsUrl: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly onHead: (head: HeadEvent) => void;
}

/** Pause between looks where nothing wakes it earlier. */
const POLL_MS = 1_000;

/** The newest head that was seen. */
export class HeadTracker implements Service {
  readonly name = "head tracker";
  private current: HeadEvent | undefined;
  private following: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: HeadTrackerOptions) {}

  /** Undefined until the node has answered for the first time. */
  get head(): HeadEvent | undefined {
    return this.current;
  }

  /** Begins to follow, until the signal fires. */
  start(): void {
    const bell = createWakeup();
    this.following = Promise.all([this.look(bell), this.listen(bell)]);
  }

  async stop(): Promise<void> {
    await this.following;
  }

  private async look(bell: ReturnType<typeof createWakeup>): Promise<void> {
    const { chain, signal, log, onHead } = this.options;
    while (!signal.aborted) {
      try {
        const { height, timestampSeconds } = await chain.head({ signal });
        if (height !== this.current?.height) {
          this.current = { height, timestampSeconds };
          onHead(this.current);
        }
      } catch (error) {
        if (!signal.aborted) log.debug({ err: error }, "the node does not tell its head");
      }
      // The signal ends the wait by an error, and then the loop.
      await bell.wait({ signal, timeoutMs: POLL_MS }).catch(() => undefined);
    }
  }

  private async listen(bell: ReturnType<typeof createWakeup>): Promise<void> {
    const { wsUrl: url, signal } = this.options;
    for await (const head of subscribeNewHeads({ url, signal })) {
      if (head.height !== this.current?.height) bell.wake();
    }
  }
}
