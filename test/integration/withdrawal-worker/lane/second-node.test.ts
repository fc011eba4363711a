/** A second node: nothing is settled, and no hold given back, on the word of one alone. */
import { describe, expect, it } from "@jest/globals";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { readPayers, readWalletOverview } from "../../../../ledger/withdrawals/wallet-overview.js";
import { NodeFault, RpcError } from "../../../../rpc-client/errors.js";
import { WorkerError } from "../../../../withdrawal-worker/errors.js";
import type { LaneSettings } from "../../../../withdrawal-worker/lane/lane-context.js";
import type { ReceiptsAtHeight } from "../../../../withdrawal-worker/lane/receipts.js";
import type { SecondNode } from "../../../../withdrawal-worker/lane/wallet-node.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  WALLET,
} from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

/** A lane whose second node tells what `tell` makes of the truth. */
function laneWith(
  tell: (truth: ReceiptsAtHeight) => ReceiptsAtHeight,
  settings: Partial<LaneSettings> = {},
  other: Partial<SecondNode> = {},
) {
  const context = house.context(settings);
  const secondNode: SecondNode = {
    ...context.node,
    ...other,
    receipts: async (hashes, options) => tell(await context.node.receipts(hashes, options)),
  };
  return house.laneWith({ ...context, secondNode });
}

const statusOf = async (id: WithdrawalId) => (await house.read(id)).status;

/** More payments than two batches of two hold. */
async function acceptSome(): Promise<readonly WithdrawalId[]> {
  const ids: WithdrawalId[] = [];
  while (ids.length < 5) ids.push((await house.accept()).id);
  return ids;
}

describe("a payment", () => {
  it("is settled once the second node has its block, too", async () => {
    const { id } = await house.accept();
    let isBehind = true;
    const lane = laneWith((truth) =>
      isBehind ? { ...truth, height: 1, byHash: new Map() } : truth,
    );
    await lane.runRound(house.signal);
    house.chain.mine();
    for (let round = 0; round < 3; round += 1) await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("included");
    isBehind = false;
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("settled");
    expect(await house.isFrozen()).toBe(false);
  });

  it("that only one node calls failed gives no hold back: it freezes at the second look", async () => {
    const { id } = await house.accept();
    const lane = laneWith(({ byHash, ...rest }) => ({
      ...rest,
      byHash: new Map([...byHash].map(([hash, receipt]) => [hash, { ...receipt, status: 0 }])),
    }));
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("included");
    await lane.runRound(house.signal);
    expect(await house.read(id)).toMatchObject({ status: "frozen" });
    expect(await house.isFrozen()).toBe(true);
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: TOKEN });
  });

  it("is booked with all of its block in one round, batch after batch", async () => {
    const ids = await acceptSome();
    const lane = laneWith((truth) => truth, { batchSize: 2 });
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    for (const id of ids) expect(await statusOf(id)).toBe("settled");
  });

  it("that is disputed is looked at once in a round, however many are booked beside it", async () => {
    const ids = await acceptSome();
    const [disputed] = ids;
    if (disputed === undefined) throw new Error("nothing was accepted");
    const liedAbout = new Set<string>();
    const lane = laneWith(
      ({ byHash, ...rest }) => ({
        ...rest,
        byHash: new Map(
          [...byHash].map(([hash, receipt]) => [
            hash,
            liedAbout.has(hash) ? { ...receipt, status: 0 } : receipt,
          ]),
        ),
      }),
      { batchSize: 2 },
    );
    await lane.runRound(house.signal);
    for (const hash of (await house.read(disputed)).hashes) liedAbout.add(hash);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(await statusOf(disputed)).toBe("included");
    expect(await house.isFrozen()).toBe(false);
    await lane.runRound(house.signal);
    expect(await statusOf(disputed)).toBe("frozen");
  });

  it("whose receipt the second node has a little later than the block waits for it", async () => {
    const { id } = await house.accept();
    let isIndexed = false;
    const lane = laneWith((truth) => (isIndexed ? truth : { ...truth, byHash: new Map() }));
    await lane.runRound(house.signal);
    house.chain.mine();
    for (let round = 0; round < 4; round += 1) {
      await lane.runRound(house.signal);
      house.clock.ms += 900;
    }
    expect(await statusOf(id)).toBe("included");
    expect(await house.isFrozen()).toBe(false);
    isIndexed = true;
    await lane.runRound(house.signal);
    expect(await statusOf(id)).toBe("settled");
  });

  it("that the second node does not know at its height freezes once its receipt is missing for long", async () => {
    const { id } = await house.accept();
    const lane = laneWith((truth) => ({ ...truth, byHash: new Map() }));
    await lane.runRound(house.signal);
    house.chain.mine();
    for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
    expect(await statusOf(id)).toBe("included");
    house.clock.ms += 3_000;
    await lane.runRound(house.signal);
    expect(await statusOf(id)).toBe("frozen");
  });

  it.each([
    [
      "whose block the second node does not keep",
      { headers: async () => [undefined] },
      "the second node does not keep the blocks",
    ],
    [
      "whose block the second node has pruned",
      {
        headers: async () => {
          throw new RpcError("pruned history unavailable", { rpcCode: 4444, method: "headers" });
        },
      },
      "the second node does not keep the blocks",
    ],
    [
      "of which a second node on another chain knows nothing",
      {
        assertChain: async () => {
          throw new WorkerError("WRONG_NODE", "another chain");
        },
      },
      "the second node serves another chain",
    ],
  ] as const)("%s waits for it, and freezes nothing", async (_, other, reason) => {
    const { id } = await house.accept();
    let isSilent = true;
    const lane = laneWith(
      (truth) => (isSilent ? { ...truth, byHash: new Map() } : truth),
      {},
      other,
    );
    await lane.runRound(house.signal);
    house.chain.mine();
    for (let round = 0; round < 3; round += 1) {
      await lane.runRound(house.signal);
      house.clock.ms += 3_000;
    }
    expect(await statusOf(id)).toBe("included");
    expect(await house.isFrozen()).toBe(false);
    expect(lane.status().blockedReason).toContain(reason);
    isSilent = false;
    await lane.runRound(house.signal);
    expect(await statusOf(id)).toBe("settled");
    expect(lane.status().blockedReason).toBeUndefined();
  });

  it("is said to wait for a second node that stands still", async () => {
    const { id } = await house.accept();
    let isBehind = true;
    const lane = laneWith((truth) =>
      isBehind ? { ...truth, height: 1, byHash: new Map() } : truth,
    );
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(lane.status().blockedReason).toBeUndefined();
    house.clock.ms += 60_000;
    await lane.runRound(house.signal);
    expect(await statusOf(id)).toBe("included");
    expect(lane.status().blockedReason).toContain("the second node has not come to blocks");
    isBehind = false;
    await lane.runRound(house.signal);
    expect(await statusOf(id)).toBe("settled");
    expect(lane.status().blockedReason).toBeUndefined();
  });

  it("goes out while the second node is down, and waits to be settled", async () => {
    const { id } = await house.accept();
    let isDown = true;
    const lane = laneWith((truth) => {
      if (isDown) throw new NodeFault("NODE_UNREACHABLE", "nobody listens", { retriable: true });
      return truth;
    });
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    const later = await house.accept();
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("included");
    expect((await house.read(later.id)).status).toBe("broadcast");
    expect(lane.status().blockedReason).toContain("the second node cannot be asked");
    isDown = false;
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("settled");
    expect(lane.status().blockedReason).toBeUndefined();
  });
});

describe("what is mined and waits for the second node", () => {
  const downLane = (settings?: Partial<LaneSettings>) =>
    laneWith(() => {
      throw new NodeFault("NODE_TIMEOUT", "no answer in time", { retriable: true });
    }, settings);

  /** Rounds, each of which looks at all that waits. */
  async function rounds(lane: ReturnType<typeof downLane>, count: number): Promise<void> {
    for (let round = 0; round < count; round += 1) {
      await house.hurry();
      await lane.runRound(house.signal);
    }
  }

  it("is taken of the wallet's coins once: what is left is paid", async () => {
    house.chain.balances.set(WALLET, 10n * TOKEN);
    house.chain.mine();
    const lane = downLane();
    const first = await house.acceptTo(6n * TOKEN);
    await rounds(lane, 1);
    const free = async () => (await readPayers(house.database))[0]?.freeAtoken;
    expect(await free()).toBeLessThan(4n * TOKEN);
    house.chain.mine();
    await rounds(lane, 2);
    expect(await statusOf(first.id)).toBe("included");
    const left = house.chain.balances.get(WALLET);
    expect(await free()).toBe(left);
    const [overview] = await readWalletOverview(house.database);
    expect([overview?.seenAtoken, overview?.reservedAtoken, overview?.openSlots]).toEqual([
      left,
      0n,
      1,
    ]);
    const second = await house.acceptTo(3n * TOKEN);
    await rounds(lane, 1);
    expect(await statusOf(second.id)).toBe("broadcast");
    const third = await house.acceptTo(TOKEN);
    await rounds(lane, 2);
    const { status, reason } = await house.read(third.id);
    expect([status, reason]).toEqual(["accepted", expect.stringContaining("free balance")]);
    expect(await free()).toBeLessThan(TOKEN);
  });

  it("takes no part of the gas of payouts to contracts, which wait for no block of it any more", async () => {
    const [first, second] = [await house.acceptTo(), await house.acceptTo()];
    for (const { to } of [first, second]) house.chain.gasOf.set(to, 300_000n);
    const { gas } = house.context().settings;
    const lane = downLane({ gas: { ...gas, codeGasInFlight: 500_000n } });
    await rounds(lane, 2);
    expect([await statusOf(first.id), await statusOf(second.id)]).toEqual([
      "broadcast",
      "accepted",
    ]);
    house.chain.mine();
    await rounds(lane, 2);
    expect([await statusOf(first.id), await statusOf(second.id)]).toEqual([
      "included",
      "broadcast",
    ]);
  });

  it("keeps no destination waiting that refuses what the wallet could pay twice", async () => {
    house.chain.balances.set(WALLET, 10n * TOKEN);
    house.chain.mine();
    const lane = downLane();
    const first = await house.acceptTo(6n * TOKEN);
    await rounds(lane, 1);
    house.chain.mine();
    await rounds(lane, 1);
    expect(await statusOf(first.id)).toBe("included");
    const to = freshAddress();
    house.chain.reverting.add(to);
    const refused = await house.accept({ destination: to, destinationText: to });
    await rounds(lane, 1);
    expect(await house.read(refused.id)).toMatchObject({
      status: "failed",
      reason: expect.stringContaining("the destination refuses"),
    });
  });

  it("is reserved again by a slot that is frozen", async () => {
    house.chain.balances.set(WALLET, 10n * TOKEN);
    house.chain.mine();
    const lane = downLane();
    const first = await house.acceptTo(6n * TOKEN);
    await rounds(lane, 1);
    house.chain.mine();
    await rounds(lane, 1);
    const { lease_epoch: epoch } = await leaseRow();
    const steps = [{ id: first.id, reason: "a person has to look" }];
    await house.context().ledger.freezeWithdrawals({ wallet: WALLET, epoch: BigInt(epoch) }, steps);
    const second = await house.acceptTo(3n * TOKEN);
    await rounds(lane, 2);
    expect(await statusOf(second.id)).toBe("accepted");
    const [overview] = await readWalletOverview(house.database);
    expect(overview?.reservedAtoken).toBeGreaterThan(6n * TOKEN);
  });
});

async function leaseRow(): Promise<{ readonly lease_epoch: string }> {
  const [row] = await house.database.query<{ lease_epoch: string }>(
    `SELECT lease_epoch::text FROM hot_wallet WHERE wallet = $1`,
    [WALLET],
  );
  if (row === undefined) throw new Error("no lane");
  return row;
}
