/** Calls of the chain's own contracts that are written otherwise than operations of stake are. */
import fs from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { type FunctionFragment, Interface, type ParamType } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../../chain/address.js";
import { STAKING_CONTRACTS } from "../../../../chain/staking/calls.js";
import { offlineServer } from "../servers.js";
import { stepsOn } from "./client.js";
import { FACTS, pair, RECIPIENT, WALLET } from "./steps.js";

const server = offlineServer();
const { post, good, codeOf } = stepsOn(() => server);

const CONTRACTS = new Interface([
  "function delegate(address sender, string validator, uint256 amount)",
  "function undelegate(address sender, string validator, uint256 amount)",
  "function redelegate(address sender, string source, string destination, uint256 amount)",
  "function cancelUnbondingDelegation(address, string, uint256 amount, uint256 creationHeight)",
  "function vote(address sender, uint64 proposalId, uint8 option, string metadata)",
  "function withdrawValidatorCommission(string validator)",
  "function allowance(address owner, address spender)",
]);
const VALIDATOR = toBech32(parseAddress(RECIPIENT.toLowerCase()), VALIDATOR_PREFIX);
const { staking, distribution, gov } = STAKING_CONTRACTS;

const canonical = CONTRACTS.encodeFunctionData("delegate", [WALLET.address, VALIDATOR, 5n]);
const upperCase = CONTRACTS.encodeFunctionData("delegate", [
  WALLET.address,
  VALIDATOR.toUpperCase(),
  5n,
]);
const ofSomebodyElse = CONTRACTS.encodeFunctionData("delegate", [RECIPIENT, VALIDATOR, 5n]);
const commission = CONTRACTS.encodeFunctionData("withdrawValidatorCommission", [VALIDATOR]);
const withReason = CONTRACTS.encodeFunctionData("vote", [WALLET.address, 1n, 1, "because"]);

describe("a call of stake, rewards or a vote in another spelling", () => {
  it.each([
    ["a byte behind it", staking, `${canonical}00`, 0n, "DELEGATE"],
    ["a byte too few", staking, canonical.slice(0, -2), 0n, "DELEGATE"],
    ["the selector alone", staking, canonical.slice(0, 10), 0n, "DELEGATE"],
    ["its validator in upper case", staking, upperCase, 0n, "DELEGATE"],
    ["the account of somebody else", staking, ofSomebodyElse, 0n, "DELEGATE"],
    ["coins with it", staking, canonical, 1n, "DELEGATE"],
    ["another operator's commission", distribution, commission, 0n, "CLAIM"],
    ["a vote with words", gov, withReason, 0n, "VOTE"],
  ])("is neither built nor read as a CALL: %s", async (_name, to, data, value, type) => {
    const operations = pair(WALLET.address, to, value);
    const expected = `${type} operations for this call`;
    const { body } = await post("preprocess", { operations, metadata: { data } });
    expect(body).toMatchObject({ code: 304, details: { field: "metadata.data", expected } });
    const metadata = { ...FACTS, data };
    expect(await codeOf("payloads", { operations, metadata })).toBe(304);
    const { unsigned_transaction } = await good("payloads", { operations, metadata: FACTS });
    const unsigned = JSON.stringify({ ...JSON.parse(unsigned_transaction), data });
    expect(await codeOf("parse", { signed: false, transaction: unsigned })).toBe(305);
    const fields = { type: 0, chainId: 6940, gasLimit: 60_000n, gasPrice: 2n };
    const transaction = await WALLET.signTransaction({ ...fields, to, data, value });
    const parsed = await post("parse", { signed: true, transaction });
    expect(parsed.body).toMatchObject({ code: 306, details: { field: "transaction", expected } });
    // It is a transaction all the same, and can be found by its hash.
    expect(await good("hash", { signed_transaction: transaction })).toBeDefined();
  });

  it("is a CALL where it is another function, or another contract", async () => {
    for (const [to, data] of [
      [staking, CONTRACTS.encodeFunctionData("allowance", [WALLET.address, RECIPIENT])],
      [staking, commission],
      [RECIPIENT, `${canonical}00`],
    ] as const) {
      const operations = pair(WALLET.address, to, 0n);
      const { options } = await good("preprocess", { operations, metadata: { data } });
      expect(options).toMatchObject({ value: "0", data });
    }
  });
});

/** Names of functions that operations are built for, by contract. */
const WITH_OPERATIONS: Readonly<Record<string, readonly string[]>> = {
  IStaking: ["delegate", "undelegate", "redelegate", "cancelUnbondingDelegation"],
  IDistribution: ["withdrawDelegatorRewards", "withdrawValidatorCommission"],
  IGov: ["vote"],
};

/** Some value of a type. */
function someOf(type: ParamType): unknown {
  if (type.baseType === "array") return [];
  if (type.baseType === "tuple") return (type.components ?? []).map(someOf);
  if (type.type === "address") return WALLET.address;
  if (type.type === "string" || type.type === "bytes") return type.type === "bytes" ? "0x" : "";
  return 1n;
}

/** Calls of all functions of the three published interfaces that `isWanted`. */
function callsOf(isWanted: (fragment: FunctionFragment, contract: string) => boolean) {
  return Object.keys(WITH_OPERATIONS).flatMap((contract) => {
    const file = `contracts/artifacts/${contract}.json`;
    const { abi, address } = JSON.parse(fs.readFileSync(file, "utf8"));
    const published = new Interface(abi);
    const all = published.fragments.filter((one): one is FunctionFragment => "selector" in one);
    return all
      .filter((one) => isWanted(one, contract))
      .map((one) => {
        const data = published.encodeFunctionData(one, one.inputs.map(someOf));
        return [one.name, String(address), data] as const;
      });
  });
}

describe("a call of stake, rewards or votes that no operations tell", () => {
  const untold = callsOf(
    (one, contract) => !one.constant && WITH_OPERATIONS[contract]?.includes(one.name) === false,
  );

  it("is one of any other function that changes something", () => {
    expect(untold.map(([name]) => name).toSorted()).toEqual([
      "cancelProposal",
      "claimRewards",
      "createValidator",
      "deposit",
      "depositValidatorRewardsPool",
      "editValidator",
      "fundCommunityPool",
      "setWithdrawAddress",
      "submitProposal",
      "voteWeighted",
    ]);
  });

  it.each(untold)("is neither built nor read: %s", async (name, to, data) => {
    const expected = `no call of ${name}: no operations say what it does`;
    for (const [spelled, value] of [
      [data, 0n],
      [`${data}00`, 0n],
      [data.slice(0, 10), 0n],
      [data, 1n],
    ] as const) {
      const operations = pair(WALLET.address, to, value);
      const { body } = await post("preprocess", { operations, metadata: { data: spelled } });
      expect(body).toMatchObject({ code: 304, details: { field: "metadata.data", expected } });
      const metadata = { ...FACTS, data: spelled };
      expect(await codeOf("payloads", { operations, metadata })).toBe(304);
      const { unsigned_transaction } = await good("payloads", { operations, metadata: FACTS });
      const text = JSON.stringify({ ...JSON.parse(unsigned_transaction), data: spelled });
      expect(await codeOf("parse", { signed: false, transaction: text })).toBe(305);
      expect(await codeOf("combine", { unsigned_transaction: text, signatures: [] })).toBe(305);
      const fields = { type: 0, chainId: 6940, gasLimit: 60_000n, gasPrice: 2n };
      const transaction = await WALLET.signTransaction({ ...fields, to, data: spelled, value });
      const parsed = await post("parse", { signed: true, transaction });
      expect(parsed.body).toMatchObject({ code: 306, details: { field: "transaction", expected } });
      expect(await good("hash", { signed_transaction: transaction })).toBeDefined();
    }
  });

  it("is a CALL at another contract", async () => {
    for (const [name, to, data] of untold) {
      const other = to === staking ? gov : staking;
      const operations = pair(WALLET.address, other, 0n);
      const { options } = await good("preprocess", { operations, metadata: { data } });
      expect([name, options]).toEqual([name, expect.objectContaining({ data })]);
    }
  });

  it.each(callsOf((one) => one.constant))("is none of the reads: %s", async (_name, to, data) => {
    const operations = pair(WALLET.address, to, 0n);
    const { options } = await good("preprocess", { operations, metadata: { data } });
    expect(options).toMatchObject({ value: "0", data });
    await good("payloads", { operations, metadata: { ...FACTS, gas_limit: "90000", data } });
  });
});

describe("a call that is spelled as operations are, and that none ask for", () => {
  const own = (name: string, ...values: readonly (string | bigint)[]) =>
    CONTRACTS.encodeFunctionData(name, [WALLET.address, ...values]);
  const cancelAt = (height: bigint) => own("cancelUnbondingDelegation", VALIDATOR, 5n, height);

  const sign = (data: string) =>
    WALLET.signTransaction({
      type: 0,
      chainId: 6940,
      nonce: 7,
      gasLimit: 60_000n,
      gasPrice: 2n,
      to: staking,
      data,
    });

  /** The text of payloads with this calldata. */
  async function unsignedOf(data: string): Promise<string> {
    const operations = pair(WALLET.address, staking, 0n);
    const { unsigned_transaction } = await good("payloads", { operations, metadata: FACTS });
    return JSON.stringify({ ...JSON.parse(unsigned_transaction), data });
  }

  it.each([
    ["nothing delegated", own("delegate", VALIDATOR, 0n), /above zero/],
    ["nothing undelegated", own("undelegate", VALIDATOR, 0n), /above zero/],
    ["stake moved to where it is", own("redelegate", VALIDATOR, VALIDATOR, 5n), /two different/],
    ["a height beyond what JSON counts", cancelAt(2n ** 53n), /creation_height/],
  ])("is refused, unsigned and signed: %s", async (_name, data, expected) => {
    const details = { expected: expect.stringMatching(expected) };
    const text = await unsignedOf(data);
    const unsigned = await post("parse", { signed: false, transaction: text });
    expect(unsigned.body).toMatchObject({ code: 305, details });
    expect(await codeOf("combine", { unsigned_transaction: text, signatures: [] })).toBe(305);
    const transaction = await sign(data);
    const signed = await post("parse", { signed: true, transaction });
    expect(signed.body).toMatchObject({ code: 306, details });
    expect(await good("hash", { signed_transaction: transaction })).toBeDefined();
  });

  it("is read where operations ask for it", async () => {
    for (const data of [canonical, cancelAt(2n ** 53n - 1n)]) {
      const transaction = await unsignedOf(data);
      const { operations } = await good("parse", { signed: false, transaction });
      expect(operations).toHaveLength(2);
      const signed = await good("parse", { signed: true, transaction: await sign(data) });
      expect(signed.operations).toEqual(operations);
    }
  });
});
