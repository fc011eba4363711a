/**
 * The balance journal: every change of a native balance, with its reason, as execution recorded
 * it. The vocabulary is fixed: integrators snapshot it.
 */
import type { Address } from "./address.js";
import type { AbciEvent } from "./consensus/abci-types.js";
import type { Hash32, Height } from "./hex.js";
import type { Atoken } from "./units.js";

/**
 * Why a balance changed; also the Rosetta operation type. Stored blocks name a reason by its place
 * here: new ones are added at the end.
 */
export const BALANCE_REASONS = [
  "CALL",
  "CREATE",
  "CREATE2",
  "SELFDESTRUCT",
  "DESTRUCT",
  "FEE",
  "FEE_BURN",
  "TREASURY",
  "MINT",
  "GENESIS",
  "DELEGATE",
  "UNBOND_COMPLETE",
  "CLAIM",
  "SLASH",
  "REGISTER_BURN",
  "GOV_DEPOSIT",
  "GOV_REFUND",
] as const;

/** One of `BALANCE_REASONS`. */
export type BalanceReason = (typeof BALANCE_REASONS)[number];

/**
 * One movement of native coins. With both sides it is a transfer; without `from` coins come into
 * being (MINT, GENESIS); without `to` they cease to be (FEE_BURN, DESTRUCT, SLASH, REGISTER_BURN).
 */
export interface BalanceChange {
  readonly reason: BalanceReason;
  readonly from: Address | undefined;
  readonly to: Address | undefined;
  /** >= 0; zero only for a top-level CALL or CREATE, which is always recorded. */
  readonly amountAtoken: Atoken;
  /** False when the frame or the transaction was reverted: recorded, but no balance moved. */
  readonly effective: boolean;
  /** Call path below the transaction, "" for the top level, "0", "0_1"; undefined for fees. */
  readonly tracePath: string | undefined;
  /** Why the frame failed, for changes that are not effective; as `changeError` has it. */
  readonly error?: string;
}

/** Characters of an error: a lack of coins is told whole, with amounts of 24 digits. */
const MAX_ERROR = 160;

/** What is no printable ASCII, and what JSON escapes. */
const NOT_PLAIN = /[^ -~]|["\\]/g;

/**
 * The text of `BalanceChange.error`: at most 160 characters, each a byte of JSON. Every move of a failed
 * transaction has it, more than a thousand of them, and its sender chooses words of it: whole, a few
 * transactions would make a block whose journal no answer holds. A Cosmos transaction's result has all of it.
 */
export function changeError(text: string): string {
  return text
    .slice(0, MAX_ERROR)
    .replace(NOT_PLAIN, (character) => (character === '"' ? "'" : "?"));
}

/** Changes made by one transaction, in the order of execution, the fee first. */
export interface TransactionJournal {
  readonly transactionHash: Hash32;
  readonly changes: readonly BalanceChange[];
  /** Of modules that an EVM transaction's code called; absent where it called none. */
  readonly events?: readonly AbciEvent[];
}

/** The journal of one block. */
export interface BlockJournal {
  readonly height: Height;
  /** Journals of the EVM transactions. */
  readonly transactions: readonly TransactionJournal[];
  /** Of Cosmos transactions; absent where there are none. */
  readonly cosmos?: readonly TransactionJournal[];
  /**
   * Changes that no transaction made: FEE_BURN, TREASURY, MINT, then what the modules did: SLASH,
   * GOV_REFUND, UNBOND_COMPLETE; in block 0 GENESIS.
   */
  readonly blockChanges: readonly BalanceChange[];
  /** What the modules emitted at the end of the block, in order; absent where it is nothing. */
  readonly moduleEvents?: readonly AbciEvent[];
  /** Sum of MINT and GENESIS. */
  readonly mintedAtoken: Atoken;
  /** Sum of what effective changes without a receiver destroyed. */
  readonly burnedAtoken: Atoken;
}

/** Calls back for each account side of an effective change: -amount for `from`, +amount for `to`. */
export function forEachDelta(
  change: BalanceChange,
  visit: (address: Address, deltaAtoken: Atoken) => void,
): void {
  if (!change.effective || change.amountAtoken === 0n) return;
  if (change.from !== undefined) visit(change.from, -change.amountAtoken);
  if (change.to !== undefined) visit(change.to, change.amountAtoken);
}

/** All changes of a block: of EVM transactions, of Cosmos transactions, then the block-level ones. */
export function* allChanges(journal: BlockJournal): Generator<BalanceChange> {
  for (const transaction of journal.transactions) yield* transaction.changes;
  for (const transaction of journal.cosmos ?? []) yield* transaction.changes;
  yield* journal.blockChanges;
}
