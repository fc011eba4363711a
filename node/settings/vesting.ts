/**
 * Coins of genesis that become free with time (x/auth/vesting): all at once, or in proportion to
 * the time that has passed. A schedule is part of the genesis and never changes.
 */
import type { Address } from "../../chain/address.js";
import type { Atoken } from "../../chain/units.js";

/** What of an account's first balance is locked, and until when. */
export interface VestingSchedule {
  /** Locked at first, atoken; at most the account's balance. */
  readonly originalAtoken: Atoken;
  /** Unix milliseconds from which on coins become free; undefined frees all of them at the end. */
  readonly startTimeMs: number | undefined;
  /** Unix milliseconds at which all are free. */
  readonly endTimeMs: number;
}

/** Schedules of a chain by account. */
export type VestingSchedules = ReadonlyMap<Address, VestingSchedule>;

/** What of a schedule is still locked at a time; what became free is rounded down. */
export function lockedAt(schedule: VestingSchedule, timeMs: number): bigint {
  const { originalAtoken, startTimeMs, endTimeMs } = schedule;
  if (timeMs >= endTimeMs) return 0n;
  if (startTimeMs === undefined || timeMs <= startTimeMs) return originalAtoken;
  const freeAtoken =
    (originalAtoken * BigInt(timeMs - startTimeMs)) / BigInt(endTimeMs - startTimeMs);
  return originalAtoken - freeAtoken;
}

/** Locked coins of all accounts together: what a circulating supply leaves out (D14). */
export function lockedSupplyAt(schedules: VestingSchedules | undefined, timeMs: number): bigint {
  let sumAtoken = 0n;
  for (const schedule of schedules?.values() ?? []) sumAtoken += lockedAt(schedule, timeMs);
  return sumAtoken;
}

/**
 * Why an account of genesis cannot have a schedule; undefined when it can.
 * @param account its balance, and whether it has code
 */
export function vestingFault(
  { originalAtoken, startTimeMs, endTimeMs }: VestingSchedule,
  account: { readonly balanceAtoken: Atoken; readonly hasCode: boolean },
): string | undefined {
  if (account.hasCode) return "a contract cannot have locked coins";
  if (originalAtoken === 0n) return "nothing is locked: leave vesting out";
  if (originalAtoken > account.balanceAtoken) return "more is locked than there is";
  if (startTimeMs !== undefined && startTimeMs >= endTimeMs) return "vesting ends before it begins";
  return undefined;
}
