/** Cases that are not as Ethereum has them, by a decision; each counts as passed by its name. */
import type { StateCase } from "./state-fixture.js";

/** Why a case deviates. */
export interface Deviation {
  /** The decision, in docs/decisions.md. */
  readonly decision: "D19" | "D21";
  readonly reason: string;
}

/** Number that counts by ones, and far above what any transaction may name. */
const MOST_GAS = BigInt(Number.MAX_SAFE_INTEGER);

/** Code that looks at the blobs of its transaction; other cases with blobs must pass. */
const BLOBHASH_CASES = ["opcodeBlobhBounds", "opcodeBlobhashOutOfRange"];

/** 2^32 - 1 rounds of the compression function. */
const LONGEST_CASE = "CALLBlake2f_MaxRounds";

/** @returns undefined for a case that must come out as the fixture says */
export function deviationOf({ name, transaction }: StateCase): Deviation | undefined {
  if (transaction.gasLimit > MOST_GAS) {
    return { decision: "D21", reason: "names more gas than any transaction may" };
  }
  if (name.includes(` ${LONGEST_CASE} `)) {
    return { decision: "D21", reason: "takes minutes: no transaction has so many compute units" };
  }
  if (BLOBHASH_CASES.some((part) => name.includes(` ${part} `))) {
    return { decision: "D19", reason: "reads BLOBHASH, and there are no blobs" };
  }
  return undefined;
}
