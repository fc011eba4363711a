/** Settings of the lanes of an exchange whose database can be lost (`desk.ts`). */
import type { LaneSettings } from "../../../withdrawal-worker/lane/lane-context.js";
import type { LaneLedger } from "../../../withdrawal-worker/lane/lane-ledger.js";

/** One TOKEN. */
export const TOKEN = 10n ** 18n;

/** Gas of its lanes. */
export const GAS = {
  marginPercent: 20,
  limitMax: 1_000_000n,
  priceFloorAtoken: 1n,
  priceCapAtoken: 10n ** 9n,
  feePerPayoutAtoken: TOKEN,
  feePerDayAtoken: 1_000n * TOKEN,
  codeGasInFlight: 4_000_000n,
};

/** Settings of its lanes. */
export const LANE: LaneSettings = {
  batchSize: 50,
  maxLiveSlots: 4_096,
  // Long enough that no request is overdue for its payer within a test.
  scanIntervalMs: 10_000,
  pollIntervalMs: 20,
  rebroadcastIntervalMs: 1_000,
  retryDelayMs: 1_000,
  receiptPatienceMs: 3_000,
  leaseMs: 60_000,
  gas: GAS,
  stall: { repriceAfterMs: 30_000, giveUpAfterMs: 600_000, alarmAfterMs: 60_000 },
  failures: { failureFeeAtoken: 0n, maxCount: 0, windowMs: 60_000 },
};

/**
 * A ledger whose leases have run out at once: a backup holds the lease of the worker of then, and nobody waits
 * for it here. The lanes know them as long ones, as they renew a lease three times while it lasts.
 */
export function withoutWaiting(ledger: LaneLedger): LaneLedger {
  const leaseMs = 1;
  return {
    ...ledger,
    acquireLease: (options) => ledger.acquireLease({ ...options, leaseMs }),
    renewLease: (lease) => ledger.renewLease(lease, { leaseMs }),
  };
}
