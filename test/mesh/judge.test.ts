/**
 * Coinbase's own judge, rosetta-cli v0.10.4 and unmodified, over a kit whose chain the traffic
 * generator filled with every kind of balance change: nothing is exempt, nothing is skipped.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../chain/address.js";
import { kitOffset, type RunningKit, runCauseway, startKit } from "../helpers/kit.js";
import { startFaultProxy } from "./fault-proxy.js";
import { type Judge, openJudge } from "./judge.js";
import { runMeshCheck } from "./run-mesh-check.js";
import {
  fundWallets,
  homeWithTokens,
  namedWallet,
  openStage,
  playActs,
  type Stage,
  TOKEN,
  type TrafficReport,
} from "./traffic.js";
import { deployNative, nativeRound } from "./traffic-native.js";
import { playStaking, STAKING_PARAMS } from "./traffic-staking.js";
import {
  currencyOf,
  isExplained,
  TOKEN_WORKFLOW_WALLET,
  TokenTraffic,
  TRAFFIC_REGISTRY,
  TRAFFIC_TOKENS,
} from "./traffic-tokens.js";

const SEED = Number(process.env["MESH_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

/** How much is played and judged in each form. */
const FORMS = {
  short: { rounds: 3, transfers: 3, tokenTransfers: 2, stakes: 2 },
  long: { rounds: 60, transfers: 20, tokenTransfers: 10, stakes: 10 },
} as const;

const FORM = process.env["MESH_FORM"] === "long" ? FORMS.long : FORMS.short;

/** The native currency as the sidecar writes it. */
const NATIVE = { symbol: "TOKEN", decimals: 18 };

describe("rosetta-cli", () => {
  let kit: RunningKit;
  let judge: Judge;
  let stage: Stage;
  const report: TrafficReport = { kinds: new Map(), transactions: 0 };

  beforeAll(async () => {
    const home = homeWithTokens(TRAFFIC_REGISTRY);
    const portOffset = kitOffset(0);
    const params = Object.entries(STAKING_PARAMS).flatMap(([name, value]) => [
      "--param",
      `${name}=${value}`,
    ]);
    const init = ["init", "--block-interval-ms", "200", "--port-offset", `${portOffset}`];
    expect(await runCauseway({ home }, [...init, ...params])).toMatchObject({ code: 0 });
    kit = await startKit({ portOffset, home, isAttached: true });
    judge = openJudge(kit);
    stage = await openStage(kit, SEED);
    const native = await deployNative(stage);
    const tokens = await TokenTraffic.open(stage, report);
    for (let n = 0; n < FORM.rounds; n += 1) {
      await playActs(stage, [...nativeRound(stage, native), ...tokens.round()], report);
    }
    await tokens.finish();
    await playStaking(kit, stage, report);
    await fundWallets(stage, ["native workflows", "stakes"].map(namedWallet), TOKEN);
    console.log(
      `traffic: seed ${SEED}, ${report.transactions} transactions of ${report.kinds.size} kinds`,
    );
  });
  afterAll(async () => {
    stage?.chain.provider.destroy();
    judge?.remove();
    expect(await kit?.stop()).toBe(0);
    kit?.remove();
  });

  it("is shown tokens that tell the truth, and tokens that lie", async () => {
    for (const token of TRAFFIC_TOKENS) {
      const { symbol, isHonest } = token;
      const isTrue = await isExplained(stage.chain, token);
      expect({ symbol, isTrue }).toEqual({ symbol, isTrue: isHonest });
    }
  });

  it("accepts everything that check:spec asks", async () => {
    const lines = await judge.spec();
    expect(lines.length).toBeGreaterThanOrEqual(12);
    expect(lines.filter(({ status }) => status !== "Success")).toEqual([]);
  });

  it("reconciles every account of the chain, none exempt and none skipped", async () => {
    const { stats, tests, end_condition: end } = await judge.data();
    console.log(`check:data: seed ${SEED}, ${JSON.stringify(stats)}`);
    expect(end?.type).toBe("Reconciliation Coverage End Condition");
    expect(Object.values(tests)).not.toContain(false);
    expect(stats).toMatchObject({
      orphans: 0,
      exempt_reconciliations: 0,
      failed_reconciliations: 0,
      skipped_reconciliations: 0,
    });
    // Every transaction of the traffic, and the block-level ones.
    expect(stats.transactions).toBeGreaterThan(report.transactions);
    expect(stats.accounts).toBeGreaterThan(20);
    expect(stats.active_reconciliations).toBeGreaterThan(stats.accounts);
    expect(stats.inactive_reconciliations).toBeGreaterThan(0);
  });

  it("sends native transfers from derive to confirmed", async () => {
    const wallet: Wallet = namedWallet("native workflows");
    const { stats } = await judge.construction({
      dslFile: "native.ros",
      workflows: { transfer: FORM.transfers },
      prefunded: [{ privateKey: wallet.privateKey, address: wallet.address, currency: NATIVE }],
    });
    expect(stats).toMatchObject({ stale_broadcasts: 0, failed_broadcasts: 0 });
    expect(stats.workflows_completed["transfer"]).toBeGreaterThanOrEqual(FORM.transfers);
    expect(stats.transactions_confirmed).toBeGreaterThanOrEqual(FORM.transfers);
  });

  it("sends ERC-20 transfers from derive to confirmed", async () => {
    const { privateKey, address } = TOKEN_WORKFLOW_WALLET;
    const { stats } = await judge.construction({
      dslFile: "erc20.ros",
      workflows: { erc20_transfer: FORM.tokenTransfers },
      prefunded: [NATIVE, currencyOf("HON")].map((currency) => ({ privateKey, address, currency })),
    });
    expect(stats).toMatchObject({ stale_broadcasts: 0, failed_broadcasts: 0 });
    expect(stats.workflows_completed["erc20_transfer"]).toBeGreaterThanOrEqual(FORM.tokenTransfers);
    expect(stats.transactions_confirmed).toBeGreaterThanOrEqual(FORM.tokenTransfers);
  });

  it("sends stake in, out and its rewards home, from derive to confirmed", async () => {
    const { privateKey, address } = namedWallet("stakes");
    const operator = parseAddress(new Wallet(kit.key("operator.key")).address);
    const { stats } = await judge.construction({
      dslFile: "staking.ros",
      workflows: { stake: FORM.stakes },
      prefunded: [{ privateKey, address, currency: NATIVE }],
      values: { VALIDATOR: toBech32(operator, VALIDATOR_PREFIX), STAKER: address },
    });
    expect(stats).toMatchObject({ stale_broadcasts: 0, failed_broadcasts: 0 });
    expect(stats.workflows_completed["stake"]).toBeGreaterThanOrEqual(FORM.stakes);
    expect(stats.transactions_confirmed).toBeGreaterThanOrEqual(3 * FORM.stakes);
  });

  it("is joined by mesh-check, which looks for what it misses", async () => {
    const urls = ["--url", kit.url("sidecarOnline"), "--node", kit.url("jsonRpc")];
    const { code, document } = await runMeshCheck([...urls, "--json"]);
    expect({ seed: SEED, faults: document.faults }).toEqual({ seed: SEED, faults: [] });
    expect(code).toBe(0);
    expect(document.transactionCount).toBeGreaterThanOrEqual(report.transactions);
    const name = ({ symbol, address }: (typeof TRAFFIC_TOKENS)[number]) => `${symbol} ${address}`;
    const honest = TRAFFIC_TOKENS.filter(({ isHonest }) => isHonest).map(name);
    const currencies = ["TOKEN", "TOKEN_CLAIM", "TOKEN_SHARE", ...honest];
    expect(document.currencies).toEqual(expect.arrayContaining(currencies));
    const kinds = ["SLASH SUCCESS", "UNBOND_COMPLETE SUCCESS", "REDELEGATE SUCCESS"];
    expect(Object.keys(document.operationKinds)).toEqual(expect.arrayContaining(kinds));
    const liars = TRAFFIC_TOKENS.filter(({ isHonest }) => !isHonest);
    expect(document.quarantined.map(({ contractAddress }) => contractAddress).toSorted()).toEqual(
      liars.map(({ address }) => address.toLowerCase()).toSorted(),
    );
  });

  it("would be told by mesh-check of a token that is believed although it lies", async () => {
    const proxy = await startFaultProxy(kit.url("sidecarOnline"));
    proxy.plant({
      call(result) {
        result["quarantined"] = false;
      },
    });
    try {
      const urls = ["--url", proxy.url, "--node", kit.url("jsonRpc")];
      const { code, document } = await runMeshCheck([...urls, "--json"]);
      expect(code).toBe(1);
      const named = new Set(document.faults.map((fault) => `${fault.code} ${fault.currency}`));
      const rebasing = TRAFFIC_TOKENS.find(({ symbol }) => symbol === "REBT");
      expect([...named]).toContain(`BALANCE_OF_NODE REBT ${rebasing?.address}`);
      expect([...named].filter((name) => !name.startsWith("BALANCE_OF_NODE"))).toEqual([]);
    } finally {
      await proxy.close();
    }
  });
});
