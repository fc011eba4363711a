/**
 * Governance against a model of its own: deposits in a list, votes counted delegation by delegation
 * in exact fractions.
 */
import { describe, expect, it } from "@jest/globals";
import { type Address } from "../../../chain/address.js";
import { govParams } from "../../../node/modules/gov/gov-params.js";
import {
  PROPOSAL_STATUS,
  type ProposalRecord,
  Proposals,
} from "../../../node/modules/gov/proposal-record.js";
import { cancelProposal, depositOn } from "../../../node/modules/gov/proposing.js";
import { plainVote, voteOn, type WeightedOption } from "../../../node/modules/gov/voting.js";
import { delegate, undelegate, validatorOf } from "../../../node/modules/staking/delegating.js";
import { Delegations } from "../../../node/modules/staking/delegation-record.js";
import { Validators } from "../../../node/modules/staking/validator-record.js";
import { MODULE_ACCOUNTS } from "../../../node/modules/system-storage.js";
import { ModuleChain } from "../../helpers/cosmos/module-state.js";
import { createRandom } from "../../helpers/random.js";

import { ALICE, BOB, CAROL, newChain, OPERATORS, PEOPLE, submit, TOKEN } from "./gov-stage.js";

const ONE = 10n ** 18n;

describe("a random parliament", () => {
  it.each([11, 12])("counts as the rule says and keeps every deposit (seed %i)", (seed) => {
    const random = createRandom(seed);
    const chain = newChain({ "gov.proposal_cancel_ratio": "0.25" });
    const parliament = new Model(chain);
    let settled = 0;
    for (let step = 0; step < 400; step++) {
      const person = random.pick(PEOPLE);
      const open = new Proposals(chain.state).listWaiting();
      const proposal = open.length === 0 ? undefined : random.pick(open);
      const actions = [
        () =>
          parliament.submit(person, random.integer(3) === 0, BigInt(random.integer(60)) * TOKEN),
        () => {
          const amount = BigInt(1 + random.integer(30)) * TOKEN;
          if (proposal !== undefined) parliament.deposit(proposal, person, amount);
        },
        () => proposal !== undefined && parliament.vote(proposal, person, ballot(random)),
        () => proposal !== undefined && parliament.vote(proposal, person, ballot(random)),
        () =>
          proposal !== undefined &&
          parliament.vote(proposal, random.pick(OPERATORS), ballot(random)),
        () => {
          if (proposal !== undefined && random.integer(4) === 0) parliament.cancel(proposal);
        },
        () => {
          const amountAtoken = BigInt(1 + random.integer(1_000_000)) * 10n ** 14n;
          chain.run((context) => {
            const validator = validatorOf(context, random.pick(OPERATORS));
            const act = random.integer(3) === 0 ? undelegate : delegate;
            act(context, person, validator, amountAtoken);
          });
        },
      ];
      random.pick(actions)();
      parliament.assertSound(`step ${step}`);
      if (random.integer(3) > 0) continue;
      settled += parliament.endBlock(1 + random.integer(5));
      parliament.assertSound(`block ${chain.height}`);
    }
    expect(settled).toBeGreaterThan(5);
  });
});

/** A vote of one to three options. */
function ballot(random: ReturnType<typeof createRandom>): readonly WeightedOption[] {
  const first = 1 + random.integer(4);
  if (random.integer(2) === 0) return plainVote(first);
  const weight = BigInt(1 + random.integer(999)) * 10n ** 15n;
  const second = random.pick([1, 2, 3, 4].filter((one) => one !== first));
  return [
    { option: first, weight },
    { option: second, weight: ONE - weight },
  ];
}

interface ModelProposal {
  readonly deposits: Map<Address, bigint>;
  readonly votes: Map<Address, readonly WeightedOption[]>;
  isExpedited: boolean;
}

/** Fractions without division: numerators over one product of all shares. */
class Model {
  private readonly proposals = new Map<bigint, ModelProposal>();
  private burned = 0n;

  constructor(private readonly chain: ModuleChain) {}

  submit(by: Address, isExpedited: boolean, deposit: bigint): void {
    const params = govParams(this.chain.state);
    const needed = isExpedited ? params.expeditedMinDepositAtoken : params.minDepositAtoken;
    const isTooSmall = deposit > 0n && deposit * 100n < needed;
    if (isTooSmall) return;
    const { id } = submit(this.chain, { by, isExpedited, deposit });
    const deposits = new Map<Address, bigint>(deposit > 0n ? [[by, deposit]] : []);
    this.proposals.set(id, { deposits, votes: new Map(), isExpedited });
  }

  deposit({ id }: ProposalRecord, depositor: Address, amountAtoken: bigint): void {
    const failure = this.chain.run((context) =>
      depositOn(context, id, { depositor, amountAtoken }),
    );
    expect(failure).toBeUndefined();
    const { deposits } = this.of(id);
    deposits.set(depositor, (deposits.get(depositor) ?? 0n) + amountAtoken);
  }

  vote({ id, status }: ProposalRecord, voter: Address, options: readonly WeightedOption[]): void {
    const failure = this.chain.run((context) => {
      voteOn(context, id, { voter, options, metadata: "" });
    });
    expect(failure?.fault.code).toBe(status === PROPOSAL_STATUS.voting ? undefined : 3);
    if (failure === undefined) this.of(id).votes.set(voter, options);
  }

  cancel({ id, proposer }: ProposalRecord): void {
    const failure = this.chain.run((context) => cancelProposal(context, id, proposer));
    expect(failure).toBeUndefined();
    for (const amount of this.of(id).deposits.values()) this.burned += amount / 4n;
    this.proposals.delete(id);
  }

  /** Ends a block and holds what it did against the rule. @returns proposals that were settled */
  endBlock(seconds: number): number {
    const { chain } = this;
    const atMs = chain.timeMs + seconds * 1_000;
    const due = new Proposals(chain.state).listWaiting().filter(({ endMs }) => endMs <= atMs);
    const expected = new Map(due.map((one) => [one.id, this.judge(one)]));
    const from = chain.events.length;
    chain.endBlock({ seconds });
    for (const { type, values } of chain.events.slice(from)) {
      if (type !== "active_proposal" && type !== "inactive_proposal") continue;
      const id = BigInt(values["proposal_id"] ?? "0");
      const wanted = expected.get(id);
      expect([id, values["proposal_result"]]).toEqual([id, wanted?.outcome]);
      expected.delete(id);
      if (wanted?.outcome === "expedited_proposal_rejected") {
        this.of(id).isExpedited = false;
        continue;
      }
      if (wanted?.burns === true) {
        for (const amount of this.of(id).deposits.values()) this.burned += amount;
      }
      if (type === "active_proposal") {
        const { result } = new Proposals(chain.state).of(id);
        for (const [index, sum] of [result.yes, result.abstain, result.no, result.veto].entries()) {
          const exact = wanted?.sums[index] ?? 0n;
          const off = sum > exact ? sum - exact : exact - sum;
          expect([id, index, off <= 1n]).toEqual([id, index, true]);
        }
      }
      this.proposals.delete(id);
    }
    expect([...expected.keys()]).toEqual([]);
    return due.length;
  }

  private judge({ id, status }: ProposalRecord) {
    if (status === PROPOSAL_STATUS.deposit) {
      return { outcome: "proposal_dropped", burns: false, sums: [] };
    }
    const { state } = this.chain;
    const { votes, isExpedited } = this.of(id);
    const bonded = new Validators(state).all().filter(({ isBonded }) => isBonded);
    const scale = bonded.reduce((product, { shares }) => product * shares, 1n);
    const sums = [0n, 0n, 0n, 0n];
    let all = 0n;
    const delegations = new Delegations(state);
    for (const { operator, tokens, shares } of bonded) {
      for (const delegator of delegations.delegatorsOf(operator)) {
        const power = (delegations.shares(operator, delegator) * tokens * scale) / shares;
        all += power;
        for (const { option, weight } of votes.get(delegator) ?? votes.get(operator) ?? []) {
          sums[option - 1] = (sums[option - 1] ?? 0n) + power * weight;
        }
      }
    }
    const [yes = 0n, abstain = 0n, no = 0n, veto = 0n] = sums;
    const total = yes + abstain + no + veto;
    const percent = (part: bigint, whole: bigint) =>
      Number((part * 1_000_000n) / whole) / 1_000_000;
    const isQuorum = total > 0n && percent(total, all * ONE) >= 0.334;
    const isVetoed = isQuorum && total > abstain && percent(veto, total) > 0.334;
    const needed = isExpedited ? 0.667 : 0.5;
    const isPassed =
      isQuorum && total > abstain && !isVetoed && percent(yes, total - abstain) > needed;
    const lost = isExpedited ? "expedited_proposal_rejected" : "proposal_rejected";
    return {
      outcome: isPassed ? "proposal_passed" : lost,
      burns: isVetoed,
      sums: sums.map((sum) => sum / scale / ONE),
    };
  }

  assertSound(what: string): void {
    const { chain } = this;
    let held = 0n;
    for (const [id, { deposits }] of this.proposals) {
      for (const [depositor, amount] of deposits) {
        const stored = new Proposals(chain.state).of(id).depositOf(depositor);
        expect([what, stored]).toEqual([what, amount]);
        held += amount;
      }
    }
    const gov = chain.balance(MODULE_ACCOUNTS.gov);
    expect([what, gov, new Proposals(chain.state).heldAtoken]).toEqual([what, held, held]);
    expect([what, chain.burnedAtoken]).toEqual([what, this.burned]);
    const accounts = [...PEOPLE, ALICE, BOB, CAROL, MODULE_ACCOUNTS.staking, chain.pool];
    const others = accounts.reduce((sum, one) => sum + chain.balance(one), 0n);
    const supply = chain.mintedAtoken - chain.burnedAtoken;
    expect([what, others + gov]).toEqual([what, supply]);
  }

  private of(id: bigint): ModelProposal {
    const found = this.proposals.get(id);
    if (found === undefined) throw new Error(`the model knows no proposal ${id}`);
    return found;
  }
}
