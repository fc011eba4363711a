/** A lane that can do nothing more for what waits: it rests until its next look, and asks nobody anew before. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { freezeBehindChain } from "../../../../ledger/requests/signing-freeze.js";
import { createHotWallet } from "../../../../ledger/wallets/wallet-lease.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { createLaneGuard } from "../../../../withdrawal-worker/lane/lane-guard.js";
import type { LaneSettings } from "../../../../withdrawal-worker/lane/lane-context.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { registerTestWallets, silentLog } from "../../../helpers/services/ledger.js";
import { laneRules } from "../../../helpers/keys/signing.js";
import { policyOf } from "../../policy/terms.js";
import { freshAddress, House, TOKEN } from "../../../helpers/exchange/house.js";
import { until } from "../../../helpers/until.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet of the lanes that rest"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let house: House;

beforeEach(async () => {
  house = await House.open();
  await house.fund("alice", 100n * TOKEN);
});
afterEach(() => house.close());

/** A request to an address with code. */
async function acceptCode() {
  const to = freshAddress();
  house.chain.withCode.add(to);
  return house.accept({ destination: to, destinationText: to });
}

describe("a payout to code", () => {
  it("that waits for a nonce to be free has no round follow the other", async () => {
    const lane = house.lane({ maxLiveSlots: 1 });
    await house.accept();
    await lane.runRound(house.signal);
    const { id } = await acceptCode();
    expect(await lane.runRound(house.signal)).toBe(false);
    expect((await house.read(id)).nonce).toBeUndefined();
    house.chain.mine();
    // Its nonce is signed for at once.
    expect(await lane.runRound(house.signal)).toBe(true);
    expect(await lane.runRound(house.signal)).toBe(false);
    expect((await house.read(id)).status).toBe("broadcast");
  });

  it("that no wallet may pay, as another one is behind the chain, has none either", async () => {
    await registerTestWallets(house.database, SECOND);
    await createHotWallet(house.database, { wallet: SECOND, firstNonce: 0n });
    await freezeBehindChain(house.database, { wallet: SECOND, seen: 1n, known: 0n });
    const lane = house.lane();
    const { id } = await acceptCode();
    expect(await lane.runRound(house.signal)).toBe(false);
    expect((await house.read(id)).nonce).toBeUndefined();
    expect(lane.status().blockedReason).toContain(SECOND);
  });
});

describe("payments beyond the limit of each of two wallets", () => {
  function secondLane(settings: Partial<LaneSettings>): Lane {
    const context = house.context(settings);
    const { priceCapAtoken: gasPriceCapAtoken, limitMax: gasLimitMax } = context.settings.gas;
    const rules = laneRules({
      privateKey: SECOND_KEY,
      chainId: FAKE_CHAIN_ID,
      limits: { gasPriceCapAtoken, gasLimitMax },
      sql: house.database,
      files: house.files,
    });
    const guard = createLaneGuard({ database: house.database, wallet: SECOND, log: silentLog });
    return new Lane({ ...context, ...rules, guard }, randomUUID());
  }

  it.each(["plain", "code"])("wait without rounds that follow each other (%s)", async (kind) => {
    house.chain.balances.set(SECOND, 20n * TOKEN);
    house.chain.mine();
    await registerTestWallets(house.database, SECOND);
    house.files.policy = policyOf({
      limits: [{ by: "wallet", window: "day", maxUnits: undefined, maxCount: 1 }],
    });
    // Each wallet has paid what it may.
    const paid = [await house.accept(), await house.accept()];
    const early = [house.lane(), secondLane({})];
    const areSettled = async () => {
      for (const lane of early) await lane.runRound(house.signal);
      house.chain.mine();
      house.clock.ms += 2_000;
      const found = await Promise.all(paid.map(({ id }) => house.read(id)));
      return found.every(({ status }) => status === "settled");
    };
    await until(areSettled, { timeoutMs: 60_000, what: "each wallet has paid" });
    await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL`);
    // They are late for another wallet for longer than the test takes, and fill a batch.
    const settings = { scanIntervalMs: 3_600_000, batchSize: 2, leaseMs: 60_000 };
    const lanes = [house.lane(settings), secondLane(settings)];
    for (const lane of lanes) await lane.runRound(house.signal);
    const asked = [];
    for (let count = 0; count < 4; count += 1) {
      asked.push(await (kind === "code" ? acceptCode() : house.accept()));
    }
    const hasMore = [];
    for (const lane of lanes) hasMore.push(await lane.runRound(house.signal));
    expect(hasMore).toEqual([false, false]);
    const states = await Promise.all(asked.map(({ id }) => house.read(id)));
    expect(states.map(({ status }) => status)).toEqual(asked.map(() => "accepted"));
  });
});
