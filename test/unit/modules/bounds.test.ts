/** What the modules do at a block's end is bounded, however much has been delegated. */
import { describe, expect, it } from "@jest/globals";
import { delegate, undelegate, validatorOf } from "../../../node/modules/staking/delegating.js";
import { Validators } from "../../../node/modules/staking/validator-record.js";
import { type BlockFacts, endModules } from "../../../node/modules/modules.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/module-state.js";

const TOKEN = 10n ** 18n;
const VALIDATORS = 20;

/** A chain where so many people have delegated to the first validator. */
function chainWith(delegators: number): ModuleChain {
  const params = { "staking.unbonding_time": "10s", "slashing.signed_blocks_window": "10" };
  const chain = new ModuleChain(
    stakedGenesis(
      Array.from({ length: VALIDATORS }, (_, index) => 10 + index),
      params,
    ),
  );
  for (let index = 0; index < delegators; index++) {
    const person = accountAt(1_000 + index);
    chain.mint(person, 2n * TOKEN);
    chain.run((context) => {
      delegate(context, person, validatorOf(context, accountAt(0)), TOKEN);
    });
  }
  chain.endBlock();
  return chain;
}

/** Slots that the end of a block reads, by a state that has read none of them yet. */
function slotsRead(chain: ModuleChain, facts: BlockFacts): number {
  let count = 0;
  const state = new JournaledState({
    account: (address) => chain.state.accountNow(address),
    code: (hash) => chain.state.codeNow(hash),
    storage: (address, slot) => {
      count += 1;
      return chain.state.storageNow(address, slot);
    },
  });
  const context = {
    ...chain.context(),
    state,
    height: chain.height + 1,
    moveCoins: () => undefined,
    attempt: () => undefined,
    isBlocked: () => false,
  };
  endModules(context, facts, TOKEN);
  return count;
}

function factsOf(chain: ModuleChain, guilty: number): BlockFacts {
  const validators = new Validators(chain.state).inConsensus();
  const votes = validators.map(({ consensusAddress, consensusPower }) => {
    return { consensusAddress, power: consensusPower, isSigned: true };
  });
  const { consensusAddress } = new Validators(chain.state).of(accountAt(0));
  const misbehavior = [{ consensusAddress, height: chain.height, power: 10n }];
  return { votes, misbehavior: misbehavior.slice(0, guilty) };
}

describe("the end of a block", () => {
  it("reads as much for 1,000 delegations as for 10, also when their validator is slashed", () => {
    const [few, many] = [chainWith(10), chainWith(1_000)];
    for (const guilty of [0, 1]) {
      const read = slotsRead(few, factsOf(few, guilty));
      expect(read).toBeGreaterThan(0);
      expect([guilty, slotsRead(many, factsOf(many, guilty))]).toEqual([guilty, read]);
    }
  });

  it("completes a hundred unbondings at a time, oldest first, and forgets none", () => {
    const chain = chainWith(250);
    for (let index = 0; index < 250; index++) {
      chain.run((context) => {
        undelegate(context, accountAt(1_000 + index), validatorOf(context, accountAt(0)), TOKEN);
      });
    }
    const back = () => {
      const people = Array.from({ length: 250 }, (_, index) => accountAt(1_000 + index));
      return people.map((person) => chain.balance(person) === 2n * TOKEN);
    };
    chain.endBlock({ seconds: 5 });
    expect(back().filter(Boolean)).toHaveLength(0);
    const counts = [5, 0, 0, 0].map((seconds) => {
      chain.endBlock({ seconds });
      const done = back();
      // Whoever came first is back first.
      expect(done.lastIndexOf(true) + 1).toBe(done.filter(Boolean).length);
      return done.filter(Boolean).length;
    });
    expect(counts).toEqual([100, 200, 250, 250]);
  });
});
