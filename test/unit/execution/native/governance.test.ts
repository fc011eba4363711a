/** The governance contract: proposals by JSON, deposits, votes, and what undoes them. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ZeroAddress } from "ethers";
import { type Address, toBech32, toChecksumAddress } from "../../../../chain/address.js";
import { decodeAny, encodeAny, protoJsonOfAny } from "../../../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../../../chain/cosmos/message-schemas.js";
import { anyOfProtoJson } from "../../../../chain/cosmos/proto-json.js";
import { ChainError } from "../../../../chain/errors.js";
import { Proposals } from "../../../../node/modules/gov/proposal-record.js";
import { addressWord, mapSlot, MODULE_ACCOUNTS } from "../../../../node/modules/system-storage.js";
import {
  accountOf,
  decodedLogs,
  NativeChain,
  operatorText,
  published,
  request,
  type Sent,
} from "../../../helpers/chains/native-chain.js";

const TOKEN = 10n ** 18n;
const gov = published("IGov");
const AUTHORITY = toBech32(MODULE_ACCOUNTS.gov);
const coins = (amount: bigint) => [["atoken", amount]];
const spend = {
  "@type": "/cosmos.distribution.v1beta1.MsgCommunityPoolSpend",
  authority: AUTHORITY,
  recipient: toBech32(accountOf(4)),
  amount: [{ denom: "atoken", amount: "7" }],
};
const json = (fields: object) => Buffer.from(JSON.stringify(fields), "utf8");
const proposal = json({ title: "Spend", summary: "On us", metadata: "m", messages: [spend] });

let chain: NativeChain;

beforeAll(async () => {
  chain = await NativeChain.open({
    "gov.min_deposit": (10n * TOKEN).toString(),
    "gov.expedited_min_deposit": (20n * TOKEN).toString(),
    "gov.voting_period": "60s",
  });
});

afterAll(() => chain.close());

async function send(name: string, args: unknown[], sent: Sent = {}) {
  const data = gov.abi.encodeFunctionData(name, args);
  const result = await chain.send({ to: gov.address, data, ...sent });
  expect(result.library).toEqual(result.own);
  return result;
}

const record = (id: bigint) => new Proposals(chain.state()).of(id);
const account = (index: number): Address => accountOf(index);

describe("the governance contract", () => {
  it("takes a proposal, with its deposit, log and events", async () => {
    const { receipt, changes, events } = await send("submitProposal", [
      account(2),
      proposal,
      coins(4n * TOKEN),
    ]);
    expect(receipt.status).toBe(1);
    expect(changes.at(-1)).toMatchObject({
      reason: "GOV_DEPOSIT",
      from: account(2),
      to: MODULE_ACCOUNTS.gov,
      amountAtoken: 4n * TOKEN,
      tracePath: "",
    });
    expect(decodedLogs(receipt.logs, [gov])).toEqual([
      {
        name: "SubmitProposal",
        values: { proposer: toChecksumAddress(account(2)), proposalId: 1n },
      },
    ]);
    expect(events.find(({ type }) => type === "submit_proposal")?.values).toMatchObject({
      proposal_id: "1",
      proposal_type: "CommunityPoolSpend",
    });
    const modules = events.map(({ values }) => values["module"]).filter((one) => one !== undefined);
    expect(modules).toEqual(expect.arrayContaining(["gov", "governance"]));
    // Blocks of chains that exist have it: the second word costs nothing.
    expect(receipt.gasUsed).toBe(698_769n);
    expect(record(1n)).toMatchObject({ title: "Spend", summary: "On us", metadata: "m" });
    expect(record(1n).messages.map(protoJsonOfAny)).toEqual([spend]);
  });

  it("opens the voting with enough deposits, and counts votes of either kind", async () => {
    const early = await send("vote", [account(0), 1, 1, ""], { from: 0 });
    expect(early.receipt.status).toBe(0);
    const paid = await send("deposit", [account(3), 1, coins(6n * TOKEN)], { from: 3 });
    expect(decodedLogs(paid.receipt.logs, [gov]).map(({ name }) => name)).toEqual(["Deposit"]);
    const voted = await send("vote", [account(0), 1, 1, "yes!"], { from: 0 });
    expect(voted.events.find(({ type }) => type === "proposal_vote")?.values).toMatchObject({
      voter: toBech32(account(0)),
      proposal_id: "1",
      option: '[{"option":1,"weight":"1.000000000000000000"}]',
    });
    const parts = [
      [1, "0.75"],
      [3, "0.25"],
    ];
    const split = await send("voteWeighted", [account(1), 1, parts, ""], { from: 1 });
    expect(decodedLogs(split.receipt.logs, [gov])[0]).toMatchObject({ name: "VoteWeighted" });
    expect(record(1n).vote(account(1))?.weights).toEqual({
      yes: (3n * TOKEN) / 4n,
      abstain: 0n,
      no: TOKEN / 4n,
      veto: 0n,
    });
    const other = await send("vote", [account(1), 1, 1, ""], { from: 0 });
    expect(other.receipt.status).toBe(0);
    for (const bad of [
      [],
      [[1, "0.5"]],
      [[1, "x"]],
      [
        [1, "1"],
        [1, "1"],
      ],
    ]) {
      const { receipt } = await send("voteWeighted", [account(1), 1, bad, ""], { from: 1 });
      expect([bad, receipt.status]).toEqual([bad, 0]);
    }
  });

  it("shows proposals, deposits, votes, the count and its parameters", async () => {
    const page = { key: "0x", offset: 0, limit: 0, countTotal: true, reverse: false };
    const view = (name: string, ...args: unknown[]) => chain.view(gov, name, args);
    const [shown] = await view("getProposal", 1);
    expect([shown[0], shown[1], shown[2], shown[6]]).toEqual([
      1n,
      [spend["@type"]],
      2n,
      [["atoken", 10n * TOKEN]],
    ]);
    expect([shown[10], shown[11], shown[12]]).toEqual([
      "Spend",
      "On us",
      toChecksumAddress(account(2)),
    ]);
    const [[vote]] = [await view("getVote", 1, account(1))];
    expect(vote[2]).toEqual([
      [1n, "0.750000000000000000"],
      [3n, "0.250000000000000000"],
    ]);
    const [votes, { 1: total }] = await view("getVotes", 1, page);
    expect([votes.length, total]).toEqual([2, 2n]);
    const [deposits] = await view("getDeposits", 1, page);
    expect(deposits.map((one: unknown[]) => one[2])).toEqual([
      [["atoken", 4n * TOKEN]],
      [["atoken", 6n * TOKEN]],
    ]);
    expect((await view("getDeposit", 1, account(3)))[0][2]).toEqual([["atoken", 6n * TOKEN]]);
    const [[yes, , no]] = await view("getTallyResult", 1);
    expect([yes, no]).toEqual([
      (100n * TOKEN + (50n * TOKEN * 3n) / 4n).toString(),
      ((50n * TOKEN) / 4n).toString(),
    ]);
    const none = "0x0000000000000000000000000000000000000000";
    for (const [status, voter, depositor, count] of [
      [0, none, none, 1],
      [2, account(1), account(3), 1],
      [3, none, none, 0],
      [0, account(4), none, 0],
    ] as const) {
      expect((await view("getProposals", status, voter, depositor, page))[0]).toHaveLength(count);
    }
    const [params] = await view("getParams");
    expect([params[0], params[1]]).toEqual([60_000_000_000n, [["atoken", 10n * TOKEN]]]);
    expect(await view("getConstitution")).toEqual([""]);
    await expect(view("getProposal", 9)).rejects.toThrow("unknown proposal");
    await expect(view("getVote", 1, account(4))).rejects.toThrow("not found");
  });

  it("gives the rest back to who takes a proposal back", async () => {
    await send("submitProposal", [
      account(2),
      json({ title: "T", summary: "S", metadata: "words" }),
      coins(2n * TOKEN),
    ]);
    const foreign = await send("cancelProposal", [account(3), 2], { from: 3 });
    expect(foreign.receipt.status).toBe(0);
    const { receipt, changes } = await send("cancelProposal", [account(2), 2]);
    expect(receipt.status).toBe(1);
    expect(changes.slice(2).map(({ reason, amountAtoken }) => [reason, amountAtoken])).toEqual([
      ["GOV_REFUND", TOKEN],
      ["DESTRUCT", TOKEN],
    ]);
    expect(record(2n).exists).toBe(false);
  });

  it("refuses what is no proposal, in words, and nothing stays", async () => {
    const held = chain.balance(MODULE_ACCOUNTS.gov);
    const root = () => chain.state().accountNow(MODULE_ACCOUNTS.gov)?.storageRoot;
    const before = root();
    for (const fields of [
      [],
      { title: "T", summary: "S", messages: [{}] },
      {
        title: "T",
        summary: "S",
        messages: [{ ...spend, "@type": "/cosmos.bank.v1beta1.Nothing" }],
      },
      { title: "T", summary: "S", messages: [{ ...spend, authority: toBech32(account(2)) }] },
      { title: "T", summary: "S", messages: [{ ...spend, more: 1 }] },
      { title: "T", summary: "S", deposit: "5atoken" },
      { title: 5, summary: "S" },
      { title: "", summary: "S" },
      // One more than a proposal may have: nobody could read it any more.
      { title: "T", summary: "S", messages: Array.from({ length: 17 }, () => spend) },
    ]) {
      const { receipt } = await send("submitProposal", [account(2), json(fields), coins(TOKEN)]);
      expect([fields, receipt.status]).toEqual([fields, 0]);
    }
    const broken = await send("submitProposal", [account(2), "0xff7b7d", coins(TOKEN)]);
    expect(broken.receipt.status).toBe(0);
    expect(root()).toBe(before);
    expect(chain.balance(MODULE_ACCOUNTS.gov)).toBe(held);
  });
});

describe("a list of proposals", () => {
  it("is paid for as it is looked through, however many there were", async () => {
    const page = { key: "0x", offset: 0, limit: 0, countTotal: true, reverse: false };
    const data = gov.abi.encodeFunctionData("getProposals", [0, ZeroAddress, ZeroAddress, page]);
    const made = new Map([[`0x${"".padStart(64, "0")}`, 2n ** 40n]]);
    const overrides = new Map([[gov.address, { stateDiff: made }]]) as never;
    const sent = request({ to: gov.address, data, gasLimit: 100_000n });
    const result = await chain.work({ kind: "call", request: sent, overrides });
    expect(result).toMatchObject({ outcome: "error", error: "out of gas" });
  });
});

describe("a list whose length is above all that anybody could pay for", () => {
  /** Above all that an array may have, so that making room for it is an error that is seen. */
  const LENGTH = 2n ** 40n;
  const staking = published("IStaking");
  const distribution = published("IDistribution");
  const page = { key: "0x", offset: 0, limit: 0, countTotal: true, reverse: false };
  const keyed = (slot: bigint, index: number) => mapSlot(slot, addressWord(account(index)));
  const proposalSlot = (place: bigint) => mapSlot(1n, 1n) + place;

  it.each([
    ["votes", gov, "getVotes", [1, page], proposalSlot(20n)],
    ["deposits", gov, "getDeposits", [1, page], proposalSlot(17n)],
    ["texts of a proposal", gov, "getProposal", [1], proposalSlot(12n)],
    ["validators", staking, "validators", ["", page], 0n],
    [
      "redelegations off a validator",
      staking,
      "redelegations",
      [ZeroAddress, operatorText(0), "", page],
      keyed(25n, 0),
    ],
    [
      "validators of a delegator",
      distribution,
      "delegatorValidators",
      [account(0)],
      keyed(18n, 0),
      staking.address,
    ],
    [
      "slashes of a validator",
      distribution,
      "validatorSlashes",
      [operatorText(0), 0, 100, page],
      keyed(2n, 0) + 14n,
      staking.address,
    ],
  ] as const)("is paid for item by item: %s", async (_name, contract, view, args, slot, ...at) => {
    const { abi, address } = contract;
    const data = abi.encodeFunctionData(view, [...args]);
    const sizes = new Map([[`0x${slot.toString(16).padStart(64, "0")}`, LENGTH]]);
    const overrides = new Map([[at[0] ?? address, { stateDiff: sizes }]]) as never;
    const sent = request({ to: address, data, gasLimit: 100_000n });
    const result = await chain.work({ kind: "call", request: sent, overrides });
    expect(result).toMatchObject({ outcome: "error", error: "out of gas" });
  });
});

describe("proto JSON of messages", () => {
  it("is read into what its encoding says, and shown as it was", () => {
    const plan = {
      "@type": "/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade",
      authority: AUTHORITY,
      plan: { name: "v2", height: "120", info: "x" },
    };
    const any = anyOfProtoJson(plan, schemaOf);
    expect(protoJsonOfAny(any)).toMatchObject(plan);
    expect(decodeAny(encodeAny(any), schemaOf)).toEqual(any);
    // Field 1 authority, 2 plan: 1 name, 3 height, 4 info (cosmos/upgrade/v1beta1/tx.proto).
    const text = Buffer.from(encodeAny(any)).toString("hex");
    expect(text).toContain(Buffer.from("v2").toString("hex").padStart(8, "0a02"));
    expect(text).toContain(`1878220178`);
  });

  it("is refused where it is of another kind", () => {
    const params = "/cosmos.slashing.v1beta1.MsgUpdateParams";
    for (const bad of [
      null,
      5,
      { "@type": 5 },
      { "@type": params, authority: 5 },
      { "@type": params, params: [] },
      { "@type": params, params: { signed_blocks_window: "1.5" } },
      { "@type": params, params: { signed_blocks_window: "99999999999999999999" } },
      { "@type": params, params: { downtime_jail_duration: "10 minutes" } },
    ]) {
      expect(() => anyOfProtoJson(bad, schemaOf)).toThrow(ChainError);
    }
  });
});
