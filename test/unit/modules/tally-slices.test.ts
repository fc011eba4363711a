/**
 * A proposal that thousands voted on takes seconds to count: who asks for its tally gets it in slices,
 * between which the node does everything else. Anybody may ask, as often as they like.
 */
import { expect, it } from "@jest/globals";
import { currentTally, type TallyProgress } from "../../../node/modules/gov/tally.js";
import { govParams } from "../../../node/modules/gov/gov-params.js";
import { readTally } from "../../../node/modules/reads/gov-reads.js";
import { delegate } from "../../../node/modules/staking/delegating.js";
import { Validators } from "../../../node/modules/staking/validator-record.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import { accountAt } from "../../helpers/cosmos/module-state.js";
import { newChain, OPERATORS, submit, TOKEN, vote } from "./gov-stage.js";

const VOTERS = 130;

it("a tally comes in slices that hold up nobody, and to what it comes to at once", () => {
  const chain = newChain();
  const proposal = submit(chain);
  const [first, second] = OPERATORS;
  for (const operator of [first, second]) vote(chain, proposal, operator ?? accountAt(0), 3);
  for (let index = 0; index < VOTERS; index++) {
    const voter = accountAt(1_000 + index);
    chain.mint(voter, 10n * TOKEN);
    for (const operator of [first, second]) {
      const failure = chain.run((context) => {
        const validator = new Validators(context.state).of(operator ?? accountAt(0));
        delegate(context, voter, validator, TOKEN);
      });
      expect(failure).toBeUndefined();
    }
    vote(chain, proposal, voter, 1 + (index % 2));
  }
  const counted: number[] = [];
  let from: TallyProgress | undefined;
  for (;;) {
    // Each slice reads a state of its own, and one that runs twice comes to the same.
    const [slice, again] = [0, 1].map(() => readTally(overlay(chain.state), proposal.id, from));
    expect(again).toEqual(slice);
    if (slice === undefined) throw new Error("there is no such proposal");
    if ("result" in slice) {
      expect(slice.result).toEqual(currentTally(chain.state, proposal, govParams(chain.state)));
      expect(slice.result.yes).toBe(BigInt(VOTERS) * TOKEN);
      break;
    }
    counted.push(slice.progress.voters - (from?.voters ?? 0));
    from = slice.progress;
  }
  // Each voter has two delegations: three steps, and a hundred in a slice.
  expect(counted.length).toBeGreaterThanOrEqual(3);
  expect(Math.max(...counted)).toBeLessThanOrEqual(50);
});

/** A state that reads another one. */
function overlay(state: JournaledState): JournaledState {
  return new JournaledState({
    account: (address) => state.accountNow(address),
    code: () => new Uint8Array(0),
    storage: (address, slot) => state.storageNow(address, slot),
  });
}
