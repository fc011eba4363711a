/** What proposals may and may not do. */
import { describe, expect, it } from "@jest/globals";
import { type Address, parseAddress, toBech32 } from "../../../chain/address.js";
import type { AnyMessage, ProtoMessage } from "../../../chain/cosmos/field-schema.js";
import { allocateRewards, communityPool } from "../../../node/modules/distribution/rewards.js";
import { govParams } from "../../../node/modules/gov/gov-params.js";
import { currentTally } from "../../../node/modules/gov/tally.js";
import { PROPOSAL_STATUS, Proposals } from "../../../node/modules/gov/proposal-record.js";
import { depositOn } from "../../../node/modules/gov/proposing.js";
import { handlerOf } from "../../../node/modules/message-router.js";
import type { MessageContext } from "../../../node/modules/message-context.js";
import { moduleParam } from "../../../node/modules/module-params.js";
import {
  delegate,
  redelegate,
  undelegate,
  validatorOf,
} from "../../../node/modules/staking/delegating.js";
import { Validators } from "../../../node/modules/staking/validator-record.js";
import { MODULE_ACCOUNTS } from "../../../node/modules/system-storage.js";
import { setAppVersion, upgradePlan } from "../../../node/modules/upgrade/plan.js";
import { FIRST_APP_VERSION, NEWEST_APP_VERSION } from "../../../node/settings/app-version.js";
import { accountAt } from "../../helpers/cosmos/module-state.js";

import {
  ALICE,
  anyOf,
  BOB,
  CAROL,
  eventsOf,
  GOV,
  newChain,
  OPERATORS,
  pass,
  submit,
  TOKEN,
  vote,
} from "./gov-stage.js";

const ONE = 10n ** 18n;

/** JSON that no recursion comes to the end of. */
const DEEP = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;

describe("a proposal", () => {
  const spend = (recipient: Address, amount: bigint) =>
    anyOf("/cosmos.distribution.v1beta1.MsgCommunityPoolSpend", {
      authority: GOV,
      recipient: toBech32(recipient),
      amount: [{ denom: "atoken", amount: amount.toString() }],
    });
  const stakingParams = (authority: string, max: number) =>
    anyOf("/cosmos.staking.v1beta1.MsgUpdateParams", {
      authority,
      params: {
        unbonding_time: { seconds: 33n, nanos: 0 },
        max_validators: max,
        max_entries: 5,
        historical_entries: 10_000,
        bond_denom: "atoken",
        min_commission_rate: "50000000000000000",
      },
    });

  it("waits for its deposit, is dropped without, and gives back what was paid", () => {
    const chain = newChain();
    const before = chain.balance(ALICE);
    const proposal = submit(chain, { deposit: TOKEN });
    expect(proposal.status).toBe(PROPOSAL_STATUS.deposit);
    expect(chain.balance(ALICE)).toBe(before - TOKEN);
    chain.endBlock({ seconds: 19 });
    expect(proposal.exists).toBe(true);
    chain.endBlock({ seconds: 1 });
    expect(proposal.exists).toBe(false);
    expect(chain.balance(ALICE)).toBe(before);
    expect(eventsOf(chain, "inactive_proposal")).toEqual([
      { proposal_id: "1", proposal_result: "proposal_dropped" },
    ]);
  });

  it("tells of itself as the specification has it", () => {
    const chain = newChain();
    const proposal = submit(chain, { messages: [stakingParams(GOV, 3)], deposit: 9n * TOKEN });
    chain.run((context) => depositOn(context, 1n, { depositor: BOB, amountAtoken: TOKEN }));
    vote(chain, proposal, BOB, 4);
    const told = chain.events.filter(({ type }) => type !== "delegate");
    expect(told.map(({ type, values }) => [type, Object.entries(values)])).toEqual([
      [
        "submit_proposal",
        [
          ["proposal_id", "1"],
          ["proposal_type", "ParameterChange"],
          ["proposal_proposer", toBech32(ALICE)],
          ["proposal_messages", "/cosmos.staking.v1beta1.MsgUpdateParams"],
        ],
      ],
      [
        "proposal_deposit",
        [
          ["depositor", toBech32(ALICE)],
          ["amount", `${9n * TOKEN}atoken`],
          ["proposal_id", "1"],
        ],
      ],
      [
        "proposal_deposit",
        [
          ["depositor", toBech32(BOB)],
          ["amount", `${TOKEN}atoken`],
          ["proposal_id", "1"],
        ],
      ],
      ["proposal_deposit", [["voting_period_start", "1"]]],
      [
        "proposal_vote",
        [
          ["voter", toBech32(BOB)],
          ["proposal_id", "1"],
          ["option", '[{"option":4,"weight":"1.000000000000000000"}]'],
        ],
      ],
    ]);
  });

  it("changes parameters, and the set of validators with them", () => {
    const chain = newChain();
    const proposal = submit(chain, { messages: [stakingParams(GOV, 3)] });
    for (const operator of OPERATORS) vote(chain, proposal, operator, 1);
    const updates = chain.endBlock({ seconds: 20 });
    expect(proposal.status).toBe(PROPOSAL_STATUS.passed);
    expect(moduleParam(chain.state, "staking", "max_validators")).toBe(3n);
    expect(moduleParam(chain.state, "staking", "unbonding_time")).toBe(33_000n);
    expect(updates.map(({ power }) => power)).toEqual([0n]);
    expect(new Validators(chain.state).inConsensus()).toHaveLength(3);
  });

  it("pays from the community pool, once, and not more than is there", () => {
    const chain = newChain({ "distribution.community_tax": "1.0" });
    chain.mint(chain.pool, 7n * TOKEN);
    allocateRewards(chain.state, 7n * TOKEN);
    const before = chain.balance(CAROL);
    const first = submit(chain, { messages: [spend(CAROL, 5n * TOKEN)] });
    const second = submit(chain, { messages: [spend(CAROL, 5n * TOKEN)], by: BOB });
    for (const operator of OPERATORS) vote(chain, first, operator, 1);
    pass(chain, second);
    expect([first.status, second.status]).toEqual([PROPOSAL_STATUS.passed, PROPOSAL_STATUS.failed]);
    expect(second.failedReason).toMatch(/community pool does not have sufficient coins/);
    expect(chain.balance(CAROL)).toBe(before + 5n * TOKEN);
    expect(communityPool(chain.state)).toBe(2n * TOKEN);
    const results = eventsOf(chain, "active_proposal").map((one) => one["proposal_result"]);
    expect(results).toEqual(["proposal_passed", "proposal_failed"]);
  });

  it("does all of its messages or none", () => {
    const chain = newChain();
    const messages = [stakingParams(GOV, 3), spend(CAROL, TOKEN)];
    const proposal = submit(chain, { messages });
    const before = chain.events.length;
    pass(chain, proposal);
    expect(proposal.status).toBe(PROPOSAL_STATUS.failed);
    expect(moduleParam(chain.state, "staking", "max_validators")).toBe(100n);
    const types = chain.events.slice(before).map(({ type }) => type);
    expect(types.filter((type) => type !== "proposal_vote")).toEqual(["active_proposal"]);
  });

  it("cannot spend the deposits of others", () => {
    const chain = newChain();
    const send = anyOf("/cosmos.bank.v1beta1.MsgSend", {
      from_address: GOV,
      to_address: toBech32(ALICE),
      amount: [{ denom: "atoken", amount: TOKEN.toString() }],
    });
    const proposal = submit(chain, { messages: [send] });
    for (const operator of OPERATORS) vote(chain, proposal, operator, 1);
    chain.endBlock();
    submit(chain, { by: BOB, deposit: 5n * TOKEN });
    chain.endBlock({ seconds: 18 });
    expect(proposal.status).toBe(PROPOSAL_STATUS.failed);
    expect(proposal.failedReason).toMatch(/deposits of proposals, which cannot be spent/);
    expect(chain.balance(MODULE_ACCOUNTS.gov)).toBe(5n * TOKEN);
  });

  it.each([
    ["what one before it has changed in the same block", NEWEST_APP_VERSION, "rejected"],
    ["what held before the block by the first rules", FIRST_APP_VERSION, "passed"],
  ] as const)("is judged by %s", (_what, version, status) => {
    const chain = newChain();
    setAppVersion(chain.state, version);
    const change = {
      subspace: "gov",
      key: "tallyparams",
      value: JSON.stringify({ quorum: "0.9" }),
    };
    const content = anyOf("/cosmos.params.v1beta1.ParameterChangeProposal", {
      title: "more must vote",
      description: "nine of ten",
      changes: [change],
    });
    const message = anyOf("/cosmos.gov.v1.MsgExecLegacyContent", { authority: GOV, content });
    const first = submit(chain, { messages: [message] });
    const second = submit(chain, { by: BOB });
    vote(chain, second, accountAt(0), 1);
    pass(chain, first);
    expect([first.status, second.status]).toEqual([
      PROPOSAL_STATUS.passed,
      PROPOSAL_STATUS[status],
    ]);
  });

  it("may take back another one whose time is over in the same block", () => {
    const chain = newChain();
    chain.mint(MODULE_ACCOUNTS.gov, 100n * TOKEN);
    const id = new Proposals(chain.state).lastId + 2n;
    const cancel = anyOf("/cosmos.gov.v1.MsgCancelProposal", { proposal_id: id, proposer: GOV });
    const first = submit(chain, { messages: [cancel] });
    const second = submit(chain, { by: MODULE_ACCOUNTS.gov, deposit: 60n * TOKEN });
    expect(second.id).toBe(id);
    for (const operator of OPERATORS) vote(chain, second, operator, 1);
    pass(chain, first);
    expect([first.status, second.exists]).toEqual([PROPOSAL_STATUS.passed, false]);
    const proposals = new Proposals(chain.state);
    expect([proposals.waitingCount, proposals.heldAtoken]).toEqual([0, 0n]);
    // Half of its deposit was the price, as of any that is taken back.
    expect(chain.balance(MODULE_ACCOUNTS.gov)).toBe(70n * TOKEN);
  });

  it.each([
    ["MsgCancelProposal", { proposer: GOV }, /should be in the deposit or voting period/],
    [
      "MsgDeposit",
      { depositor: GOV, amount: [{ denom: "atoken", amount: `${TOKEN}` }] },
      /inactive proposal/,
    ],
  ])("is over when it acts: no %s is for itself", (name, fields, reason) => {
    const chain = newChain();
    chain.mint(MODULE_ACCOUNTS.gov, 200n * TOKEN);
    const proposal_id = new Proposals(chain.state).lastId + 1n;
    const message = anyOf(`/cosmos.gov.v1.${name}`, { proposal_id, ...fields });
    const first = submit(chain, { by: MODULE_ACCOUNTS.gov, messages: [message] });
    // Of the same account, and over in the same block: what is counted of both has to hold.
    const second = submit(chain, { by: MODULE_ACCOUNTS.gov });
    pass(chain, first);
    expect([first.status, second.status]).toEqual([
      PROPOSAL_STATUS.failed,
      PROPOSAL_STATUS.rejected,
    ]);
    expect(first.failedReason).toMatch(reason);
    const proposals = new Proposals(chain.state);
    expect([proposals.waitingOf(MODULE_ACCOUNTS.gov), proposals.heldAtoken]).toEqual([0, 0n]);
  });

  it("loses its deposits by a veto", () => {
    const chain = newChain();
    const before = chain.balance(ALICE);
    const proposal = submit(chain);
    pass(chain, proposal, 4);
    expect(proposal.status).toBe(PROPOSAL_STATUS.rejected);
    expect(chain.balance(ALICE)).toBe(before - 50n * TOKEN);
    expect(chain.burnedAtoken).toBe(50n * TOKEN);
    expect(chain.balance(MODULE_ACCOUNTS.gov)).toBe(0n);
  });

  it("in a hurry goes on as any other when it does not get two thirds", () => {
    const chain = newChain();
    const proposal = submit(chain, { isExpedited: true });
    vote(chain, proposal, accountAt(0), 1);
    vote(chain, proposal, accountAt(1), 3);
    chain.endBlock({ seconds: 8 });
    expect(proposal.status).toBe(PROPOSAL_STATUS.voting);
    expect(proposal.isExpedited).toBe(false);
    expect(proposal.votingEndMs).toBe(proposal.votingStartMs + 20_000);
    chain.endBlock({ seconds: 12 });
    expect(proposal.status).toBe(PROPOSAL_STATUS.passed);
    expect(proposal.result).toEqual({ yes: 100n * TOKEN, abstain: 0n, no: 80n * TOKEN, veto: 0n });
  });

  it("is for the gov account alone to execute, and refused where nothing can", () => {
    const chain = newChain();
    const refusal = (messages: readonly AnyMessage[]) => {
      try {
        submit(chain, { messages });
        return undefined;
      } catch (error) {
        return (error as { fault?: { code: number; codespace: string } }).fault;
      }
    };
    const foreign = stakingParams(toBech32(ALICE), 3);
    expect(refusal([foreign])).toMatchObject({ codespace: "gov", code: 13 });
    const text = anyOf("/cosmos.gov.v1beta1.TextProposal", { title: "", description: "" });
    expect(refusal([text])).toMatchObject({ codespace: "gov", code: 10 });
    const failure = chain.run((context) => {
      const useGas = () => undefined;
      const message: MessageContext = { ...context, signer: ALICE, isBlocked: () => false, useGas };
      handlerOf(foreign)?.run(foreign.message, message);
    });
    expect(failure?.fault).toMatchObject({ codespace: "gov", code: 13 });
  });

  it("of v1beta1 changes parameters by their older names, and says early what it cannot", () => {
    const chain = newChain();
    const change = (subspace: string, key: string, value: unknown) => ({
      subspace,
      key,
      value: JSON.stringify(value),
    });
    const propose = (...changes: readonly unknown[]) => {
      const typeUrl = "/cosmos.params.v1beta1.ParameterChangeProposal";
      const content = anyOf(typeUrl, { title: "t", description: "d", changes } as ProtoMessage);
      const message = {
        content,
        initial_deposit: [{ denom: "atoken", amount: `${50n * TOKEN}` }],
        proposer: toBech32(ALICE),
      };
      const handler = handlerOf(anyOf("/cosmos.gov.v1beta1.MsgSubmitProposal", message));
      return chain.run((context) => {
        const useGas = () => undefined;
        handler?.run(message, { ...context, signer: ALICE, isBlocked: () => false, useGas });
      });
    };
    const failure = propose(
      change("staking", "MaxValidators", 3),
      change("staking", "UnbondingTime", "9000000000"),
      change("slashing", "SignedBlocksWindow", "77"),
      change("slashing", "SlashFractionDowntime", "0.5"),
      change("distribution", "communitytax", "0.020000000000000000"),
      change("gov", "tallyparams", { quorum: "0.4" }),
      change("gov", "depositparams", {
        min_deposit: [{ denom: "atoken", amount: "7" }],
        max_deposit_period: "11000000000",
      }),
    );
    expect(failure).toBeUndefined();
    expect(eventsOf(chain, "submit_proposal")[0]).toMatchObject({
      proposal_type: "ParameterChange",
    });
    const proposal = new Proposals(chain.state).of(1n);
    for (const operator of OPERATORS) vote(chain, proposal, operator, 1);
    const updates = chain.endBlock({ seconds: 20 });
    expect([proposal.status, proposal.failedReason]).toEqual([PROPOSAL_STATUS.passed, ""]);
    expect(updates.map(({ power }) => power)).toEqual([0n]);
    const { state } = chain;
    expect(moduleParam(state, "staking", "unbonding_time")).toBe(9_000n);
    expect(moduleParam(state, "slashing", "signed_blocks_window")).toBe(77n);
    expect(moduleParam(state, "slashing", "slash_fraction_downtime")).toBe(ONE / 2n);
    expect(moduleParam(state, "distribution", "community_tax")).toBe(ONE / 50n);
    expect(govParams(state)).toMatchObject({
      quorum: (ONE * 2n) / 5n,
      threshold: ONE / 2n,
      minDepositAtoken: 7n,
      maxDepositPeriodMs: 11_000,
    });
    const refusals: readonly (readonly [RegExp, readonly unknown[]])[] = [
      [/submitted parameter changes are empty/, []],
      [/crisis: unknown subspace/, [change("crisis", "ConstantFee", "1")]],
      [/inflation follows from the height/, [change("mint", "InflationMax", "0.2")]],
      [/staking has no parameter toString/, [change("staking", "toString", 1)]],
      [/BondDenom|cannot be changed/, [change("staking", "BondDenom", "other")]],
      [/max_validators is no whole number/, [change("staking", "MaxValidators", "3")]],
      [/max_validators is out of range/, [change("staking", "MaxValidators", 0)]],
      [/no time in nanoseconds/, [change("staking", "UnbondingTime", "9s")]],
      [/there is no field vote/, [change("gov", "tallyparams", { vote: "1" })]],
      [/is no list of one coin/, [change("gov", "depositparams", { min_deposit: [] })]],
      [/gov.threshold must be above zero/, [change("gov", "tallyparams", { threshold: "0" })]],
      [/is no JSON/, [{ subspace: "gov", key: "votingparams", value: "{" }]],
      // Deeper than a stack: how deep that is differs from node to node, what is refused must not.
      ...["BondDenom", "MaxValidators", "UnbondingTime"].map(
        (key) => [/failed to set parameter/, [{ subspace: "staking", key, value: DEEP }]] as const,
      ),
    ];
    for (const [words, changes] of refusals) {
      const { fault } = propose(...changes) ?? {};
      expect(fault).toMatchObject({ codespace: "gov", code: 5 });
      expect(fault?.log).toMatch(words);
    }
    expect(new Proposals(state).lastId).toBe(1n);
  });

  it("to change what is fixed is refused when it is made, with the reason", () => {
    const chain = newChain();
    for (const module of ["mint", "bank", "auth"]) {
      const one = anyOf(`/cosmos.${module}.v1beta1.MsgUpdateParams`, {
        authority: GOV,
        params: {},
      });
      expect(() => submit(chain, { messages: [one] })).toThrow(
        new RegExp(`x/${module} has no parameters that can be changed.*invalid proposal message`),
      );
    }
  });

  it("plans an upgrade and gives it up", () => {
    const chain = newChain();
    const time = { seconds: -62_135_596_800n, nanos: 0 };
    const upgrade = anyOf("/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade", {
      authority: GOV,
      plan: { name: "v2", height: 1_000n, info: "{}", time },
    });
    pass(chain, submit(chain, { messages: [upgrade] }));
    expect(upgradePlan(chain.state)).toEqual({ name: "v2", height: 1_000, info: "{}" });
    const cancel = anyOf("/cosmos.upgrade.v1beta1.MsgCancelUpgrade", { authority: GOV });
    pass(chain, submit(chain, { messages: [cancel] }));
    expect(upgradePlan(chain.state)).toBeUndefined();
  });

  it("with more votes than a block may count is settled over several, to the same result", () => {
    const chain = newChain();
    const proposal = submit(chain);
    for (const [index, operator] of OPERATORS.entries()) {
      vote(chain, proposal, operator, index === 0 ? 3 : 1);
    }
    for (let index = 0; index < 2_100; index++) {
      const voter = parseAddress(`0x${(0xc0000 + index).toString(16).padStart(40, "0")}`);
      if (index % 500 === 0) {
        chain.mint(voter, 3n * TOKEN);
        chain.run((context) => {
          delegate(context, voter, validatorOf(context, accountAt(0)), 3n * TOKEN);
        });
      }
      vote(chain, proposal, voter, 2);
    }
    const expected = currentTally(chain.state, proposal, govParams(chain.state));
    chain.endBlock({ seconds: 20 });
    expect(proposal.status).toBe(PROPOSAL_STATUS.voting);
    expect(() => vote(chain, proposal, BOB, 1)).toThrow(/inactive proposal/);
    chain.endBlock();
    expect(proposal.status).toBe(PROPOSAL_STATUS.passed);
    expect(proposal.result).toEqual(expected);
    expect(proposal.result).toEqual({
      yes: 180n * TOKEN,
      abstain: 15n * TOKEN,
      no: 100n * TOKEN,
      veto: 0n,
    });
  });

  it("counts stake once that moves while counting goes on", () => {
    const chain = newChain();
    const proposal = submit(chain);
    // The voter follows nobody; both validators say the same as it does.
    chain.run((context) => {
      delegate(context, ALICE, validatorOf(context, accountAt(0)), 50n * TOKEN);
      delegate(context, BOB, validatorOf(context, accountAt(0)), 7n * TOKEN);
    });
    chain.endBlock();
    vote(chain, proposal, ALICE, 3);
    for (const operator of [accountAt(0), accountAt(1)]) vote(chain, proposal, operator, 3);
    for (let index = 0; index < 2_100; index++) {
      vote(
        chain,
        proposal,
        parseAddress(`0x${(0xc0000 + index).toString(16).padStart(40, "0")}`),
        2,
      );
    }
    chain.endBlock({ seconds: 20 });
    expect(proposal.status).toBe(PROPOSAL_STATUS.voting);
    const moved = chain.run((context) => {
      const [source, destination] = [accountAt(0), accountAt(1)].map((one) =>
        validatorOf(context, one),
      );
      if (source === undefined || destination === undefined) throw new Error("no validators");
      redelegate(context, ALICE, { source, destination }, 30n * TOKEN);
      undelegate(context, ALICE, source, 5n * TOKEN);
      delegate(context, ALICE, destination, 11n * TOKEN);
    });
    expect(moved).toBeUndefined();
    chain.endBlock();
    expect(proposal.status).toBe(PROPOSAL_STATUS.rejected);
    // 50 of its own when it was counted, 100 + 7 of the first validator, 80 of the second.
    expect(proposal.result).toMatchObject({ yes: 0n, no: 237n * TOKEN, veto: 0n });
    expect(new Proposals(chain.state).counting).toBeUndefined();
  });
});
