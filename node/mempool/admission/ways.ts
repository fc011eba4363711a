/**
 * The ways into the pool, and how much may wait on each until it is judged. None waits for what goes another
 * way, and none is refused for it: whoever fills one, be it with what takes longest to look at, is in nobody
 * else's way.
 */
import { isCosmosBytes } from "../../../chain/cosmos/cosmos-transaction.js";
import type { PoolLimits } from "../pool-limits.js";
import type { TransactionOrigin } from "../pool-port.js";

/** Of clients' transactions, and of those that peers pass on. */
export type Way = "evm" | "cosmos" | "peer-evm" | "peer-cosmos";

/**
 * The way of one call's transactions. What is sent of Cosmos' may take long to verify and need not be
 * paid for: payments on the EVM do not wait for it.
 */
export function wayOf(raws: readonly Uint8Array[], origin: TransactionOrigin): Way {
  const isCosmos = raws.some(isCosmosBytes);
  if (origin === "peer") return isCosmos ? "peer-cosmos" : "peer-evm";
  return isCosmos ? "cosmos" : "evm";
}

/** Who handed over what goes a way. */
export function originOf(way: Way): TransactionOrigin {
  return way === "peer-evm" || way === "peer-cosmos" ? "peer" : "client";
}

/**
 * Parts of the bounds that each way has. The keys of peers are free, whatever each of them may send; their
 * Cosmos transactions take longest to look at, and half is still more than a greeting of one of them.
 */
const SHARES: Readonly<Record<Way, number>> = {
  evm: 1,
  cosmos: 0.75,
  "peer-evm": 0.75,
  "peer-cosmos": 0.5,
};

/** Transactions, and their raw bytes. */
export interface Load {
  readonly count: number;
  readonly sizeBytes: number;
}

/** What these come to. */
export function loadOf(raws: readonly Uint8Array[]): Load {
  return { count: raws.length, sizeBytes: raws.reduce((sum, { length }) => sum + length, 0) };
}

/** Most that may wait on a way. */
export function roomOn(way: Way, limits: PoolLimits): Load {
  const { waitingCount, waitingBytes } = limits;
  return { count: waitingCount * SHARES[way], sizeBytes: waitingBytes * SHARES[way] };
}

/** What waits on each of the ways. */
export class WaitingByWay {
  private readonly byWay = new Map<Way, Load>();

  constructor(private readonly limits: PoolLimits) {}

  /** Transactions on all ways together. */
  get count(): number {
    return [...this.byWay.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** Counts what comes in. @returns takes it out again; undefined where the way is full */
  enter(way: Way, { count, sizeBytes }: Load): (() => void) | undefined {
    const before = this.on(way);
    const room = roomOn(way, this.limits);
    const isTooMuch =
      before.count + count > room.count || before.sizeBytes + sizeBytes > room.sizeBytes;
    if (isTooMuch) return undefined;
    this.add(way, { count, sizeBytes });
    return () => this.add(way, { count: -count, sizeBytes: -sizeBytes });
  }

  private on(way: Way): Load {
    return this.byWay.get(way) ?? { count: 0, sizeBytes: 0 };
  }

  private add(way: Way, { count, sizeBytes }: Load): void {
    const before = this.on(way);
    this.byWay.set(way, { count: before.count + count, sizeBytes: before.sizeBytes + sizeBytes });
  }
}
