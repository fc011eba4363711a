/**
 * Slashes at random beside a model that keeps no queue: delegators come, leave, move and change their minds
 * while validators are slashed for faults of now and before. In the end everybody has to the last atoken what
 * the model says: nobody escapes a slash, and nobody bears one twice.
 */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../chain/address.js";
import type { ModuleContext } from "../../node/modules/module-context.js";
import { setModuleParam } from "../../node/modules/module-params.js";
import {
  cancelUnbonding,
  delegate,
  redelegate,
  slashValidator,
  undelegate,
  validatorOf,
} from "../../node/modules/staking/delegating.js";
import { Delegations } from "../../node/modules/staking/delegation-record.js";
import { tokensOf } from "../../node/modules/staking/shares.js";
import { accountAt, ModuleChain, stakedGenesis } from "../helpers/cosmos/module-state.js";
import { chance, createRandom, type Random } from "../helpers/random.js";
import { SlashModel } from "./slash-model.js";
import { expectReached } from "./reached.js";

/** One seed decides a run; CAUSEWAY_SIM_SEED takes another, CAUSEWAY_SIM_BLOCKS is longer. */
const SEED = Number(process.env["CAUSEWAY_SIM_SEED"] ?? 20_261_127);
const BLOCKS = Number(process.env["CAUSEWAY_SIM_BLOCKS"] ?? 2_400);
/** Then another chain begins: what is left of stake gets small. */
const BLOCKS_OF_CHAIN = 120;

const TOKEN = 10n ** 18n;
const UNBONDING_MS = 20_000;
const STAKE = 100;
/** Few of both: what one does meets what it did before. */
const OPERATORS = [0, 1, 2].map(accountAt);
const PEOPLE = [10, 11, 12].map(accountAt);
/** More stake than there ever is: of all that a validator has a slash takes its part. */
const ALL_STAKE = 10n ** 40n;

/** What has to have happened; who asks for all that a delegation was worth gets less of it when it owes. */
const EXPECTED = ["delegate", "undelegate", "undelegate less", "redelegate", "cancel", "slash"];

class Slashes {
  private readonly chain = new ModuleChain(
    stakedGenesis(
      OPERATORS.map(() => STAKE),
      { "staking.unbonding_time": `${UNBONDING_MS}ms` },
    ),
  );
  private readonly model = new SlashModel(OPERATORS, BigInt(STAKE) * TOKEN);

  constructor(
    private readonly random: Random,
    private readonly counts: Map<string, number>,
  ) {
    for (const who of PEOPLE) {
      this.chain.mint(who, 1_000n * TOKEN);
      this.model.give(who, 1_000n * TOKEN);
    }
  }

  block(): void {
    if (chance(this.random, 0.05)) this.changeTime();
    for (let left = this.random.integer(4); left > 0; left--) this.act();
    this.end(1 + this.random.integer(3));
  }

  /** Everything that is under way ends, and everybody is looked at. */
  settle(what: string): void {
    for (let left = 0; left < UNBONDING_MS; left += 2_000) this.end(2);
    const { state } = this.chain;
    const delegations = new Delegations(state);
    for (const who of PEOPLE) {
      const staked = OPERATORS.map((operator) => {
        const validator = validatorOf(this.chain.context(), operator);
        return tokensOf(validator, delegations.shares(operator, who));
      });
      const has = staked.reduce((sum, each) => sum + each, this.chain.balance(who));
      expect([what, who, has]).toEqual([what, who, this.model.worth(who)]);
    }
  }

  private end(seconds: number): void {
    this.chain.endBlock({ seconds });
    this.model.endUntil(this.chain.timeMs);
  }

  private act(): void {
    const { random, model } = this;
    const who = random.pick(PEOPLE);
    const from = random.pick(OPERATORS);
    const to = random.pick(OPERATORS);
    const kind = random.integer(11);
    if (kind < 3) {
      const amount = BigInt(1 + random.integer(1_000_000)) * 10n ** BigInt(random.integer(13));
      const work = (on: ModuleContext) => void delegate(on, who, validatorOf(on, from), amount);
      if (this.run("delegate", work)) model.delegate(who, from, amount);
    } else if (kind < 8) this.leave(who, from, kind < 5 ? undefined : to);
    else if (kind < 9) this.cancel(who);
    else this.slash(from);
  }

  /** What a vote does: what leaves from now on is back sooner or later than what left before. */
  private changeTime(): void {
    const isWhole = chance(this.random, 0.7);
    const timeMs = BigInt(UNBONDING_MS) / (isWhole ? 1n : BigInt(2 + this.random.integer(9)));
    setModuleParam(this.chain.state, "staking", "unbonding_time", timeMs);
  }

  /** A part of a delegation, or all that it is worth before it bears what it has to. */
  private leave(who: Address, from: Address, to: Address | undefined): void {
    const { random, model } = this;
    const at = { height: this.chain.height, endMs: 0 };
    const validator = validatorOf(this.chain.context(), from);
    const shares = new Delegations(this.chain.state).shares(from, who);
    const worth = tokensOf(validator, shares);
    const amount = chance(random, 0.5) ? worth : worth / BigInt(1 + random.integer(5));
    if (amount === 0n) return;
    if (to === undefined) {
      let leftAtoken = 0n;
      const work = (on: ModuleContext) => {
        const left = undelegate(on, who, validatorOf(on, from), amount);
        at.endMs = left.endMs;
        leftAtoken = left.amountAtoken;
      };
      if (!this.run("undelegate", work)) return;
      model.undelegate(who, from, amount, at);
      // An atoken less is a rounding's.
      if (leftAtoken + 1n < amount) this.count("undelegate less");
      return;
    }
    const work = (on: ModuleContext) => {
      const route = { source: validatorOf(on, from), destination: validatorOf(on, to) };
      at.endMs = redelegate(on, who, route, amount).endMs;
    };
    if (this.run("redelegate", work)) model.redelegate(who, [from, to], amount, at);
  }

  private cancel(who: Address): void {
    const all = this.model.unbondings(who);
    if (all.length === 0) return;
    const { from, height, leftAtoken } = this.random.pick(all);
    const amountAtoken = chance(this.random, 0.5) ? leftAtoken : leftAtoken / 2n;
    if (amountAtoken === 0n) return;
    const work = (on: ModuleContext) =>
      cancelUnbonding(on, who, validatorOf(on, from), { amountAtoken, height });
    if (this.run("cancel", work)) this.model.cancel(who, from, height, amountAtoken);
  }

  private slash(operator: Address): void {
    const { random } = this;
    const fraction = (BigInt(1 + random.integer(20)) * TOKEN) / 100n;
    const infractionHeight = Math.max(0, this.chain.height - random.integer(8));
    const work = (on: ModuleContext) => {
      const fault = { infractionHeight, stakeAtoken: ALL_STAKE };
      slashValidator(on, validatorOf(on, operator), fault, fraction);
    };
    if (this.run("slash", work)) this.model.slash(operator, infractionHeight, fraction);
  }

  private run(what: string, work: (context: ModuleContext) => void): boolean {
    const isDone = this.chain.run(work) === undefined;
    this.count(isDone ? what : `${what} refused`);
    return isDone;
  }

  private count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }
}

describe("slashes at random", () => {
  it("take of everybody what the rule says, once", () => {
    const counts = new Map<string, number>();
    for (let first = 0; first < BLOCKS; first += BLOCKS_OF_CHAIN) {
      const world = new Slashes(createRandom(SEED + first), counts);
      for (let block = 0; block < BLOCKS_OF_CHAIN; block++) world.block();
      world.settle(`seed ${SEED + first}`);
    }
    console.log(`seed ${SEED}, ${BLOCKS} blocks:`, Object.fromEntries(counts));
    // Where nobody moves there is nothing to escape.
    expectReached(counts, EXPECTED, 5);
  });
});
