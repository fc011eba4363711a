/** What is asked of locked coins: of one account, and of all that genesis names. */
import type { Address } from "../../../chain/address.js";
import type { Height } from "../../../chain/hex.js";
import type { Atoken } from "../../../chain/units.js";
import {
  lockedSupplyAt,
  type VestingSchedule,
  type VestingSchedules,
} from "../../settings/vesting.js";
import { StateAt } from "../../state/state-at.js";
import type { StateReader } from "../../store/state-reader.js";
import { VestingLocks, type VestingState } from "../vesting.js";

/** An account of genesis with locked coins, after a block. */
export interface VestingRead extends VestingSchedule, VestingState {
  /** What of its balance it cannot spend yet, atoken. */
  readonly lockedAtoken: Atoken;
}

/** Locked coins after every block that the node still has. */
export interface VestingReads {
  /** Undefined for an account without a schedule. Throws HISTORY_PRUNED. */
  account(address: Address, height: Height, signal: AbortSignal): Promise<VestingRead | undefined>;
  /** Of all accounts together, by their schedules (D14), atoken. */
  lockedSupplyAtoken(height: Height): Atoken;
}

/** What they are read from. */
export interface VestingSources {
  readonly schedules: VestingSchedules | undefined;
  readonly readerAt: (height: Height) => StateReader;
  /** Unix milliseconds of a block's time. */
  readonly timeMsAt: (height: Height) => number;
}

/** Makes the port. */
export function createVestingReads(sources: VestingSources): VestingReads {
  const { schedules, readerAt, timeMsAt } = sources;
  return {
    lockedSupplyAtoken: (height) =>
      schedules === undefined ? 0n : lockedSupplyAt(schedules, timeMsAt(height)),
    async account(address, height, signal) {
      const schedule = schedules?.get(address);
      if (schedules === undefined || schedule === undefined) return undefined;
      const timeMs = timeMsAt(height);
      return new StateAt(readerAt(height)).read((state) => {
        const locks = new VestingLocks(state, schedules, timeMs);
        const found = locks.of(address);
        if (found === undefined) throw new RangeError("an account has lost its schedule");
        return { ...schedule, ...found, lockedAtoken: locks.lockedAtoken(address) };
      }, signal);
    },
  };
}
