/**
 * What slashes take of whom, told without a queue or marks of what was borne: an unbonding loses its part at
 * once, a redelegation owes it until its stake moves, is paid out, or its time is over. Nothing of
 * `node/modules` is used.
 */
import type { Address } from "../../chain/address.js";

const ONE = 10n ** 18n;

/** Stake that leaves a validator, or went to another one; in the order of their beginnings. */
interface Leaving {
  readonly who: Address;
  readonly from: Address;
  /** Undefined for what leaves stake altogether. */
  readonly to: Address | undefined;
  readonly height: number;
  readonly endMs: number;
  begunAtoken: bigint;
  leftAtoken: bigint;
  /** Shares that a redelegation became. */
  readonly shares: bigint;
  /** Fractions that a redelegation owes, 10^-18. */
  owed: bigint[];
}

interface Pool {
  tokens: bigint;
  shares: bigint;
}

/** Everybody's stake and coins. */
export class SlashModel {
  private readonly pools = new Map<Address, Pool>();
  private readonly parts = new Map<string, bigint>();
  private readonly coins = new Map<Address, bigint>();
  private leaving: Leaving[] = [];

  /** @param stakeAtoken of each validator's operator, who does nothing else */
  constructor(operators: readonly Address[], stakeAtoken: bigint) {
    for (const operator of operators) {
      this.pools.set(operator, { tokens: stakeAtoken, shares: stakeAtoken * ONE });
    }
  }

  give(who: Address, amountAtoken: bigint): void {
    this.coins.set(who, (this.coins.get(who) ?? 0n) + amountAtoken);
  }

  /** Coins become stake, or stake that left comes back. */
  stake(who: Address, operator: Address, amountAtoken: bigint): bigint {
    const pool = this.pool(operator);
    const added = (amountAtoken * pool.shares) / pool.tokens;
    pool.tokens += amountAtoken;
    pool.shares += added;
    this.parts.set(operator + who, this.part(operator, who) + added);
    return added;
  }

  delegate(who: Address, operator: Address, amountAtoken: bigint): void {
    this.give(who, -amountAtoken);
    this.stake(who, operator, amountAtoken);
  }

  undelegate(who: Address, from: Address, amountAtoken: bigint, at: Place): void {
    for (const one of this.leaving) if (one.who === who && one.to === from) this.settle(one);
    const taken = this.takeAmount(from, who, amountAtoken);
    this.begin({ who, from, to: undefined, shares: 0n }, taken, at);
  }

  redelegate(who: Address, [from, to]: readonly [Address, Address], amount: bigint, at: Place) {
    const taken = this.takeAmount(from, who, amount);
    this.begin({ who, from, to, shares: this.stake(who, to, taken) }, taken, at);
  }

  /** What an account has begun to unbond at a height. */
  unbondings(who: Address): readonly { from: Address; height: number; leftAtoken: bigint }[] {
    return this.leaving.filter((one) => one.who === who && one.to === undefined);
  }

  cancel(who: Address, from: Address, height: number, amountAtoken: bigint): void {
    let rest = amountAtoken;
    for (const one of this.leaving) {
      const isMeant = one.who === who && one.from === from && one.height === height;
      if (!isMeant || one.to !== undefined) continue;
      const back = least(one.leftAtoken, rest);
      rest -= back;
      one.leftAtoken -= back;
      one.begunAtoken -= back;
      if (one.leftAtoken === 0n) this.leaving = this.leaving.filter((other) => other !== one);
    }
    this.stake(who, from, amountAtoken);
  }

  slash(operator: Address, infractionHeight: number, fraction: bigint): void {
    const pool = this.pool(operator);
    pool.tokens -= (pool.tokens * fraction) / ONE;
    for (const one of this.leaving) {
      if (one.from !== operator || one.height < infractionHeight) continue;
      if (one.to !== undefined) one.owed.push(fraction);
      else one.leftAtoken -= least(one.leftAtoken, (one.begunAtoken * fraction) / ONE);
    }
  }

  /** What is over by a time ends, oldest first. */
  endUntil(timeMs: number): void {
    for (const one of this.leaving) {
      if (one.endMs > timeMs) continue;
      if (one.to !== undefined) {
        this.settle(one);
        continue;
      }
      for (const older of this.leaving.slice(0, this.leaving.indexOf(one))) {
        if (older.who === one.who && older.to === one.from) this.settle(older);
      }
      this.give(one.who, one.leftAtoken);
    }
    this.leaving = this.leaving.filter(({ endMs }) => endMs > timeMs);
  }

  /** Coins of an account and what its stake is worth. */
  worth(who: Address): bigint {
    const own = this.coins.get(who) ?? 0n;
    return [...this.pools].reduce((sum, [operator, { tokens, shares }]) => {
      return sum + (this.part(operator, who) * tokens) / shares;
    }, own);
  }

  /** A redelegation pays what it owes: of what it became, and of what has left that since. */
  private settle(one: Leaving): void {
    if (one.to === undefined) return;
    let missingAtoken = 0n;
    for (const fraction of one.owed.splice(0)) {
      const due = (one.shares * fraction) / ONE;
      const taken = least(due, this.part(one.to, one.who));
      if (taken > 0n) this.take(one.to, one.who, taken);
      if (due > taken)
        missingAtoken += (((one.begunAtoken * fraction) / ONE) * (due - taken)) / due;
    }
    for (const later of this.leaving.slice(this.leaving.indexOf(one) + 1)) {
      const isOfIt = later.who === one.who && later.from === one.to && later.to === undefined;
      if (!isOfIt) continue;
      const paid = least(later.leftAtoken, missingAtoken);
      later.leftAtoken -= paid;
      missingAtoken -= paid;
    }
  }

  private begin(way: Pick<Leaving, "who" | "from" | "to" | "shares">, amount: bigint, at: Place) {
    this.leaving.push({ ...way, ...at, begunAtoken: amount, leftAtoken: amount, owed: [] });
  }

  private takeAmount(operator: Address, who: Address, amountAtoken: bigint): bigint {
    const { tokens, shares } = this.pool(operator);
    const asked = (amountAtoken * shares + tokens - 1n) / tokens;
    return this.take(operator, who, least(asked, this.part(operator, who)));
  }

  private take(operator: Address, who: Address, shares: bigint): bigint {
    const pool = this.pool(operator);
    const amountAtoken = (shares * pool.tokens) / pool.shares;
    pool.tokens -= amountAtoken;
    pool.shares -= shares;
    this.parts.set(operator + who, this.part(operator, who) - shares);
    return amountAtoken;
  }

  private part(operator: Address, who: Address): bigint {
    return this.parts.get(operator + who) ?? 0n;
  }

  private pool(operator: Address): Pool {
    const pool = this.pools.get(operator);
    if (pool === undefined) throw new RangeError("there is no such validator");
    return pool;
  }
}

/** When something begins and ends. */
export type Place = Pick<Leaving, "height" | "endMs">;

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}
