/**
 * What everybody has earned, by the rule itself and in exact fractions: of every block's mint each
 * bonded validator gets its part by tokens, keeps its commission, and each of its delegators gets a
 * part of the rest by shares. Nothing is booked, deferred or rounded, and nothing of
 * `node/modules/distribution` is used.
 */
import type { Address } from "../../chain/address.js";

const ONE = 10n ** 18n;

/** A validator while a block is minted for. */
export interface Earner {
  readonly operator: Address;
  readonly tokens: bigint;
  readonly shares: bigint;
  /** Commission, 10^-18. */
  readonly rate: bigint;
  /** Shares by delegator. */
  readonly delegators: ReadonlyMap<Address, bigint>;
}

/** Sums of fractions over one denominator, which grows by a factor whenever terms have a new one. */
class FractionSums {
  private readonly sums = new Map<string, bigint>();
  private denominator = 1n;
  /** Divisor of the terms that are added now, and the denominator over it. */
  private divisor = 1n;
  private scale = 1n;

  /** Adds `numerator / divisor` to some of the sums. */
  add(divisor: bigint, terms: Iterable<readonly [string, bigint]>): void {
    if (divisor !== this.divisor) {
      for (const [key, sum] of this.sums) this.sums.set(key, sum * divisor);
      [this.scale, this.denominator] = [this.denominator, this.denominator * divisor];
      this.divisor = divisor;
    }
    for (const [key, numerator] of terms) {
      this.sums.set(key, (this.sums.get(key) ?? 0n) + numerator * this.scale);
    }
  }

  /** Whole parts of all sums, each divided by `by`. */
  *floors(by: bigint): Generator<readonly [string, bigint]> {
    for (const [key, sum] of this.sums) yield [key, sum / (this.denominator * by)];
  }
}

/** Rewards of everybody since the start. */
export class ExactRewards {
  /** Of each validator's delegators, and of itself its commission, by `delegator` and "". */
  private readonly earned = new Map<Address, FractionSums>();
  /** Taxes and what nobody earned, atoken; each block's tax is rounded down, as coins are. */
  communityAtoken = 0n;

  /** @param tax share of the community, 10^-18 */
  constructor(private readonly tax: bigint) {}

  /** Shares out what the validators' pool got of a block's mint. */
  allocate(amountAtoken: bigint, bonded: readonly Earner[]): void {
    const tokens = bonded.reduce((sum, one) => sum + one.tokens, 0n);
    const taxAtoken = tokens === 0n ? amountAtoken : (amountAtoken * this.tax) / ONE;
    this.communityAtoken += taxAtoken;
    const sharedAtoken = amountAtoken - taxAtoken;
    for (const one of bonded) {
      const { operator, rate, shares, delegators } = one;
      if (shares === 0n) continue; // All of its stake has left in this block.
      const own = this.earned.get(operator) ?? new FractionSums();
      this.earned.set(operator, own);
      // All terms are over tokens x shares x 10^18; the constant stays outside of the sums.
      const common = commonDivisor(shares, delegators.values());
      const part = sharedAtoken * one.tokens;
      own.add((tokens * shares) / common, [
        ["", (part * rate * shares) / common],
        ...[...delegators].map(
          ([delegator, owned]) => [delegator, (part * (ONE - rate) * owned) / common] as const,
        ),
      ]);
    }
  }

  /** What is due by operator and delegator, rounded down; the delegator "" is the commission. */
  *due(): Generator<{ operator: Address; delegator: string; atoken: bigint }> {
    for (const [operator, sums] of this.earned) {
      for (const [delegator, atoken] of sums.floors(ONE)) yield { operator, delegator, atoken };
    }
  }
}

function commonDivisor(first: bigint, others: Iterable<bigint>): bigint {
  let common = first;
  for (const other of others) {
    let [a, b] = [common, other];
    while (b > 0n) [a, b] = [b, a % b];
    common = a;
  }
  return common;
}

/**
 * The supply by the closed form of minting (D13), S0 q^n - sum of B(k) q^(n-k) with q = 1 + rate by
 * year / blocks of a year and B(k) what block k burned: worked out exactly by Horner's rule.
 */
export class ExactSupply {
  private static readonly DIVISOR = 100n * 15_768_000n;
  private numerator: bigint;
  private denominator = 1n;
  private blocks = 0n;

  constructor(startAtoken: bigint) {
    this.numerator = startAtoken;
  }

  /** One block: inflation in whole percent a year, and what it burned. */
  next(percent: bigint, burnedAtoken: bigint): void {
    this.denominator *= ExactSupply.DIVISOR;
    this.numerator *= ExactSupply.DIVISOR + percent;
    this.numerator -= burnedAtoken * this.denominator;
    this.blocks += 1n;
  }

  /**
   * Between which values the supply has to be: each block mints whole atoken, rounded down, and what
   * is left out grows with the rest, which over some thousand blocks is less than another one.
   */
  bounds(): { readonly least: bigint; readonly most: bigint } {
    const most = this.numerator / this.denominator;
    return { least: most - 2n * this.blocks, most };
  }
}
