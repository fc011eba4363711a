/**
 * Proof that the balance journal is complete, done for every block before it is stored: per
 * account the journal equals the state's difference, and in total it equals minted - burned. A
 * mismatch means that coins were lost or made by a fault; the node halts.
 */
import type { Address } from "../../chain/address.js";
import { allChanges, type BlockJournal, forEachDelta } from "../../chain/balance-change.js";
import { AppError } from "../../chain/errors.js";
import { eachInSteps, type Steps } from "../../chain/steps/steps.js";
import type { AccountChange } from "../state/journaled-state.js";

/** Codes of faults found here; both halt the node. */
export type ConservationErrorCode = "BALANCE_JOURNAL_MISMATCH" | "SUPPLY_MISMATCH";

/** Coins do not add up. */
export class ConservationError extends AppError<ConservationErrorCode> {}

/** Sums of the journal by account, accounts whose changes cancel out included; in steps. */
export function* journalSums(journal: BlockJournal): Steps<Map<Address, bigint>> {
  const sums = new Map<Address, bigint>();
  yield* eachInSteps(allChanges(journal), (change) =>
    forEachDelta(change, (address, deltaAtoken) => {
      sums.set(address, (sums.get(address) ?? 0n) + deltaAtoken);
    }),
  );
  return sums;
}

/**
 * Checks a block, in steps.
 * @throws BALANCE_JOURNAL_MISMATCH, SUPPLY_MISMATCH
 */
export function* assertConserved(
  journal: BlockJournal,
  sums: ReadonlyMap<Address, bigint>,
  changed: ReadonlyMap<Address, AccountChange>,
): Steps<void> {
  let totalAtoken = 0n;
  yield* eachInSteps(changed, ([address, { before, after }]) => {
    const stateAtoken = (after?.balanceAtoken ?? 0n) - (before?.balanceAtoken ?? 0n);
    const journalAtoken = sums.get(address) ?? 0n;
    totalAtoken += stateAtoken;
    if (stateAtoken !== journalAtoken) {
      throw new ConservationError(
        "BALANCE_JOURNAL_MISMATCH",
        `block ${journal.height}: the journal of ${address} sums to ${journalAtoken} atoken, ` +
          `its balance changed by ${stateAtoken}`,
        { details: { height: journal.height, address } },
      );
    }
  });
  yield* eachInSteps(sums, ([address, sumAtoken]) => {
    if (sumAtoken !== 0n && !changed.has(address)) {
      throw new ConservationError(
        "BALANCE_JOURNAL_MISMATCH",
        `block ${journal.height}: ${address} is journalled but did not change`,
        { details: { height: journal.height, address } },
      );
    }
  });
  if (totalAtoken !== journal.mintedAtoken - journal.burnedAtoken) {
    throw new ConservationError(
      "SUPPLY_MISMATCH",
      `block ${journal.height}: balances changed by ${totalAtoken} atoken, minted - burned is ` +
        `${journal.mintedAtoken - journal.burnedAtoken}`,
      { details: { height: journal.height } },
    );
  }
}
