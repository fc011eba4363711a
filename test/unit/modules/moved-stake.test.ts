/**
 * Stake that answers for a validator answers wherever it went since: x/staking let it escape by a
 * redelegation and an unbonding from there (GHSA-86h5-xcpx-cfqc).
 */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { punish } from "../../../node/modules/slashing/signing.js";
import {
  cancelUnbonding,
  delegate,
  redelegate,
  slashValidator,
  undelegate,
  validatorOf,
} from "../../../node/modules/staking/delegating.js";
import { Delegations } from "../../../node/modules/staking/delegation-record.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const TOKEN = 10n ** 18n;
const STAKE = 100n * TOKEN;
const [GUILTY, OTHER, PERSON] = [accountAt(0), accountAt(1), accountAt(9)];

/** A person's stake has moved from the guilty validator to another one before the guilt is known. */
function movedChain(): { readonly chain: ModuleChain; readonly guiltHeight: number } {
  const chain = new ModuleChain(stakedGenesis([1_000, 1_000], { "staking.unbonding_time": "60s" }));
  chain.mint(PERSON, STAKE);
  const { state } = chain;
  chain.run((context) => {
    delegate(context, PERSON, validatorOf(context, GUILTY), STAKE);
  });
  for (let block = 0; block < 3; block += 1) chain.endBlock();
  const guiltHeight = chain.height;
  chain.run((context) => {
    const route = {
      source: validatorOf(context, GUILTY),
      destination: validatorOf(context, OTHER),
    };
    redelegate(context, PERSON, route, STAKE);
  });
  chain.endBlock();
  expect(new Delegations(state).shares(OTHER, PERSON)).toBeGreaterThan(0n);
  return { chain, guiltHeight };
}

/** Double signing at that height, five hundredths of the stake. */
function prove(chain: ModuleChain, height: number): void {
  chain.run((context) => {
    const { consensusAddress, tokens } = validatorOf(context, GUILTY);
    punish(context, [{ consensusAddress, height, power: tokens / TOKEN + 100n }]);
  });
}

/** What the person has once everything has come back. */
function endOf(chain: ModuleChain): bigint {
  for (let block = 0; block < 40; block += 1) chain.endBlock();
  return chain.balance(PERSON);
}

describe("stake that was moved from a validator that had signed twice", () => {
  it("bears the slash where it left the second one, too, before the proof came", () => {
    const { chain, guiltHeight } = movedChain();
    chain.run((context) => {
      undelegate(context, PERSON, validatorOf(context, OTHER), STAKE);
    });
    chain.endBlock();
    prove(chain, guiltHeight);
    expect(endOf(chain)).toBe((STAKE * 95n) / 100n);
  });

  it("bears it in parts where a part of it left", () => {
    const { chain, guiltHeight } = movedChain();
    chain.run((context) => {
      undelegate(context, PERSON, validatorOf(context, OTHER), (STAKE * 98n) / 100n);
    });
    prove(chain, guiltHeight);
    chain.endBlock();
    chain.run((context) => {
      undelegate(context, PERSON, validatorOf(context, OTHER), 1n);
    });
    // 2 that stayed and 3 of the 98 that left are gone.
    expect(endOf(chain)).toBe((STAKE * 95n) / 100n);
  });

  it("bears it once where the unbonding was cancelled", () => {
    const { chain, guiltHeight } = movedChain();
    chain.run((context) => {
      undelegate(context, PERSON, validatorOf(context, OTHER), STAKE);
    });
    const { height } = chain;
    prove(chain, guiltHeight);
    chain.run((context) => {
      cancelUnbonding(context, PERSON, validatorOf(context, OTHER), {
        amountAtoken: STAKE,
        height,
      });
    });
    for (let block = 0; block < 40; block += 1) chain.endBlock();
    chain.run((context) => {
      undelegate(context, PERSON, validatorOf(context, OTHER), (STAKE * 95n) / 100n);
    });
    expect(endOf(chain)).toBe((STAKE * 95n) / 100n);
  });

  it("bears it beside what the second one has lost, each once", () => {
    const { chain, guiltHeight: infractionHeight } = movedChain();
    const slash = (operator: Address, percent: bigint) => {
      chain.run((context) => {
        const fault = { infractionHeight, stakeAtoken: 10_000n * TOKEN };
        slashValidator(context, validatorOf(context, operator), fault, (TOKEN * percent) / 100n);
      });
    };
    const leave = (amountAtoken: bigint) => {
      expect(
        chain.run((context) => {
          undelegate(context, PERSON, validatorOf(context, OTHER), amountAtoken);
        }),
      ).toBeUndefined();
    };
    leave(50n * TOKEN);
    slash(OTHER, 60n);
    // What is left of the other half.
    leave(20n * TOKEN);
    slash(GUILTY, 30n);
    // 60 by the second validator, 30 by the first one.
    expect(endOf(chain)).toBe(10n * TOKEN);
  });

  it("bears nothing by what left the second one before it came there", () => {
    const chain = new ModuleChain(
      stakedGenesis([1_000, 1_000], { "staking.unbonding_time": "60s" }),
    );
    chain.mint(PERSON, STAKE);
    chain.run((context) => {
      delegate(context, PERSON, validatorOf(context, OTHER), STAKE);
    });
    chain.endBlock();
    chain.run((context) => {
      undelegate(context, PERSON, validatorOf(context, OTHER), STAKE);
    });
    const guiltHeight = chain.height;
    prove(chain, guiltHeight);
    expect(endOf(chain)).toBe(STAKE);
  });
});
