/**
 * A random economy against a model of its own: exact fractions, every delegation in a list, every
 * reward shared out to everybody in every block.
 */
import { describe, expect, it } from "@jest/globals";
import { type Address, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { type Claim, claimName } from "../../../chain/staking/claims.js";
import {
  communityPool,
  delegationRewards,
  payCommission,
  payRewards,
  validatorRewards,
} from "../../../node/modules/distribution/rewards.js";
import {
  type Measured,
  measureClaims,
  measurePools,
  measureValidators,
  restOfChanges,
  touchedClaims,
} from "../../../node/modules/reads/claim-changes.js";
import {
  claimsOfEvents,
  commissionOf,
  communityOf,
  restOf,
  stakedOf,
  stakeOf,
  type Touched,
  unbondingOf,
} from "../../../node/modules/reads/claim-events.js";
import { unjail } from "../../../node/modules/slashing/signing.js";
import {
  cancelUnbonding,
  delegate,
  redelegate,
  undelegate,
  validatorOf,
} from "../../../node/modules/staking/delegating.js";
import { Delegations, ENTRY_KIND } from "../../../node/modules/staking/delegation-record.js";
import { Validators } from "../../../node/modules/staking/validator-record.js";
import { tokensOf } from "../../../node/modules/staking/shares.js";
import { MODULE_ACCOUNTS } from "../../../node/modules/system-storage.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";
import { createRandom } from "../../helpers/random.js";

const TOKEN = 10n ** 18n;
const STAKES = [100, 80, 60, 40];
const PEOPLE = Array.from({ length: 12 }, (_, index) => accountAt(index));
const OPERATORS = PEOPLE.slice(0, STAKES.length);
const FIXED = 1n << 300n;

function newChain(): ModuleChain {
  const chain = new ModuleChain(
    stakedGenesis(STAKES, {
      "staking.unbonding_time": "20s",
      "staking.max_validators": "4",
      "slashing.signed_blocks_window": "10",
      "slashing.downtime_jail_duration": "10s",
      "distribution.community_tax": "0.02",
    }),
  );
  for (const person of PEOPLE) chain.mint(person, 10_000n * TOKEN);
  return chain;
}

/** Everything that must hold after every step. */
function assertSound(chain: ModuleChain, what: string): void {
  const { state } = chain;
  const validators = new Validators(state);
  const delegations = new Delegations(state);
  let tokens = 0n;
  let bonded = 0n;
  let claims = communityPool(state);
  const entries = new Map<bigint, bigint>();
  for (const validator of validators.all()) {
    tokens += validator.tokens;
    if (validator.isBonded) bonded += validator.tokens;
    const delegators = delegations.delegatorsOf(validator.operator);
    const shares = delegators.map((each) => delegations.shares(validator.operator, each));
    expect([what, shares.reduce((sum, each) => sum + each, 0n)]).toEqual([what, validator.shares]);
    const worth = shares.reduce((sum, each) => sum + tokensOf(validator, each), 0n);
    expect([what, worth <= validator.tokens]).toEqual([what, true]);
    const rewards = validatorRewards(state, validator);
    const pending = delegators.reduce(
      (sum, each) => sum + delegationRewards(state, validator, each),
      0n,
    );
    expect([what, pending <= rewards.delegatorsAtoken]).toEqual([what, true]);
    claims += rewards.delegatorsAtoken + rewards.commissionAtoken;
    for (const each of delegations.entriesFrom(validator.operator)) {
      if (each.kind === ENTRY_KIND.unbonding) entries.set(each.id, each.amountAtoken);
    }
  }
  for (const person of PEOPLE) {
    for (const each of delegations.entriesOf(person)) {
      if (each.kind === ENTRY_KIND.unbonding) entries.set(each.id, each.amountAtoken);
    }
  }
  const leaving = [...entries.values()].reduce((sum, each) => sum + each, 0n);
  const staked = chain.balance(MODULE_ACCOUNTS.staking);
  expect([what, tokens + leaving]).toEqual([what, staked]);
  expect([what, validators.bondedTokens]).toEqual([what, bonded]);
  expect([what, claims <= chain.balance(chain.pool)]).toEqual([what, true]);
  const people = PEOPLE.reduce((sum, person) => sum + chain.balance(person), 0n);
  const supply = chain.mintedAtoken - chain.burnedAtoken;
  expect([what, people + staked + chain.balance(chain.pool)]).toEqual([what, supply]);
}

/** Every claim that there can be in this economy. */
const CLAIMS = (chain: ModuleChain): Claim[] => [
  ...PEOPLE.flatMap((person) => OPERATORS.map((operator) => stakedOf(person, operator))),
  ...PEOPLE.map(unbondingOf),
  ...OPERATORS.flatMap((operator) => [stakeOf(operator), commissionOf(operator)]),
  restOf(chain.pool),
  communityOf(chain.pool),
];

/** Holds what blocks tell of claims against the difference of every claim that there is. */
class ClaimBook {
  readonly reasons = new Map<string, number>();
  private values: ReadonlyMap<string, bigint>;
  private staked: bigint;
  private heard: number;
  private measured: (touched: Touched) => Measured;

  constructor(private readonly chain: ModuleChain) {
    this.values = this.all();
    this.staked = chain.balance(MODULE_ACCOUNTS.staking);
    this.heard = chain.events.length;
    this.measured = this.measure();
  }

  /** The block that has just ended; claims of no transaction's events are all that is left to it. */
  endBlock(): void {
    const { chain } = this;
    const events = chain.events.slice(this.heard).map(({ type, values }) => ({
      type,
      attributes: Object.entries(values).map(([key, value]) => ({ key, value, index: true })),
    }));
    const { moves, touched } = claimsOfEvents(events, chain.pool);
    const staked = chain.balance(MODULE_ACCOUNTS.staking);
    const facts = {
      isGenesis: false,
      stakeJournalAtoken: staked - this.staked,
      validatorsPool: chain.pool,
    };
    const after = this.measure();
    const states = { before: this.measured(touched), after: after(touched) };
    const told = [...moves, ...restOfChanges(moves, touched, states, facts)];
    const sums = new Map(this.values);
    for (const { claim, delta, reason } of told) {
      if (claim.kind !== "own") add(sums, claimName(claim), delta);
      this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1);
    }
    this.values = this.all();
    expect([chain.height, sums]).toEqual([chain.height, this.values]);
    expect([...this.values].filter(([, value]) => value < 0n)).toEqual([]);
    [this.staked, this.heard, this.measured] = [staked, chain.events.length, after];
  }

  private all(): ReadonlyMap<string, bigint> {
    const { state, pool } = this.chain;
    return new Map(measureClaims(state, CLAIMS(this.chain), pool));
  }

  /** Keeps every claim now, of which a block says later which ones it touched. */
  private measure(): (touched: Touched) => Measured {
    const { state, pool } = this.chain;
    const pools = measurePools(state, pool);
    const validators = measureValidators(state);
    const all = this.all();
    return (touched) => {
      const claims = touchedClaims(touched).map((claim) => {
        const name = claimName(claim);
        return [name, all.get(name) ?? -1n] as const;
      });
      return { pools, validators, claims: new Map(claims) };
    };
  }
}

/** Rewards of everybody as the rule says it, in fractions: nobody books anything. */
class Model {
  readonly delegators = new Map<string, bigint>();
  readonly commissions = new Map<Address, bigint>();

  allocate(chain: ModuleChain, rewardAtoken: bigint): void {
    const { state } = chain;
    const bonded = new Validators(state).all().filter(({ isBonded }) => isBonded);
    const all = bonded.reduce((sum, { tokens }) => sum + tokens, 0n);
    const shared = (rewardAtoken - rewardAtoken / 50n) * FIXED;
    for (const validator of bonded) {
      const earned = (shared * validator.tokens) / all;
      const commission = (earned * validator.commission.rate) / TOKEN;
      add(this.commissions, validator.operator, commission);
      const delegations = new Delegations(state);
      for (const delegator of delegations.delegatorsOf(validator.operator)) {
        const part =
          ((earned - commission) * delegations.shares(validator.operator, delegator)) /
          validator.shares;
        add(this.delegators, `${validator.operator} ${delegator}`, part);
      }
    }
  }
}

function add<Key>(map: Map<Key, bigint>, key: Key, amount: bigint): void {
  map.set(key, (map.get(key) ?? 0n) + amount);
}

describe("a random economy", () => {
  it.each([1, 2])("keeps every coin and shares rewards as the rule says (seed %i)", (seed) => {
    const random = createRandom(seed);
    const chain = newChain();
    const model = new Model();
    chain.endBlock();
    const book = new ClaimBook(chain);
    const paid = new Map<string, bigint>();
    const commissionPaid = new Map<Address, bigint>();
    const pick = <Item>(items: readonly Item[]): Item => {
      const item = items[random.integer(items.length)];
      if (item === undefined) throw new RangeError("nothing to pick");
      return item;
    };
    const amount = () => BigInt(1 + random.integer(1_000_000)) * 10n ** BigInt(random.integer(14));
    const counts = { done: 0, refused: 0 };
    let bookings = 0n;
    /** What `payRewards` paid is heard from its event: withdraw addresses are never changed here. */
    const hear = (from: number) => {
      for (const { type, values } of chain.events.slice(from)) {
        const atoken = BigInt((values["amount"] ?? "0").replace("atoken", "") || "0");
        if (type === "withdraw_rewards") {
          add(paid, `${values["validator"]} ${values["delegator"]}`, atoken);
        }
      }
    };
    for (let step = 0; step < 240; step++) {
      const [person, operator, other] = [pick(PEOPLE), pick(OPERATORS), pick(OPERATORS)];
      const isGivenUp = random.integer(8) === 0;
      const before = chain.events.length;
      if (isGivenUp) chain.state.checkpoint();
      const burnedBefore = chain.burnedAtoken;
      let commission = 0n;
      const failure = chain.run((context) => {
        const validator = () => validatorOf(context, operator);
        const actions = [
          () => delegate(context, person, validator(), amount()),
          () => undelegate(context, person, validator(), amount()),
          () => {
            const route = { source: validator(), destination: validatorOf(context, other) };
            redelegate(context, person, route, amount());
          },
          () => void payRewards(context, validator(), person),
          () => {
            commission = payCommission(context, validator());
          },
          () => {
            const [entry] = new Delegations(context.state)
              .entriesOf(person)
              .filter(({ kind }) => kind === ENTRY_KIND.unbonding);
            if (entry === undefined) return;
            const { height, amountAtoken } = entry;
            const one = validatorOf(context, entry.source);
            cancelUnbonding(context, person, one, { amountAtoken: amountAtoken / 2n + 1n, height });
          },
          () => unjail(context, validator()),
        ];
        pick(actions)();
      });
      bookings += 1n;
      counts[failure === undefined ? "done" : "refused"] += 1;
      if (isGivenUp || failure !== undefined) {
        chain.events.length = before;
        if (isGivenUp) {
          chain.state.revert();
          chain.burnedAtoken = burnedBefore;
        }
      } else {
        hear(before);
        add(commissionPaid, operator, commission);
      }
      assertSound(chain, `step ${step}`);
      if (random.integer(3) > 0) continue;
      const rewardAtoken = BigInt(random.integer(1_000_000)) * 10n ** 12n;
      model.allocate(chain, rewardAtoken);
      const validators = new Validators(chain.state);
      const votes = validators.inConsensus().map((each) => ({
        consensusAddress: each.consensusAddress,
        power: each.consensusPower,
        isSigned: each.operator !== OPERATORS[1] || random.integer(3) > 0,
      }));
      const sinner = validators.of(accountAt(3));
      const misbehavior =
        step === 150 || random.integer(40) === 0
          ? [
              {
                consensusAddress: sinner.consensusAddress,
                height: Math.max(1, chain.height - 3),
                power: sinner.tokens / TOKEN,
              },
            ]
          : [];
      const from = chain.events.length;
      chain.endBlock({ rewardAtoken, facts: { votes, misbehavior }, seconds: random.integer(6) });
      hear(from);
      assertSound(chain, `block ${chain.height}`);
      book.endBlock();
    }
    expect(counts.done).toBeGreaterThan(100);
    expect(chain.burnedAtoken).toBeGreaterThan(0n);
    const reasons = ["CLAIM", "DELEGATE", "REDELEGATE", "REWARD", "SHARES", "SLASH", "UNDELEGATE"];
    expect([...book.reasons.keys()]).toEqual(expect.arrayContaining(reasons));
    const validators = new Validators(chain.state);
    for (const [key, exact] of model.delegators) {
      const [operator, delegator] = key.split(" ") as [Address, Address];
      const validator = validators.of(operator);
      const texts = `${toBech32(operator, VALIDATOR_PREFIX)} ${toBech32(delegator)}`;
      const pending = validator.exists ? delegationRewards(chain.state, validator, delegator) : 0n;
      const got = (paid.get(texts) ?? 0n) + pending;
      const due = exact / FIXED;
      const off = got > due ? got - due : due - got;
      expect([key, off <= bookings]).toEqual([key, true]);
    }
    for (const [operator, exact] of model.commissions) {
      const validator = validators.of(operator);
      const got =
        (commissionPaid.get(operator) ?? 0n) +
        validatorRewards(chain.state, validator).commissionAtoken;
      const due = exact / FIXED;
      const off = got > due ? got - due : due - got;
      expect([operator, off <= bookings]).toEqual([operator, true]);
    }
  });
});
