/** Settings of the lanes of an exchange whose database can be lost (`desk.ts`). */
import type { LaneSettings } from "../../../withdrawal-worker/lane/lane-context.js";

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
  // A backup holds the lease of the worker of then; nobody waits for it here.
  leaseMs: 1,
  gas: GAS,
  stall: { repriceAfterMs: 30_000, giveUpAfterMs: 600_000, alarmAfterMs: 60_000 },
  failures: { failureFeeAtoken: 0n, maxCount: 0, windowMs: 60_000 },
};
