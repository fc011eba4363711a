/** Storage and transient storage: SLOAD, SSTORE, TLOAD, TSTORE. */
import { bigintToBytes, bytesToBigint, type Hash32 } from "../../../../chain/hex.js";
import type { Frame } from "../frame.js";
import { SENTRY_OUT_OF_GAS, STATIC_STATE_CHANGE } from "../halt.js";
import {
  COLD_SLOT_GAS,
  SLOT_CLEAR_REFUND,
  SLOT_RESET_GAS,
  SLOT_SENTRY_GAS,
  SLOT_SET_GAS,
  WARM_GAS,
} from "../schedule.js";
import { wordToSlot } from "../words.js";

/** SLOAD: a word of storage. */
export function sload(frame: Frame): void {
  const { state, substate } = frame.execution;
  const slot = frame.pop();
  const isCold = substate.warmSlot(frame.self, slot);
  frame.charge(isCold ? COLD_SLOT_GAS : WARM_GAS);
  const key = wordToSlot(slot);
  const value = state.storageNow(frame.self, key);
  if (isCold) spendOnColdSlot(frame, slot, key);
  frame.push(bytesToBigint(value));
}

/** Gas and refunds by original, current and new value (EIP-2200 with the sums of EIP-3529). */
export function sstore(frame: Frame): void {
  if (frame.gas <= SLOT_SENTRY_GAS) throw SENTRY_OUT_OF_GAS;
  const { state, substate, reads } = frame.execution;
  const slot = frame.pop();
  const value = frame.pop();
  const key = wordToSlot(slot);
  const isCold = substate.warmSlot(frame.self, slot);
  const coldGas = isCold ? COLD_SLOT_GAS : 0;
  const current = bytesToBigint(state.storageNow(frame.self, key));
  if (isCold) spendOnColdSlot(frame, slot, key);
  if (value === current) {
    frame.charge(coldGas + WARM_GAS);
    if (frame.message.isStatic) throw STATIC_STATE_CHANGE;
    return;
  }
  const original = bytesToBigint(state.transactionStorageNow(frame.self, key));
  frame.charge(coldGas + writeGas(original, current));
  if (original === current) {
    const { slotChangeNs, slotChangeAgainNs, slotChangeBackNs, storageChangeNs } = frame.weights;
    if (!reads.changeStorage(frame.self)) frame.spend(storageChangeNs);
    const unchangedNs = reads.changeSlot(frame.self, slot) ? slotChangeBackNs : slotChangeNs;
    frame.spend(state.wasChangedBefore(frame.self, key) ? slotChangeAgainNs : unchangedNs);
  }
  if (frame.message.isStatic) throw STATIC_STATE_CHANGE;
  substate.refundGas += refundOf(original, current, value);
  state.putStorage(frame.self, key, bigintToBytes(value));
}

/** Compute units of a slot's first touch in the transaction, behind its reading. */
function spendOnColdSlot(frame: Frame, slot: bigint, key: Hash32): void {
  const { coldSlotNs, seenSlotNs, changedSlotNs } = frame.weights;
  const { state, reads } = frame.execution;
  const unchangedNs = reads.seeSlot(frame.self, slot) ? seenSlotNs : coldSlotNs;
  frame.spend(state.wasChangedBefore(frame.self, key) ? changedSlotNs : unchangedNs);
}

/** Gas of a write that changes a slot, without its first touch. */
export function writeGas(original: bigint, current: bigint): number {
  if (original !== current) return WARM_GAS;
  return original === 0n ? SLOT_SET_GAS : SLOT_RESET_GAS;
}

function refundOf(original: bigint, current: bigint, value: bigint): number {
  if (original === current) return original !== 0n && value === 0n ? SLOT_CLEAR_REFUND : 0;
  let refund = 0;
  if (original !== 0n && current === 0n) refund -= SLOT_CLEAR_REFUND;
  if (original !== 0n && value === 0n) refund += SLOT_CLEAR_REFUND;
  // Back to where it was: all but the reading was for nothing.
  if (value === original) refund += (original === 0n ? SLOT_SET_GAS : SLOT_RESET_GAS) - WARM_GAS;
  return refund;
}

/** TLOAD (EIP-1153). */
export function tload(frame: Frame): void {
  frame.push(frame.execution.substate.transientAt(frame.self, frame.pop()));
}

/** TSTORE (EIP-1153). */
export function tstore(frame: Frame): void {
  if (frame.message.isStatic) throw STATIC_STATE_CHANGE;
  const slot = frame.pop();
  frame.execution.substate.setTransient(frame.self, slot, frame.pop());
}
