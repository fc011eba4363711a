/** What of an unbonding was cancelled answers for its validator as stake, and no more in the unbonding. */
import { describe, expect, it } from "@jest/globals";
import { punish } from "../../../node/modules/slashing/signing.js";
import {
  cancelUnbonding,
  delegate,
  undelegate,
  validatorOf,
} from "../../../node/modules/staking/delegating.js";
import { Delegations } from "../../../node/modules/staking/delegation-record.js";
import { tokensOf } from "../../../node/modules/staking/shares.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const TOKEN = 10n ** 18n;
const STAKE = 100n * TOKEN;
const [GUILTY, PERSON] = [accountAt(0), accountAt(9)];

/** A person's stake left the guilty validator, and four fifths of it came back, before the proof. */
function chainOf(genesis: Genesis): { readonly chain: ModuleChain; readonly guilt: number } {
  const chain = new ModuleChain(genesis);
  chain.mint(PERSON, STAKE);
  chain.run((context) => {
    delegate(context, PERSON, validatorOf(context, GUILTY), STAKE);
  });
  for (let block = 0; block < 3; block += 1) chain.endBlock();
  const guilt = chain.height;
  chain.run((context) => {
    undelegate(context, PERSON, validatorOf(context, GUILTY), STAKE);
  });
  const amountAtoken = 80n * TOKEN;
  const refused = chain.run((context) => {
    const terms = { amountAtoken, height: guilt };
    cancelUnbonding(context, PERSON, validatorOf(context, GUILTY), terms);
  });
  expect(refused).toBeUndefined();
  return { chain, guilt };
}

/** Double signing, five hundredths of the stake. @returns what the person has when all is over */
function slashed({ chain, guilt }: ReturnType<typeof chainOf>): bigint {
  chain.run((context) => {
    const { consensusAddress } = validatorOf(context, GUILTY);
    punish(context, [{ consensusAddress, height: guilt, power: 1_100n }]);
  });
  for (let block = 0; block < 40; block += 1) chain.endBlock();
  const validator = validatorOf(chain.context(), GUILTY);
  const shares = new Delegations(chain.state).shares(GUILTY, PERSON);
  return chain.balance(PERSON) + tokensOf(validator, shares);
}

describe("an unbonding that was cancelled in part", () => {
  const genesis = stakedGenesis([1_000, 1_000], { "staking.unbonding_time": "60s" });

  it("bears a slash by what is left of it: nothing is slashed twice", () => {
    expect(slashed(chainOf(genesis))).toBe((STAKE * 95n) / 100n);
  });

  it("begins with what is left, as its queries tell", () => {
    const { chain } = chainOf(genesis);
    const [entry] = new Delegations(chain.state).entriesOf(PERSON);
    expect(entry).toMatchObject({ amountAtoken: 20n * TOKEN, initialAtoken: 20n * TOKEN });
  });

  it("bears it as it did on chains of version 1 of the rules", () => {
    const { appVersion: _newest, ...first } = genesis;
    // 4 of the 80 that are stake again, and 5 of the 20 that are not.
    expect(slashed(chainOf(first))).toBe(91n * TOKEN);
  });
});
