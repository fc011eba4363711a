/**
 * What a batch knows of wrapped coins while its rows are made, ahead of the tables: a Deposit or Withdrawal
 * beside the equal Transfer counts only where the contract was seen to log one without it.
 */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";

/** Contracts, and the block from which on their Deposits and Withdrawals count beside equal Transfers. */
export type KnownCoins = ReadonlyMap<Address, Height>;

/** Contracts that a follower keeps in mind; for any other one whoever writes asks the tables. */
const MAX_KNOWN = 10_000;

/** Keeps in mind what the tables knew, so that the next rows are right at once. */
export function keepKnown(known: Map<Address, Height>, more: KnownCoins): void {
  for (const [contract, height] of more) {
    if (known.size < MAX_KNOWN) known.set(contract, height);
  }
}

/** Of one batch. */
export class WrappedCoins {
  private readonly own = new Map<Address, Height>();
  private readonly asked = new Set<Address>();

  /** @param known of blocks before; others may be, which only the tables know */
  constructor(readonly known: KnownCoins) {}

  /** Contracts of which the batch is the first to tell, as far as it knows. */
  get found(): KnownCoins {
    return this.own;
  }

  /** Contracts of which something was left out: where the tables know them, the rows are wrong. */
  get doubtful(): ReadonlySet<Address> {
    return this.asked;
  }

  /** A contract logged a Deposit or Withdrawal without the equal Transfer; blocks come in their order. */
  add(contract: Address, height: Height): void {
    if (!this.known.has(contract) && !this.own.has(contract)) this.own.set(contract, height);
  }

  /** Whether it has up to this block. */
  isUnaccompanied(contract: Address, height: Height): boolean {
    const from = this.known.get(contract) ?? this.own.get(contract);
    if (from !== undefined && from <= height) return true;
    this.asked.add(contract);
    return false;
  }
}
