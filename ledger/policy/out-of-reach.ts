/**
 * Pure: what a policy asks persons for and its approvers cannot give. Such a file is not refused: then
 * nothing at all would be paid, also what needs none of it.
 */
import { approverOf } from "./approval-digest.js";
import type { Policy } from "./policy.js";

/** A rule by which nothing is ever paid. */
export interface UnreachableRule {
  readonly code: "APPROVALS_OUT_OF_REACH";
  /** The term of the policy's file. */
  readonly key: string;
  /** What it asks for, and who there is. */
  readonly value: string;
}

/** Rules that ask for more signatures than the policy names persons, in the file's order. */
export function unreachableRules(policy: Policy): UnreachableRule[] {
  const { assets, approvers, screening } = policy;
  // Of each key whose it is when it signs: a name whose keys are all others' can give nothing.
  const names = approvers.map(({ publicKey }) => approverOf(policy, publicKey)?.name);
  const persons = new Set(names).size;
  const review = screening?.reviewApprovals ?? 0;
  return [...assets].flatMap(([asset, { approvals }]) =>
    approvals.flatMap(({ needed, signed }, index) => {
      // Without signatures every API key with the scope counts, and keys are made at any time.
      if (!signed || needed + review <= persons) return [];
      const key = `assets.${asset}.approvals[${index}]`;
      const beside = needed > persons ? "" : `, ${review} more after the screening's "review"`;
      const value = `${needed} signed${beside}; approvers: ${persons}`;
      return [{ code: "APPROVALS_OUT_OF_REACH", key, value }];
    }),
  );
}
