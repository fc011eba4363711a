/** A lane whose process stood still in the middle of a look: what it knew from before decides nothing. */
import { expect, it } from "@jest/globals";
import type { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import type { LaneContext } from "../../../../withdrawal-worker/lane/lane-context.js";
import { MAX_LEASE_MS } from "../../../../ledger/lease.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import { registerWallets } from "../../../../ledger/wallets/wallet-registry.js";
import { House, houseForEachTest, statuses, WALLET } from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

/** Longer than any patience of a lane. */
const STANDSTILL_MS = 3_600_000;

/** A lane renews its lease while it works: not between the loss that a test makes and who comes then. */
const HELD = { leaseMs: MAX_LEASE_MS };

const contextOf = () => house.context(HELD);

/** Does something once, when the test says so. */
function once(happens: () => unknown) {
  const trap = {
    isSet: false,
    async spring(): Promise<void> {
      if (!trap.isSet) return;
      trap.isSet = false;
      await happens();
    },
  };
  return trap;
}

/** It stands still at its fifth look, behind its patience, and its payment is mined meanwhile. */
async function expectPaidOnce(
  lane: Lane,
  stop: ReturnType<typeof once>,
  id: WithdrawalId,
): Promise<void> {
  await house.pass(lane, { rounds: 4, stepMs: 1_000 });
  stop.isSet = true;
  await lane.runRound(house.signal);
  expect(stop.isSet).toBe(false);
  for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
  const paid = await house.read(id);
  expect([paid.status, statuses(paid).includes("cancelling")]).toEqual(["settled", false]);
  expect(paid.hashes).toHaveLength(1);
}

it("freezes no wallet for receipts that it waited for while it stood still", async () => {
  const { id } = await house.accept();
  const context = contextOf();
  const { node } = context;
  const stop = once(() => (house.clock.ms += STANDSTILL_MS));
  let isDeaf = true;
  const deaf: LaneContext["node"] = {
    ...node,
    receipts: async (hashes, options) => {
      const found = await node.receipts(hashes, options);
      const answer = isDeaf ? { ...found, byHash: new Map() } : found;
      await stop.spring();
      return answer;
    },
  };
  const lane = house.laneWith({ ...context, node: deaf });
  await lane.runRound(house.signal);
  house.chain.mine();
  // The receipt is not there yet, at this look and at the next, in the middle of which it stands still.
  await lane.runRound(house.signal);
  house.clock.ms += 100;
  stop.isSet = true;
  await lane.runRound(house.signal);
  expect(stop.isSet).toBe(false);
  expect([await house.isFrozen(), (await house.read(id)).status]).toEqual([false, "broadcast"]);
  isDeaf = false;
  for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
  expect((await house.read(id)).status).toBe("settled");
});

it("freezes no wallet for what another worker has sent in a payment's place meanwhile", async () => {
  const { id } = await house.accept();
  const context = contextOf();
  const { node } = context;
  const other = house.lane(HELD);
  const stop = once(async () => {
    await house.ledger.owner.query(
      `UPDATE hot_wallet SET lease_expires_at = now() - interval '1 s'`,
    );
    expect(await cancelWithdrawal(house.database, id, "not wanted any more")).toBe("done");
    await other.runRound(house.signal);
  });
  const still: LaneContext["node"] = {
    ...node,
    send: async (raws, options) => {
      await stop.spring();
      return node.send(raws, options);
    },
  };
  stop.isSet = true;
  const lane = house.laneWith({ ...context, node: still });
  await lane.runRound(house.signal).catch(() => undefined);
  expect(stop.isSet).toBe(false);
  expect(await house.isFrozen()).toBe(false);
  for (let round = 0; round < 3; round += 1) {
    house.chain.mine();
    await other.runRound(house.signal);
  }
  expect((await house.read(id)).status).toBe("cancelled");
});

/** Another worker may take the wallet over. */
const loseLease = () =>
  house.ledger.owner.query(`UPDATE hot_wallet SET lease_expires_at = now() - interval '1 s'`);

/** A node that shows no receipt while the test says so, and what happens behind its answers. */
function deafNode(node: LaneContext["node"], isDeaf: () => boolean, behind: () => Promise<void>) {
  const receipts: LaneContext["node"]["receipts"] = async (hashes, options) => {
    const found = await node.receipts(hashes, options);
    const answer = isDeaf() ? { ...found, byHash: new Map() } : found;
    await behind();
    return answer;
  };
  return { ...node, receipts };
}

it("freezes no wallet for receipts that another worker has found meanwhile", async () => {
  const { id } = await house.accept();
  const context = contextOf();
  const other = house.lane(HELD);
  const stop = once(async () => {
    await loseLease();
    for (let round = 0; round < 2; round += 1) await other.runRound(house.signal);
  });
  const node = deafNode(
    context.node,
    () => true,
    () => stop.spring(),
  );
  const lane = house.laneWith({ ...context, node });
  await lane.runRound(house.signal);
  house.chain.mine();
  await lane.runRound(house.signal);
  house.clock.ms += STANDSTILL_MS;
  stop.isSet = true;
  await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "LEASE_LOST" });
  expect(stop.isSet).toBe(false);
  expect([await house.isFrozen(), (await house.read(id)).status]).toEqual([false, "settled"]);
});

/** A lane whose payments are sent and mined; in its next round it stops behind its look at receipts. */
async function minedBefore(stop: ReturnType<typeof once>): Promise<Lane> {
  const context = contextOf();
  const node = deafNode(
    context.node,
    () => false,
    () => stop.spring(),
  );
  const lane = house.laneWith({ ...context, node });
  await lane.runRound(house.signal);
  house.chain.mine();
  stop.isSet = true;
  return lane;
}

it("lets nothing go on that another worker has frozen meanwhile", async () => {
  const { id } = await house.accept();
  const context = contextOf();
  // Its second node calls the payment failed.
  const secondNode: LaneContext["secondNode"] = {
    ...context.node,
    receipts: async (hashes, options) => {
      const { byHash, ...rest } = await context.node.receipts(hashes, options);
      const failed = [...byHash].map(
        ([hash, receipt]) => [hash, { ...receipt, status: 0 }] as const,
      );
      return { ...rest, byHash: new Map(failed) };
    },
  };
  const other = house.laneWith({ ...contextOf(), secondNode });
  const stop = once(async () => {
    await loseLease();
    for (let round = 0; round < 2; round += 1) await other.runRound(house.signal);
    expect((await house.read(id)).status).toBe("frozen");
  });
  const lane = await minedBefore(stop);
  await lane.runRound(house.signal).catch(() => undefined);
  expect([stop.isSet, (await house.read(id)).status]).toEqual([false, "frozen"]);
});

it("records no block that was read before the watcher went back behind it", async () => {
  const { id } = await house.accept();
  const stop = once(async () => {
    await house.ledger.owner.query(`ALTER TABLE watch_cursor DISABLE TRIGGER ALL`);
    await house.ledger.owner.query(`UPDATE watch_cursor SET rewinds = rewinds + 1`);
    await house.ledger.owner.query(`ALTER TABLE watch_cursor ENABLE TRIGGER ALL`);
  });
  const lane = await minedBefore(stop);
  await lane.runRound(house.signal);
  // It would be sent no more, were it gone with its block.
  expect([stop.isSet, (await house.read(id)).status]).toEqual([false, "broadcast"]);
  await lane.runRound(house.signal);
  expect((await house.read(id)).status).toBe("settled");
});

it("counts no time in which another worker had the wallet", async () => {
  const { id } = await house.accept();
  const context = contextOf();
  let isDeaf = true;
  const node = deafNode(
    context.node,
    () => isDeaf,
    async () => undefined,
  );
  const lane = house.laneWith({ ...context, node });
  const other = house.laneWith({ ...contextOf(), node });
  await lane.runRound(house.signal);
  house.chain.mine();
  await lane.runRound(house.signal);
  await loseLease();
  await other.runRound(house.signal);
  house.clock.ms += STANDSTILL_MS;
  await loseLease();
  // The first look of this turn, at a node that lags once more.
  await lane.runRound(house.signal);
  expect([await house.isFrozen(), (await house.read(id)).status]).toEqual([false, "broadcast"]);
  isDeaf = false;
  for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
  expect((await house.read(id)).status).toBe("settled");
});

it("freezes the wallet where they are missing at looks that are far enough apart", async () => {
  const { id } = await house.accept();
  const context = contextOf();
  const { node } = context;
  const lane = house.laneWith({
    ...context,
    node: {
      ...node,
      receipts: async (hashes, options) => {
        return { ...(await node.receipts(hashes, options)), byHash: new Map() };
      },
    },
  });
  await lane.runRound(house.signal);
  house.chain.mine();
  await lane.runRound(house.signal);
  house.clock.ms += STANDSTILL_MS;
  await lane.runRound(house.signal);
  expect([await house.isFrozen(), (await house.read(id)).status]).toEqual([true, "frozen"]);
});

it("gives up no payment that was mined while it stood still", async () => {
  const { id, to } = await house.acceptTo();
  house.chain.unmined.add(to);
  const context = contextOf();
  const stop = once(() => {
    house.clock.ms += STANDSTILL_MS;
    house.chain.unmined.clear();
    house.chain.mine();
  });
  const lane = house.laneWith({
    ...context,
    ledger: {
      ...context.ledger,
      readLiveSlots: async (query) => {
        const slots = await context.ledger.readLiveSlots(query);
        if (query.limit === 1 && query.belowNonce === 1n) await stop.spring();
        return slots;
      },
    },
  });
  await expectPaidOnce(lane, stop, id);
});

it("gives up no payment that was mined while it stood still behind its look at the chain", async () => {
  const { id, to } = await house.acceptTo();
  house.chain.unmined.add(to);
  const context = contextOf();
  const { node } = context;
  const stop = once(() => {
    house.clock.ms += STANDSTILL_MS;
    house.chain.unmined.clear();
    house.chain.mine();
  });
  const lane = house.laneWith({
    ...context,
    node: {
      ...node,
      view: async (wallet, options) => {
        const view = await node.view(wallet, options);
        await stop.spring();
        return view;
      },
    },
  });
  await expectPaidOnce(lane, stop, id);
});

it("calls no receipt of a recorded payment lost for the time in which it stood still", async () => {
  await house.accept();
  const context = contextOf();
  const { node } = context;
  const stop = once(() => (house.clock.ms += STANDSTILL_MS));
  let [isSilent, isDeaf] = [true, false];
  const lane = house.laneWith({
    ...context,
    node: {
      ...node,
      headers: async (heights, options) =>
        isSilent ? heights.map(() => undefined) : node.headers(heights, options),
      receipts: async (hashes, options) => {
        const found = await node.receipts(hashes, options);
        await stop.spring();
        return isDeaf ? { ...found, byHash: new Map() } : found;
      },
    },
  });
  // Mined and recorded, and not booked.
  await house.pass(lane, { rounds: 2, stepMs: 1_000 });
  [isSilent, isDeaf] = [false, true];
  await lane.runRound(house.signal);
  house.clock.ms += 100;
  stop.isSet = true;
  await lane.runRound(house.signal);
  expect([stop.isSet, lane.status().blockedReason]).toEqual([false, undefined]);
  await lane.runRound(house.signal);
  expect(lane.status().blockedReason).toContain("no receipts of 1 payments");
});

it("gives up no payment of a wallet that another worker has taken over meanwhile", async () => {
  const { id, to } = await house.acceptTo();
  house.chain.unmined.add(to);
  const context = contextOf();
  const other = house.lane(HELD);
  const stop = once(async () => {
    await house.database.query(
      `UPDATE hot_wallet SET lease_expires_at = now() - interval '1 hour'`,
    );
    await other.runRound(house.signal);
  });
  const lane = house.laneWith({
    ...context,
    ledger: {
      ...context.ledger,
      readLiveSlots: async (query) => {
        const slots = await context.ledger.readLiveSlots(query);
        if (query.limit === 1 && query.belowNonce === 1n) await stop.spring();
        return slots;
      },
    },
  });
  await house.pass(lane, { rounds: 4, stepMs: 1_000 });
  house.clock.ms += STANDSTILL_MS;
  stop.isSet = true;
  await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "LEASE_LOST" });
  expect([stop.isSet, (await house.read(id)).status]).toEqual([false, "broadcast"]);
  house.chain.unmined.clear();
  house.chain.mine();
  for (let round = 0; round < 2; round += 1) await other.runRound(house.signal);
  expect(statuses(await house.read(id)).slice(-3)).toEqual(["broadcast", "included", "settled"]);
});

it("fails no request for an estimate from before another worker took the wallet over", async () => {
  const { id, to } = await house.acceptTo();
  house.chain.reverting.add(to);
  const context = contextOf();
  const { node } = context;
  const other = house.lane(HELD);
  const stop = once(async () => {
    house.chain.reverting.clear();
    await house.database.query(
      `UPDATE hot_wallet SET lease_expires_at = now() - interval '1 hour'`,
    );
    // It has no coins for it at this moment.
    const coins = house.chain.balances.get(WALLET) ?? 0n;
    house.chain.balances.set(WALLET, 0n);
    house.chain.mine();
    await other.runRound(house.signal);
    house.chain.balances.set(WALLET, coins);
    house.chain.mine();
  });
  stop.isSet = true;
  const lane = house.laneWith({
    ...context,
    node: {
      ...node,
      estimate: async (wallet, payments, options) => {
        const answers = await node.estimate(wallet, payments, options);
        await stop.spring();
        return answers;
      },
    },
  });
  await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "LEASE_LOST" });
  expect([stop.isSet, (await house.read(id)).status]).toEqual([false, "accepted"]);
  await house.database.query(`UPDATE withdrawal SET next_try_at = now()`);
  house.clock.ms += 5_000;
  await other.runRound(house.signal);
  house.chain.mine();
  for (let round = 0; round < 2; round += 1) await other.runRound(house.signal);
  expect((await house.read(id)).status).toBe("settled");
});

it("pays no address that became a wallet of the exchange meanwhile", async () => {
  const { id, to } = await house.acceptTo();
  const context = contextOf();
  const { node } = context;
  const word = { operator: "test", reason: "a new wallet" };
  const added = once(() =>
    registerWallets(house.ledger.owner, [{ address: to, label: "second", ...word }]),
  );
  added.isSet = true;
  const lane = house.laneWith({
    ...context,
    node: {
      ...node,
      estimate: async (wallet, payments, options) => {
        const answers = await node.estimate(wallet, payments, options);
        await added.spring();
        return answers;
      },
    },
  });
  await lane.runRound(house.signal);
  expect(added.isSet).toBe(false);
  expect([(await house.read(id)).status, house.chain.poolSize]).toEqual(["accepted", 0]);
  await lane.runRound(house.signal);
  const refused = await house.read(id);
  expect([refused.status, refused.nonce]).toEqual(["rejected", undefined]);
  expect(refused.reason).toContain("own-wallet");
});
