/**
 * Governance as wallets and explorers see it: proposals by the command line and by CosmJS, read in both
 * versions of the service, while they are voted on and when they are over.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { DirectEthSecp256k1Wallet } from "@cosmjs/proto-signing";
import { QueryClient, setupGovExtension, SigningStargateClient } from "@cosmjs/stargate";
import { Comet38Client } from "@cosmjs/tendermint-rpc";
import fs from "node:fs";
import { TextProposal } from "cosmjs-types/cosmos/gov/v1beta1/gov";
import { QueryProposalResponse } from "cosmjs-types/cosmos/gov/v1/query";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { StakedNode } from "../../helpers/cosmos/staked-node.js";
import { until } from "../../helpers/until.js";

const FEE = { amount: [{ denom: "atoken", amount: "50000" }], gas: "1500000" };
const AUTHORITY = toBech32(parseAddress(`0x${"00".repeat(18)}0805`));

let node: StakedNode;
let faucet: string;
let operator: string;
let query: Awaited<ReturnType<typeof queries>>;

async function queries() {
  const comet = await Comet38Client.connect(node.url("cometRpc"));
  return QueryClient.withExtensions(comet, setupGovExtension);
}

/** Over when the test says so: nobody knows how long a busy machine takes to vote, and to read that. */
const VOTING_SECONDS = 3_000;
const VOTING = `${VOTING_SECONDS}s`;

beforeAll(async () => {
  node = await StakedNode.start({
    "gov.voting_period": VOTING,
    "gov.max_deposit_period": "600s",
    "gov.min_deposit": "1000",
  });
  const addressOf = (file: string) =>
    toBech32(parseAddress(new Wallet(fs.readFileSync(file, "utf8").trim()).address));
  faucet = addressOf(node.faucetKey);
  operator = addressOf(`${node.home}/config/operator.key`);
  query = await queries();
});

afterAll(() => node?.close());

async function get(route: string) {
  const { status, body } = await node.get(route);
  expect([route, status, status === 200 ? "" : body]).toEqual([route, 200, ""]);
  return body as Readonly<Record<string, unknown>>;
}

describe("proposals", () => {
  const upgrade = {
    "@type": "/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade",
    authority: AUTHORITY,
    plan: { name: "later", height: "1000000", info: "https://releases.example" },
  };

  it("are submitted, paid for and voted on by the command line", async () => {
    const file = node.write(
      "proposal.json",
      JSON.stringify({
        messages: [upgrade],
        metadata: "none",
        deposit: "400atoken",
        title: "Go on",
        summary: "A later release",
      }),
    );
    const from = ["--from", node.faucetKey];
    const made = await node.tx("gov", "submit-proposal", file, ...from);
    expect([made.code, made.raw_log]).toEqual([0, ""]);
    const event = made.events.find(({ type }) => type === "submit_proposal");
    expect(event?.attributes.slice(0, 2).map(({ key }) => key)).toEqual([
      "proposal_id",
      "proposal_type",
    ]);
    const waiting = await get(
      "/cosmos/gov/v1/proposals?proposal_status=PROPOSAL_STATUS_DEPOSIT_PERIOD",
    );
    expect(waiting["proposals"]).toMatchObject([
      {
        id: "1",
        status: "PROPOSAL_STATUS_DEPOSIT_PERIOD",
        total_deposit: [{ denom: "atoken", amount: "400" }],
        voting_start_time: null,
      },
    ]);
    // Messages of v1beta1 cannot say "not yet": Go's zero time stands there, in either form.
    const notYet = "0001-01-01T00:00:00Z";
    expect(await get("/cosmos/gov/v1beta1/proposals/1")).toMatchObject({
      proposal: { voting_start_time: notYet, voting_end_time: notYet },
    });
    const { proposal } = await query.gov.proposal(1);
    expect([proposal.votingStartTime.seconds, proposal.votingEndTime.seconds]).toEqual([
      -62_135_596_800n,
      -62_135_596_800n,
    ]);
    const paid = await node.tx("gov", "deposit", "1", "600atoken", ...from);
    expect([paid.code, paid.raw_log]).toEqual([0, ""]);
    const voted = await node.tx("gov", "vote", "1", "yes", "--from", "operator");
    expect([voted.code, voted.raw_log]).toEqual([0, ""]);
    const split = await node.tx("gov", "weighted-vote", "1", "no=0.4,abstain=0.6", ...from);
    expect([split.code, split.raw_log]).toEqual([0, ""]);
    for (const [condition, { txhash }] of [
      ["submit_proposal.proposal_id=1", made],
      [`proposal_vote.voter=${operator}&proposal_vote.proposal_id=1`, voted],
      // The SDK's word since 0.47 (recorded from cosmos/evm, SDK 0.54.3), and the one before.
      ["message.module=gov", voted],
      ["message.module=governance", voted],
    ] as const) {
      const { out } = await node.run("query", "txs", "--events", condition, "--output", "json");
      const { txs } = JSON.parse(out) as { txs: { txhash: string }[] };
      expect([condition, txs.map((one) => one.txhash)]).toEqual([
        condition,
        expect.arrayContaining([txhash]),
      ]);
    }
  });

  it("are read in both versions while they are voted on", async () => {
    const { proposal } = await get("/cosmos/gov/v1/proposals/1");
    expect(proposal).toEqual({
      id: "1",
      messages: [
        {
          ...upgrade,
          plan: {
            ...upgrade.plan,
            time: "0001-01-01T00:00:00Z",
            upgraded_client_state: null,
          },
        },
      ],
      status: "PROPOSAL_STATUS_VOTING_PERIOD",
      final_tally_result: {
        yes_count: "0",
        abstain_count: "0",
        no_count: "0",
        no_with_veto_count: "0",
      },
      submit_time: expect.stringMatching(/^20.*Z$/),
      deposit_end_time: expect.stringMatching(/^20.*Z$/),
      total_deposit: [{ denom: "atoken", amount: "1000" }],
      voting_start_time: expect.stringMatching(/^20.*Z$/),
      voting_end_time: expect.stringMatching(/^20.*Z$/),
      metadata: "none",
      title: "Go on",
      summary: "A later release",
      proposer: faucet,
      expedited: false,
      failed_reason: "",
    });
    const data = Buffer.from([8, 1]).toString("hex");
    const url = `${node.url("cometRpc")}/abci_query?path="/cosmos.gov.v1.Query/Proposal"&data=0x${data}`;
    const { result } = (await (await fetch(url)).json()) as {
      result: { response: { value: string } };
    };
    const decoded = QueryProposalResponse.decode(Buffer.from(result.response.value, "base64"));
    expect(decoded.proposal).toMatchObject({ id: 1n, status: 2, title: "Go on", proposer: faucet });
    expect(await get("/cosmos/gov/v1/proposals/1/votes")).toMatchObject({
      votes: [
        {
          voter: operator,
          options: [{ option: "VOTE_OPTION_YES", weight: "1.000000000000000000" }],
        },
        {
          voter: faucet,
          options: [
            { option: "VOTE_OPTION_ABSTAIN", weight: "0.600000000000000000" },
            { option: "VOTE_OPTION_NO", weight: "0.400000000000000000" },
          ],
        },
      ],
      pagination: { total: "2" },
    });
    expect(await get(`/cosmos/gov/v1/proposals/1/votes/${operator}`)).toMatchObject({
      vote: { proposal_id: "1", voter: operator },
    });
    const { deposits } = await get("/cosmos/gov/v1/proposals/1/deposits");
    expect(deposits).toEqual([
      { proposal_id: "1", depositor: faucet, amount: [{ denom: "atoken", amount: "1000" }] },
    ]);
    const staked = await get("/cosmos/staking/v1beta1/pool");
    const { bonded_tokens: bonded } = staked["pool"] as { bonded_tokens: string };
    expect(await get("/cosmos/gov/v1/proposals/1/tally")).toEqual({
      tally: { yes_count: bonded, abstain_count: "0", no_count: "0", no_with_veto_count: "0" },
    });
    expect((await query.gov.tally(1)).tally?.yes).toBe(bonded);
    expect((await query.gov.proposal(1)).proposal).toMatchObject({ proposalId: 1n, status: 2 });
    const { votes } = await query.gov.votes(1);
    expect(votes.map(({ option, options }) => [option, options.length])).toEqual([
      [1, 1],
      [0, 2],
    ]);
    expect((await query.gov.vote(1, operator)).vote?.options[0]?.weight).toBe(`${10n ** 18n}`);
    expect((await query.gov.deposits(1)).deposits).toHaveLength(1);
    expect((await query.gov.deposit(1, faucet)).deposit?.amount[0]?.amount).toBe("1000");
    expect((await query.gov.params("voting")).votingParams.votingPeriod?.seconds).toBe(
      BigInt(VOTING_SECONDS),
    );
    const tallying = await query.gov.params("tallying");
    expect(Buffer.from(tallying.tallyParams.quorum).toString()).toBe("334000000000000000");
    const old = await get("/cosmos/gov/v1beta1/params/tallying");
    expect(old["tally_params"]).toEqual({
      quorum: "0.334000000000000000",
      threshold: "0.500000000000000000",
      veto_threshold: "0.334000000000000000",
    });
    for (const kind of ["voting", "tallying", "deposit"]) {
      const { params } = await get(`/cosmos/gov/v1/params/${kind}`);
      expect(params).toMatchObject({ voting_period: VOTING, min_deposit: [{ amount: "1000" }] });
    }
  });

  it("of an older wallet are texts, and lists are filtered and paged", async () => {
    const key = fs.readFileSync(node.faucetKey, "utf8").trim().slice(2);
    const wallet = await DirectEthSecp256k1Wallet.fromKey(Buffer.from(key, "hex"), "addr");
    const client = await SigningStargateClient.connectWithSigner(node.url("cometRpc"), wallet, {
      broadcastPollIntervalMs: 50,
      broadcastTimeoutMs: 240_000,
    });
    const content = {
      typeUrl: "/cosmos.gov.v1beta1.TextProposal",
      value: TextProposal.encode({ title: "Words", description: "Nothing else" }).finish(),
    };
    const message = {
      typeUrl: "/cosmos.gov.v1beta1.MsgSubmitProposal",
      value: { content, initialDeposit: [{ denom: "atoken", amount: "1000" }], proposer: faucet },
    };
    const sent = await client.signAndBroadcast(faucet, [message], FEE);
    client.disconnect();
    expect([sent.code, sent.rawLog ?? ""]).toEqual([0, ""]);
    const { proposal } = await get("/cosmos/gov/v1beta1/proposals/2");
    expect(proposal).toMatchObject({
      proposal_id: "2",
      content: {
        "@type": "/cosmos.gov.v1beta1.TextProposal",
        title: "Words",
        description: "Nothing else",
      },
    });
    const ids = async (parameters: string) => {
      const { proposals } = await get(`/cosmos/gov/v1/proposals?${parameters}`);
      return (proposals as { id: string }[]).map(({ id }) => id);
    };
    expect(await ids("")).toEqual(["1", "2"]);
    expect(await ids("pagination.reverse=true")).toEqual(["2", "1"]);
    expect(await ids("pagination.limit=1&pagination.reverse=true")).toEqual(["2"]);
    expect(await ids("pagination.key=Ag==")).toEqual(["2"]);
    expect(await ids(`voter=${operator}`)).toEqual(["1"]);
    expect(await ids(`depositor=${faucet}`)).toEqual(expect.arrayContaining(["2"]));
    expect(await ids("proposal_status=4")).toEqual([]);
    const missing = await node.get("/cosmos/gov/v1/proposals/77");
    expect(missing).toMatchObject({
      status: 404,
      body: { code: 5, message: expect.stringContaining("proposal 77 doesn't exist") },
    });
    expect((await node.get(`/cosmos/gov/v1/proposals/2/votes/${faucet}`)).status).toBe(400);
  });

  it("keep their result when they are over, and the plan is shown", async () => {
    const { body: before } = await node.get("/cosmos/upgrade/v1beta1/current_plan", 2);
    expect(before).toEqual({ plan: null });
    node.passHour();
    await until(
      async () => {
        const { proposal } = await get("/cosmos/gov/v1/proposals/1");
        return (proposal as { status: string }).status !== "PROPOSAL_STATUS_VOTING_PERIOD";
      },
      { timeoutMs: 60_000, what: "the end of the voting" },
    );
    const { proposal } = await get("/cosmos/gov/v1/proposals/1");
    expect(proposal).toMatchObject({ status: "PROPOSAL_STATUS_PASSED", failed_reason: "" });
    const { tally } = await get("/cosmos/gov/v1/proposals/1/tally");
    expect(tally).toEqual((proposal as { final_tally_result: unknown }).final_tally_result);
    expect(await get("/cosmos/upgrade/v1beta1/current_plan")).toEqual({
      plan: {
        name: "later",
        time: "0001-01-01T00:00:00Z",
        height: "1000000",
        info: "https://releases.example",
        upgraded_client_state: null,
      },
    });
    const { out } = await node.run("query", "upgrade", "plan", "--output", "json");
    expect(JSON.parse(out)).toMatchObject({ plan: { name: "later" } });
    expect(await get("/cosmos/upgrade/v1beta1/authority")).toEqual({ address: AUTHORITY });
    expect(await get("/cosmos/upgrade/v1beta1/applied_plan/later")).toEqual({ height: "0" });
    expect(await get("/cosmos/upgrade/v1beta1/module_versions")).toMatchObject({
      module_versions: expect.arrayContaining([{ name: "staking", version: "2" }]),
    });
  });
});
