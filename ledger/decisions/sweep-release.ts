/**
 * A person's word about a frozen sweep, kept with the other decisions: the sweep's own reason is that of its
 * latest step.
 */
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { keepWord } from "../kept-word.js";
import { releaseSweep } from "../treasury/sweeps.js";
import type { SweepReleaseTerms } from "./decision.js";

/** What a person found about a frozen sweep, and who it was. */
export interface SweepRelease extends Omit<SweepReleaseTerms, "action"> {
  readonly reason: string;
  readonly operator: string;
}

/**
 * Lets a frozen sweep go on (`releaseSweep`), and writes down who did so and why, in one commit. One that
 * freezes again is decided about again.
 * @throws NOT_FROZEN
 */
export function decideSweepRelease(database: SqlDatabase, release: SweepRelease): Promise<void> {
  const { sweepId, isNonceUsed, reason, operator } = release;
  const terms: SweepReleaseTerms = { action: "release-sweep", sweepId, isNonceUsed };
  return database.transaction(async (tx) => {
    // The sweep's row is locked from here on: so is the number of its next decision.
    await releaseSweep(tx, sweepId, { isNonceUsed, reason });
    const subject = sweepId.toString();
    await keepWord(tx, { kind: "sweep", subject, terms, reason, operator });
  });
}
