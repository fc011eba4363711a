/** Stake comes back after the unbonding time of when it began to leave, whatever others wait for. */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { setModuleParam } from "../../../node/modules/module-params.js";
import {
  cancelUnbonding,
  delegate,
  redelegate,
  slashValidator,
  undelegate,
  validatorOf,
} from "../../../node/modules/staking/delegating.js";
import type { Misbehavior } from "../../../node/modules/slashing/signing.js";
import { Delegations } from "../../../node/modules/staking/delegation-record.js";
import { tokensOf } from "../../../node/modules/staking/shares.js";
import { MODULE_ACCOUNTS, SystemStorage } from "../../../node/modules/system-storage.js";
import { entriesOf } from "../../../node/modules/reads/staking-reads.js";
import { FIRST_APP_VERSION } from "../../../node/settings/app-version.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";
import { createRandom } from "../../helpers/random.js";

const TOKEN = 10n ** 18n;
const [FIRST, SECOND] = [accountAt(0), accountAt(1)];
const [ALICE, BOB, CAROL] = [accountAt(11), accountAt(12), accountAt(13)];
const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20_261_122);

function newChain(people: readonly Address[], genesis = stakedGenesis([100, 50])): ModuleChain {
  const chain = new ModuleChain(genesis);
  for (const person of people) {
    chain.mint(person, 10n * TOKEN);
    done(chain, (context) => delegate(context, person, validatorOf(context, FIRST), 10n * TOKEN));
  }
  return chain;
}

function done(chain: ModuleChain, work: Parameters<ModuleChain["run"]>[0]): void {
  expect(chain.run(work)?.message).toBeUndefined();
}

/** What a vote does. */
function setTime({ state }: ModuleChain, seconds: number): void {
  setModuleParam(state, "staking", "unbonding_time", BigInt(seconds) * 1_000n);
}

/** All of somebody's stake leaves. @returns seconds until it is back, as the answer says */
function leave(chain: ModuleChain, person: Address, amount = 10n * TOKEN): number {
  let endMs = 0;
  done(chain, (context) => {
    ({ endMs } = undelegate(context, person, validatorOf(context, FIRST), amount));
  });
  return (endMs - chain.timeMs) / 1_000;
}

/** The first validator signs the present block twice. */
function signedTwice(chain: ModuleChain): Misbehavior {
  const { consensusAddress } = validatorOf(chain.context(), FIRST);
  return { consensusAddress, height: chain.height + 1, power: 1_000n };
}

const closedParts = ({ state }: ModuleChain) => new SystemStorage(state, "staking").word(26n);

describe("stake that leaves after the unbonding time was shortened", () => {
  it("is not kept by what began to leave before", () => {
    const chain = newChain([ALICE, BOB, CAROL]);
    setTime(chain, 315_360_000);
    expect(leave(chain, ALICE)).toBe(315_360_000);
    setTime(chain, 1_000);
    expect(leave(chain, BOB)).toBe(1_000);
    setTime(chain, 10);
    done(chain, (context) => {
      const route = {
        source: validatorOf(context, FIRST),
        destination: validatorOf(context, SECOND),
      };
      redelegate(context, CAROL, route, 4n * TOKEN);
    });
    expect(leave(chain, CAROL, 6n * TOKEN)).toBe(10);
    expect(closedParts(chain)).toBe(2n);
    const back = () => [ALICE, BOB, CAROL].map((person) => chain.balance(person));
    chain.endBlock({ seconds: 9 });
    expect(back()).toEqual([0n, 0n, 0n]);
    chain.endBlock({ seconds: 1 });
    expect(back()).toEqual([0n, 0n, 6n * TOKEN]);
    expect(new Delegations(chain.state).entriesOf(CAROL)).toEqual([]);
    chain.endBlock({ seconds: 990 });
    expect(back()).toEqual([0n, 10n * TOKEN, 6n * TOKEN]);
    expect(closedParts(chain)).toBe(1n);
    // Longer again: behind those that it follows.
    setTime(chain, 2_000);
    done(chain, (context) => delegate(context, BOB, validatorOf(context, FIRST), TOKEN));
    expect(leave(chain, BOB, TOKEN)).toBe(2_000);
    chain.endBlock({ seconds: 315_360_000 });
    expect(back()).toEqual([10n * TOKEN, 10n * TOKEN, 6n * TOKEN]);
    expect(closedParts(chain)).toBe(0n);
  });

  it("bears first what the redelegation owes that brought it, though that is over later", () => {
    const chain = newChain([ALICE]);
    setTime(chain, 1_000);
    done(chain, (context) => {
      const [source, destination] = [validatorOf(context, FIRST), validatorOf(context, SECOND)];
      redelegate(context, ALICE, { source, destination }, 10n * TOKEN);
    });
    setTime(chain, 10);
    done(chain, (context) => {
      undelegate(context, ALICE, validatorOf(context, SECOND), 10n * TOKEN);
      const fault = { infractionHeight: chain.height, stakeAtoken: 1_000n * TOKEN };
      slashValidator(context, validatorOf(context, FIRST), fault, TOKEN / 5n);
    });
    chain.endBlock({ seconds: 10 });
    expect(chain.balance(ALICE)).toBe(8n * TOKEN);
    chain.endBlock({ seconds: 1_000 });
    expect(chain.balance(ALICE)).toBe(8n * TOKEN);
    // What the first validator has lost and she has: nothing is asked for twice.
    expect(chain.balance(MODULE_ACCOUNTS.staking)).toBe(80n * TOKEN + 50n * TOKEN);
  });

  it("bears nothing of it that comes in the block that pays it out", () => {
    const chain = newChain([ALICE]);
    setTime(chain, 1_000);
    done(chain, (context) => {
      const [source, destination] = [validatorOf(context, FIRST), validatorOf(context, SECOND)];
      redelegate(context, ALICE, { source, destination }, 10n * TOKEN);
    });
    setTime(chain, 10);
    done(chain, (context) => {
      undelegate(context, ALICE, validatorOf(context, SECOND), 10n * TOKEN);
    });
    chain.endBlock({ seconds: 10, facts: { misbehavior: [signedTwice(chain)] } });
    expect(chain.balance(ALICE)).toBe(10n * TOKEN);
  });

  it("waits as it did by the first rules", () => {
    const genesis = { ...stakedGenesis([100, 50]), appVersion: FIRST_APP_VERSION };
    const chain = newChain([ALICE, BOB], genesis);
    setTime(chain, 1_000);
    expect(leave(chain, ALICE)).toBe(1_000);
    setTime(chain, 10);
    expect(leave(chain, BOB)).toBe(1_000);
    expect(closedParts(chain)).toBe(0n);
  });

  it("comes back once and in time, however often the time changes and whatever is cancelled", () => {
    const random = createRandom(SEED);
    const people = Array.from({ length: 60 }, (_, index) => accountAt(100 + index));
    const chain = newChain(people);
    const due = new Map<Address, number>();
    const pending = [...people];
    const mustHave = (person: Address) => (due.get(person) ?? Infinity) <= chain.timeMs;
    while (pending.length > 0 || [...due.values()].some((endMs) => endMs > chain.timeMs)) {
      const person = pending.shift();
      if (person !== undefined) {
        setTime(chain, 1 + random.integer(200));
        const height = chain.height;
        const seconds = leave(chain, person);
        if (random.integer(5) === 0) {
          const unbonding = { amountAtoken: 10n * TOKEN, height };
          done(chain, (context) => {
            cancelUnbonding(context, person, validatorOf(context, FIRST), unbonding);
          });
        } else due.set(person, chain.timeMs + seconds * 1_000);
      }
      chain.endBlock({ seconds: random.integer(4) });
      for (const one of people) {
        const what = `seed ${SEED}, height ${chain.height}, ${one}`;
        expect([what, chain.balance(one) > 0n]).toEqual([what, mustHave(one)]);
      }
    }
    const cancelled = BigInt(people.length - due.size) * 10n * TOKEN;
    expect(chain.balance(MODULE_ACCOUNTS.staking)).toBe(150n * TOKEN + cancelled);
    chain.endBlock({ seconds: 1_000 });
    expect(closedParts(chain)).toBe(0n);
  });
});

describe("stake whose unbonding time is over", () => {
  /** More than the hundred that end in a block. */
  const CROWD = Array.from({ length: 130 }, (_, index) => accountAt(100 + index));

  /** A crowd's stake leaves, then a person's; the time is over, and the person's has to wait. */
  function waiting(leaves: (chain: ModuleChain) => void, genesis?: Genesis): ModuleChain {
    const chain = newChain([...CROWD, ALICE], genesis);
    setTime(chain, 10);
    for (const person of CROWD) leave(chain, person);
    leaves(chain);
    chain.endBlock({ seconds: 10 });
    const isBack = CROWD.filter((person) => chain.balance(person) > 0n);
    expect(isBack.length).toBe(100);
    return chain;
  }

  /** A fifth is lost for a fault of before all of them left. */
  function slash(chain: ModuleChain): void {
    done(chain, (context) => {
      const fault = { infractionHeight: 0, stakeAtoken: 10_000n * TOKEN };
      slashValidator(context, validatorOf(context, FIRST), fault, TOKEN / 5n);
    });
  }

  it("bears no slash that comes while it waits for a block that pays it out", () => {
    const chain = waiting((on) => void leave(on, ALICE));
    slash(chain);
    const [entry] = entriesOf(chain.state, ALICE, "unbonding");
    expect(entry?.leftAtoken).toBe(10n * TOKEN);
    chain.endBlock();
    const late = [...CROWD.slice(100), ALICE].map((person) => chain.balance(person));
    expect(new Set(late)).toEqual(new Set([10n * TOKEN]));
  });

  it("bears a slash of its last block under version 1 of the rules", () => {
    const genesis = { ...stakedGenesis([100, 50]), appVersion: FIRST_APP_VERSION };
    const chain = waiting((on) => void leave(on, ALICE), genesis);
    slash(chain);
    chain.endBlock();
    expect(chain.balance(ALICE)).toBe(8n * TOKEN);
  });

  it("bears none of the very block, as in x/staking, whose mature entries are passed over", () => {
    const chain = newChain([ALICE, BOB]);
    setTime(chain, 10);
    leave(chain, ALICE);
    chain.endBlock({ seconds: 1 });
    leave(chain, BOB);
    const misbehavior = [{ ...signedTwice(chain), height: 1 }];
    chain.endBlock({ seconds: 9, facts: { misbehavior } });
    chain.endBlock({ seconds: 1 });
    const back = [ALICE, BOB].map((person) => chain.balance(person));
    expect(back).toEqual([10n * TOKEN, (95n * TOKEN) / 10n]);
  });

  it("is not slashed at the validator to which it went, either", () => {
    const chain = waiting((on) => {
      done(on, (context) => {
        const [source, destination] = [validatorOf(context, FIRST), validatorOf(context, SECOND)];
        redelegate(context, ALICE, { source, destination }, 10n * TOKEN);
      });
    });
    slash(chain);
    chain.endBlock();
    const delegations = new Delegations(chain.state);
    expect(delegations.entriesOf(ALICE)).toEqual([]);
    const shares = delegations.shares(SECOND, ALICE);
    expect(tokensOf(validatorOf(chain.context(), SECOND), shares)).toBe(10n * TOKEN);
  });
});
