/**
 * Codes of failed messages are in the hash of a block's results: a chain that began by the first
 * rules keeps its codes until an upgrade, and newer ones have the SDK's.
 */
import { describe, expect, it } from "@jest/globals";
import { toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import type { ProtoMessage } from "../../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../../chain/cosmos/message-schemas.js";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import { executeCosmosTransaction } from "../../../node/execution/cosmos/cosmos-executor.js";
import { encodeGenesis, type Genesis, parseGenesis } from "../../../node/settings/genesis.js";
import { NEWEST_APP_VERSION } from "../../../node/settings/app-version.js";
import { setModuleParams } from "../../../node/modules/params/param-changes.js";
import { handlerOf } from "../../../node/modules/message-router.js";
import { delegate, slashValidator, validatorOf } from "../../../node/modules/staking/delegating.js";
import { Validators } from "../../../node/modules/staking/validator-record.js";
import { appVersion, completePlan } from "../../../node/modules/upgrade/plan.js";
import { assertUpgraded, UPGRADE_HANDLERS } from "../../../node/modules/upgrade/upgrades.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";
import { SMALL_ORDER } from "../../helpers/keys/small-order.js";

const ALICE = accountAt(20);
const account = toBech32(ALICE);
const operatorOf = (index: number) => toBech32(accountAt(index), VALIDATOR_PREFIX);
const nobody = operatorOf(77);
const one = { denom: "atoken", amount: "1" };
const other = { denom: "nothing", amount: "1" };
const nothing = { denom: "atoken", amount: "0" };

const stake = (name: string, amount: unknown, more: ProtoMessage = {}) => ({
  type: `cosmos.staking.v1beta1.${name}`,
  message: {
    delegator_address: account,
    validator_address: operatorOf(0),
    amount,
    ...more,
  } as ProtoMessage,
});
const moved = (amount: unknown, to: string) =>
  stake("MsgBeginRedelegate", amount, {
    validator_src_address: operatorOf(0),
    validator_dst_address: to,
  });
const reward = (name: string, validator: string) => ({
  type: `cosmos.distribution.v1beta1.${name}`,
  message: { delegator_address: account, validator_address: validator },
});

const sent = (inputs: readonly object[], outputs: readonly object[]) => ({
  type: "cosmos.bank.v1beta1.MsgMultiSend",
  message: { inputs, outputs } as unknown as ProtoMessage,
});
const ofAlice = { address: account, coins: [one] };

const tenth = "100000000000000000";
const registered = (more: object, rates: object = {}) => ({
  type: "cosmos.staking.v1beta1.MsgCreateValidator",
  message: {
    description: { moniker: "x" },
    commission: { rate: tenth, max_rate: tenth, max_change_rate: tenth, ...rates },
    min_self_delegation: "1",
    validator_address: toBech32(ALICE, VALIDATOR_PREFIX),
    pubkey: {
      typeUrl: "/cosmos.crypto.ed25519.PubKey",
      message: { key: new Uint8Array(32).fill(9) },
    },
    value: one,
    ...more,
  } as unknown as ProtoMessage,
});
const edited = (more: object) => ({
  type: "cosmos.staking.v1beta1.MsgEditValidator",
  message: {
    description: { moniker: "x" },
    validator_address: operatorOf(0),
    ...more,
  } as unknown as ProtoMessage,
});

/** Failing messages: code and codespace by the rules of version 1, and of the SDK. */
const FAILURES = [
  ["a delegation of another coin", stake("MsgDelegate", other), [5, "sdk"], [18, "sdk"]],
  ["a delegation of nothing", stake("MsgDelegate", nothing), [10, "sdk"], [18, "sdk"]],
  ["an undelegation of nothing", stake("MsgUndelegate", nothing), [10, "sdk"], [18, "sdk"]],
  ["an undelegation of another coin", stake("MsgUndelegate", other), [5, "sdk"], [19, "staking"]],
  ["a redelegation to the same", moved(one, operatorOf(0)), [29, "staking"], [19, "staking"]],
  ["a redelegation to nobody", moved(one, nobody), [3, "staking"], [19, "staking"]],
  [
    "cancelling what does not leave",
    stake("MsgCancelUnbondingDelegation", one, { creation_height: 5n }),
    [6, "sdk"],
    [38, "sdk"],
  ],
  [
    "a reward without delegation",
    reward("MsgWithdrawDelegatorReward", operatorOf(0)),
    [13, "distribution"],
    [19, "staking"],
  ],
  [
    "a commission of nobody",
    reward("MsgWithdrawValidatorCommission", nobody),
    [3, "staking"],
    [7, "distribution"],
  ],
  [
    "a vote on nothing",
    {
      type: "cosmos.gov.v1.MsgVote",
      message: { proposal_id: 999n, voter: account, option: 1n, metadata: "" },
    },
    [2, "gov"],
    [3, "gov"],
  ],
  // From here on recorded on a node of cosmos/evm (SDK 0.54.3), or x/bank's and x/staking's errors.
  ["coins from nobody", sent([], [ofAlice]), [18, "sdk"], [2, "bank"]],
  ["coins to nobody", sent([ofAlice], []), [18, "sdk"], [3, "bank"]],
  ["more coins than are given", sent([ofAlice], [ofAlice, ofAlice]), [18, "sdk"], [4, "bank"]],
  ["coins from two", sent([ofAlice, ofAlice], [ofAlice]), [18, "sdk"], [9, "bank"]],
  [
    "a validator with a commission below zero",
    registered({}, { rate: "-1" }),
    [10, "staking"],
    [9, "staking"],
  ],
  [
    "a validator whose commission may change by less than zero",
    registered({}, { max_change_rate: "-1" }),
    [10, "staking"],
    [13, "staking"],
  ],
  [
    "a validator that need not have stake",
    registered({ min_self_delegation: "0" }),
    [16, "staking"],
    [18, "sdk"],
  ],
  ["a validator without a key", registered({ pubkey: undefined }), [6, "staking"], [39, "staking"]],
  [
    "a commission above one",
    edited({ commission_rate: "1900000000000000000" }),
    [12, "staking"],
    [18, "sdk"],
  ],
  ["a commission below zero", edited({ commission_rate: "-1" }), [10, "staking"], [18, "sdk"]],
  // Read in x/staking (0.53.4): `types/msg.go`, `keeper/msg_server.go`.
  ["a commission below the least", edited({ commission_rate: "1" }), [12, "staking"], [18, "sdk"]],
  [
    "a commission below the least, of nobody",
    edited({ commission_rate: "1", validator_address: nobody }),
    [3, "staking"],
    [18, "sdk"],
  ],
  [
    "nothing in the place of a description, of nobody",
    edited({ description: {}, validator_address: nobody }),
    [3, "staking"],
    [18, "sdk"],
  ],
  ["nothing in the place of a description", edited({ description: {} }), [18, "sdk"], [18, "sdk"]],
  [
    "a validator without a description",
    registered({ description: undefined }),
    [18, "sdk"],
    [18, "sdk"],
  ],
  [
    "a validator without a commission",
    registered({ commission: undefined }),
    [40, "staking"],
    [18, "sdk"],
  ],
  [
    "a validator with a commission below the least",
    registered({}, { rate: "1" }),
    [40, "staking"],
    [40, "staking"],
  ],
  [
    "one that exists, with a commission below the least",
    registered({ validator_address: operatorOf(0) }, { rate: "1" }),
    [4, "staking"],
    [40, "staking"],
  ],
  [
    "one that exists, with a commission above its most",
    registered({ validator_address: operatorOf(0) }, { max_rate: "1" }),
    [4, "staking"],
    [11, "staking"],
  ],
  [
    "one that exists, with less stake than it needs",
    registered({ validator_address: operatorOf(0), min_self_delegation: "2" }),
    [4, "staking"],
    [16, "staking"],
  ],
  // In the order of `MsgCreateValidator.Validate` and `CommissionRates.Validate`: coins, words, rates, stake.
  [
    "a validator without a description, with a commission below zero",
    registered({ description: undefined }, { rate: "-1" }),
    [10, "staking"],
    [18, "sdk"],
  ],
  [
    "a validator with nothing of its own, with a commission below zero",
    registered({ value: nothing }, { max_rate: "-1" }),
    [10, "staking"],
    [18, "sdk"],
  ],
  [
    "a validator whose highest commission is above one, with one below zero",
    registered({}, { rate: "-1", max_rate: "1900000000000000000" }),
    [10, "staking"],
    [10, "staking"],
  ],
  [
    "a validator with a commission above its most, that may change by less than zero",
    registered({}, { rate: "900000000000000000", max_change_rate: "-1" }),
    [10, "staking"],
    [11, "staking"],
  ],
  [
    "a validator that would need less than no stake, with a highest commission above one",
    registered({ min_self_delegation: "-1" }, { max_rate: "1900000000000000000" }),
    [18, "sdk"],
    [10, "staking"],
  ],
  ["a least stake of nothing", edited({ min_self_delegation: "0" }), [17, "staking"], [18, "sdk"]],
] as const;

function genesisOf(version: number | undefined): Genesis {
  const { appVersion: _newest, ...first } = stakedGenesis([100, 50], {
    "staking.min_commission_rate": "0.05",
  });
  return version === undefined ? first : { ...first, appVersion: version };
}

function refusalOn(
  chain: ModuleChain,
  { type, message }: { readonly type: string; readonly message: ProtoMessage },
) {
  const typeUrl = `/${type}`;
  const schema = schemaOf(typeUrl);
  if (schema === undefined) throw new Error(`no schema of ${type}`);
  const failure = chain.run((context) => {
    handlerOf({ typeUrl, schema, message })?.run(message, {
      ...context,
      signer: ALICE,
      isBlocked: () => false,
      useGas: () => undefined,
    });
  });
  return failure && [failure.fault.code, failure.fault.codespace];
}

describe("failures of messages", () => {
  it.each(FAILURES)("%s has the code of the chain's rules", (_name, message, first, now) => {
    expect(refusalOn(new ModuleChain(genesisOf(undefined)), message)).toEqual(first);
    expect(refusalOn(new ModuleChain(genesisOf(1)), message)).toEqual(first);
    expect(refusalOn(new ModuleChain(genesisOf(2)), message)).toEqual(now);
  });
});

describe("a validator without a name, which has other words", () => {
  const nameless = { moniker: "", website: "https://validator.example" };

  it.each([
    [1, [18, "sdk"], "validator 0"],
    [2, undefined, ""],
  ] as const)("is one from version 2 of the rules on: version %i", (version, refusal, name) => {
    const chain = new ModuleChain(genesisOf(version));
    chain.mint(ALICE, 2n * 10n ** 18n);
    expect(refusalOn(chain, registered({ description: nameless }))).toEqual(refusal);
    expect(refusalOn(chain, edited({ description: nameless }))).toEqual(refusal);
    expect(new Validators(chain.state).of(accountAt(0)).description.moniker).toBe(name);
  });

  it("has a website that is no longer than others'", () => {
    const long = { ...nameless, website: "x".repeat(141) };
    for (const message of [registered({ description: long }), edited({ description: long })]) {
      expect(refusalOn(new ModuleChain(genesisOf(2)), message)).toEqual([18, "sdk"]);
    }
  });
});

// x/staking 0.53.4, `keeper/msg_server.go`: above the present one, and not above `validator.Tokens`.
describe("the least stake that a validator changes to", () => {
  it.each([
    ["its present one", 0n, [17, "staking"], [17, "staking"]],
    ["one more than the operator's own stake", 1n, [16, "staking"], undefined],
    ["the stake of all", 7n, [16, "staking"], undefined],
    ["one more than the stake of all", 8n, [16, "staking"], [16, "staking"]],
  ] as const)("is refused by the chain's rules: %s", (_name, aboveOwn, first, now) => {
    for (const [version, refusal] of [
      [1, first],
      [2, now],
    ] as const) {
      const chain = new ModuleChain(genesisOf(version));
      const own = new Validators(chain.state).of(accountAt(0)).tokens;
      chain.mint(ALICE, 7n);
      chain.run((context) => delegate(context, ALICE, validatorOf(context, accountAt(0)), 7n));
      expect(new Validators(chain.state).of(accountAt(0)).tokens).toBe(own + 7n);
      const least = aboveOwn === 0n ? 1n : own + aboveOwn;
      const outcome = refusalOn(chain, edited({ min_self_delegation: least.toString() }));
      expect([version, outcome]).toEqual([version, refusal]);
      const after = new Validators(chain.state).of(accountAt(0)).minSelfDelegation;
      expect([version, after]).toEqual([version, refusal === undefined ? least : 1n]);
    }
  });
});

describe("a redelegation of what is worth less than an atoken", () => {
  it.each([
    [1, [22, "staking"]],
    [2, [30, "staking"]],
  ] as const)("has the code of the chain's rules: version %i", (version, code) => {
    const chain = new ModuleChain(genesisOf(version));
    chain.mint(ALICE, 1n);
    chain.run((context) => {
      const validator = validatorOf(context, accountAt(0));
      delegate(context, ALICE, validator, 1n);
      const fault = { infractionHeight: 0, stakeAtoken: validator.tokens };
      slashValidator(context, validator, fault, 10n ** 17n);
    });
    expect(refusalOn(chain, moved(one, operatorOf(1)))).toEqual(code);
  });
});

describe("a validator's key for which everybody can sign", () => {
  it.each(SMALL_ORDER.map((key) => [Buffer.from(key).toString("hex"), key] as const))(
    "registers nobody from version 2 of the rules on: %s",
    (_hex, key) => {
      const pubkey = { typeUrl: "/cosmos.crypto.ed25519.PubKey", message: { key } };
      const outcomeOn = (version: number) => {
        const chain = new ModuleChain(genesisOf(version));
        chain.mint(ALICE, 2n * 10n ** 18n);
        return refusalOn(chain, registered({ pubkey }));
      };
      expect(outcomeOn(1)).toBeUndefined();
      expect(outcomeOn(2)).toEqual([6, "staking"]);
    },
  );
});

describe("the version of the rules", () => {
  it("is the newest on new chains, and in their genesis file", () => {
    const genesis = stakedGenesis([100]);
    expect(genesis.appVersion).toBe(NEWEST_APP_VERSION);
    expect(parseGenesis(encodeGenesis(genesis))).toEqual(genesis);
    expect(appVersion(new ModuleChain(genesis).state)).toBe(NEWEST_APP_VERSION);
  });

  it("is the first where the genesis names none, whose file stays as it was", () => {
    const genesis = genesisOf(undefined);
    expect(encodeGenesis(genesis)).not.toContain("appVersion");
    expect(parseGenesis(encodeGenesis(genesis))).toEqual(genesis);
    expect(appVersion(new ModuleChain(genesis).state)).toBe(1);
  });

  it("never falls: a plan of an older release, carried out on newer rules, leaves them", () => {
    const { state } = new ModuleChain(genesisOf(NEWEST_APP_VERSION));
    const plan = { name: "older", height: 5, info: "" };
    expect(completePlan(state, plan, NEWEST_APP_VERSION - 1)).toBe(NEWEST_APP_VERSION);
    expect(appVersion(state)).toBe(NEWEST_APP_VERSION);
    expect(completePlan(state, { ...plan, name: "newer" }, NEWEST_APP_VERSION + 1)).toBe(
      NEWEST_APP_VERSION + 1,
    );
    expect(appVersion(state)).toBe(NEWEST_APP_VERSION + 1);
  });

  it("is reached by an upgrade of this release, and no program goes by one that it does not know", () => {
    expect(Math.max(...UPGRADE_HANDLERS.map((handler) => handler.appVersion))).toBe(
      NEWEST_APP_VERSION,
    );
    const { state } = new ModuleChain(genesisOf(NEWEST_APP_VERSION + 1));
    const upgrades = { handlers: UPGRADE_HANDLERS, skipHeights: new Set<number>() };
    expect(() => assertUpgraded(state, 1, upgrades)).toThrow(
      expect.objectContaining({ code: "VERSION_UNKNOWN" }),
    );
  });
});

describe("what no message can mend", () => {
  function outcomeOn(version: 1 | 2, { seconds = 0, memo = "" }) {
    const chain = new ModuleChain(genesisOf(version));
    chain.mint(ALICE, 100n);
    const typeUrl = "/cosmos.bank.v1beta1.MsgSend";
    const message = { from_address: account, to_address: account, amount: [one] };
    const tx = {
      raw: new Uint8Array(300),
      messages: [{ typeUrl, schema: schemaOf(typeUrl), message }],
      gasLimit: 1_000_000n,
      feeAtoken: 0n,
      fee: [],
      nonce: 0n,
      signature: new Uint8Array(64),
      timeoutHeight: 0n,
      memo,
      ...(seconds === 0
        ? {}
        : { timeoutTimestamp: new ProtoWriter().integer(1, seconds).finish() }),
    } as never;
    const { params } = chain.genesis;
    const { state, timeMs } = chain;
    const place = { ...params, state, timeMs, height: 1, isSimulated: true };
    const outcome = executeCosmosTransaction({ tx, from: ALICE }, place);
    return outcome.included ? outcome.result.code : outcome.fault;
  }

  it("keeps what is void after a time from blocks of a later one, from version 2 on", () => {
    const passed = { seconds: 1_700_000_000 };
    expect(outcomeOn(1, passed)).toBe(0);
    expect(outcomeOn(2, passed)).toMatchObject({ code: 42, codespace: "sdk" });
    expect(outcomeOn(2, { seconds: 1_800_000_000 })).toBe(0);
  });

  it("counts a memo in bytes from version 2 on, as len() does in x/auth's ante handler", () => {
    const memo = "é".repeat(128);
    expect(outcomeOn(2, { memo })).toBe(0);
    expect(outcomeOn(1, { memo: `${memo}x` })).toBe(0);
    expect(outcomeOn(2, { memo: `${memo}x` })).toEqual({
      code: 12,
      codespace: "sdk",
      log: "maximum number of characters is 256 but received 257 characters: memo too large",
    });
  });
});

describe("parameters of governance", () => {
  it.each(["min_deposit", "expedited_min_deposit", "threshold", "veto_threshold"] as const)(
    "are never nothing from version 2 on: %s",
    (name) => {
      const change = (version: 1 | 2, value: bigint) =>
        new ModuleChain(genesisOf(version)).run((context) => {
          setModuleParams(context, "gov", { [name]: value });
        });
      expect(change(2, 0n)?.fault).toMatchObject({
        code: 18,
        log: `gov.${name} must be above zero: invalid request`,
      });
      expect(change(2, 1n)).toBeUndefined();
      expect(change(1, 0n)).toBeUndefined();
    },
  );
});
