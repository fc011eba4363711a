/**
 * Follows the head: it wakes open pages, and notices when the node tells another chain than before. A
 * published block never changes, but a node can lose blocks with its disk, or be another one.
 */
import type { Height } from "../../chain/hex.js";
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import { createWakeup, type Wakeup } from "../../runtime/process/task.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { subscribeNewHeads } from "../../rpc-client/ws-subscription.js";
import type { HeadEvent } from "../server/live-streams.js";
import type { HeaderView } from "./evm-json.js";

/** What is remembered of a head. */
type SeenBlock = Pick<HeaderView, "height" | "hash" | "timestampSeconds">;

/** What the tracker works with. */
export interface HeadTrackerOptions {
  readonly chain: {
    head(options: RpcOptions): Promise<SeenBlock>;
    /** Those that the node has. */
    keptBlocks(heights: readonly Height[], options: RpcOptions): Promise<readonly SeenBlock[]>;
  };
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
  private current: SeenBlock | undefined;
  private replacements = 0;
  private following: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: HeadTrackerOptions) {}

  /** Undefined until the node has answered for the first time. */
  get head(): HeadEvent | undefined {
    return this.current;
  }

  /** How often the chain was another one than before: pages that were final are not any more. */
  get generation(): number {
    return this.replacements;
  }

  /** Begins to follow, until the signal fires. */
  start(): void {
    const wakeup = createWakeup();
    this.following = Promise.all([this.look(wakeup), this.listen(wakeup)]);
  }

  async stop(): Promise<void> {
    await this.following;
  }

  private async look(wakeup: Wakeup): Promise<void> {
    const { chain, signal, log, onHead } = this.options;
    while (!signal.aborted) {
      try {
        const { height, hash, timestampSeconds } = await chain.head({ signal });
        if (hash !== this.current?.hash) {
          if (!(await this.hasCurrent(height))) this.replacements += 1;
          this.current = { height, hash, timestampSeconds };
          onHead({ height, timestampSeconds });
        }
      } catch (error) {
        if (!signal.aborted) log.debug({ err: error }, "the node does not tell its head");
      }
      // The signal ends the wait by an error, and then the loop.
      await wakeup.wait({ signal, timeoutMs: POLL_MS }).catch(() => undefined);
    }
  }

  /**
   * Whether the block that was the head is still in the chain; true before the first. Where the node has
   * deleted it nobody can tell, and what was made of it is made anew.
   */
  private async hasCurrent(newest: Height): Promise<boolean> {
    const { current } = this;
    if (current === undefined) return true;
    if (newest < current.height) return false;
    const { chain, signal } = this.options;
    const [block] = await chain.keptBlocks([current.height], { signal });
    return block?.hash === current.hash;
  }

  private async listen(wakeup: Wakeup): Promise<void> {
    const { wsUrl: url, signal } = this.options;
    for await (const head of subscribeNewHeads({ url, signal })) {
      if (head.height !== this.current?.height) wakeup.wake();
    }
  }
}
