/**
 * Staking, distribution and slashing as wallets and explorers ask for them: CosmJS unmodified, its
 * codecs (`cosmjs-types`) as the second opinion on REST's JSON, and the chain's own past.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { DirectEthSecp256k1Wallet } from "@cosmjs/proto-signing";
import {
  GasPrice,
  QueryClient,
  setupBankExtension,
  setupDistributionExtension,
  setupMintExtension,
  setupSlashingExtension,
  setupStakingExtension,
  SigningStargateClient,
} from "@cosmjs/stargate";
import { Comet38Client } from "@cosmjs/tendermint-rpc";
import fs from "node:fs";
import { Wallet } from "ethers";
import * as distribution from "cosmjs-types/cosmos/distribution/v1beta1/query";
import * as slashing from "cosmjs-types/cosmos/slashing/v1beta1/query";
import * as staking from "cosmjs-types/cosmos/staking/v1beta1/query";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { StakedNode, UNHURRIED_WINDOW } from "../../helpers/cosmos/staked-node.js";
import { until } from "../../helpers/until.js";
import { plain, shape, without } from "./answer-shapes.js";

const TOKEN = 10n ** 18n;
const FEE = { amount: [{ denom: "atoken", amount: "25000" }], gas: "600000" };
const joiner = new Wallet(`0x${"77".repeat(32)}`);
const joinerText = toBech32(parseAddress(joiner.address));
const joinerOperator = toBech32(parseAddress(joiner.address), VALIDATOR_PREFIX);
const nobody = toBech32(parseAddress(`0x${"99".repeat(20)}`));
const coins = (amount: bigint) => ({ denom: "atoken", amount: `${amount}` });

let node: StakedNode;
let client: SigningStargateClient;
let faucet: string;
let operator: string;
/** A height before anything was delegated. */
let before: number;
const heights = { delegated: 0, registered: 0 };

/** CosmJS' client for queries with all extensions for these modules. */
async function queries() {
  const comet = await Comet38Client.connect(node.url("cometRpc"));
  return QueryClient.withExtensions(
    comet,
    setupStakingExtension,
    setupDistributionExtension,
    setupSlashingExtension,
    setupMintExtension,
    setupBankExtension,
  );
}

type Queries = Awaited<ReturnType<typeof queries>>;
let query: Queries;

beforeAll(async () => {
  node = await StakedNode.startUnhurried();
  const key = fs.readFileSync(node.faucetKey, "utf8").trim();
  const wallet = await DirectEthSecp256k1Wallet.fromKey(Buffer.from(key.slice(2), "hex"), "addr");
  client = await SigningStargateClient.connectWithSigner(node.url("cometRpc"), wallet, {
    broadcastPollIntervalMs: 50,
    broadcastTimeoutMs: 240_000,
    gasPrice: GasPrice.fromString("0.025atoken"),
  });
  faucet = toBech32(parseAddress(new Wallet(key).address));
  query = await queries();
  const { validators } = await query.staking.validators("BOND_STATUS_BONDED");
  operator = validators[0]?.operatorAddress ?? "";
  before = await node.height();
});

afterAll(async () => {
  client?.disconnect();
  await node?.close();
});

/** Bytes of an answer over `abci_query`, decoded by others. */
async function decoded<T>(
  path: string,
  request: Uint8Array,
  type: { decode(bytes: Uint8Array): T; toJSON?(value: T): unknown },
): Promise<T> {
  const data = Buffer.from(request).toString("hex");
  const url = `${node.url("cometRpc")}/abci_query?path="${path}"&data=0x${data}`;
  const answer = (await (await fetch(url)).json()) as {
    result: { response: { code: number; log: string; value: string } };
  };
  const { code, log, value } = answer.result.response;
  expect([path, code, log]).toEqual([path, 0, ""]);
  return type.decode(Buffer.from(value, "base64"));
}

describe("an unmodified CosmJS wallet", () => {
  it("delegates, takes back and withdraws", async () => {
    const amount = coins(10n * TOKEN);
    // What this costs is simulated first: CosmJS names each key secp256k1 then, an Ethereum wallet's as well.
    const delegated = await client.delegateTokens(faucet, operator, amount, "auto", "stake");
    expect([delegated.code, delegated.rawLog ?? ""]).toEqual([0, ""]);
    heights.delegated = delegated.height;
    expect(await client.getDelegation(faucet, operator)).toEqual(amount);
    expect(await client.getDelegation(nobody, operator)).toBeNull();
    expect(await client.getBalanceStaked(faucet)).toEqual(amount);

    await until(
      async () => {
        const { rewards } = await query.distribution.delegationRewards(faucet, operator);
        return rewards.length > 0;
      },
      { timeoutMs: 30_000 },
    );
    const withdrawn = await client.withdrawRewards(faucet, operator, FEE);
    expect(withdrawn.code).toBe(0);
    const event = withdrawn.events.find(({ type }) => type === "withdraw_rewards");
    expect(event?.attributes.map(({ key }) => key).slice(0, 3)).toEqual([
      "delegator",
      "validator",
      "amount",
    ]);
    const undelegated = await client.undelegateTokens(faucet, operator, coins(3n * TOKEN), FEE);
    expect(undelegated.code).toBe(0);
    const left = await client.getDelegation(faucet, operator);
    expect(left).toEqual(coins(7n * TOKEN));
    const { unbond } = await query.staking.unbondingDelegation(faucet, operator);
    expect(unbond?.entries).toMatchObject([
      { initialBalance: `${3n * TOKEN}`, balance: `${3n * TOKEN}` },
    ]);
    expect(unbond?.entries[0]?.creationHeight).toBe(BigInt(undelegated.height));
  });

  it("moves stake to a validator that registered by the command line", async () => {
    const made = await node.joinValidator(joiner.privateKey);
    expect([made.code, made.raw_log]).toEqual([0, ""]);
    heights.registered = Number(made.height);
    const { validator } = await query.staking.validator(joinerOperator);
    expect(validator).toMatchObject({
      tokens: `${TOKEN}`,
      description: { moniker: "joiner", website: "https://joiner.example" },
      commission: { commissionRates: { rate: "50000000000000000" } },
    });
    const message = {
      typeUrl: "/cosmos.staking.v1beta1.MsgBeginRedelegate",
      value: {
        delegatorAddress: faucet,
        validatorSrcAddress: operator,
        validatorDstAddress: joinerOperator,
        amount: coins(2n * TOKEN),
      },
    };
    const moved = await client.signAndBroadcast(faucet, [message], FEE);
    expect([moved.code, moved.rawLog ?? ""]).toEqual([0, ""]);
    const found = await query.staking.redelegations(faucet, operator, joinerOperator);
    expect(found.redelegationResponses).toMatchObject([
      { entries: [{ redelegationEntry: { initialBalance: `${2n * TOKEN}` } }] },
    ]);
    const total = await client.getBalanceStaked(faucet);
    expect(total).toEqual(coins(7n * TOKEN));
  });

  it("reads every list and parameter", async () => {
    const all = await query.staking.delegatorDelegations(faucet);
    expect(all.delegationResponses.map(({ balance }) => balance.amount).toSorted()).toEqual([
      `${2n * TOKEN}`,
      `${5n * TOKEN}`,
    ]);
    const own = await query.staking.delegatorValidators(faucet);
    expect(own.validators).toHaveLength(2);
    const one = await query.staking.delegatorValidator(faucet, operator);
    expect(one.validator.operatorAddress).toBe(operator);
    const to = await query.staking.validatorDelegations(joinerOperator);
    expect(to.delegationResponses.map(({ delegation }) => delegation.delegatorAddress)).toEqual(
      expect.arrayContaining([faucet, joinerText]),
    );
    const from = await query.staking.validatorUnbondingDelegations(operator);
    expect(from.unbondingResponses).toHaveLength(1);
    const leaving = await query.staking.delegatorUnbondingDelegations(faucet);
    expect(leaving.unbondingResponses).toHaveLength(1);
    const { pool } = await query.staking.pool();
    expect(BigInt(pool.notBondedTokens)).toBeGreaterThanOrEqual(3n * TOKEN);
    expect((await query.staking.params()).params).toMatchObject({
      bondDenom: "atoken",
      unbondingTime: { seconds: 600n },
    });
    const history = await query.staking.historicalInfo(before);
    expect(history.hist?.header?.height).toBe(BigInt(before));
    expect(history.hist?.valset.map(({ operatorAddress }) => operatorAddress)).toEqual([operator]);
    // Of every height the set whose hash its header names, in the order of consensus.
    const comet = await Comet38Client.connect(node.url("cometRpc"));
    await until(async () => (await node.height()) > heights.registered + 3, {
      timeoutMs: 60_000,
      what: "the blocks behind the registration",
    });
    for (let height = heights.registered - 1; height <= heights.registered + 3; height++) {
      const { hist } = await query.staking.historicalInfo(height);
      const { validators } = await comet.validatorsAll(height + 1);
      const stake = hist?.valset.map(({ tokens, consensusPubkey }) => ({
        power: BigInt(tokens) / TOKEN,
        key: Buffer.from(consensusPubkey?.value.subarray(2) ?? []).toString("hex"),
      }));
      const votes = validators.map(({ votingPower, pubkey }) => ({
        power: votingPower,
        key: Buffer.from(pubkey?.data ?? []).toString("hex"),
      }));
      expect([height, stake]).toEqual([height, votes]);
    }
    comet.disconnect();
    expect((await query.distribution.delegatorValidators(faucet)).validators).toHaveLength(2);
    const address = await query.distribution.delegatorWithdrawAddress(faucet);
    expect(address.withdrawAddress).toBe(faucet);
    const rewards = await query.distribution.delegationTotalRewards(faucet);
    expect(rewards.total[0]?.denom).toBe("atoken");
    const commission = await query.distribution.validatorCommission(operator);
    expect(commission.commission.commission[0]?.denom).toBe("atoken");
    const outstanding = await query.distribution.validatorOutstandingRewards(operator);
    expect(outstanding.rewards.rewards[0]?.denom).toBe("atoken");
    expect((await query.distribution.communityPool()).pool).toEqual([]);
    expect((await query.distribution.params()).params?.withdrawAddrEnabled).toBe(true);
    expect((await query.slashing.params()).params?.signedBlocksWindow).toBe(
      BigInt(UNHURRIED_WINDOW),
    );
    const infos = await query.slashing.signingInfos();
    expect(infos.info.length).toBeGreaterThanOrEqual(1);
    const [info] = infos.info;
    expect((await query.slashing.signingInfo(info?.address ?? "")).valSigningInfo?.address).toBe(
      info?.address,
    );
    expect((await query.mint.inflation()).toString()).toBe("0.12");
    const supply = await query.bank.supplyOf("atoken");
    expect(BigInt(supply.amount)).toBeGreaterThan(10n ** 27n);
  });
});

describe("modules over REST", () => {
  it("has the members that others read in the same answers", async () => {
    const none = new Uint8Array(0);
    // The delegator is the first field of each of these requests.
    const ofFaucet = Buffer.concat([Buffer.from([10, faucet.length]), Buffer.from(faucet)]);
    const delegator = `/cosmos/staking/v1beta1/delegators/${faucet}`;
    const validators = "/cosmos/staking/v1beta1/validators";
    type Case = readonly [string, string, Uint8Array, { decode(bytes: Uint8Array): unknown }];
    const cases: readonly Case[] = [
      [validators, "staking Validators", none, staking.QueryValidatorsResponse],
      ["/cosmos/staking/v1beta1/pool", "staking Pool", none, staking.QueryPoolResponse],
      ["/cosmos/staking/v1beta1/params", "staking Params", none, staking.QueryParamsResponse],
      [
        `${delegator}/redelegations`,
        "staking Redelegations",
        ofFaucet,
        staking.QueryRedelegationsResponse,
      ],
      [
        `${delegator}/unbonding_delegations`,
        "staking DelegatorUnbondingDelegations",
        ofFaucet,
        staking.QueryDelegatorUnbondingDelegationsResponse,
      ],
      [
        `/cosmos/distribution/v1beta1/delegators/${faucet}/rewards`,
        "distribution DelegationTotalRewards",
        ofFaucet,
        distribution.QueryDelegationTotalRewardsResponse,
      ],
      [
        "/cosmos/slashing/v1beta1/signing_infos",
        "slashing SigningInfos",
        none,
        slashing.QuerySigningInfosResponse,
      ],
      ["/cosmos/slashing/v1beta1/params", "slashing Params", none, slashing.QueryParamsResponse],
    ];
    for (const [route, method, bytes, type] of cases) {
      const [module = "", name = ""] = method.split(" ");
      const path = `/cosmos.${module}.v1beta1.Query/${name}`;
      const { status, body } = await node.get(route);
      expect([route, status]).toEqual([route, 200]);
      const known = shape(plain(await decoded(path, bytes, type)));
      expect([route, shape(without(body))]).toEqual([route, without(known)]);
    }
  });

  it("writes what Ping.pub's pages read", async () => {
    const { body } = await node.get(`/cosmos/staking/v1beta1/validators/${joinerOperator}`);
    const { validator } = body as { validator: Record<string, unknown> };
    expect(validator).toEqual({
      operator_address: joinerOperator,
      consensus_pubkey: {
        "@type": "/cosmos.crypto.ed25519.PubKey",
        key: Buffer.alloc(32, 5).toString("base64"),
      },
      jailed: expect.any(Boolean),
      status: expect.stringMatching(/^BOND_STATUS_/),
      tokens: expect.stringMatching(/^[0-9]+$/),
      delegator_shares: `${3n * TOKEN}.000000000000000000`,
      description: {
        moniker: "joiner",
        identity: "",
        website: "https://joiner.example",
        security_contact: "",
        details: "",
      },
      unbonding_height: expect.stringMatching(/^[0-9]+$/),
      unbonding_time: expect.stringMatching(/^[0-9T:.-]+Z$/),
      commission: {
        commission_rates: {
          rate: "0.050000000000000000",
          max_rate: "0.500000000000000000",
          max_change_rate: "0.100000000000000000",
        },
        update_time: expect.stringMatching(/^2[0-9T:.-]+Z$/),
      },
      min_self_delegation: "1",
      unbonding_on_hold_ref_count: "0",
      unbonding_ids: expect.any(Array),
    });
    const routes = [
      "/cosmos/staking/v1beta1/validators?status=BOND_STATUS_BONDED&pagination.limit=300",
      `/cosmos/staking/v1beta1/validators/${operator}/delegations`,
      `/cosmos/staking/v1beta1/validators/${operator}/delegations/${faucet}`,
      `/cosmos/staking/v1beta1/validators/${operator}/delegations/${faucet}/unbonding_delegation`,
      `/cosmos/staking/v1beta1/validators/${operator}/unbonding_delegations`,
      `/cosmos/staking/v1beta1/delegations/${faucet}`,
      `/cosmos/staking/v1beta1/delegators/${faucet}/validators`,
      `/cosmos/staking/v1beta1/delegators/${faucet}/validators/${operator}`,
      `/cosmos/staking/v1beta1/historical_info/${before}`,
      "/cosmos/distribution/v1beta1/params",
      "/cosmos/distribution/v1beta1/community_pool",
      `/cosmos/distribution/v1beta1/validators/${operator}`,
      `/cosmos/distribution/v1beta1/validators/${operator}/commission`,
      `/cosmos/distribution/v1beta1/validators/${operator}/outstanding_rewards`,
      `/cosmos/distribution/v1beta1/validators/${operator}/slashes`,
      `/cosmos/distribution/v1beta1/delegators/${faucet}/rewards/${operator}`,
      `/cosmos/distribution/v1beta1/delegators/${faucet}/validators`,
      `/cosmos/distribution/v1beta1/delegators/${faucet}/withdraw_address`,
      "/cosmos/mint/v1beta1/inflation",
      "/cosmos/mint/v1beta1/annual_provisions",
      "/cosmos/mint/v1beta1/params",
      "/cosmos/evidence/v1beta1/evidence",
      "/cosmos/base/tendermint/v1beta1/validatorsets/latest",
      "/cosmos/auth/v1beta1/module_accounts",
    ];
    for (const route of routes) {
      expect([route, (await node.get(route)).status]).toEqual([route, 200]);
    }
  });

  it("answers for the height that is asked for", async () => {
    const route = `/cosmos/staking/v1beta1/validators/${operator}/delegations/${faucet}`;
    const now = await node.get(route, heights.delegated);
    expect(now.body).toMatchObject({
      delegation_response: { balance: { denom: "atoken", amount: `${10n * TOKEN}` } },
    });
    const early = await node.get(route, before);
    expect(early).toEqual({
      status: 404,
      body: {
        code: 5,
        message: expect.stringContaining(
          `delegation with delegator ${faucet} not found for validator ${operator}: key not found`,
        ),
        details: [],
      },
    });
    const sets = await Promise.all(
      [before, heights.registered].map((height) =>
        node.get("/cosmos/staking/v1beta1/validators", height),
      ),
    );
    const monikers = sets.map(({ body }) =>
      (body as { validators: { description: { moniker: string } }[] }).validators
        .map(({ description }) => description.moniker)
        .toSorted(),
    );
    expect(monikers).toEqual([["node0"], ["joiner", "node0"]]);
  });

  it("pages through lists in both directions", async () => {
    const route = `/cosmos/staking/v1beta1/validators/${joinerOperator}/delegations`;
    type Page = {
      delegation_responses: { delegation: { delegator_address: string } }[];
      pagination: { next_key: string | null; total: string };
    };
    const height = await node.height();
    const page = async (parameters: string) =>
      (await node.get(`${route}?${parameters}`, height)).body as Page;
    const names = ({ delegation_responses: list }: Page) =>
      list.map(({ delegation }) => delegation.delegator_address);
    const first = await page("pagination.limit=1&pagination.count_total=true");
    expect(first.pagination.total).toBe("2");
    const key = encodeURIComponent(first.pagination.next_key ?? "");
    const second = await page(`pagination.limit=1&pagination.key=${key}`);
    expect(second.pagination.next_key).toBeNull();
    const all = [...names(first), ...names(second)];
    expect(all.toSorted()).toEqual([faucet, joinerText].toSorted());
    expect(names(await page("pagination.reverse=true"))).toEqual(all.toReversed());
    expect(names(await page("pagination.offset=1"))).toEqual(all.slice(1));
    const wrong = await node.get(`${route}?pagination.key=AAAA`);
    expect(wrong).toMatchObject({ status: 400, body: { code: 3 } });
  });

  it("refuses in the SDK's words", async () => {
    const validators = "/cosmos/staking/v1beta1/validators";
    const refusals: readonly (readonly [string, number, string])[] = [
      [`${validators}?status=BONDED`, 400, "invalid validator status BONDED"],
      [`${validators}/addrvaloper1nothing`, 400, "expected addrvaloper1..."],
      [
        `${validators}/${toBech32(parseAddress(`0x${"12".repeat(20)}`), VALIDATOR_PREFIX)}`,
        404,
        "not found",
      ],
      [`/cosmos/staking/v1beta1/delegations/${operator}`, 400, "expected addr1..."],
      [
        `/cosmos/distribution/v1beta1/validators/${toBech32(parseAddress(`0x${"12".repeat(20)}`), VALIDATOR_PREFIX)}/commission`,
        404,
        "does not exist",
      ],
      ["/cosmos/evidence/v1beta1/evidence/AB", 404, "evidence AB not found"],
    ];
    for (const [route, status, words] of refusals) {
      const answer = await node.get(route);
      expect([route, answer.status]).toEqual([route, status]);
      expect((answer.body as { message: string }).message).toContain(words);
    }
  });
});
