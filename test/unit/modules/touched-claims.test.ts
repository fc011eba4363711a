/** Whose claims are read of a block's journal: reading what is leaving is what somebody has paid for. */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { touchedClaims } from "../../../node/modules/reads/claim-changes.js";
import { claimsOfEvents } from "../../../node/modules/reads/claim-events.js";
import type { ModuleContext } from "../../../node/modules/module-context.js";
import { withdrawRewards } from "../../../node/modules/distribution/rewards.js";
import {
  delegate,
  redelegate,
  undelegate,
  validatorOf,
} from "../../../node/modules/staking/delegating.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const ALICE: Address = accountAt(20);
const TOKEN = 10n ** 18n;

type Act = (context: ModuleContext) => unknown;
const at = (context: ModuleContext, index: number) => validatorOf(context, accountAt(index));

const ACTS: readonly (readonly [string, Act, readonly string[]])[] = [
  ["delegates", (context) => delegate(context, ALICE, at(context, 0), TOKEN), ["staked"]],
  ["withdraws", (context) => withdrawRewards(context, at(context, 0), ALICE), ["staked"]],
  [
    "undelegates",
    (context) => undelegate(context, ALICE, at(context, 0), TOKEN),
    ["staked", "unbonding"],
  ],
  [
    "redelegates",
    (context) =>
      redelegate(context, ALICE, { source: at(context, 0), destination: at(context, 1) }, TOKEN),
    ["staked", "staked", "unbonding"],
  ],
];

describe("claims that a block may have changed", () => {
  it.each(ACTS)("of an account that %s", (_name, act, kinds) => {
    const chain = new ModuleChain(stakedGenesis([100, 50]));
    chain.mint(ALICE, 10n * TOKEN);
    chain.run((context) => {
      delegate(context, ALICE, at(context, 0), 5n * TOKEN);
    });
    chain.endBlock({ rewardAtoken: TOKEN });
    chain.events.length = 0;
    expect(chain.run(act)).toBeUndefined();
    const events = chain.events.map(({ type, values }) => ({
      type,
      attributes: Object.entries(values).map(([key, value]) => ({ key, value, index: true })),
    }));
    const { touched } = claimsOfEvents(events, chain.pool);
    const claims = touchedClaims(touched);
    expect(claims.map(({ kind }) => kind)).toEqual(kinds);
    expect(new Set(claims.map(({ account }) => account))).toEqual(new Set([ALICE]));
  });
});
