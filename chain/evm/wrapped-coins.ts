/**
 * Coins in a token: pure rules of which Deposit and Withdrawal is a movement of its own. Some contracts log
 * the equal Transfer from or to zero as well: then it is one movement, told twice. WETH9 logs none, and lets
 * anybody send to zero what he has: there both count, whatever stands beside them.
 */
import type { Address } from "../address.js";

/** What a log of an ERC-20 says has moved. */
export interface CoinClaim {
  readonly contract: Address;
  /** Undefined for nobody, whom the zero address stands for. */
  readonly from: Address | undefined;
  /** The same. */
  readonly to: Address | undefined;
  readonly units: bigint;
  /** False for a Deposit or Withdrawal. */
  readonly isTransfer: boolean;
}

/**
 * Whether a contract has logged a Deposit or Withdrawal without the equal Transfer before: then none of its
 * are told by a Transfer as well.
 */
export type IsUnaccompanied = (contract: Address) => boolean;

/** Deposits and Withdrawals for which the same transaction has an equal Transfer each. */
export function echoesOf<Claim extends CoinClaim>(claims: readonly Claim[]): ReadonlySet<Claim> {
  const transfers = new Map<string, number>();
  for (const claim of claims) {
    if (!claim.isTransfer) continue;
    const key = keyOf(claim);
    transfers.set(key, (transfers.get(key) ?? 0) + 1);
  }
  return new Set(
    claims.filter((claim) => {
      if (claim.isTransfer) return false;
      const key = keyOf(claim);
      const count = transfers.get(key) ?? 0;
      transfers.set(key, count - 1);
      return count > 0;
    }),
  );
}

/**
 * Contracts with a Deposit or Withdrawal in one transaction that has no equal Transfer. Of nothing both can
 * be logged by anybody.
 * @param echoes of these claims
 */
export function unaccompaniedIn<Claim extends CoinClaim>(
  claims: readonly Claim[],
  echoes: ReadonlySet<Claim>,
): readonly Address[] {
  return claims
    .filter((claim) => !claim.isTransfer && claim.units > 0n && !echoes.has(claim))
    .filter(({ from, to }) => from !== undefined || to !== undefined)
    .map(({ contract }) => contract);
}

function keyOf({ contract, from, to, units }: CoinClaim): string {
  return `${contract}/${from ?? ""}/${to ?? ""}/${units}`;
}
