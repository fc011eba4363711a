/** What the modules do at a block's end is bounded, however much has been delegated. */
import { describe, expect, it } from "@jest/globals";
import { toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { MAX_TOTAL_POWER } from "../../../chain/consensus/validator-set.js";
import { schemaOf } from "../../../chain/cosmos/message-schemas.js";
import { present } from "../../../chain/errors.js";
import { executeCosmosTransaction } from "../../../node/execution/cosmos/cosmos-executor.js";
import { WORD_READ_NS } from "../../../node/execution/native/native-gas.js";
import type { ModuleContext } from "../../../node/modules/module-context.js";
import { Delegations } from "../../../node/modules/staking/delegation-record.js";
import { delegate, undelegate, validatorOf } from "../../../node/modules/staking/delegating.js";
import { Validators } from "../../../node/modules/staking/validator-record.js";
import { type BlockFacts, endModules } from "../../../node/modules/modules.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

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

  it("reads a slash once, however many entries end that were begun before it", () => {
    const SLASHES = 200;
    const few = wordsOfEnd(1, SLASHES) - wordsOfEnd(1, 0);
    const many = wordsOfEnd(50, SLASHES) - wordsOfEnd(50, 0);
    expect(few).toBeGreaterThanOrEqual(SLASHES);
    expect(many).toBe(few);
  });
});

/** Words of modules that the end of a block asks for in which so many unbondings end. */
function wordsOfEnd(unbondings: number, slashes: number): number {
  const chain = chainWith(unbondings);
  for (let index = 0; index < unbondings; index++) {
    chain.run((context) => {
      undelegate(context, accountAt(1_000 + index), validatorOf(context, accountAt(0)), TOKEN);
    });
  }
  const { height, timeMs } = chain;
  const validator = new Validators(chain.state).of(accountAt(0));
  for (let index = 0; index < slashes; index++) {
    // Of faults of later: the entries have to bear none of it.
    validator.addSlash({ height, timeMs, infractionHeight: height + 1, fraction: TOKEN / 100n });
  }
  let words = 0;
  chain.state.wordListener = { read: () => void words++, write: () => undefined };
  chain.endBlock({ seconds: 10 });
  chain.state.wordListener = undefined;
  return words;
}

describe("stake", () => {
  it("is never more than consensus can count as votes", () => {
    const chain = chainWith(0);
    const rich = accountAt(4_000);
    chain.mint(rich, 2n ** 61n * TOKEN);
    const stake = (amountAtoken: bigint) =>
      chain.run((context) => {
        delegate(context, rich, validatorOf(context, accountAt(0)), amountAtoken);
      })?.message;
    const refusal = "there would be more stake than votes can be counted for";
    expect(stake(2n ** 60n * TOKEN)).toContain(refusal);
    expect(stake(2n ** 59n * TOKEN)).toBeUndefined();
    expect(stake(2n ** 59n * TOKEN)).toContain(refusal);
    const [power = 0n] = chain.endBlock().map((update) => update.power);
    expect(power).toBeGreaterThanOrEqual(2n ** 59n);
    expect(power).toBeLessThanOrEqual(MAX_TOTAL_POWER);
  });
});

/** A delegator with so many unbondings, who asks for one more; what a block takes it for. */
function undelegating(entries: number, limits: { most?: number; left?: number } = {}) {
  const chain = chainWith(0);
  const person = accountAt(5_000);
  chain.mint(person, 1_000n * TOKEN);
  const act = (work: (context: ModuleContext) => void) => {
    expect(chain.run(work)?.message).toBeUndefined();
  };
  for (let index = 0; index < VALIDATORS; index++) {
    act((context) => delegate(context, person, validatorOf(context, accountAt(index)), TOKEN));
  }
  for (let made = 0; made < entries; made++) {
    const operator = accountAt(made % (VALIDATORS - 1));
    act((context) => undelegate(context, person, validatorOf(context, operator), 1n));
  }
  const typeUrl = "/cosmos.staking.v1beta1.MsgUndelegate";
  const schema = present(schemaOf(typeUrl), "a schema");
  const message = {
    delegator_address: toBech32(person),
    validator_address: toBech32(accountAt(VALIDATORS - 1), VALIDATOR_PREFIX),
    amount: { denom: "atoken", amount: "1" },
  };
  const tx = {
    raw: new Uint8Array(300),
    messages: [{ typeUrl, schema, message }],
    gasLimit: 1_000_000n,
    feeAtoken: 0n,
    fee: [],
    nonce: 0n,
    signature: new Uint8Array(64),
    memo: "",
    timeoutHeight: 0n,
  } as never;
  const outcome = executeCosmosTransaction(
    { tx, from: person },
    {
      ...chain.genesis.params,
      ...(limits.most === undefined ? {} : { maxTransactionComputeNs: limits.most }),
      ...(limits.left === undefined ? {} : { computeLeftNs: limits.left }),
      state: chain.state,
      height: chain.height + 1,
      timeMs: chain.timeMs,
      isSimulated: true,
    },
  );
  if (!outcome.included) throw new Error(outcome.fault.log);
  const made = new Delegations(chain.state).entriesOf(person).length - entries;
  return { code: outcome.result.code, computeNs: outcome.computeNs, made };
}

describe("a message of a Cosmos transaction", () => {
  it("weighs what it reads and writes of the modules, not only its gas", () => {
    const [few, many] = [undelegating(0), undelegating(95)];
    expect([few.code, many.code, few.made, many.made]).toEqual([0, 0, 1, 1]);
    // Each entry is ten words, and looked at whole at least once.
    expect(many.computeNs - few.computeNs).toBeGreaterThan(95 * 10 * WORD_READ_NS);
  });

  it("ends at a transaction's share, and does not fit where less is left of the block", () => {
    const most = 1_000_000;
    expect(undelegating(95, { most })).toMatchObject({ code: 11, made: 0 });
    const { code, computeNs, made } = undelegating(95, { left: most });
    expect([code, made, computeNs > most]).toEqual([11, 0, true]);
  });
});
