/**
 * Keeps a lease while its holder works: work that waits for a slow node must not lose the lease to
 * another process, which would then lose it in the same way.
 */

/** Renewals within one lease: two may come late before it runs out. */
const RENEWALS_PER_LEASE = 3;

/** After so many leases without a step the work counts as hung, and another process may take it over. */
const MAX_LEASES_PER_STEP = 40;

/** How a lease is held. */
export interface LeaseHolding {
  /** Holds it on. @returns false when it went to another */
  readonly renew: () => Promise<boolean>;
  /** What the work is ended with when it is lost. */
  readonly lost: () => Error;
  readonly leaseMs: number;
  readonly signal: AbortSignal;
  /** Steps that the work has come further by; absent where all of it is one. */
  readonly steps?: () => number;
}

/**
 * Runs `work` and renews the lease meanwhile. Its signal fires with the outer one, or with the
 * holding's `lost` when the lease went to another.
 */
export async function whileHolding<T>(
  { renew, lost, leaseMs, signal, steps = () => 0 }: LeaseHolding,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const held = new AbortController();
  // Taken off again at the end: the outer signal lives as long as the process.
  const onOuterAbort = () => held.abort(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", onOuterAbort, { once: true });
  let renewal: Promise<void> = Promise.resolve();
  let renewals = 0;
  let seenSteps = steps();
  const renewOnce = async (): Promise<void> => {
    // Without the database nothing can be lost now: every commit proves the lease again.
    const isHeld = await renew().catch(() => true);
    if (!isHeld) held.abort(lost());
  };
  const timer = setInterval(() => {
    if (steps() !== seenSteps) renewals = 0;
    seenSteps = steps();
    renewals += 1;
    if (renewals > MAX_LEASES_PER_STEP * RENEWALS_PER_LEASE) clearInterval(timer);
    else renewal = renewal.then(renewOnce);
  }, leaseMs / RENEWALS_PER_LEASE);
  // Work that never ends must not keep a process alive.
  timer.unref();
  try {
    return await work(held.signal);
  } catch (error) {
    // Whatever was waiting was torn off, and says so in words of its own.
    held.signal.throwIfAborted();
    throw error;
  } finally {
    clearInterval(timer);
    signal.removeEventListener("abort", onOuterAbort);
    await renewal;
  }
}
