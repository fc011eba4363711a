/** Who waits until a block has the transaction that it has sent (EIP-7966). */
import type { Hash32 } from "../../../chain/hex.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { ChainView } from "../../view/chain-view.js";
import type { EventBus } from "../../view/event-bus.js";
import { RpcFault } from "./errors.js";
import { WaitingHashes } from "./subscriptions/waiting-hashes.js";

/** Requests that wait at once, of all clients. */
export const MAX_WAITING_SENDS = 10_000;

/** go-ethereum's. */
const USUAL_WAIT_MS = 20_000;

/** What is left of a request's usual time is for its receipt. */
const MAX_WAIT_MS = 25_000;

type WaitEnd = "mined" | "waited" | "aborted";

/** All requests that wait for the block of a transaction. */
export class ReceiptWaits {
  private readonly waiting = new WaitingHashes<() => void>(MAX_WAITING_SENDS);
  private count = 0;
  private readonly stopListening: () => void;

  constructor(
    private readonly view: Pick<ChainView, "locate">,
    bus: EventBus,
    private readonly clock: Pick<Clock, "monotonicMs">,
  ) {
    this.stopListening = bus.on("block", ({ block }) => {
      if (this.count === 0) return;
      const hashes = block.transactions.map(({ tx }) => tx.hash);
      for (const [tell] of this.waiting.found(hashes)) tell();
    });
  }

  /** Stops listening to the node. */
  close(): void {
    this.stopListening();
  }

  /**
   * Sends a transaction, and waits until a block has it.
   * @param send resolves with the hash once the pool has it
   * @param wantedMs for how long to wait, within a bound; 0 and undefined for as long as is usual
   * @throws what `send` throws; LIMIT_EXCEEDED before anything is sent; SEND_TIMED_OUT with the hash
   */
  async sent(
    send: () => Promise<Hash32>,
    wantedMs: number | undefined,
    signal: AbortSignal,
  ): Promise<Hash32> {
    if (this.count >= MAX_WAITING_SENDS) {
      throw new RpcFault("LIMIT_EXCEEDED", "too many transactions are waited for");
    }
    this.count += 1;
    const startMs = this.clock.monotonicMs();
    try {
      const hash = await send();
      const waitMs = Math.min(wantedMs || USUAL_WAIT_MS, MAX_WAIT_MS);
      const ended = await this.ending(hash, waitMs, signal);
      if (ended === "mined") return hash;
      const text = "The transaction was added to the transaction pool but wasn't processed in";
      const passedMs = Math.round(this.clock.monotonicMs() - startMs);
      const shown = durationText(ended === "waited" ? waitMs : passedMs);
      throw new RpcFault("SEND_TIMED_OUT", `${text} ${shown}`, hash);
    } finally {
      this.count -= 1;
    }
  }

  /** What comes first: a block that has it, the end of the time to wait, or of the request's. */
  private async ending(hash: Hash32, waitMs: number, signal: AbortSignal): Promise<WaitEnd> {
    // A block may have come before the pool's answer did.
    if (this.view.locate(hash) !== undefined) return "mined";
    if (signal.aborted) return "aborted";
    const hashes = new Set([hash]);
    return new Promise((resolve) => {
      const end = (how: WaitEnd) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
        this.waiting.remove(tell, hashes);
        resolve(how);
      };
      const tell = () => end("mined");
      const giveUp = () => end("aborted");
      const timer = setTimeout(() => end("waited"), waitMs);
      signal.addEventListener("abort", giveUp, { once: true });
      // Whoever has it: what is sent is waited for.
      this.waiting.add(tell, hashes, "");
    });
  }
}

/** As Go writes a duration of less than a minute. */
function durationText(milliseconds: number): string {
  return milliseconds < 1_000 ? `${milliseconds}ms` : `${milliseconds / 1_000}s`;
}
