/**
 * Causes for which a wallet is frozen, as they stand in one text. Of one the kit reads what it says: that the
 * chain knows nonces which the ledger does not. What persons type, or strangers say, is never read as that.
 */
import { shorten } from "../../chain/evm/foreign-text.js";

/** Between causes that froze a wallet one after the other. */
export const ALSO = "; also: ";

/** Longest cause, in characters; those before the last stay while they come to no more, the first always. */
export const MAX_CAUSE_LENGTH = 1_000;

/** Before the causes that a person has let go. */
export const RELEASED = "an operator released it: ";

/** Begins the one cause that a recovery takes away: the chain has payments that the ledger lost. */
const BEHIND_CHAIN = "the chain knows nonces below ";

/** Pure: that cause in whole. @param seen the chain's next nonce @param known the ledger's */
export function behindReason(seen: bigint, known: bigint): string {
  return behindText(`${seen}`, `${known}`);
}

function behindText(seen: string, known: string): string {
  return (
    `${BEHIND_CHAIN}${seen}, the ledger only below ${known}: ` +
    "the key was used elsewhere, or the ledger comes from an older backup"
  );
}

/** PostgreSQL: a cause that is that one, in whole. */
export const BEHIND_CAUSE = `^${behindText("[0-9]+", "[0-9]+")}$`;

/** PostgreSQL: causes of which that is one. */
export const HAS_BEHIND_CAUSE = `(^|${ALSO})${behindText("[0-9]+", "[0-9]+")}($|${ALSO})`;

const NAMES_SEEN = new RegExp(`^${behindText("([0-9]+)", "[0-9]+")}$`, "u");

/** Pure: the highest next nonce of the chain that causes name; undefined where none does. */
export function seenIn(causes: string): bigint | undefined {
  const named = causes.split(ALSO).flatMap((cause) => NAMES_SEEN.exec(cause)?.[1] ?? []);
  return named
    .map(BigInt)
    .reduce<bigint | undefined>(
      (highest, seen) => (highest === undefined || seen > highest ? seen : highest),
      undefined,
    );
}

/** Pure: the same of causes that a person has let go. */
export function seenInReleased(reason: string): bigint | undefined {
  return reason.startsWith(RELEASED) ? seenIn(reason.slice(RELEASED.length)) : undefined;
}

/** Pure: causes with another one in the place of that. */
export function withBehindReason(causes: string, reason: string): string {
  const others = causes.split(ALSO).map((cause) => (NAMES_SEEN.test(cause) ? reason : cause));
  return others.join(ALSO);
}

/** Pure: one cause, which is read as no other, of what a person typed or a stranger said. */
export function causeInWords(text: string): string {
  const words = text.replaceAll(ALSO, ALSO.replace(";", ","));
  return shorten(words.startsWith(BEHIND_CHAIN) ? `in words: ${words}` : words, MAX_CAUSE_LENGTH);
}
