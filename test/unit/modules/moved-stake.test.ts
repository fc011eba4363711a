/**
 * Stake that answers for a validator answers wherever it went since: x/staking let it escape by a
 * redelegation and an unbonding from there (GHSA-86h5-xcpx-cfqc).
 */
import { describe, expect, it } from "@jest/globals";
import { type Address, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { schemaOf } from "../../../chain/cosmos/message-schemas.js";
import { present } from "../../../chain/errors.js";
import { ProtoReader } from "../../../chain/protobuf/wire.js";
import type { Claim } from "../../../chain/staking/claims.js";
import { handlerOf } from "../../../node/modules/message-router.js";
import {
  measureClaims,
  measurePools,
  measureValidators,
  restOfChanges,
  touchedClaims,
} from "../../../node/modules/reads/claim-changes.js";
import { claimsOfEvents } from "../../../node/modules/reads/claim-events.js";
import { readDelegation } from "../../../node/modules/reads/staking-reads.js";
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
import { MODULE_ACCOUNTS } from "../../../node/modules/system-storage.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const TOKEN = 10n ** 18n;
const STAKE = 100n * TOKEN;
const [GUILTY, OTHER, PERSON] = [accountAt(0), accountAt(1), accountAt(9)];

/** A person's stake has moved from the guilty validator to another one before the guilt is known. */
function movedChain(appVersion?: number): {
  readonly chain: ModuleChain;
  readonly guiltHeight: number;
} {
  const genesis = stakedGenesis([1_000, 1_000], { "staking.unbonding_time": "60s" });
  const chain = new ModuleChain(appVersion === undefined ? genesis : { ...genesis, appVersion });
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

/** Asks by a message for stake at the second validator. @returns the answered atoken, or why not */
function askFor(chain: ModuleChain, amountAtoken: bigint) {
  const typeUrl = "/cosmos.staking.v1beta1.MsgUndelegate";
  const schema = present(schemaOf(typeUrl), typeUrl);
  const message = {
    delegator_address: toBech32(PERSON),
    validator_address: toBech32(OTHER, VALIDATOR_PREFIX),
    amount: { denom: "atoken", amount: amountAtoken.toString() },
  };
  let answer = new Uint8Array(0);
  const failure = chain.run((context) => {
    const handler = present(handlerOf({ typeUrl, schema, message }), typeUrl);
    const more = { signer: PERSON, isBlocked: () => false, useGas: () => undefined };
    answer = Uint8Array.from(handler.run(message, { ...context, ...more }));
  });
  if (failure !== undefined) return failure.fault;
  const coin = new ProtoReader(new ProtoReader(answer, [1, 2]).bytes(2), [1, 2]);
  return BigInt(Buffer.from(coin.bytes(2)).toString());
}

/** Claims that an undelegation may change, and all pools. */
function measure(chain: ModuleChain, claims: readonly Claim[]) {
  const { state, pool } = chain;
  return {
    pools: measurePools(state, pool),
    validators: measureValidators(state),
    claims: new Map(measureClaims(state, claims, pool)),
  };
}

describe("stake that owes a slash", () => {
  const shown = (chain: ModuleChain) => readDelegation(chain.state, OTHER, PERSON)?.amountAtoken;

  it.each([STAKE, STAKE + 1n, (STAKE * 98n) / 100n])(
    "leaves with what is left of it where %s atoken that were shown are asked for",
    (askedAtoken) => {
      const { chain, guiltHeight } = movedChain();
      prove(chain, guiltHeight);
      expect(shown(chain)).toBe(STAKE);
      expect(askFor(chain, askedAtoken)).toBe((STAKE * 95n) / 100n);
      expect(shown(chain)).toBeUndefined();
      expect(endOf(chain)).toBe((STAKE * 95n) / 100n);
    },
  );

  it("bears it with the first atoken that leaves, and shows what is left from then on", () => {
    const { chain, guiltHeight } = movedChain();
    prove(chain, guiltHeight);
    expect(askFor(chain, 1n)).toBe(1n);
    expect(shown(chain)).toBe((STAKE * 95n) / 100n - 1n);
  });

  it("tells what left, and the slash beside it, in the event and by the claims of the block", () => {
    const { chain, guiltHeight } = movedChain();
    prove(chain, guiltHeight);
    const claims: Claim[] = [
      { kind: "staked", account: PERSON, validator: OTHER },
      { kind: "unbonding", account: PERSON, validator: undefined },
    ];
    const before = measure(chain, claims);
    const coins = () => chain.balance(MODULE_ACCOUNTS.staking);
    const coinsBefore = coins();
    chain.events.length = 0;
    askFor(chain, STAKE);
    const leftAtoken = (STAKE * 95n) / 100n;
    const unbond = chain.events.find(({ type }) => type === "unbond");
    expect(unbond?.values["amount"]).toBe(`${leftAtoken}atoken`);
    const events = chain.events.map(({ type, values }) => ({
      type,
      attributes: Object.entries(values).map(([key, value]) => ({ key, value, index: true })),
    }));
    const { moves, touched } = claimsOfEvents(events, chain.pool);
    expect(touchedClaims(touched)).toEqual(claims);
    const rest = restOfChanges(
      moves,
      touched,
      { before, after: measure(chain, claims) },
      {
        isGenesis: false,
        stakeJournalAtoken: coins() - coinsBefore,
        validatorsPool: chain.pool,
      },
    );
    const changes = [...moves, ...rest]
      .filter(({ delta }) => delta !== 0n)
      .map(({ reason, claim, delta }) => [reason, claim.kind, delta]);
    expect(changes).toEqual([
      ["UNDELEGATE", "stake", -leftAtoken],
      ["UNDELEGATE", "unbonding", leftAtoken],
      ["SLASH", "stake", leftAtoken - STAKE],
      ["SHARES", "staked", -STAKE * TOKEN],
    ]);
  });

  it("takes no more than was shown, nor anything where all of it is owed", () => {
    const { chain, guiltHeight } = movedChain();
    prove(chain, guiltHeight);
    expect(askFor(chain, STAKE + 2n)).toMatchObject({ code: 18, codespace: "sdk" });
    const all = movedChain();
    all.chain.run((context) => {
      const fault = { infractionHeight: all.guiltHeight, stakeAtoken: 10_000n * TOKEN };
      slashValidator(context, validatorOf(context, GUILTY), fault, TOKEN);
    });
    expect(askFor(all.chain, STAKE)).toMatchObject({ code: 19, codespace: "staking" });
  });

  it("is refused as before by the first rules", () => {
    const { chain, guiltHeight } = movedChain(1);
    prove(chain, guiltHeight);
    expect(askFor(chain, STAKE)).toMatchObject({ code: 18, codespace: "sdk" });
    expect(shown(chain)).toBe(STAKE);
  });
});
