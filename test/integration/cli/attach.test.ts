/** Kits on a chain that exists: on somebody's node, and with a node of their own that joins it. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import path from "node:path";
import { Wallet } from "ethers";
import { homePaths } from "../../../cli/home/home.js";
import { hotWalletAddress } from "../../../cli/home/init.js";
import { readDeposits, readWithdrawals } from "../../helpers/exchange/api.js";
import { ExchangeChain, Sender } from "../../helpers/exchange/chain.js";
import {
  callApi,
  kitOffset,
  LEAN,
  readyDoctor,
  readyStatus,
  type RunningKit,
  runCauseway,
  startKit,
} from "../../helpers/kit.js";
import { nodeReport } from "../../helpers/processes/node-process.js";
import { until } from "../../helpers/until.js";

const TIMEOUT_MS = 600_000;

/** Kits lie 20 apart: 4 beside them no port of these meets one of another file's. */
const [OFFSET_A, OFFSET_B, OFFSET_C] = [0, 1, 2].map((slot) => kitOffset(slot) + 4);

const TOKEN = 10n ** 18n;
const kits: RunningKit[] = [];
let local: RunningKit;
let faucet: Sender;

async function start(options: Parameters<typeof startKit>[0]): Promise<RunningKit> {
  const kit = await startKit(options);
  kits.push(kit);
  return kit;
}

beforeAll(async () => {
  local = await start({ portOffset: OFFSET_A ?? 0 });
  faucet = new Sender(new Wallet(local.key("faucet.key")), new ExchangeChain(local));
}, TIMEOUT_MS);

afterAll(async () => {
  // The local kit has the chain: it goes last.
  for (const kit of kits.toReversed()) {
    await kit.stop();
    kit.remove();
  }
}, TIMEOUT_MS);

/** A deposit is credited and a withdrawal paid, both with coins of the local chain's faucet. */
async function exchangeWorks(kit: RunningKit): Promise<void> {
  const { body } = await callApi(kit, "depositApi", {
    path: "/v1/addresses",
    body: { customerId: "alice" },
  });
  const hotWallet = await hotWalletAddress(homePaths(kit.home));
  const coins = [
    { to: String(body["address"]), valueAtoken: 3n * TOKEN },
    { to: hotWallet, valueAtoken: 5n * TOKEN },
  ];
  await faucet.chain.mined(await faucet.send(coins));
  await until(async () => (await readDeposits(kit)).at(0)?.status === "credited", {
    timeoutMs: 60_000,
    what: `the deposit is credited\n${kit.output()}`,
  });
  const receiver = Wallet.createRandom().address;
  const answer = await callApi(kit, "withdrawalApi", {
    path: "/v1/withdrawals",
    headers: { "Idempotency-Key": "first" },
    body: { customerId: "alice", asset: "TOKEN", to: receiver, amountAtoken: String(TOKEN) },
  });
  expect(answer).toMatchObject({ status: 201 });
  await until(async () => (await readWithdrawals(kit)).at(0)?.status === "settled", {
    timeoutMs: 60_000,
    what: `the withdrawal is settled\n${kit.output()}`,
  });
  expect(await faucet.chain.provider.getBalance(receiver)).toBe(TOKEN);
  const { code, stdout } = await runCauseway(kit, ["reconcile", "--json"]);
  expect({ code, report: JSON.parse(stdout) }).toMatchObject({
    code: 0,
    report: { clean: true, availableAtoken: String(2n * TOKEN) },
  });
}

describe("npm start on a chain that exists", () => {
  it(
    "uses somebody's node, and remembers it",
    async () => {
      const nodeUrl = local.url("jsonRpc");
      const offset = { portOffset: OFFSET_B ?? 0, isAttached: true };
      let kit = await start({ ...offset, args: ["--node-url", nodeUrl] });
      const { home } = kit;
      expect(kit.output()).toContain("A new home on testnet");
      expect(kit.output()).not.toContain("faucet key");
      await exchangeWorks(kit);
      await expect(fetch(kit.url("cometRpc"))).rejects.toThrow();
      const status = await readyStatus(kit);
      const { ready, parts } = JSON.parse(status.stdout);
      expect({ ready, node: parts[0] }).toMatchObject({ ready: true, node: { url: nodeUrl } });
      expect(await readyDoctor(kit)).toMatchObject({ code: 0 });
      expect(await kit.stop()).toBe(0);

      kit = await start({ ...offset, home, args: [] });
      kits.splice(kits.indexOf(kit), 1, kit);
      expect((await runCauseway(kit, ["reconcile"])).code).toBe(0);
    },
    TIMEOUT_MS,
  );

  it(
    "runs a node of its own from a genesis and one seed, and catches up",
    async () => {
      const genesis = path.join(local.home, "config", "genesis.json");
      const seed = `127.0.0.1:${local.port("p2p")}`;
      const kit = await start({
        portOffset: OFFSET_C ?? 0,
        isAttached: true,
        args: [...LEAN, "--network", "testnet", "--genesis", genesis, "--seeds", seed],
      });
      const [theirs, ours] = await Promise.all(
        [local, kit].map((each) => nodeReport(each.port("cometRpc"))),
      );
      expect(ours?.nodeId).not.toBe(theirs?.nodeId);
      await until(async () => (await nodeReport(kit.port("cometRpc")))?.isCatchingUp === false, {
        timeoutMs: 60_000,
        what: `the node has caught up\n${kit.output()}`,
      });
      await exchangeWorks(kit);
    },
    TIMEOUT_MS,
  );
});
