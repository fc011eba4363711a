/** What all clients of the node's servers together may make it keep in memory. */
import { CLIENT_PATIENCE, COUNTED_BYTES, HeldBytes } from "../../runtime/http/held-bytes.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Metrics } from "../../runtime/process/metrics.js";

/**
 * What a piece of a request takes beside its bytes, whatever it comes in: libraries keep each until the
 * request is whole, and the client chooses how many there are.
 */
export const PIECE_BYTES = 256;

/** Two bounds over all connections of all servers. */
export interface ClientMemory {
  /** Requests that have not come whole, or have no answer yet. */
  readonly unread: HeldBytes;
  /** Answers and notifications that clients have not taken. */
  readonly unsent: HeldBytes;
}

/** Bytes of each kind. */
export interface ClientMemoryLimits {
  readonly unreadBytes: number;
  readonly unsentBytes: number;
}

/** Some of the largest batches at once; two of the largest answers, hundreds of full blocks. */
const USUAL_LIMITS: ClientMemoryLimits = {
  unreadBytes: 64 * 1024 * 1024,
  unsentBytes: 128 * 1024 * 1024,
};

/** The bounds of one node. */
export function createClientMemory(
  clock: Clock,
  limits: Partial<ClientMemoryLimits> = {},
): ClientMemory {
  const { unreadBytes, unsentBytes } = { ...USUAL_LIMITS, ...limits };
  return {
    unread: new HeldBytes({ maxBytes: unreadBytes, ...CLIENT_PATIENCE }, clock),
    unsent: new HeldBytes({ maxBytes: unsentBytes, ...CLIENT_PATIENCE }, clock),
  };
}

/** Shows how much is held, and how many clients were let go for it. */
export function meterClientMemory(memory: ClientMemory, metrics: Metrics): void {
  const kinds = [
    ["unread", memory.unread],
    ["unsent", memory.unsent],
  ] as const;
  metrics.gauge(
    "causeway_rpc_held_bytes",
    "Bytes kept for clients of the node's servers: unfinished requests, answers not taken",
    ["kind"],
    (gauge) => {
      for (const [kind, { totalBytes }] of kinds) gauge.set({ kind }, totalBytes);
    },
  );
  metrics.gauge(
    "causeway_rpc_clients_let_go",
    "Clients of the node's servers that were let go since the start because too much was kept for them",
    ["kind"],
    (gauge) => {
      for (const [kind, { letGoCount }] of kinds) gauge.set({ kind }, letGoCount);
    },
  );
}

/**
 * Counts a message that has come whole until it is answered, however long that takes.
 * @returns ends that; undefined where there is no room for it: the client was let go
 */
export function holdMessage(
  unread: HeldBytes,
  sizeBytes: number,
  letGo: () => void,
): (() => void) | undefined {
  if (sizeBytes <= COUNTED_BYTES) return () => undefined;
  let isGone = false;
  const holding = unread.hold(() => {
    isGone = true;
    letGo();
  });
  holding.update(sizeBytes);
  if (isGone) return undefined;
  holding.pin();
  return () => holding.release();
}
