/**
 * Countings of several blocks come one after the other: stake that moves meanwhile is told to the one that
 * has begun, and would count twice where another came between.
 */
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { PROPOSAL_STATUS, Proposals } from "../../../node/modules/gov/proposal-record.js";
import { setModuleParam } from "../../../node/modules/module-params.js";
import { delegate, redelegate, validatorOf } from "../../../node/modules/staking/delegating.js";
import { ALICE, newChain, OPERATORS, submit, TOKEN, vote } from "./gov-stage.js";

/** More votes than a block counts. */
const VOTERS = Array.from({ length: 2_100 }, (_, index) =>
  parseAddress(`0x${(0xc0000 + index).toString(16).padStart(40, "0")}`),
);

it("a counting that has begun goes on before one whose time is over sooner", () => {
  const chain = newChain();
  const [first = ALICE, ...others] = OPERATORS;
  const [second = ALICE] = others;
  chain.run((context) => {
    delegate(context, ALICE, validatorOf(context, first), 50n * TOKEN);
  });
  chain.endBlock();
  const [failing, passing] = [0, 1].map(() => submit(chain, { isExpedited: true }));
  if (failing === undefined || passing === undefined) throw new Error("nothing was made");
  for (const operator of [ALICE, ...others]) vote(chain, passing, operator, 1);
  for (const voter of VOTERS) {
    vote(chain, failing, voter, 2);
    vote(chain, passing, voter, 2);
  }
  // Shorter than it was: the one that fails goes on as a plain one whose time is over already.
  setModuleParam(chain.state, "gov", "voting_period", 2_000n);
  chain.endBlock({ seconds: 8 });
  chain.endBlock();
  expect(failing.isExpedited).toBe(false);
  expect(new Proposals(chain.state).counting?.id).toBe(passing.id);
  chain.endBlock();
  // Counted with the first validator; with the second one it would follow its operator as well.
  const failure = chain.run((context) => {
    const route = {
      source: validatorOf(context, first),
      destination: validatorOf(context, second),
    };
    redelegate(context, ALICE, route, 50n * TOKEN);
  });
  expect(failure).toBeUndefined();
  for (let block = 0; block < 3; block += 1) chain.endBlock();
  expect([failing.status, passing.status]).toEqual([
    PROPOSAL_STATUS.rejected,
    PROPOSAL_STATUS.passed,
  ]);
  expect(passing.result).toMatchObject({ yes: 230n * TOKEN, no: 0n });
});
