/** Proposals of CosmJS on four validators: what passes happens; an upgrade halts all of them. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { blockEvents } from "../../../chain/abci-event.js";
import { present } from "../../../chain/errors.js";
import { sha256 } from "../../../chain/hashes.js";
import { bytesToHash32 } from "../../../chain/hex.js";
import { communityPool } from "../../../node/modules/distribution/rewards.js";
import { PROPOSAL_STATUS, Proposals } from "../../../node/modules/gov/proposal-record.js";
import { moduleParam } from "../../../node/modules/module-params.js";
import { MODULE_ACCOUNTS } from "../../../node/modules/system-storage.js";
import { upgradeHeight, upgradePlan } from "../../../node/modules/upgrade/plan.js";
import type { UpgradeHandler, Upgrades } from "../../../node/modules/upgrade/upgrades.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import { askNode } from "../../helpers/chains/asked-node.js";
import { ClockAhead } from "../../helpers/chains/clock-ahead.js";
import { ValidatorNetwork } from "../../helpers/chains/validator-network.js";
import {
  operatorAt,
  validatorGenesis,
  ValidatorNode,
} from "../../helpers/chains/validator-node.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { until } from "../../helpers/until.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const TOKEN = 10n ** 18n;
const faucet = Wallet.fromPhrase(MNEMONIC);
const from = parseAddress(faucet.address);
const own = toBech32(from);
const GOV = toBech32(MODULE_ACCOUNTS.gov);
const coin = (amount: bigint) => ({ denom: "atoken", amount: amount.toString() });
const stranger = parseAddress(`0x${"77".repeat(20)}`);

/** What `consensus_params` answers, as far as it is looked at. */
interface Rules {
  readonly consensus_params: { readonly version: { readonly app: string } };
}

interface Message {
  readonly typeUrl: string;
  readonly value: unknown;
}

let net: ValidatorNetwork;
let sequence = 0;

/** Proposals are voted on until the test lets the time pass, however slow this machine is. */
const VOTING_MS = 3_600_000;
const VOTING = `${VOTING_MS / 1_000}s`;
const clock = new ClockAhead();

function node(index: number): ValidatorNode {
  return present(net.nodes[index], `node ${index}`);
}

function stateOf(one: ValidatorNode): JournaledState {
  return new JournaledState(one.stores.state);
}

/** Has a transaction mined everywhere; what came of it. */
async function send(...messages: readonly Message[]) {
  const fee = [coin(10_000_000n)];
  const paid = { chainId: "chain_6940-1", gas: 900_000, fee, sequence: sequence++ };
  const [answer] = signWithCosmJs(MNEMONIC, [{ ...paid, messages }]);
  if (answer === undefined) throw new Error("nothing was signed");
  const hash = bytesToHash32(sha256(answer.raw));
  expect(await node(0).pool.submit([answer.raw])).toEqual([hash]);
  net.passes = () => true;
  await until(() => net.nodes.every((one) => one?.view.locateBySdkHash(hash) !== undefined), {
    timeoutMs: 60_000,
    what: "the transaction",
  });
  const place = node(0).view.locateBySdkHash(hash);
  const { cosmos } = node(0).view.block(place?.height ?? 0)?.block ?? {};
  const found = cosmos?.find(({ index }) => index === place?.index);
  if (place === undefined || found === undefined) throw new Error("the transaction is missing");
  return { ...found, height: place.height };
}

/**
 * A height that is not reached before the next proposal is decided: blocks wait for the first of two
 * transactions, each is mined when it is the turn of the node that knows it, and then its time passes.
 */
function heightAhead(): number {
  net.passes = () => false;
  return node(0).height + 24;
}

function proposalMessage(...messages: readonly Message[]): Message {
  const value = {
    messages,
    initialDeposit: [coin(10n * TOKEN)],
    proposer: own,
    metadata: "",
    title: "a proposal",
    summary: "what it is about",
    expedited: false,
  };
  return { typeUrl: "/cosmos.gov.v1.MsgSubmitProposal", value };
}

const voteMessage = (id: bigint): Message => ({
  typeUrl: "/cosmos.gov.v1.MsgVote",
  value: { proposalId: `${id}n`, voter: own, option: 1, metadata: "" },
});

/** Proposes, votes, and waits until it is decided everywhere. @returns its status */
async function decide(...messages: readonly Message[]) {
  const id = new Proposals(stateOf(node(0))).lastId + 1n;
  const { result } = await send(proposalMessage(...messages), voteMessage(id));
  expect(result).toMatchObject({ code: 0, log: "" });
  clock.pass(VOTING_MS);
  const statusAt = (one: ValidatorNode | undefined) =>
    one === undefined ? 0 : new Proposals(stateOf(one)).of(id).status;
  await until(() => net.nodes.every((one) => statusAt(one) > PROPOSAL_STATUS.voting), {
    timeoutMs: 60_000,
    what: `the end of proposal ${id}`,
  });
  const { status, failedReason } = new Proposals(stateOf(node(0))).of(id);
  return { status, failedReason };
}

const PASSED = { status: PROPOSAL_STATUS.passed, failedReason: "" };

beforeAll(async () => {
  const { genesis, seeds } = validatorGenesis(4, {
    faucet: faucet.address,
    params: { "gov.voting_period": VOTING, "gov.max_deposit_period": VOTING },
  });
  // A chain that began by the first rules.
  const { appVersion: _newest, ...first } = genesis;
  net = new ValidatorNetwork(first, seeds);
  for (const index of [0, 1, 2, 3]) await net.start(index, { clock });
  await net.reach(2);
  const delegate = (index: number) => ({
    typeUrl: "/cosmos.staking.v1beta1.MsgDelegate",
    value: {
      delegatorAddress: own,
      validatorAddress: toBech32(operatorAt(index), VALIDATOR_PREFIX),
      amount: coin(30n * TOKEN),
    },
  });
  const { result } = await send(...[0, 1, 2, 3].map(delegate), {
    typeUrl: "/cosmos.distribution.v1beta1.MsgFundCommunityPool",
    value: { depositor: own, amount: [coin(9n * TOKEN)] },
  });
  expect(result).toMatchObject({ code: 0, log: "" });
});

afterAll(() => net.close());

describe("governance over consensus", () => {
  it("changes parameters and pays, by the vote of a delegator", async () => {
    const decided = await decide(
      {
        typeUrl: "/cosmos.staking.v1beta1.MsgUpdateParams",
        value: {
          authority: GOV,
          params: {
            unbondingTime: { seconds: "7n", nanos: 0 },
            maxValidators: 9,
            maxEntries: 6,
            historicalEntries: 0,
            bondDenom: "atoken",
            minCommissionRate: "0",
          },
        },
      },
      {
        typeUrl: "/cosmos.distribution.v1beta1.MsgCommunityPoolSpend",
        value: { authority: GOV, recipient: toBech32(stranger), amount: [coin(4n * TOKEN)] },
      },
    );
    expect(decided).toEqual(PASSED);
    for (const one of net.nodes) {
      if (one === undefined) continue;
      const state = stateOf(one);
      expect(moduleParam(state, "staking", "max_validators")).toBe(9n);
      expect(moduleParam(state, "staking", "unbonding_time")).toBe(7_000n);
      expect(communityPool(state)).toBe(5n * TOKEN);
      expect(state.accountNow(stranger)?.balanceAtoken).toBe(4n * TOKEN);
      expect(state.accountNow(MODULE_ACCOUNTS.gov)?.balanceAtoken).toBe(0n);
    }
    const settledAt = await heightOf("active_proposal");
    const { blockChanges } = node(0).view.blockChanges(settledAt);
    expect(blockChanges.map(({ reason }) => reason).filter((reason) => reason !== "MINT")).toEqual([
      "GOV_REFUND",
      "CLAIM",
    ]);
  });

  it("refuses an outsider's message with the SDK's code", async () => {
    const { result } = await send({
      typeUrl: "/cosmos.upgrade.v1beta1.MsgCancelUpgrade",
      value: { authority: own },
    });
    expect(result).toMatchObject({ codespace: "gov", code: 13 });
    expect(result.log).toContain(`invalid authority; expected ${GOV}, got ${own}`);
  });

  it("takes deposits, split votes and a text of v1beta1, and a proposer's change of mind", async () => {
    const id = new Proposals(stateOf(node(0))).lastId + 1n;
    const text = { title: "words", description: "only words" };
    const content = { typeUrl: "/cosmos.gov.v1beta1.TextProposal", value: text };
    const { result } = await send(
      {
        typeUrl: "/cosmos.gov.v1beta1.MsgSubmitProposal",
        value: { content, initialDeposit: [coin(4n * TOKEN)], proposer: own },
      },
      {
        typeUrl: "/cosmos.gov.v1beta1.MsgDeposit",
        value: { proposalId: `${id}n`, depositor: own, amount: [coin(6n * TOKEN)] },
      },
      {
        typeUrl: "/cosmos.gov.v1beta1.MsgVoteWeighted",
        value: {
          proposalId: `${id}n`,
          voter: own,
          options: [
            { option: 1, weight: "600000000000000000" },
            { option: 3, weight: "400000000000000000" },
          ],
        },
      },
      proposalMessage(),
      {
        typeUrl: "/cosmos.gov.v1.MsgCancelProposal",
        value: { proposalId: `${id + 1n}n`, proposer: own },
      },
    );
    expect(result).toMatchObject({ code: 0, log: "" });
    const [submitted] = result.events.filter(({ type }) => type === "submit_proposal");
    expect(submitted?.attributes.slice(0, 2)).toMatchObject([
      { key: "proposal_id", value: id.toString() },
      { key: "proposal_type", value: "Text" },
    ]);
    const proposal = new Proposals(stateOf(node(0))).of(id);
    expect([proposal.title, proposal.summary]).toEqual(["words", "only words"]);
    expect(proposal.totalDepositAtoken).toBe(10n * TOKEN);
    expect(new Proposals(stateOf(node(0))).of(id + 1n).exists).toBe(false);
    clock.pass(VOTING_MS);
    await until(() => new Proposals(stateOf(node(0))).of(id).status === PROPOSAL_STATUS.passed, {
      timeoutMs: 30_000,
    });
    const { result: sums } = new Proposals(stateOf(node(0))).of(id);
    expect(sums).toEqual({ yes: 72n * TOKEN, abstain: 0n, no: 48n * TOKEN, veto: 0n });
  });
});

describe("a proposal to change parameters by their older names", () => {
  const change = (value: string) => ({
    typeUrl: "/cosmos.gov.v1beta1.MsgSubmitProposal",
    value: {
      content: {
        typeUrl: "/cosmos.params.v1beta1.ParameterChangeProposal",
        value: {
          title: "fewer",
          description: "validators",
          changes: [{ subspace: "staking", key: "MaxValidators", value }],
        },
      },
      initialDeposit: [coin(10n * TOKEN)],
      proposer: own,
    },
  });

  it("of CosmJS does so on every node, and is shown as it was written", async () => {
    const id = new Proposals(stateOf(node(0))).lastId + 1n;
    const { result } = await send(change("8"), voteMessage(id));
    expect(result).toMatchObject({ code: 0, log: "" });
    clock.pass(VOTING_MS);
    const max = (one: ValidatorNode | undefined) =>
      one === undefined ? 0n : moduleParam(stateOf(one), "staking", "max_validators");
    await until(() => net.nodes.every((one) => max(one) === 8n), { timeoutMs: 60_000 });
    const asked = await askNode(node(0), net.genesis);
    try {
      expect(await asked.rest(`/cosmos/gov/v1beta1/proposals/${id}`)).toMatchObject({
        proposal: {
          status: "PROPOSAL_STATUS_PASSED",
          content: {
            "@type": "/cosmos.params.v1beta1.ParameterChangeProposal",
            title: "fewer",
            description: "validators",
            changes: [{ subspace: "staking", key: "MaxValidators", value: "8" }],
          },
        },
      });
      const route = "/cosmos/params/v1beta1/params?subspace=staking&key=MaxValidators";
      expect(await asked.rest(route)).toEqual({
        param: { subspace: "staking", key: "MaxValidators", value: "8" },
      });
    } finally {
      await asked.close();
    }
  });

  it("is refused where it could never be carried out, and so is one of x/mint", async () => {
    const { result } = await send(change('"8"'));
    expect(result).toMatchObject({ codespace: "gov", code: 5 });
    const params = {
      mintDenom: "atoken",
      inflationRateChange: "0",
      inflationMax: "1",
      inflationMin: "0",
      goalBonded: "0",
      blocksPerYear: "1n",
    };
    const typeUrl = "/cosmos.mint.v1beta1.MsgUpdateParams";
    const mint = await send(proposalMessage({ typeUrl, value: { authority: GOV, params } }));
    expect(mint.result).toMatchObject({ codespace: "gov", code: 12 });
    expect(mint.result.log).toContain("inflation follows from the height");
  });
});

/** The newest height whose block has an event. */
async function heightOf(type: string): Promise<number> {
  const { view } = node(0);
  for (let height = node(0).height; height > 0; height--) {
    if (blockEvents(view.blockChanges(height)).some((event) => event.type === type)) return height;
  }
  throw new Error(`no ${type}`);
}

describe("an upgrade", () => {
  const handler: UpgradeHandler = {
    name: "v2",
    appVersion: 2,
    run: (context) => {
      context.moveCoins("CLAIM", context.validatorsPool, stranger, 1n);
      expect(context.state.accountNow(stranger)?.balanceAtoken).toBe(4n * TOKEN + 1n);
    },
  };
  let height = 0;
  let told: string[] = [];
  /** Up to where somebody follows: a failure by either rules lies before. */
  let follows = 0;

  it("halts all validators before its block, with the plan and what to do", async () => {
    height = heightAhead();
    expect((await send(voteMessage(999n))).result).toMatchObject({ codespace: "gov", code: 2 });
    const decided = await decide({
      typeUrl: "/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade",
      value: { authority: GOV, plan: { name: "v2", height: `${height}n`, info: "get 2.0" } },
    });
    expect(decided).toEqual(PASSED);
    await until(() => net.nodes.every((one) => one !== undefined && one.halts.length > 0), {
      timeoutMs: 60_000,
      what: "the halt",
    });
    told = net.nodes.flatMap((one) => one?.halts ?? []);
    expect(new Set(told).size).toBe(1);
    expect(told[0]).toMatch(
      new RegExp(`^UPGRADE "v2" NEEDED at height: ${height}: get 2.0: .*--skip-upgrade ${height}$`),
    );
    expect(net.nodes.map((one) => one?.height)).toEqual(Array(4).fill(height - 1));
    for (const one of net.nodes) expect(await one?.ended()).toBe("halted");
  });

  it("halts a restarted node again, with the same text", async () => {
    const home = await net.halt(2);
    const again = await net.start(2, { home, clock });
    await until(() => again.halts.length > 0, { timeoutMs: 30_000, what: "the halt" });
    expect(again.halts).toEqual([told[0]]);
    expect(again.height).toBe(height - 1);
  });

  it("is made by programs that know it; blocks say by which rules they are made", async () => {
    const upgrades = { handlers: [handler], skipHeights: new Set<number>() };
    for (const index of [0, 1, 2, 3]) {
      const home = await net.halt(index);
      await net.start(index, { home, upgrades, clock });
    }
    await net.reach(height + 3);
    const versionAt = (one: ValidatorNode, at: number) =>
      one.consensus.load(at)?.block.header.appVersion;
    for (const one of net.nodes) {
      if (one === undefined) continue;
      expect([height - 1, height, height + 1, height + 2].map((at) => versionAt(one, at))).toEqual([
        1, 1, 2, 2,
      ]);
      expect(upgradeHeight(stateOf(one), "v2")).toBe(height);
      expect(upgradePlan(stateOf(one))).toBeUndefined();
      expect(stateOf(one).accountNow(stranger)?.balanceAtoken).toBe(4n * TOKEN + 1n);
    }
    const upgraded = blockEvents(node(0).view.blockChanges(height));
    expect(upgraded.find(({ type }) => type === "upgrade")?.attributes).toMatchObject([
      { key: "name", value: "v2" },
      { key: "height", value: height.toString() },
      { key: "app_version", value: "2" },
      { key: "mode", value: "EndBlock" },
    ]);
  });

  it("changes the codes of failures from then on", async () => {
    const { result, height: at } = await send(voteMessage(999n));
    expect(at).toBeGreaterThan(height);
    expect(result).toMatchObject({ codespace: "gov", code: 3 });
    follows = at;
  });

  it("is seen by clients: the rules of now, and of the height that they ask for", async () => {
    const asked = await askNode(node(0), net.genesis);
    try {
      const newest = { protocol_version: { app: "2" } };
      expect(await asked.comet("status")).toMatchObject({ node_info: newest });
      expect(await asked.comet("abci_info")).toMatchObject({ response: { app_version: "2" } });
      const cometAt = async (at: string) =>
        ((await asked.comet(`consensus_params${at}`)) as Rules).consensus_params.version.app;
      expect(await cometAt("")).toBe("2");
      expect(await cometAt(`?height=${height}`)).toBe("1");
      expect(await cometAt(`?height=${height + 1}`)).toBe("2");
      expect(await asked.comet("genesis")).toMatchObject({
        genesis: { consensus_params: { version: { app: "1" } } },
      });
      // REST names the state after a height: that of the plan has the new rules already.
      for (const [at, app] of [
        [undefined, "2"],
        [height, "2"],
        [height - 1, "1"],
      ] as const) {
        expect(await asked.rest("/cosmos/base/tendermint/v1beta1/node_info", at)).toMatchObject({
          default_node_info: { protocol_version: { app } },
        });
        expect(await asked.rest("/cosmos/consensus/v1/params", at)).toMatchObject({
          params: { version: { app } },
        });
      }
      for (const [at, app] of [
        [height, "1"],
        [height + 1, "2"],
      ] as const) {
        const route = `/cosmos/base/tendermint/v1beta1/blocks/${at}`;
        expect(await asked.rest(route)).toMatchObject({
          block: { header: { version: { app } } },
          sdk_block: { header: { version: { app } } },
        });
      }
    } finally {
      await asked.close();
    }
  });

  /** A node that follows the blocks up to a height. @returns the hash of the last one */
  async function follow(upTo: number, upgrades: Upgrades) {
    const follower = await ValidatorNode.open({ genesis: net.genesis, seed: undefined, upgrades });
    try {
      for (let at = 1; at <= upTo; at++) {
        await follower.consensus.apply(present(node(0).consensus.load(at), `block ${at}`));
      }
      return follower.view.head().hash;
    } finally {
      expect(follower.height).toBeGreaterThanOrEqual(height - 1);
      await follower.stop();
    }
  }

  it("is followed from the first block on; without a handler, up to its height", async () => {
    const skipHeights = new Set<number>();
    const hash = await follow(follows, { handlers: [handler], skipHeights });
    expect(hash).toBe(node(0).stores.blocks.hashOf(follows));
    const blind = follow(follows, { handlers: [], skipHeights });
    await expect(blind).rejects.toMatchObject({ code: "UPGRADE_NEEDED" });
  });

  it("that is skipped by all leaves the rules as they are", async () => {
    const at = heightAhead();
    await decide({
      typeUrl: "/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade",
      value: { authority: GOV, plan: { name: "v3", height: `${at}n`, info: "" } },
    });
    await until(() => net.nodes.every((one) => one !== undefined && one.halts.length > 0), {
      timeoutMs: 60_000,
      what: "the halt",
    });
    const upgrades = { handlers: [handler], skipHeights: new Set([at]) };
    for (const index of [0, 1, 2, 3]) {
      const home = await net.halt(index);
      await net.start(index, { home, upgrades, clock });
    }
    await net.reach(at + 2);
    expect(upgradePlan(stateOf(node(0)))).toBeUndefined();
    expect(upgradeHeight(stateOf(node(0)), "v3")).toBeUndefined();
    expect(node(0).consensus.load(at + 1)?.block.header.appVersion).toBe(2);
    // A later release may have a handler of that name: only the settings say that nobody ran it.
    const handlers = [handler, { ...handler, name: "v3", run: () => undefined }];
    await expect(follow(at + 1, { handlers, skipHeights: new Set() })).rejects.toMatchObject({
      code: "DECIDED_BLOCK_REFUSED",
      message: expect.stringContaining(`write skip-upgrades = ["${at}"] into app.toml`),
    });
    const hash = await follow(at + 1, { handlers, skipHeights: new Set([at]) });
    expect(hash).toBe(node(0).stores.blocks.hashOf(at + 1));
    const alone = follow(height + 1, { handlers, skipHeights: new Set([height]) });
    await expect(alone).rejects.toMatchObject({
      message: expect.stringContaining(`take ${height} out of skip-upgrades`),
    });
  });
});
