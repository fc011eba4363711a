/** Claims of a block in which a validator comes, loses stake and is forgotten: neither state has it. */
import { expect, it } from "@jest/globals";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { type Claim, claimName } from "../../../chain/staking/claims.js";
import {
  type Measured,
  measureClaims,
  measurePools,
  measureValidators,
  restOfChanges,
} from "../../../node/modules/reads/claim-changes.js";
import {
  claimsOfEvents,
  stakedOf,
  stakeOf,
  unbondingOf,
} from "../../../node/modules/reads/claim-events.js";
import { readClaim } from "../../../node/modules/reads/claims.js";
import type { ModuleContext } from "../../../node/modules/module-context.js";
import { setModuleParam } from "../../../node/modules/module-params.js";
import {
  delegate,
  redelegate,
  slashValidator,
  undelegate,
  validatorOf,
} from "../../../node/modules/staking/delegating.js";
import { registerValidator } from "../../../node/modules/staking/registration.js";
import {
  type ValidatorRecord,
  Validators,
} from "../../../node/modules/staking/validator-record.js";
import { MODULE_ACCOUNTS } from "../../../node/modules/system-storage.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const SLASHED = accountAt(0);
const STAYING = accountAt(1);
const PASSING = accountAt(2);
const ALICE = accountAt(20);
const TOKEN = 10n ** 18n;
/** Too little for a place in the set, so that a validator can be forgotten at once. */
const SMALL_ATOKEN = 1_000n;
const BURNED_ATOKEN = 10n;

const OPERATORS = [SLASHED, STAYING, PASSING];
const CLAIMS: readonly Claim[] = [
  ...[...OPERATORS, ALICE].flatMap((who) => OPERATORS.map((operator) => stakedOf(who, operator))),
  ...[PASSING, ALICE].map(unbondingOf),
];

type Of = (operator: (typeof OPERATORS)[number]) => ValidatorRecord;

/** A chain on which the third operator has a validator now and then. */
class PassingChain {
  readonly chain = new ModuleChain(stakedGenesis([100, 50], { "staking.unbonding_time": "20s" }));

  constructor() {
    for (const one of [PASSING, ALICE]) this.chain.mint(one, 10n * TOKEN);
  }

  act(work: (on: ModuleContext, of: Of) => void): void {
    const failure = this.chain.run((on) => work(on, (operator) => validatorOf(on, operator)));
    expect(failure).toBeUndefined();
  }

  register(): void {
    this.act((on) => {
      registerValidator(on, {
        operator: PASSING,
        publicKey: Uint8Array.from(signingKeyOf(Buffer.alloc(32, 9)).publicKey),
        description: { moniker: "m", identity: "", website: "", security_contact: "", details: "" },
        commission: { rate: 0n, maxRate: TOKEN, maxChangeRate: TOKEN },
        minSelfDelegation: 1n,
        selfDelegationAtoken: SMALL_ATOKEN,
      });
    });
  }

  hasPassed(): boolean {
    return !new Validators(this.chain.state).of(PASSING).exists;
  }

  measure(): Measured & { readonly stakeAtoken: bigint } {
    const { state, pool } = this.chain;
    return {
      pools: measurePools(state, pool),
      validators: measureValidators(state),
      claims: new Map(measureClaims(state, CLAIMS, pool)),
      stakeAtoken: this.chain.balance(MODULE_ACCOUNTS.staking),
    };
  }

  /** What all moves of a block together change, by claim, and what of it no event tells. */
  tell(block: () => void) {
    const { chain } = this;
    const before = this.measure();
    chain.events.length = 0;
    block();
    const events = chain.events.map(({ type, values }) => ({
      type,
      attributes: Object.entries(values).map(([key, value]) => ({ key, value, index: true })),
    }));
    const after = this.measure();
    const { moves, touched } = claimsOfEvents(events, chain.pool);
    const rest = restOfChanges(
      moves,
      touched,
      { before, after },
      {
        isGenesis: false,
        stakeJournalAtoken: after.stakeAtoken - before.stakeAtoken,
        validatorsPool: chain.pool,
      },
    );
    const sums = new Map<string, bigint>();
    for (const { claim, delta } of [...moves, ...rest]) {
      const name = claimName(claim);
      sums.set(name, (sums.get(name) ?? 0n) + delta);
    }
    return { sums, rest };
  }
}

/** Its former stake answers for the fault of another one, longer than what left it was under way. */
function forgottenAndOwing(): PassingChain {
  const passing = new PassingChain();
  const { chain } = passing;
  passing.register();
  passing.act((on, of) => {
    delegate(on, ALICE, of(SLASHED), TOKEN);
    redelegate(on, ALICE, { source: of(SLASHED), destination: of(PASSING) }, SMALL_ATOKEN);
  });
  setModuleParam(chain.state, "staking", "unbonding_time", 2_000n);
  passing.act((on, of) => {
    undelegate(on, ALICE, of(PASSING), SMALL_ATOKEN);
    redelegate(on, PASSING, { source: of(PASSING), destination: of(STAYING) }, SMALL_ATOKEN);
  });
  chain.endBlock();
  const fault = { infractionHeight: 0, stakeAtoken: 200n * TOKEN };
  passing.act((on, of) => slashValidator(on, of(SLASHED), fault, TOKEN / 2n));
  while (chain.timeMs < chain.genesis.genesisTimeMs + 18_000) chain.endBlock();
  return passing;
}

it("are told where all that is left of its stake is burned in the block that it came in", () => {
  const passing = forgottenAndOwing();
  expect(passing.hasPassed()).toBe(true);
  const { sums, rest } = passing.tell(() => {
    passing.register();
    passing.act((on, of) => {
      delegate(on, ALICE, of(PASSING), BURNED_ATOKEN);
      redelegate(on, PASSING, { source: of(PASSING), destination: of(STAYING) }, SMALL_ATOKEN);
    });
    passing.chain.endBlock();
  });
  expect(passing.hasPassed()).toBe(true);
  const told = rest.map(({ reason, claim, delta }) => [reason, claimName(claim), delta]);
  expect(told).toContainEqual(["SLASH", claimName(stakeOf(PASSING)), -BURNED_ATOKEN]);
  for (const claim of [stakeOf(PASSING), stakedOf(ALICE, PASSING), stakedOf(PASSING, PASSING)]) {
    const { state, pool } = passing.chain;
    expect([claimName(claim), readClaim(state, claim, pool)]).toEqual([claimName(claim), 0n]);
    expect([claimName(claim), sums.get(claimName(claim))]).toEqual([claimName(claim), 0n]);
  }
  expect(sums.get(claimName(stakeOf(STAYING)))).toBe(SMALL_ATOKEN);
});
