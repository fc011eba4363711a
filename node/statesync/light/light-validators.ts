/**
 * Whose turn it is after a state sync. Headers prove keys and powers of validators, but not their
 * priorities; those follow from the set before by a rule, and are refused where they do not.
 */
import { LightError } from "../../../chain/consensus/light.js";
import type { ValidatorSet, ValidatorUpdate } from "../../../chain/consensus/validator-set.js";

/**
 * The set of the next height with its proposer, which answers do not name.
 * @param before the set of the height before, as a server lists it or as this returned it
 * @param listed the set as a server lists it
 * @throws LIGHT_INVALID when the priorities do not follow from those before
 */
export function followingSet(before: ValidatorSet, listed: ValidatorSet): ValidatorSet {
  const expected = before.update(changesBetween(before, listed)).advance(1);
  if (!hasSamePriorities(expected, listed)) {
    throw new LightError("LIGHT_INVALID", "the validators' priorities do not follow");
  }
  return expected;
}

/** Whether two lists of one height agree in everything, priorities included. */
export function hasSamePriorities(one: ValidatorSet, other: ValidatorSet): boolean {
  return (
    one.size === other.size &&
    one.validators.every(({ address, power, priority }, index) => {
      const match = other.at(index);
      return match?.address === address && match.power === power && match.priority === priority;
    })
  );
}

function changesBetween(before: ValidatorSet, after: ValidatorSet): ValidatorUpdate[] {
  const removed = before.validators.filter(({ address }) => after.indexOf(address) < 0);
  const changed = after.validators.filter(({ address, power }) => {
    return before.at(before.indexOf(address))?.power !== power;
  });
  return [
    ...removed.map(({ publicKey }) => ({ publicKey, power: 0n })),
    ...changed.map(({ publicKey, power }) => ({ publicKey, power })),
  ];
}
