/**
 * Stake at its extremes, at random: amounts of a few atoken, slashes of everything, parameters that
 * change to their bounds from one block to the next, validators that all leave, sign twice, are
 * forgotten and come back with the same key, proposals of the gov account itself. No end of a block
 * may throw, since that would end the chain; every coin and every claim is counted in each block.
 */
import { describe, expect, it } from "@jest/globals";
import { type Address, toBech32, VALIDATOR_PREFIX } from "../../chain/address.js";
import { signingKeyOf } from "../../chain/consensus/ed25519.js";
import { claimName } from "../../chain/staking/claims.js";
import { validatorAddress, type ValidatorUpdate } from "../../chain/consensus/validator-set.js";
import type { AnyMessage, ProtoMessage } from "../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../chain/cosmos/message-schemas.js";
import { present } from "../../chain/errors.js";
import {
  communityPool,
  delegationRewards,
  depositRewards,
  fundCommunityPool,
  payCommission,
  setWithdrawAddress,
  validatorRewards,
  withdrawRewards,
} from "../../node/modules/distribution/rewards.js";
import { PROPOSAL_STATUS, Proposals } from "../../node/modules/gov/proposal-record.js";
import { cancelProposal, depositOn, submitProposal } from "../../node/modules/gov/proposing.js";
import { plainVote, voteOn } from "../../node/modules/gov/voting.js";
import { handlerOf } from "../../node/modules/message-router.js";
import type { ModuleContext } from "../../node/modules/module-context.js";
import { setModuleParam } from "../../node/modules/module-params.js";
import {
  type Measured,
  measureClaims,
  measurePools,
  measureValidators,
  restOfChanges,
  touchedClaims,
} from "../../node/modules/reads/claim-changes.js";
import { claimsOfEvents } from "../../node/modules/reads/claim-events.js";
import { operatorsOf } from "../../node/modules/reads/staking-reads.js";
import { assertNotTombstoned, unjail } from "../../node/modules/slashing/signing.js";
import {
  cancelUnbonding,
  delegate,
  redelegate,
  unbondingLeft,
  undelegate,
  validatorOf,
} from "../../node/modules/staking/delegating.js";
import { Delegations, ENTRY_KIND } from "../../node/modules/staking/delegation-record.js";
import { registerValidator } from "../../node/modules/staking/registration.js";
import { Validators } from "../../node/modules/staking/validator-record.js";
import { tokensOf } from "../../node/modules/staking/shares.js";
import { MODULE_ACCOUNTS } from "../../node/modules/system-storage.js";
import { MODULE_PARAM_RULES } from "../../node/settings/module-params.js";
import { accountAt, ModuleChain, stakedGenesis } from "../helpers/cosmos/module-state.js";
import { chance, createRandom, type Random } from "../helpers/random.js";
import { expectReached } from "./reached.js";

/** One seed decides a run; CAUSEWAY_SIM_SEED takes another, CAUSEWAY_SIM_BLOCKS is longer. */
const SEED = Number(process.env["CAUSEWAY_SIM_SEED"] ?? 20_261_122);
const BLOCKS = Number(process.env["CAUSEWAY_SIM_BLOCKS"] ?? 600);
/** Then another chain begins: in the end all of one's keys are out for ever. */
const BLOCKS_OF_CHAIN = 200;

const TOKEN = 10n ** 18n;
const STAKES = [3, 2, 1];
const PEOPLE = Array.from({ length: 8 }, (_, index) => accountAt(index));
const GOV = toBech32(MODULE_ACCOUNTS.gov);
const KEYS = Array.from({ length: 40 }, (_, index) => {
  return Uint8Array.from(signingKeyOf(Buffer.alloc(32, index + 1)).publicKey);
});

/** Few values, each at a bound or close to one. */
const EXTREMES: readonly (readonly [keyof typeof MODULE_PARAM_RULES, string])[] = Object.entries(
  MODULE_PARAM_RULES,
).flatMap(([module, rules]) =>
  Object.keys(rules)
    .filter((name) => name !== "proposal_cancel_dest")
    .map((name) => [module as keyof typeof MODULE_PARAM_RULES, name] as const),
);

/** What has to have happened. */
const EXPECTED = [
  ..."register delegate leave redelegate cancel unjail parameter complete_redelegation".split(" "),
  ..."proposal_failed proposal_rejected cancel_proposal".split(" "),
  "slash double_sign",
  "slash missing_signature",
];

type Action = (context: ModuleContext) => void;

class Extremes {
  readonly random: Random;
  readonly chain = new ModuleChain(
    stakedGenesis(STAKES, {
      "staking.unbonding_time": "6s",
      "slashing.signed_blocks_window": "4",
      "slashing.downtime_jail_duration": "1s",
      "gov.voting_period": "6s",
      "gov.expedited_voting_period": "4s",
      "gov.max_deposit_period": "6s",
      "gov.min_deposit": "100",
      "gov.expedited_min_deposit": "200",
    }),
  );
  /** Power by key, as consensus has been told. */
  private readonly told = new Map<string, bigint>();

  constructor(
    seed: number,
    private readonly counts: Map<string, number>,
  ) {
    this.random = createRandom(seed);
    for (const person of PEOPLE) this.chain.mint(person, 1_000n * TOKEN);
    this.tell(
      new Validators(this.chain.state).inConsensus().map(({ publicKey, consensusPower }) => {
        return { publicKey, power: consensusPower };
      }),
    );
  }

  private count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** Mostly a handful of atoken: roundings are all there is. */
  private amount(): bigint {
    const { random } = this;
    const small = BigInt(1 + random.integer(9));
    if (chance(random, 0.7)) return small;
    return chance(random, 0.5) ? small * TOKEN : small * TOKEN + BigInt(random.integer(1_000));
  }

  block(): void {
    const { chain, random } = this;
    const before = this.measure();
    const stakeBefore = chain.balance(MODULE_ACCOUNTS.staking);
    for (let left = random.integer(6); left > 0; left--) this.act();
    const rewardAtoken = random.pick([0n, 1n, 7n, 10n ** 15n, TOKEN]);
    const updates = chain.endBlock({
      rewardAtoken,
      facts: this.facts(),
      seconds: random.pick([0.001, 1, 2, 7]),
    });
    this.tell(updates);
    for (const { type, values } of chain.events) {
      this.count(type === "active_proposal" ? (values["proposal_result"] ?? "") : type);
      if (type === "slash") this.count(`slash ${values["reason"] ?? ""}`);
    }
    this.assertExplained(before, chain.balance(MODULE_ACCOUNTS.staking) - stakeBefore);
    chain.events.length = 0;
    this.audit(`block ${chain.height}`);
  }

  /** Everything that anybody can claim, as the sidecar measures it. */
  private measure(): Measured {
    const { state, pool } = this.chain;
    const all = [...PEOPLE, MODULE_ACCOUNTS.gov];
    const touched = { leaving: new Set(all), delegators: new Map<Address, Set<Address>>() };
    for (const operator of all) touched.delegators.set(operator, new Set(all));
    return {
      pools: measurePools(state, pool),
      validators: measureValidators(state),
      claims: new Map(measureClaims(state, touchedClaims(touched), pool)),
    };
  }

  /** The block's events explain every change of a claim: the sidecar stops where they do not. */
  private assertExplained(before: Measured, stakeJournalAtoken: bigint): void {
    const { pool: validatorsPool, events } = this.chain;
    const { moves, touched } = claimsOfEvents(
      events.map(({ type, values }) => {
        const attributes = Object.entries(values).map(([key, value]) => ({
          key,
          value,
          index: true,
        }));
        return { type, attributes };
      }),
      validatorsPool,
    );
    const facts = { isGenesis: false, stakeJournalAtoken, validatorsPool };
    const after = this.measure();
    const rest = restOfChanges(moves, touched, { before, after }, facts);
    // Of what nobody's event named nothing may have changed.
    const sums = new Map<string, bigint>();
    for (const { claim, delta } of [...moves, ...rest]) {
      sums.set(claimName(claim), (sums.get(claimName(claim)) ?? 0n) + delta);
    }
    for (const [name, value] of after.claims) {
      const change = value - (before.claims.get(name) ?? 0n);
      expect([name, change]).toEqual([name, sums.get(name) ?? 0n]);
    }
  }

  /** Consensus is told of each key once a block, never of nothing, and somebody stays. */
  private tell(updates: readonly ValidatorUpdate[]): void {
    const keys = updates.map(({ publicKey }) => Buffer.from(publicKey).toString("hex"));
    expect(new Set(keys).size).toBe(keys.length);
    for (const [index, { power }] of updates.entries()) {
      const key = keys[index] ?? "";
      expect([key, power === 0n && !this.told.has(key)]).toEqual([key, false]);
      if (power === 0n) this.told.delete(key);
      else this.told.set(key, power);
    }
    expect(this.told.size).toBeGreaterThan(0);
    const known = new Validators(this.chain.state).inConsensus().map((one) => {
      return [Buffer.from(one.publicKey).toString("hex"), one.consensusPower] as const;
    });
    expect(new Map(known)).toEqual(this.told);
  }

  private act(): void {
    const { chain, random } = this;
    const [what, work] = this.choose();
    const isGivenUp = random.integer(12) === 0;
    const { burnedAtoken } = chain;
    const { length } = chain.events;
    if (isGivenUp) chain.state.checkpoint();
    const failure = chain.run(work);
    if (isGivenUp) {
      chain.state.revert();
      chain.burnedAtoken = burnedAtoken;
      chain.events.length = length;
    }
    this.count(failure === undefined ? what : `${what} refused`);
  }

  private choose(): readonly [string, Action] {
    const { random, chain } = this;
    const person = random.pick(PEOPLE);
    const { state } = chain;
    const own = operatorsOf(state, person);
    const all = new Validators(state).all().map(({ operator }) => operator);
    const from = own.length > 0 && chance(random, 0.8) ? own : all;
    const operator = random.pick(from.length > 0 ? from : PEOPLE);
    const other = random.pick(all.length > 0 ? all : PEOPLE);
    const amount = this.amount();
    const waiting = new Proposals(state).listWaiting().map(({ id }) => id);
    const proposal = waiting.length === 0 ? 1n : random.pick(waiting);
    const actions: readonly (readonly [string, Action])[] = [
      ["delegate", (on) => void delegate(on, person, validatorOf(on, operator), amount)],
      ["undelegate", (on) => void undelegate(on, person, validatorOf(on, operator), amount)],
      ["leave", (on) => this.leave(on, person, operator)],
      ["leave", (on) => this.leave(on, person, operator)],
      [
        "redelegate",
        (on) => {
          const route = { source: validatorOf(on, operator), destination: validatorOf(on, other) };
          redelegate(on, person, route, amount);
        },
      ],
      ["cancel", (on) => this.cancelSome(on, person)],
      ["withdraw", (on) => void withdrawRewards(on, validatorOf(on, operator), person)],
      ["commission", (on) => void payCommission(on, validatorOf(on, operator))],
      ["withdraw address", (on) => setWithdrawAddress(on, person, random.pick(PEOPLE))],
      ["deposit rewards", (on) => depositRewards(on, validatorOf(on, operator), person, amount)],
      ["fund", (on) => fundCommunityPool(on, person, amount)],
      ["unjail", (on) => unjail(on, validatorOf(on, operator))],
      ["unjail", (on) => unjail(on, validatorOf(on, other))],
      ["register", (on) => this.register(on, person, amount)],
      ["register", (on) => this.register(on, person, amount)],
      ["parameter", (on) => this.change(on)],
      ["propose", (on) => this.propose(on, person)],
      ["deposit", (on) => depositOn(on, proposal, { depositor: person, amountAtoken: 100n })],
      ["give up", (on) => cancelProposal(on, proposal, person)],
      ["vote", (on) => this.vote(on)],
      ["vote", (on) => this.vote(on)],
    ];
    return random.pick(actions);
  }

  private leave(on: ModuleContext, person: Address, operator: Address): void {
    const validator = validatorOf(on, operator);
    const owned = new Delegations(on.state).shares(operator, person);
    const worth = tokensOf(validator, owned);
    undelegate(on, person, validator, worth + BigInt(this.random.integer(2)) || 1n);
  }

  private cancelSome(on: ModuleContext, person: Address): void {
    const entry = new Delegations(on.state)
      .entriesOf(person)
      .find(({ kind }) => kind === ENTRY_KIND.unbonding);
    if (entry === undefined) return;
    const validator = validatorOf(on, entry.source);
    const left = unbondingLeft(validator, entry);
    const amountAtoken = this.random.pick([1n, left / 2n || 1n, left || 1n, left + 1n]);
    cancelUnbonding(on, person, validator, { amountAtoken, height: entry.height });
  }

  /** As messages and the contract do it: a key that is out stays out. */
  private register(on: ModuleContext, operator: Address, amount: bigint): void {
    const publicKey = this.random.pick(KEYS);
    assertNotTombstoned(on.state, validatorAddress(publicKey));
    const rate = this.random.pick([0n, 1n, TOKEN / 2n, TOKEN]);
    registerValidator(on, {
      operator,
      publicKey,
      description: { moniker: "m", identity: "", website: "", security_contact: "", details: "" },
      commission: { rate, maxRate: TOKEN, maxChangeRate: TOKEN },
      minSelfDelegation: 1n,
      selfDelegationAtoken: amount,
    });
  }

  private change(on: ModuleContext): void {
    const [module, name] = this.random.pick(EXTREMES);
    const rules: Readonly<Record<string, { least: bigint; most: bigint; first: bigint }>> =
      MODULE_PARAM_RULES[module];
    const { least, most, first } = present(rules[name], "a rule");
    const isTime = /time|period|duration/.test(name);
    const isAmount = /deposit$|amount$/.test(name) && !isTime;
    const value = isTime
      ? this.random.pick([least, 3_000n])
      : isAmount
        ? this.random.pick([least, 1n, 100n])
        : this.random.pick([least, least + 1n, first, most]);
    // A window of thousands would end all downtime.
    setModuleParam(on.state, module, name, name.endsWith("window") && value > 9n ? 2n : value);
    new Validators(on.state).isDirty = true;
  }

  private propose(on: ModuleContext, person: Address): void {
    const { random } = this;
    const messages = Array.from({ length: random.integer(3) }, () => this.message());
    const submission = {
      proposer: person,
      messages,
      initialDepositAtoken: random.pick([0n, 1n, 100n, 200n]),
      title: "t",
      summary: "s",
      metadata: "words",
      isExpedited: chance(random, 0.3),
    };
    submitProposal(on, submission, handlerOf);
  }

  /** What the gov account is to do: it stakes, proposes, deposits, votes and spends, too. */
  private message(): AnyMessage {
    const { random } = this;
    const validator = toBech32(random.pick(PEOPLE), VALIDATOR_PREFIX);
    const amount = { denom: "atoken", amount: `${this.amount()}` };
    const id = new Proposals(this.chain.state).lastId + BigInt(random.integer(3)) - 1n;
    const proposal_id = id < 0n ? 0n : id;
    const staking = { delegator_address: GOV, validator_address: validator, amount };
    const options: readonly (readonly [string, ProtoMessage])[] = [
      ["cosmos.staking.v1beta1.MsgDelegate", staking],
      ["cosmos.staking.v1beta1.MsgUndelegate", staking],
      [
        "cosmos.distribution.v1beta1.MsgCommunityPoolSpend",
        { authority: GOV, recipient: toBech32(random.pick(PEOPLE)), amount: [amount] },
      ],
      [
        "cosmos.bank.v1beta1.MsgSend",
        { from_address: GOV, to_address: toBech32(random.pick(PEOPLE)), amount: [amount] },
      ],
      ["cosmos.gov.v1.MsgVote", { proposal_id, voter: GOV, option: 1, metadata: "" }],
      ["cosmos.gov.v1.MsgDeposit", { proposal_id, depositor: GOV, amount: [amount] }],
      ["cosmos.gov.v1.MsgCancelProposal", { proposal_id, proposer: GOV }],
      [
        "cosmos.gov.v1.MsgSubmitProposal",
        {
          messages: [],
          initial_deposit: random.pick([[], [amount]]),
          proposer: GOV,
          metadata: "words",
          title: "t",
          summary: "s",
          expedited: false,
        },
      ],
    ];
    const [name, message] = random.pick(options);
    const typeUrl = `/${name}`;
    return { typeUrl, schema: present(schemaOf(typeUrl), name), message };
  }

  /** By one, or by all who have a validator: otherwise nothing would ever be carried out. */
  private vote(on: ModuleContext): void {
    const { random } = this;
    const all = new Validators(on.state).all().map(({ operator }) => operator);
    const voters = chance(random, 0.5) ? all : [random.pick(PEOPLE)];
    const open = new Proposals(on.state)
      .listWaiting()
      .filter(({ status }) => status === PROPOSAL_STATUS.voting);
    for (const { id } of open) {
      const options = plainVote(random.pick([1, 1, 1, 1, 1, 2, 3, 4]));
      for (const voter of voters) voteOn(on, id, { voter, options, metadata: "" });
    }
  }

  /** Votes of those that consensus knows of, and proofs against any key, old heights too. */
  private facts() {
    const { chain, random } = this;
    const votes = new Validators(chain.state).inConsensus().map((one) => ({
      consensusAddress: one.consensusAddress,
      power: one.consensusPower,
      isSigned: chance(random, 0.7),
    }));
    const proof = () => ({
      consensusAddress: random.pick([
        ...votes.map((one) => one.consensusAddress),
        validatorAddress(random.pick(KEYS)),
      ]),
      height: Math.max(1, chain.height - random.integer(9)),
      power: random.pick([1n, 3n, 1_000n]),
    });
    return { votes, misbehavior: random.integer(30) === 0 ? [proof(), proof()] : [] };
  }

  /** Stake against its coins, shares against their sum, claims against the pool. */
  private audit(what: string): void {
    const { chain } = this;
    const { state } = chain;
    const { treasury, feeCollector, developmentFund } = chain.genesis.params;
    const { staking, gov } = MODULE_ACCOUNTS;
    const all = [...PEOPLE, treasury, feeCollector, developmentFund, chain.pool, staking, gov];
    const held = all.reduce((sum, one) => sum + chain.balance(one), 0n);
    const validators = new Validators(state);
    const delegations = new Delegations(state);
    let [tokens, bonded, claims] = [0n, 0n, communityPool(state)];
    for (const validator of validators.all()) {
      const { operator } = validator;
      tokens += validator.tokens;
      if (validator.isBonded) bonded += validator.tokens;
      const delegators = delegations.delegatorsOf(operator);
      const shares = delegators.map((each) => delegations.shares(operator, each));
      const sum = shares.reduce((before, each) => before + each, 0n);
      const rewards = validatorRewards(state, validator);
      const pending = delegators.reduce(
        (before, each) => before + delegationRewards(state, validator, each),
        0n,
      );
      const isDue = pending <= rewards.delegatorsAtoken;
      expect([what, operator, sum, isDue]).toEqual([what, operator, validator.shares, true]);
      claims += rewards.delegatorsAtoken + rewards.commissionAtoken;
    }
    const leaving = [...PEOPLE, gov]
      .flatMap((person) => delegations.entriesOf(person))
      .filter(({ kind }) => kind === ENTRY_KIND.unbonding)
      .reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
    const proposals = new Proposals(state);
    expect([what, tokens + leaving, validators.bondedTokens, held]).toEqual([
      what,
      chain.balance(staking),
      bonded,
      chain.mintedAtoken - chain.burnedAtoken,
    ]);
    expect([what, claims <= chain.balance(chain.pool)]).toEqual([what, true]);
    expect([what, proposals.heldAtoken <= chain.balance(gov)]).toEqual([what, true]);
  }
}

describe("stake at its extremes", () => {
  it("never ends the chain, and keeps every coin", () => {
    const counts = new Map<string, number>();
    for (let first = 0; first < BLOCKS; first += BLOCKS_OF_CHAIN) {
      const world = new Extremes(SEED + first, counts);
      for (let block = 0; block < BLOCKS_OF_CHAIN; block++) world.block();
    }
    console.log(`seed ${SEED}, ${BLOCKS} blocks:`, Object.fromEntries(counts));
    expectReached(counts, EXPECTED);
  });
});
