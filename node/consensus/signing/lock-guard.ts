/**
 * Keeps a validator whose log has lost records from voting against its own lock. The state file
 * keeps it from signing two things in one step; what it locked on is in the log alone. Where the
 * log cannot tell, nothing new is signed at that height: the others decide it, and from the next
 * height on no lock of the past matters. (CometBFT repairs its log by cutting it at the damage, and
 * signs on.)
 */
import type { Height } from "../../../chain/hex.js";
import { type PrivateValidator, SIGN_STEP, type SignPlace } from "./private-validator.js";

/** What is known when a height begins, or is taken up again. */
export interface LockGuardOptions {
  readonly signer: Pick<PrivateValidator, "lastPlace" | "isLastForBlock">;
  readonly height: Height;
  /** The log has all records of the height; else some were lost. */
  readonly isLogWhole: boolean;
  /** This validator's vote alone decides. */
  readonly isAlone: boolean;
}

/** Says what may be signed at one height. */
export class LockGuard {
  /** What was signed last when the height was taken up; undefined once the lock is known. */
  private unproved: SignPlace | undefined;
  private isLogWhole: boolean;
  private readonly isLock: boolean;

  constructor({ signer, height, isLogWhole, isAlone }: LockGuardOptions) {
    const { lastPlace, isLastForBlock } = signer;
    const isEarly = lastPlace.round === 0 && lastPlace.step < SIGN_STEP.precommit;
    // Alone it would have decided with its first precommit for a block, and not gone on.
    const hasNoLock = isEarly || (!isLastForBlock && (lastPlace.round === 0 || isAlone));
    const isKnown = lastPlace.height !== height || hasNoLock;
    this.unproved = isKnown ? undefined : { ...lastPlace };
    this.isLogWhole = isLogWhole;
    this.isLock = isLastForBlock;
  }

  /** Whether something may be signed; what was signed already is the signer's to judge. */
  maySign(place: SignPlace): boolean {
    return this.unproved === undefined || compare(place, this.unproved) <= 0;
  }

  /** An own message was in the log: with all that led to it, if no record is lost. */
  onLogged(place: SignPlace): void {
    if (this.isLogWhole && this.isLast(place)) this.unproved = undefined;
  }

  /** The signer gave the same signature as before: the machine has come to the same place. */
  onSigned(place: SignPlace): void {
    // A precommit for a block is the lock itself; anything else tells of one only by what led there.
    if (this.isLast(place) && (this.isLogWhole || this.isLock)) this.unproved = undefined;
  }

  /**
   * The log is read, and what it led to is said. Whatever led to a signature was on disk before it,
   * so that what was signed last has come of the log again, unless its end is lost: a file that is cut
   * between two records, or one of an earlier day, shows no damage.
   * @returns whether that was found now: the log must say it, or it would be forgotten
   */
  onLogRead(): boolean {
    const isFound = this.isLogWhole && this.unproved !== undefined;
    if (isFound) this.isLogWhole = false;
    return isFound;
  }

  private isLast(place: SignPlace): boolean {
    return this.unproved !== undefined && compare(place, this.unproved) === 0;
  }
}

function compare(left: SignPlace, right: SignPlace): number {
  return left.height - right.height || left.round - right.round || left.step - right.step;
}
