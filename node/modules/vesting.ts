/**
 * Locked coins of accounts of genesis (x/auth/vesting `types/vesting_account.go`). They may be
 * delegated, and nothing else; what of them is delegated need not lie on the account. Layout of the
 * vesting account's storage:
 *
 *  0 mapping account -> locked coins that are delegated (atoken)
 *  1 mapping account -> free coins that are delegated (atoken)
 */
import type { Address } from "../../chain/address.js";
import type { Atoken } from "../../chain/units.js";
import { lockedAt, type VestingSchedules } from "../settings/vesting.js";
import type { BalanceLocks } from "../state/balance-locks.js";
import { JournaledState } from "../state/journaled-state.js";
import type { StateReader } from "../store/state-reader.js";
import { addressWord, mapSlot, SystemStorage } from "./system-storage.js";

const DELEGATED_LOCKED = 0n;
const DELEGATED_FREE = 1n;

/** An account with a schedule, at a time. */
export interface VestingState {
  /** What has not become free by the schedule, atoken. */
  readonly unvestedAtoken: Atoken;
  readonly delegatedLockedAtoken: Atoken;
  readonly delegatedFreeAtoken: Atoken;
}

/** The locks of a block, at its time. */
export class VestingLocks implements BalanceLocks {
  private readonly storage: SystemStorage;

  constructor(
    state: JournaledState,
    private readonly schedules: VestingSchedules,
    private readonly timeMs: number,
  ) {
    this.storage = new SystemStorage(state, "vesting");
  }

  /** What is known of an account; undefined for one without a schedule. */
  of(address: Address): VestingState | undefined {
    const schedule = this.schedules.get(address);
    if (schedule === undefined) return undefined;
    const word = addressWord(address);
    return {
      unvestedAtoken: lockedAt(schedule, this.timeMs),
      delegatedLockedAtoken: this.storage.word(mapSlot(DELEGATED_LOCKED, word)),
      delegatedFreeAtoken: this.storage.word(mapSlot(DELEGATED_FREE, word)),
    };
  }

  isLocking(address: Address): boolean {
    const schedule = this.schedules.get(address);
    return schedule !== undefined && this.timeMs < schedule.endTimeMs;
  }

  lockedAtoken(address: Address): Atoken {
    const found = this.of(address);
    if (found === undefined) return 0n;
    const { unvestedAtoken, delegatedLockedAtoken } = found;
    return unvestedAtoken > delegatedLockedAtoken ? unvestedAtoken - delegatedLockedAtoken : 0n;
  }

  delegated(address: Address, amountAtoken: Atoken): void {
    const found = this.of(address);
    if (found === undefined) return;
    const lockedAtoken = least(this.lockedAtoken(address), amountAtoken);
    this.put(address, {
      locked: found.delegatedLockedAtoken + lockedAtoken,
      free: found.delegatedFreeAtoken + amountAtoken - lockedAtoken,
    });
  }

  returned(address: Address, amountAtoken: Atoken): void {
    const found = this.of(address);
    if (found === undefined) return;
    const { delegatedLockedAtoken, delegatedFreeAtoken } = found;
    const freeAtoken = least(delegatedFreeAtoken, amountAtoken);
    const lockedAtoken = least(delegatedLockedAtoken, amountAtoken - freeAtoken);
    this.put(address, {
      locked: delegatedLockedAtoken - lockedAtoken,
      free: delegatedFreeAtoken - freeAtoken,
    });
  }

  private put(address: Address, { locked, free }: Record<"locked" | "free", bigint>): void {
    const word = addressWord(address);
    this.storage.setWord(mapSlot(DELEGATED_LOCKED, word), locked);
    this.storage.setWord(mapSlot(DELEGATED_FREE, word), free);
  }
}

/** What an account may spend at a time, by the committed state: its balance without locked coins. */
export function spendableAtoken(
  reader: StateReader,
  schedules: VestingSchedules | undefined,
  { address, timeMs }: { readonly address: Address; readonly timeMs: number },
): Atoken {
  const state = new JournaledState(reader);
  if (schedules?.has(address) === true) state.locks = new VestingLocks(state, schedules, timeMs);
  return state.spendableNow(address);
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}
