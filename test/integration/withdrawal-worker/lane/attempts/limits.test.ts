/** Settings of gas that were lowered: nonces from before find their way out within the new ones. */
import { describe, expect, it } from "@jest/globals";
import { cancelWithdrawal } from "../../../../../ledger/withdrawals/cancellation.js";
import { freezeSigning, releaseSigning } from "../../../../../ledger/requests/signing-freeze.js";
import { Lane } from "../../../../../withdrawal-worker/lane/lane.js";
import type { GasSettings } from "../../../../../withdrawal-worker/gas.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  WALLET,
  decodeRaw,
} from "../../../../helpers/exchange/house.js";

import { PERMISSIVE } from "../../../../helpers/keys/signing.js";
let house: House;

houseForEachTest((opened) => {
  house = opened;
});

async function acceptTo(gas = 21_000n) {
  const to = freshAddress();
  house.chain.gasOf.set(to, gas);
  const { id } = await house.accept({ destination: to, destinationText: to });
  return { id, to };
}

/** A lane behind a worker that ended: the wallet is free. */
async function laneWith(gas: Partial<GasSettings>): Promise<Lane> {
  await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL`);
  return house.lane({ gas: { ...house.context().settings.gas, ...gas } });
}

/** A round in which a person freezes signing between the nonces and the signatures. */
async function takeOnly(): Promise<void> {
  const context = house.context();
  const lane = new Lane(
    {
      ...context,
      ledger: {
        ...context.ledger,
        takeSlots: async (...given) => {
          const taken = await context.ledger.takeSlots(...given);
          await freezeSigning(house.database, WALLET, "prices are odd");
          return taken;
        },
      },
    },
    "before",
  );
  await lane.runRound(house.signal);
  await releaseSigning(house.database, WALLET);
}

async function pass(lane: Lane, options: { rounds: number; stepMs: number }): Promise<void> {
  for (let round = 0; round < options.rounds; round++) {
    await lane.runRound(house.signal);
    house.chain.mine();
    house.clock.ms += options.stepMs;
  }
}

const sent = () => house.chain.arrived.map((raw) => decodeRaw(raw));

describe("a nonce that has no signature yet", () => {
  it("is signed for at the price cap when that was lowered below its price", async () => {
    const { id } = await acceptTo();
    await takeOnly();
    expect((await house.read(id)).status).toBe("slotted");
    const priceCapAtoken = 1_000_000n;
    await pass(await laneWith({ priceCapAtoken }), { rounds: 3, stepMs: 2_000 });
    expect((await house.read(id)).status).toBe("settled");
    expect(sent().map((tx) => tx.maxFeePerGasAtoken)).toEqual([priceCapAtoken]);
  });

  it("is given up when its payment needs more gas than is allowed now, and no customer is blamed", async () => {
    const dear = await acceptTo(450_000n);
    const plain = await acceptTo();
    await takeOnly();
    const lane = await laneWith({ limitMax: 100_000n });
    await pass(lane, { rounds: 4, stepMs: 2_000 });
    const { status, reason } = await house.read(dear.id);
    expect({ status, reason }).toEqual({
      status: "failed",
      reason: "its payment needs more gas than is allowed now (540000 above 100000)",
    });
    expect((await house.read(plain.id)).status).toBe("settled");
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
    expect(await house.database.query(`SELECT * FROM payout_failure`)).toEqual([]);
  });
});

describe("a nonce whose payment may cost more in fees than is allowed of one", () => {
  it.each(["the setting was lowered", "its row says more than was allowed"])(
    "is given up unsigned once it was waited for, and no customer is blamed (%s)",
    async (why) => {
      const dear = await acceptTo();
      await takeOnly();
      const feePerPayoutAtoken = why.startsWith("its row") ? TOKEN / 10_000n : 25_200n;
      if (why.startsWith("its row")) {
        await house.ledger.owner.query(`UPDATE nonce_slot SET gas_limit = 1000000,
          gas_price_atoken = 1000000001`);
      }
      const lane = await laneWith({ feePerPayoutAtoken });
      await pass(lane, { rounds: 4, stepMs: 140_000 });
      expect((await house.read(dear.id)).status).toBe("slotted");
      // What comes behind it is not made to wait with it.
      const behind = await acceptTo();
      await pass(lane, { rounds: 1, stepMs: 2_000 });
      expect((await house.read(behind.id)).status).toBe("accepted");
      house.clock.ms += 40_000;
      await pass(lane, { rounds: 3, stepMs: 2_000 });
      expect(await house.read(dear.id)).toMatchObject({
        status: "failed",
        reason: expect.stringContaining("may cost more in fees than is allowed now"),
      });
      expect(sent()[0]).toMatchObject({ to: WALLET, gasLimit: 21_000n });
      expect(sent().map(({ to }) => to)).not.toContain(dear.to);
      expect((await house.balance("alice")).available).toBe(99n * TOKEN);
      expect(await house.database.query(`SELECT * FROM payout_failure`)).toEqual([]);
      // Those behind it go on.
      const plain = await acceptTo();
      await pass(await laneWith({}), { rounds: 3, stepMs: 2_000 });
      expect((await house.read(plain.id)).status).toBe("settled");
    },
  );

  it("is signed by the worker of a home that allows more: this one gives the wallet up to it", async () => {
    const dear = await acceptTo();
    await takeOnly();
    const generous = await laneWith({});
    const strict = await laneWith({ feePerPayoutAtoken: 25_200n });
    await pass(strict, { rounds: 1, stepMs: 2_000 });
    expect((await house.read(dear.id)).status).toBe("slotted");
    expect(strict.status()).toMatchObject({
      holdsLease: true,
      blockedReason: expect.stringContaining("above that of one payment"),
    });
    await pass(generous, { rounds: 2, stepMs: 2_000 });
    expect((await house.read(dear.id)).status).toBe("settled");
    expect(sent()).toHaveLength(1);
  });

  it("goes with all others of that kind behind it", async () => {
    const dear = [await acceptTo(), await acceptTo(), await acceptTo()];
    await takeOnly();
    const lane = await laneWith({ feePerPayoutAtoken: 25_200n });
    await pass(lane, { rounds: 6, stepMs: 190_000 });
    for (const { id } of dear) expect((await house.read(id)).status).toBe("failed");
  });
});

describe("a payment that is in the pool", () => {
  it("is made dearer within a lowered gas limit", async () => {
    const { id, to } = await acceptTo(450_000n);
    house.chain.unmined.add(to);
    await pass(await laneWith({}), { rounds: 1, stepMs: 0 });
    house.chain.gasOf.set(to, 30_000n);
    const lane = await laneWith({ limitMax: 100_000n });
    await pass(lane, { rounds: 4, stepMs: 40_000 });
    expect(sent().length).toBeGreaterThan(1);
    expect(
      sent()
        .slice(1)
        .every(({ gasLimit }) => gasLimit <= 100_000n),
    ).toBe(true);
    house.chain.unmined.clear();
    await pass(lane, { rounds: 2, stepMs: 2_000 });
    expect((await house.read(id)).status).toBe("settled");
  });

  it("is corrected within limits that were lowered since", async () => {
    const { id, to } = await acceptTo(450_000n);
    house.chain.minimumPriceAtoken = 26_000_000n;
    let refusals = 1;
    house.chain.override = (method) =>
      method === "eth_sendRawTransaction" && refusals-- > 0
        ? { error: { code: -32000, message: "server too busy" } }
        : undefined;
    await pass(await laneWith({}), { rounds: 1, stepMs: 2_000 });
    house.chain.gasOf.set(to, 30_000n);
    const lane = await laneWith({ limitMax: 100_000n });
    await pass(lane, { rounds: 4, stepMs: 2_000 });
    expect((await house.read(id)).status).toBe("settled");
    expect(sent().at(-1)?.gasLimit).toBe(36_000n);
  });
});

describe("a payment that is taken back and was dearer than the price cap is now", () => {
  const cap = 1_000_000n;

  async function takenBack() {
    const { id, to } = await acceptTo();
    house.chain.unmined.add(to);
    await pass(await laneWith({}), { rounds: 1, stepMs: 0 });
    const behind = await acceptTo();
    await cancelWithdrawal(house.database, id, "taken back");
    return { id, behind: behind.id };
  }

  it("gives its nonce up where no pool has it any more: nobody behind it waits for ever", async () => {
    const { id, behind } = await takenBack();
    house.chain.clearPool();
    await pass(await laneWith({ priceCapAtoken: cap }), { rounds: 4, stepMs: 2_000 });
    expect((await house.read(id)).status).toBe("cancelled");
    expect((await house.read(behind)).status).toBe("settled");
    expect(sent().find(({ to }) => to === WALLET)?.maxFeePerGasAtoken).toBe(1_100_000n);
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
  });

  it("has one transfer of nothing signed while a pool keeps it, and is settled when it is mined", async () => {
    const { id } = await takenBack();
    const lane = await laneWith({ priceCapAtoken: cap });
    await pass(lane, { rounds: 6, stepMs: 40_000 });
    expect((await house.read(id)).hashes).toHaveLength(2);
    house.chain.unmined.clear();
    await pass(lane, { rounds: 3, stepMs: 2_000 });
    expect((await house.read(id)).status).toBe("settled");
  });
});

describe("a payment whose correction costs no more than what was signed", () => {
  it.each(["feePerDayAtoken", "feePerPayoutAtoken"] as const)(
    "is corrected although %s was lowered below it",
    async (budget) => {
      const { id, to } = await acceptTo(450_000n);
      let isBusy = true;
      house.chain.override = (method, [raw]) => {
        if (method !== "eth_sendRawTransaction") return undefined;
        const isTooHigh = decodeRaw(String(raw)).gasLimit > 100_000n;
        const message = isBusy ? "server too busy" : "exceeds block gas limit";
        return isBusy || isTooHigh ? { error: { code: -32000, message } } : undefined;
      };
      await pass(await laneWith({}), { rounds: 1, stepMs: 2_000 });
      isBusy = false;
      house.chain.gasOf.set(to, 30_000n);
      await pass(await laneWith({ [budget]: 1n }), { rounds: 4, stepMs: 2_000 });
      expect((await house.read(id)).status).toBe("settled");
      expect(sent().at(-1)?.gasLimit).toBe(30_000n);
    },
  );
});

describe("a node that finds a payment's gas too high and then too low", () => {
  it("ends neither the lane nor itself in a circle: the nonce is given up", async () => {
    const { id, to } = await acceptTo(450_000n);
    let answers = 0;
    house.chain.override = (method, [raw]) => {
      if (method !== "eth_sendRawTransaction") return undefined;
      if (decodeRaw(String(raw)).to === WALLET) return undefined;
      answers += 1;
      const message =
        answers % 2 === 1 ? "exceeds block gas limit" : "intrinsic gas too low, minimum needed 1";
      return { error: { code: -32000, message } };
    };
    const lane = house.lane();
    await pass(lane, { rounds: 6, stepMs: 6_000 });
    expect((await house.read(id)).status).toBe("failed");
    expect(house.chain.balances.get(to) ?? 0n).toBe(0n);
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
  });

  it("may have the same bytes stored twice", async () => {
    const { id } = await acceptTo();
    const lane = house.lane();
    await lane.runRound(house.signal);
    const { ledger } = house.context();
    const [slot] = await ledger.readLiveSlots({
      wallet: WALLET,
      statuses: ["broadcast"],
      limit: 1,
    });
    const [first] = slot?.attempts ?? [];
    if (slot === undefined || first?.raw === undefined) throw new Error("no attempt");
    await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL`);
    const lease = await ledger.acquireLease({ wallet: WALLET, owner: "other", leaseMs: 3_000 });
    if (lease === undefined) throw new Error("no lease");
    const { slotId, withdrawalId, amountUnits: valueAtoken } = slot;
    const again = { ...first, raw: first.raw, n: 1, slotId, withdrawalId, valueAtoken };
    const rules = { feePerDayAtoken: TOKEN, policyHash: PERMISSIVE.hash };
    expect(await ledger.storeAttempts(lease, [again], rules)).toBe(true);
    expect((await house.read(id)).hashes).toEqual([first.hash]);
  });
});
