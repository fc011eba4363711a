/**
 * Keeps a lease while its holder works: a round that waits for a slow node must not lose the wallet
 * to another worker, which would then lose it in the same way.
 */
import { LeaseLostError, type WalletLease } from "../../ledger/withdrawals/wallet-lease.js";
import type { LaneLedger } from "./lane-ledger.js";

/** Renewals within one lease: two may come late before it runs out. */
const RENEWALS_PER_LEASE = 3;

/** After so many leases a round counts as hung, and another worker may take the wallet. */
const MAX_LEASES_PER_ROUND = 40;

/**
 * Runs `work` and renews the lease meanwhile. Its signal fires with the outer one, or with
 * LEASE_LOST when the lease went to another.
 */
export async function whileHolding<T>(
  lease: WalletLease,
  options: {
    readonly ledger: Pick<LaneLedger, "renewLease">;
    readonly leaseMs: number;
    readonly signal: AbortSignal;
  },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { ledger, leaseMs, signal } = options;
  const held = new AbortController();
  // Taken off again at the end: the outer signal lives as long as the process.
  const onOuterAbort = () => held.abort(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", onOuterAbort, { once: true });
  let renewal: Promise<void> = Promise.resolve();
  let renewals = 0;
  const renew = async (): Promise<void> => {
    // Without the database nothing can be lost now: every commit proves the lease again.
    const isHeld = await ledger.renewLease(lease, { leaseMs }).catch(() => true);
    if (!isHeld) {
      held.abort(new LeaseLostError("LEASE_LOST", "another worker has taken this wallet over"));
    }
  };
  const timer = setInterval(() => {
    renewals += 1;
    if (renewals > MAX_LEASES_PER_ROUND * RENEWALS_PER_LEASE) clearInterval(timer);
    else renewal = renewal.then(renew);
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
