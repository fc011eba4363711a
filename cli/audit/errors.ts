/** Why an audit cannot be made, and what it found when it was made. */
import { AppError } from "../../chain/errors.js";
import { cleanForeignText } from "../../chain/evm/foreign-text.js";
import type { Hash32, Height } from "../../chain/hex.js";

/**
 * Codes. BAD_OPTION and BAD_RANGE: the command line; STATE_UNPROVEN: the node gives no proof of a
 * state that execution reads; NODE_REFUSED: it does not serve what an audit needs;
 * GENESIS_UNREACHABLE: no header of the node is signed by the validators of the genesis;
 * NOT_JUDGED: a block calls what the second execution does not have;
 * OTHER_CHAIN: the books' last block is not the node's;
 * BUNDLE_UNREADABLE: a file is no balance proof; NOT_PROVEN: it is one and does not hold;
 * TOO_LARGE: it tells of more than this program's memory holds.
 */
export type AuditErrorCode =
  | "BAD_OPTION"
  | "BAD_RANGE"
  | "STATE_UNPROVEN"
  | "NODE_REFUSED"
  | "NOT_JUDGED"
  | "GENESIS_UNREACHABLE"
  | "OTHER_CHAIN"
  | "BUNDLE_UNREADABLE"
  | "NOT_PROVEN"
  | "TOO_LARGE";

/** Exit codes: all agrees, something differs, the audit could not be made. */
export const AUDIT_EXIT = { clean: 0, difference: 1, cannotRun: 2 } as const;

/** Longest sentence about what others wrote: several faults of a file are named. */
const MAX_MESSAGE = 2_000;

/** An audit that cannot be made; its message is a sentence for the person who runs it. */
export class AuditError extends AppError<AuditErrorCode> {
  /** Files and nodes of others are quoted: what they say must not write on the terminal by itself. */
  constructor(
    code: AuditErrorCode,
    message: string,
    options?: ConstructorParameters<typeof AppError<AuditErrorCode>>[2],
  ) {
    super(code, cleanForeignText(message, MAX_MESSAGE), options);
  }
}

/** The first place where the chain says one thing and the second execution another. */
export interface Difference {
  readonly height: Height;
  /** Undefined for what belongs to the whole block. */
  readonly transaction: { readonly index: number; readonly hash: Hash32 } | undefined;
  /** Path of the field, such as `gasUsed`, `logs[2].data` or `balance of 0x…`. */
  readonly field: string;
  /** What the chain says: header, receipt, journal. */
  readonly chain: string;
  /** What executing it again gives. */
  readonly audit: string;
}

/** One thing to compare. */
export interface Comparison {
  readonly field: string;
  readonly chain: string | number | bigint | undefined;
  readonly audit: string | number | bigint | undefined;
}

/** The first comparison whose two sides differ, at its place; undefined when all agree. */
export function firstDifference(
  place: Pick<Difference, "height" | "transaction">,
  comparisons: Iterable<Comparison>,
): Difference | undefined {
  for (const { field, chain, audit } of comparisons) {
    if (chain !== audit) return { ...place, field, chain: textOf(chain), audit: textOf(audit) };
  }
  return undefined;
}

function textOf(value: Comparison["chain"]): string {
  return value === undefined ? "nothing" : value.toString();
}
