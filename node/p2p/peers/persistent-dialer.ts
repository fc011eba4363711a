/** Keeps the connection with one peer up for as long as the node runs. */
import { errorCode, errorMessage } from "../../../chain/errors.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { sleep } from "../../../runtime/process/task.js";
import type { NodeId } from "../node-key.js";
import type { KnownPeerAddress, PeerAddress } from "./peer-address.js";

/** A connection as the dialer sees it. */
export interface DialledLink {
  onClose(listener: () => void): void;
}

/** What the dialer needs of the host. */
export interface DialPorts {
  linkTo(nodeId: NodeId): DialledLink | undefined;
  dial(address: PeerAddress, options: { readonly signal: AbortSignal }): Promise<DialledLink>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Uniform in [0, 1); spreads the dials of many nodes. */
  random(): number;
}

/** First pause after a connection was lost, or could not be made. */
const MIN_PAUSE_MS = 100;

/** Longest pause: a peer that comes back is found within seconds, however long it was away. */
const MAX_PAUSE_MS = 5_000;

/** A connection that lived this long was a good one: the pauses begin anew. */
const GOOD_LIFE_MS = 10_000;

/**
 * Dials, waits until the connection ends, and dials again, until the signal fires. A connection
 * that the peer dialled is as good.
 */
export async function keepConnected(
  address: KnownPeerAddress,
  ports: DialPorts,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = ports;
  let pauseMs = 0;
  let lastFault: string | undefined;
  for (;;) {
    const startMs = clock.monotonicMs();
    try {
      const link = ports.linkTo(address.nodeId) ?? (await ports.dial(address, { signal }));
      lastFault = undefined;
      await ended(link, signal);
    } catch (error) {
      signal.throwIfAborted();
      const fault = errorCode(error);
      // Said once: a peer that is away for a week must not fill the log.
      if (fault !== lastFault && ports.linkTo(address.nodeId) === undefined) {
        log.info({ peer: address.nodeId, reason: errorMessage(error) }, "peer not reached");
      }
      lastFault = fault;
    }
    const wasGood = clock.monotonicMs() - startMs >= GOOD_LIFE_MS;
    pauseMs = wasGood ? MIN_PAUSE_MS : Math.min(Math.max(pauseMs * 2, MIN_PAUSE_MS), MAX_PAUSE_MS);
    await sleep(pauseMs * (0.5 + ports.random() / 2), { signal });
  }
}

/** Resolves when the connection has ended; rejects with the signal's reason. */
function ended(link: DialledLink, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    link.onClose(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
  });
}
