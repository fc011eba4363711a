/** Places of proposals: who gets one when all are taken, and at what price for whoever had it. */
import { describe, expect, it } from "@jest/globals";
import { PROPOSAL_STATUS, Proposals } from "../../../node/modules/gov/proposal-record.js";
import { MODULE_ACCOUNTS } from "../../../node/modules/system-storage.js";
import { setAppVersion } from "../../../node/modules/upgrade/plan.js";
import { FIRST_APP_VERSION, NEWEST_APP_VERSION } from "../../../node/settings/app-version.js";
import { accountAt } from "../../helpers/cosmos/module-state.js";
import { BOB, newChain, submit, TOKEN } from "./gov-stage.js";

describe("a place of a proposal", () => {
  it("is given up for one that brings more when all are taken", () => {
    const chain = newChain();
    const spam = Array.from({ length: 500 }, (_, index) => {
      return submit(chain, { deposit: 0n, by: accountAt(100 + Math.floor(index / 50)) });
    });
    expect(() => submit(chain, { deposit: 0n })).toThrow(/500 proposals/);
    const held = chain.balance(MODULE_ACCOUNTS.gov);
    const better = submit(chain, { deposit: TOKEN });
    expect(better.exists).toBe(true);
    expect(spam.filter(({ exists }) => exists).length).toBe(499);
    expect(spam.at(-1)?.exists).toBe(false);
    expect(new Proposals(chain.state).waitingCount).toBe(500);
    expect(new Proposals(chain.state).waitingOf(accountAt(109))).toBe(49);
    expect(chain.balance(MODULE_ACCOUNTS.gov)).toBe(held + TOKEN);
    // Those that are voted on stay, and so does what has a deposit as long as something has none.
    const open = submit(chain, { deposit: 50n * TOKEN });
    expect([open.status, better.exists]).toEqual([PROPOSAL_STATUS.voting, true]);
  });

  /** All places are taken, the one with the least deposit by BOB. */
  const crowded = (others: bigint, version = NEWEST_APP_VERSION) => {
    const chain = newChain({
      "gov.min_deposit": (10n * TOKEN).toString(),
      "gov.burn_proposal_deposit_prevote": "true",
    });
    setAppVersion(chain.state, version);
    const least = submit(chain, { deposit: 5n * TOKEN, by: BOB });
    for (let index = 0; index < 499; index++) {
      submit(chain, { deposit: others, by: accountAt(Math.floor(index / 50)) });
    }
    return { chain, least };
  };

  it("costs who has to give it up no deposit, whatever a missed time costs", () => {
    const { chain, least } = crowded(6n * TOKEN);
    const had = chain.balance(BOB);
    const better = submit(chain, { deposit: 7n * TOKEN });
    expect([least.exists, better.exists]).toEqual([false, true]);
    expect(chain.balance(BOB)).toBe(had + 5n * TOKEN);
    expect(chain.burnedAtoken).toBe(0n);
    // Who does miss it pays; a block settles ten.
    chain.endBlock({ seconds: 20 });
    expect(chain.burnedAtoken).toBe(60n * TOKEN);
  });

  it("is refused with what helps where there is none", () => {
    const first = /or with a higher deposit: invalid/;
    for (const version of [FIRST_APP_VERSION, NEWEST_APP_VERSION]) {
      const isFirst = version === FIRST_APP_VERSION;
      const { chain, least } = crowded(10n * TOKEN, version);
      expect(() => submit(chain, { deposit: 5n * TOKEN })).toThrow(
        isFirst
          ? first
          : /500 proposals .* or with a deposit of more than 5000000000000000000atoken: /,
      );
      // With a place at the expense of the last one that lacks deposit only those in voting are left.
      expect(submit(chain, { deposit: 10n * TOKEN }).status).toBe(PROPOSAL_STATUS.voting);
      expect(least.exists).toBe(false);
      expect(() => submit(chain, { deposit: 5_000n * TOKEN })).toThrow(
        isFirst ? first : /500 proposals are being voted on.* try again when one is over: /,
      );
      expect(() => submit(chain, { deposit: TOKEN, by: accountAt(0) })).toThrow(
        isFirst ? first : /50 proposals of addr1.* try again when one is over: /,
      );
    }
  });

  it("cost the deposits by the first rules", () => {
    const { chain } = crowded(6n * TOKEN, FIRST_APP_VERSION);
    const had = chain.balance(BOB);
    submit(chain, { deposit: 7n * TOKEN });
    expect(chain.balance(BOB)).toBe(had);
    expect(chain.burnedAtoken).toBe(5n * TOKEN);
  });
});
