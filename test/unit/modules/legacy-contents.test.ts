/** Contents of v1beta1 that cannot be carried out are refused when they are proposed. */
import { describe, expect, it } from "@jest/globals";
import { toBech32 } from "../../../chain/address.js";
import type { ProtoMessage } from "../../../chain/cosmos/field-schema.js";
import { allocateRewards, communityPool } from "../../../node/modules/distribution/rewards.js";
import { PROPOSAL_STATUS, Proposals } from "../../../node/modules/gov/proposal-record.js";
import { handlerOf } from "../../../node/modules/message-router.js";
import { completePlan, setAppVersion, upgradePlan } from "../../../node/modules/upgrade/plan.js";
import {
  FIRST_APP_VERSION,
  NEWEST_APP_VERSION,
  SDK_REFUSALS_VERSION,
} from "../../../node/settings/app-version.js";
import type { ModuleChain } from "../../helpers/cosmos/module-state.js";
import {
  ALICE,
  anyOf,
  CAROL,
  GOV,
  newChain,
  OPERATORS,
  pass,
  submit,
  TOKEN,
  vote,
} from "./gov-stage.js";

type Content = readonly [typeUrl: string, fields: ProtoMessage];

const SPEND = "/cosmos.distribution.v1beta1.CommunityPoolSpendProposal";
const UPGRADE = "/cosmos.upgrade.v1beta1.SoftwareUpgradeProposal";

const spend = (recipient: string, amount: bigint): Content => [
  SPEND,
  { recipient, amount: [{ denom: "atoken", amount: amount.toString() }] },
];
const upgrade = (name: string, height: bigint): Content => [UPGRADE, { plan: { name, height } }];
const carol = toBech32(CAROL);

/** A chain with 7 TOKEN in the community pool, at height 5, that has made the upgrade "made". */
function stage(version: number): ModuleChain {
  const chain = newChain({ "distribution.community_tax": "1.0" });
  for (let height = 0; height < 5; height++) chain.endBlock();
  completePlan(chain.state, { name: "made", height: 3, info: "" }, FIRST_APP_VERSION);
  setAppVersion(chain.state, version);
  chain.mint(chain.pool, 7n * TOKEN);
  allocateRewards(chain.state, 7n * TOKEN);
  chain.events.length = 0;
  return chain;
}

function contentOf([typeUrl, fields]: Content) {
  return anyOf(typeUrl, { title: "t", description: "d", ...fields });
}

/** Proposes by a message of v1beta1. @returns the fault of what was refused */
function propose(chain: ModuleChain, content: Content, deposit = 50n * TOKEN) {
  const message = {
    content: contentOf(content),
    initial_deposit: [{ denom: "atoken", amount: deposit.toString() }],
    proposer: toBech32(ALICE),
  };
  const handler = handlerOf(anyOf("/cosmos.gov.v1beta1.MsgSubmitProposal", message));
  const failure = chain.run((context) => {
    handler?.run(message, { ...context, signer: ALICE, useGas: () => undefined });
  });
  return failure?.fault;
}

/** Contents that never come to anything, and what x/gov's cached execution of them says. */
const HOPELESS: readonly (readonly [string, Content, RegExp])[] = [
  ["an upgrade of the past", upgrade("new", 5n), /^upgrade cannot be scheduled in the past: /],
  ["an upgrade of no height", upgrade("new", 0n), /^height must be greater than 0: /],
  ["an upgrade without a name", upgrade("", 1_000n), /^name cannot be empty: /],
  ["an upgrade that was made", upgrade("made", 1_000n), /^upgrade with name made has already /],
  [
    "an upgrade at a time",
    [UPGRADE, { plan: { name: "new", height: 1_000n, time: { seconds: 2_000_000_000n } } }],
    /^time-based upgrades have been deprecated/,
  ],
  [
    "more than the community pool has",
    spend(carol, 7n * TOKEN + 1n),
    /^community pool does not have sufficient coins to distribute: /,
  ],
  ["a spend for nobody", spend("carol", TOKEN), /^invalid recipient address: carol: /],
  ["a spend for a module", spend(GOV, TOKEN), /is not allowed to receive external funds/],
  ["a spend of nothing", [SPEND, { recipient: carol, amount: [] }], /invalid coins/],
];

describe("a content of v1beta1 that cannot be carried out", () => {
  it.each(HOPELESS)("is refused when it is proposed: %s", (_name, content, words) => {
    const chain = stage(NEWEST_APP_VERSION);
    const before = chain.balance(ALICE);
    const fault = propose(chain, content);
    expect(fault).toMatchObject({ codespace: "gov", code: 5 });
    expect(fault?.log).toMatch(words);
    expect(fault?.log).toMatch(/: invalid proposal content$/);
    expect(new Proposals(chain.state).lastId).toBe(0n);
    expect(chain.balance(ALICE)).toBe(before);
  });

  it.each(HOPELESS)(
    "is taken by the first rules, which looked at its end: %s",
    (_name, content) => {
      const chain = stage(FIRST_APP_VERSION);
      expect(propose(chain, content)).toBeUndefined();
      const proposal = new Proposals(chain.state).of(1n);
      pass(chain, proposal);
      expect(proposal.status).toBe(PROPOSAL_STATUS.failed);
    },
  );

  it("is refused among the messages of a proposal of v1, too", () => {
    const chain = stage(SDK_REFUSALS_VERSION);
    const within = (content: Content) =>
      anyOf("/cosmos.gov.v1.MsgExecLegacyContent", { authority: GOV, content: contentOf(content) });
    const messages = [within(spend(carol, TOKEN)), within(upgrade("new", 1n))];
    expect(() => submit(chain, { messages })).toThrow(
      expect.objectContaining({
        fault: expect.objectContaining({
          codespace: "gov",
          code: 5,
          log: expect.stringMatching(/^upgrade cannot be scheduled in the past/),
        }),
      }),
    );
    expect(submit(chain, { messages: messages.slice(0, 1) }).exists).toBe(true);
  });

  it("is looked at behind its first deposit, as in x/gov", () => {
    const chain = newChain({ "gov.min_initial_deposit_ratio": "0.5" });
    const change: Content = ["/cosmos.params.v1beta1.ParameterChangeProposal", { changes: [] }];
    for (const content of [upgrade("new", 0n), change]) {
      expect(propose(chain, content, 1n)).toMatchObject({ codespace: "gov", code: 16 });
      expect(propose(chain, content)).toMatchObject({ codespace: "gov", code: 5 });
    }
  });

  it("is only looked at: what can be carried out changes nothing before votes have said so", () => {
    const chain = stage(NEWEST_APP_VERSION);
    const before = chain.balance(CAROL);
    expect(propose(chain, spend(carol, 7n * TOKEN))).toBeUndefined();
    expect(propose(chain, upgrade("new", 1_000n))).toBeUndefined();
    expect(upgradePlan(chain.state)).toBeUndefined();
    expect([chain.balance(CAROL), communityPool(chain.state)]).toEqual([before, 7n * TOKEN]);
    expect(chain.events.map(({ type }) => type)).not.toContain("schedule_upgrade");
    const [first, second] = [1n, 2n].map((id) => new Proposals(chain.state).of(id));
    if (first === undefined || second === undefined) throw new Error("no proposals");
    for (const operator of OPERATORS) vote(chain, first, operator, 1);
    pass(chain, second);
    expect(upgradePlan(chain.state)).toEqual({ name: "new", height: 1_000, info: "" });
    expect(chain.balance(CAROL)).toBe(before + 7n * TOKEN);
  });
});
