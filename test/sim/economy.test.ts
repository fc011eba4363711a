/**
 * An economy of some thousand blocks at random: stake comes, moves and goes, validators join, miss
 * blocks, sign twice and come back, people vote and lose deposits, fees are burned. Every coin is
 * counted in every block; rewards are held against exact fractions, the supply against the closed
 * form of minting. `npm run test:sim` runs 10,000 blocks.
 */
import { describe, expect, it } from "@jest/globals";
import { type Address, parseBech32, VALIDATOR_PREFIX } from "../../chain/address.js";
import { signingKeyOf } from "../../chain/consensus/ed25519.js";
import { FIRST_PHASE_LAST_HEIGHT } from "../../chain/networks.js";
import { endOfBlockChanges } from "../../node/blocks/fees.js";
import {
  communityPool,
  delegationRewards,
  payCommission,
  validatorRewards,
  withdrawRewards,
} from "../../node/modules/distribution/rewards.js";
import { Proposals } from "../../node/modules/gov/proposal-record.js";
import { depositOn, submitProposal } from "../../node/modules/gov/proposing.js";
import { plainVote, voteOn } from "../../node/modules/gov/voting.js";
import type { ModuleContext } from "../../node/modules/module-context.js";
import { unjail } from "../../node/modules/slashing/signing.js";
import {
  cancelUnbonding,
  delegate,
  redelegate,
  undelegate,
  validatorOf,
} from "../../node/modules/staking/delegating.js";
import { Delegations, ENTRY_KIND } from "../../node/modules/staking/delegation-record.js";
import { registerValidator } from "../../node/modules/staking/registration.js";
import { type ValidatorRecord, Validators } from "../../node/modules/staking/validator-record.js";
import { tokensOf } from "../../node/modules/staking/shares.js";
import { operatorsOf } from "../../node/modules/reads/staking-reads.js";
import { MODULE_ACCOUNTS } from "../../node/modules/system-storage.js";
import { accountAt, ModuleChain, stakedGenesis } from "../helpers/cosmos/module-state.js";
import { chance, createRandom, type Random } from "../helpers/random.js";
import { ExactRewards, ExactSupply } from "./economy-model.js";
import { expectReached } from "./reached.js";

/** One seed decides a run; CAUSEWAY_SIM_SEED takes another, CAUSEWAY_SIM_BLOCKS is longer. */
const SEED = Number(process.env["CAUSEWAY_SIM_SEED"] ?? 20_261_121);
const BLOCKS = Number(process.env["CAUSEWAY_SIM_BLOCKS"] ?? 1_000);

/** Blocks between two looks at every delegation: each block's coins are counted anyway. */
const AUDIT_BLOCKS = 10;

const TOKEN = 10n ** 18n;
const STAKES = [100, 80, 60, 40];
const PEOPLE = Array.from({ length: 14 }, (_, index) => accountAt(index));
/** Those who have, or may make, a validator. */
const OPERATORS = PEOPLE.slice(0, STAKES.length + 3);

class Economy {
  readonly random: Random;
  readonly chain: ModuleChain;
  readonly rewards = new ExactRewards(TOKEN / 50n);
  readonly supply: ExactSupply;
  readonly counts = new Map<string, number>();
  /** What was paid out, by operator and delegator; "" for commission, over all operators. */
  readonly paid = new Map<string, bigint>();
  /** Roundings that somebody may have lost an atoken by. */
  bookings = 0n;
  private nextKey = 100;

  constructor(seed: number, blocks: number) {
    this.random = createRandom(seed);
    this.chain = new ModuleChain(
      stakedGenesis(STAKES, {
        "staking.unbonding_time": "40s",
        "staking.max_validators": "5",
        "slashing.signed_blocks_window": "10",
        "slashing.downtime_jail_duration": "10s",
        "distribution.community_tax": "0.02",
        "gov.voting_period": "20s",
        "gov.expedited_voting_period": "10s",
        "gov.max_deposit_period": "20s",
        "gov.min_deposit": `${TOKEN}`,
      }),
    );
    const { chain } = this;
    for (const person of PEOPLE) chain.mint(person, 1_000_000n * TOKEN);
    // Inflation changes on the way.
    chain.height = FIRST_PHASE_LAST_HEIGHT - Math.floor(blocks / 2);
    this.supply = new ExactSupply(this.supplyAtoken);
  }

  get supplyAtoken(): bigint {
    return this.chain.mintedAtoken - this.chain.burnedAtoken;
  }

  private count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** One block: what people do in it, then its end. */
  block(): void {
    const { chain, random } = this;
    const { burnedAtoken: burnedBefore } = chain;
    const parentSupplyAtoken = this.supplyAtoken;
    let feesAtoken = 0n;
    for (let left = random.integer(3); left > 0; left--) feesAtoken += this.act();
    const height = chain.height + 1;
    let rewardAtoken = 0n;
    const { params } = chain.genesis;
    for (const change of endOfBlockChanges(height, feesAtoken, parentSupplyAtoken, params)) {
      const { reason, from, to, amountAtoken } = change;
      if (from !== undefined) {
        chain.run((context) => context.moveCoins(reason, from, to, amountAtoken));
      } else if (to === params.validatorsPool) rewardAtoken += amountAtoken;
      else if (to !== undefined) chain.mint(to, amountAtoken);
    }
    this.rewards.allocate(rewardAtoken, this.earners());
    chain.endBlock({ rewardAtoken, facts: this.facts(), seconds: random.integer(5) });
    this.hear();
    const percent = height <= 7_884_000 ? 12n : 8n;
    this.supply.next(percent, chain.burnedAtoken - burnedBefore);
    this.assertCounted(`block ${chain.height}`);
  }

  /** One thing that somebody does. @returns the fee that it cost, atoken */
  private act(): bigint {
    const { chain, random } = this;
    const person = random.pick(PEOPLE);
    const feeAtoken = BigInt(random.integer(1_000_000)) * 10n ** 9n;
    chain.run((context) => {
      context.moveCoins("FEE", person, chain.genesis.params.feeCollector, feeAtoken);
    });
    const [what, work] = this.choose(person);
    // Some of them are undone after all, as a transaction whose last message fails.
    const isGivenUp = random.integer(10) === 0;
    const { burnedAtoken } = chain;
    const { length } = chain.events;
    if (isGivenUp) chain.state.checkpoint();
    const failure = chain.run(work);
    if (isGivenUp) {
      chain.state.revert();
      chain.burnedAtoken = burnedAtoken;
      chain.events.length = length;
    }
    this.bookings += 1n;
    this.count(isGivenUp ? "given up" : failure === undefined ? what : `${what} refused`);
    this.hear();
    return feeAtoken;
  }

  private choose(person: Address): readonly [string, (context: ModuleContext) => void] {
    const { random } = this;
    const own = operatorsOf(this.chain.state, person);
    // Mostly what can be done: of strangers' stake there is nothing to take.
    const isOwn = own.length > 0 && chance(random, 0.6);
    const operator = random.pick(isOwn ? own : OPERATORS);
    const jailed = new Validators(this.chain.state).all().filter(({ isJailed }) => isJailed);
    const amount = BigInt(1 + random.integer(1_000_000)) * 10n ** BigInt(random.integer(14));
    const proposals = new Proposals(this.chain.state);
    const open = proposals.listWaiting();
    const proposal = open.length === 0 ? undefined : random.pick(open).id;
    const voter = chance(random, 0.5) ? random.pick(OPERATORS) : person;
    const actions: readonly (readonly [string, (context: ModuleContext) => void])[] = [
      ["delegate", (on) => void delegate(on, person, validatorOf(on, operator), amount)],
      ["delegate", (on) => void delegate(on, person, validatorOf(on, operator), amount)],
      ["undelegate", (on) => void undelegate(on, person, validatorOf(on, operator), amount)],
      [
        "leave",
        (on) => {
          const validator = validatorOf(on, operator);
          const owned = new Delegations(on.state).shares(operator, person);
          undelegate(on, person, validator, tokensOf(validator, owned));
        },
      ],
      ["redelegate", (on) => this.move(on, person, operator, amount)],
      ["withdraw", (on) => void withdrawRewards(on, validatorOf(on, operator), person)],
      ["commission", (on) => void payCommission(on, validatorOf(on, operator))],
      ["cancel", (on) => cancelSome(on, person)],
      [
        "unjail",
        (on) => {
          const one = jailed.length === 0 ? operator : random.pick(jailed).operator;
          unjail(on, validatorOf(on, one));
        },
      ],
      ["register", (on) => this.register(on, operator)],
      [
        "propose",
        (on) => {
          const words = {
            title: "t",
            summary: "s",
            metadata: "words",
            isExpedited: chance(random, 0.3),
          };
          const initialDepositAtoken = BigInt(random.integer(30)) * (TOKEN / 10n);
          const submission = { proposer: person, messages: [], initialDepositAtoken, ...words };
          submitProposal(on, submission, () => undefined);
        },
      ],
      [
        "deposit",
        (on) => {
          if (proposal === undefined) return;
          depositOn(on, proposal, { depositor: person, amountAtoken: TOKEN });
        },
      ],
      ...[1, 2, 3].map(
        () =>
          [
            "vote",
            (on: ModuleContext) => {
              if (proposal === undefined) return;
              const options = plainVote(random.pick([1, 1, 2, 3, 4, 4]));
              voteOn(on, proposal, { voter, options, metadata: "" });
            },
          ] as const,
      ),
    ];
    return random.pick(actions);
  }

  private move(context: ModuleContext, person: Address, from: Address, amount: bigint): void {
    const destination = validatorOf(context, this.random.pick(OPERATORS));
    redelegate(context, person, { source: validatorOf(context, from), destination }, amount);
  }

  private register(context: ModuleContext, operator: Address): void {
    // A key that signed twice never comes back: each validator has one of its own.
    this.nextKey += 1;
    const { publicKey } = signingKeyOf(Buffer.alloc(32, 0).fill(`${this.nextKey}`));
    const description = {
      moniker: "m",
      identity: "",
      website: "",
      security_contact: "",
      details: "",
    };
    registerValidator(context, {
      operator,
      publicKey: Uint8Array.from(publicKey),
      description,
      commission: { rate: TOKEN / 20n, maxRate: TOKEN / 5n, maxChangeRate: TOKEN / 100n },
      minSelfDelegation: 1n,
      selfDelegationAtoken: BigInt(1 + this.random.integer(90)) * TOKEN,
    });
  }

  private earners() {
    const { state } = this.chain;
    const delegations = new Delegations(state);
    return new Validators(state)
      .all()
      .filter(({ isBonded }) => isBonded)
      .map(({ operator, tokens, shares, commission }) => ({
        operator,
        tokens,
        shares,
        rate: commission.rate,
        delegators: new Map(
          delegations
            .delegatorsOf(operator)
            .map((each) => [each, delegations.shares(operator, each)] as const),
        ),
      }));
  }

  /** Who signed the block before; now and then one stays away for long, or signs twice. */
  private facts() {
    const { chain, random } = this;
    const inSet = new Validators(chain.state).inConsensus();
    const isAway = (one: ValidatorRecord) =>
      one.operator === OPERATORS[Math.floor(chain.height / 30) % 8] && random.integer(4) > 0;
    const votes = inSet.map((one) => ({
      consensusAddress: one.consensusAddress,
      power: one.consensusPower,
      isSigned: !isAway(one),
    }));
    // Somebody has to be left to go on.
    const sinner = inSet.length > 3 && random.integer(80) === 0 ? random.pick(inSet) : undefined;
    this.bookings += BigInt(inSet.length);
    if (sinner === undefined) return { votes, misbehavior: [] };
    this.count("double sign");
    const height = chain.height - random.integer(20);
    const power = sinner.tokens / TOKEN;
    return { votes, misbehavior: [{ consensusAddress: sinner.consensusAddress, height, power }] };
  }

  /** Withdraw addresses are never changed here: what an event says went to the delegator. */
  private hear(): void {
    const { events } = this.chain;
    for (const { type, values } of events) {
      const atoken = BigInt((values["amount"] ?? "").replace("atoken", "") || 0);
      if (type === "withdraw_commission") this.pay("", "", atoken);
      if (type === "withdraw_rewards") {
        const operator = parseBech32(values["validator"] ?? "", VALIDATOR_PREFIX);
        this.pay(operator, parseBech32(values["delegator"] ?? ""), atoken);
      }
      if (type === "slash" && values["reason"] === "missing_signature") this.count("downtime");
      if (type === "active_proposal") this.count(values["proposal_result"] ?? "");
    }
    // They are counted; a run of thousands of blocks need not keep them.
    events.length = 0;
  }

  private pay(operator: string, delegator: string, atoken: bigint): void {
    const key = `${operator} ${delegator}`;
    this.paid.set(key, (this.paid.get(key) ?? 0n) + atoken);
  }

  /** Every coin is on one of the accounts, and every claim has its coins. */
  private assertCounted(what: string): void {
    const { chain } = this;
    const { treasury, feeCollector, developmentFund, validatorsPool } = chain.genesis.params;
    const system = [treasury, feeCollector, developmentFund, validatorsPool];
    const { staking, gov } = MODULE_ACCOUNTS;
    const all = [...PEOPLE, ...system, staking, gov];
    const held = all.reduce((sum, one) => sum + chain.balance(one), 0n);
    const proposals = new Proposals(chain.state);
    const { least, most } = this.supply.bounds();
    const supplyAtoken = this.supplyAtoken;
    if (held !== supplyAtoken) throw new Error(`${what}: ${held} held of ${supplyAtoken}`);
    if (chain.balance(gov) !== proposals.heldAtoken) throw new Error(`${what}: deposits`);
    if (supplyAtoken < least || supplyAtoken > most) {
      throw new Error(`${what}: ${supplyAtoken} is not within ${least} and ${most}`);
    }
    if (chain.height % AUDIT_BLOCKS === 0) this.audit(what);
  }

  /** Stake against its coins, shares against their sum, claims against the pool. */
  audit(what: string): void {
    const { chain } = this;
    const { state } = chain;
    const validators = new Validators(state);
    const delegations = new Delegations(state);
    let [tokens, bonded, claims] = [0n, 0n, communityPool(state)];
    const leaving = new Map<bigint, bigint>();
    for (const validator of validators.all()) {
      const { operator } = validator;
      tokens += validator.tokens;
      if (validator.isBonded) bonded += validator.tokens;
      const delegators = delegations.delegatorsOf(operator);
      const shares = delegators.map((each) => delegations.shares(operator, each));
      expect([what, shares.reduce((sum, each) => sum + each, 0n)]).toEqual([
        what,
        validator.shares,
      ]);
      const rewards = validatorRewards(state, validator);
      const pending = delegators.reduce(
        (sum, each) => sum + delegationRewards(state, validator, each),
        0n,
      );
      expect([what, pending <= rewards.delegatorsAtoken]).toEqual([what, true]);
      claims += rewards.delegatorsAtoken + rewards.commissionAtoken;
      for (const each of delegations.entriesFrom(operator)) {
        if (each.kind === ENTRY_KIND.unbonding) leaving.set(each.id, each.amountAtoken);
      }
    }
    for (const each of PEOPLE.flatMap((person) => delegations.entriesOf(person))) {
      if (each.kind === ENTRY_KIND.unbonding) leaving.set(each.id, each.amountAtoken);
    }
    const onTheWay = [...leaving.values()].reduce((sum, each) => sum + each, 0n);
    expect([what, tokens + onTheWay]).toEqual([what, chain.balance(MODULE_ACCOUNTS.staking)]);
    expect([what, validators.bondedTokens]).toEqual([what, bonded]);
    expect([what, claims <= chain.balance(chain.pool)]).toEqual([what, true]);
  }

  /** What everybody got and can still claim, beside what is due to them. */
  *settlement(): Generator<{ who: string; got: bigint; due: bigint }> {
    const { state } = this.chain;
    const validators = new Validators(state);
    const commission = { got: this.paid.get(" ") ?? 0n, due: 0n };
    for (const one of validators.all()) {
      commission.got += validatorRewards(state, one).commissionAtoken;
    }
    for (const { operator, delegator, atoken } of this.rewards.due()) {
      if (delegator === "") {
        commission.due += atoken;
        continue;
      }
      const who = `${operator} ${delegator}`;
      const validator = validators.of(operator);
      const pending = validator.exists
        ? delegationRewards(state, validator, delegator as Address)
        : 0n;
      yield { who, got: (this.paid.get(who) ?? 0n) + pending, due: atoken };
    }
    yield { who: "commission of all", ...commission };
    yield { who: "community", got: communityPool(state), due: this.rewards.communityAtoken };
  }
}

function cancelSome(context: ModuleContext, person: Address): void {
  const entry = new Delegations(context.state)
    .entriesOf(person)
    .find(({ kind }) => kind === ENTRY_KIND.unbonding);
  if (entry === undefined) return;
  const { height, amountAtoken, source } = entry;
  const half = { amountAtoken: amountAtoken / 2n + 1n, height };
  cancelUnbonding(context, person, validatorOf(context, source), half);
}

describe("an economy at random", () => {
  it("keeps every coin, shares rewards as the rule says, and mints by the closed form", () => {
    const economy = new Economy(SEED, BLOCKS);
    for (let block = 0; block < BLOCKS; block++) economy.block();
    economy.audit("the end");
    const { counts, bookings } = economy;
    console.log(`seed ${SEED}, ${BLOCKS} blocks:`, Object.fromEntries(counts));
    const expected = "delegate undelegate leave redelegate withdraw cancel unjail register propose";
    expectReached(counts, [...expected.split(" "), "vote", "deposit", "downtime", "double sign"]);
    for (const { who, got, due } of economy.settlement()) {
      // Only what rounding left is missing; of validators that are gone the community has it. What a
      // commission is rounded down by is its delegators', at most an atoken of each booking.
      const off = who === "community" ? got - due : due - got;
      const most = who.includes("0x") ? bookings : 2n;
      expect([who, off >= -most, off <= bookings]).toEqual([who, true, true]);
    }
  });
});
