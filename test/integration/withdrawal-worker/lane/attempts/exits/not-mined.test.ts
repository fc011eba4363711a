/** A payment that is not mined: made dearer within its budgets, and given up in the end. */
import { describe, expect, it } from "@jest/globals";
import { freezeSigning, releaseSigning } from "../../../../../../ledger/requests/signing-freeze.js";
import {
  decodeRaw,
  House,
  houseForEachTest,
  TOKEN,
  WALLET,
} from "../../../../../helpers/exchange/house.js";
import { expectEvenBooks } from "./even-books.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const FEE = 21_000n * 25_000_000n;

describe("a payment that is not mined", () => {
  it("is made dearer in time, on the same nonce, and whichever is mined is booked once", async () => {
    const { id, to } = await house.acceptTo();
    house.chain.unmined.add(to);
    const lane = house.lane();
    await house.pass(lane, { rounds: 5, stepMs: 15_000 });
    const waiting = await house.read(id);
    expect(waiting.status).toBe("broadcast");
    expect(waiting.hashes.length).toBeGreaterThan(1);
    const prices = house.chain.arrived.map((raw) => decodeRaw(raw).maxFeePerGasAtoken);
    expect(prices[1]).toBe(27_500_000n);
    house.chain.unmined.clear();
    house.chain.mine();
    await lane.runRound(house.signal);
    const settled = await house.read(id);
    expect(settled.status).toBe("settled");
    expect(settled.txHash).toBe(settled.hashes.at(-1));
    expect(house.chain.balances.get(to)).toBe(TOKEN);
    expect(house.chain.nonces.get(WALLET)).toBe(1n);
    await expectEvenBooks(house);
  });

  it("is made dearer and corrected where the wallet's coins cover its fee, and not all gas", async () => {
    house.chain.balances.set(WALLET, TOKEN + 10n ** 13n);
    house.chain.mine();
    const { node } = house.context();
    const lane = house.laneWith({
      node: {
        ...node,
        // As a token's call is answered: the node demands the price of all the gas that it names.
        estimate: async (wallet, payments, options) => {
          const meanings = await node.estimate(wallet, payments, options);
          const { balanceAtoken } = await node.view(wallet, options);
          return payments.map(({ valueAtoken, gasMax, gasPriceAtoken }, index) =>
            valueAtoken + gasMax * gasPriceAtoken > balanceAtoken
              ? { kind: "unknown", reason: "its call gave no answer" }
              : meanings[index],
          );
        },
      },
    });
    const { id, to } = await house.acceptTo();
    house.chain.unmined.add(to);
    let refusals = 1;
    house.chain.override = (method) =>
      method === "eth_sendRawTransaction" && refusals-- > 0
        ? { error: { code: -32000, message: "exceeds block gas limit" } }
        : undefined;
    await house.pass(lane, { rounds: 2, stepMs: 1_000 });
    await house.pass(lane, { rounds: 3, stepMs: 15_000 });
    expect((await house.read(id)).hashes).toHaveLength(3);
    const [corrected, ...later] = house.chain.arrived.map((raw) => decodeRaw(raw));
    const dearer = later.at(-1);
    expect([corrected?.gasLimit, corrected?.maxFeePerGasAtoken]).toEqual([21_000n, 25_000_000n]);
    expect([dearer?.gasLimit, dearer?.maxFeePerGasAtoken]).toEqual([25_200n, 27_500_000n]);
  });

  it("is not made dearer than the wallet's coins cover: what it has signed may still be mined", async () => {
    house.chain.balances.set(WALLET, TOKEN + (25_200n * 25_000_000n * 105n) / 100n);
    house.chain.mine();
    const lane = house.lane();
    const { id, to } = await house.acceptTo();
    house.chain.unmined.add(to);
    await house.pass(lane, { rounds: 2, stepMs: 1_000 });
    await house.pass(lane, { rounds: 3, stepMs: 15_000 });
    expect((await house.read(id)).hashes).toHaveLength(1);
  });

  it("is never made dearer than the budgets of a payout and of a day", async () => {
    const gas = { ...house.context().settings.gas };
    for (const budget of [{ feePerPayoutAtoken: FEE * 2n }, { feePerDayAtoken: FEE * 2n }]) {
      const { id, to } = await house.acceptTo();
      house.chain.unmined.add(to);
      const lane = house.lane({ gas: { ...gas, ...budget } });
      await house.pass(lane, { rounds: 30, stepMs: 15_000 });
      for (const raw of house.chain.arrived) {
        const { gasLimit, maxFeePerGasAtoken } = decodeRaw(raw);
        expect(gasLimit * maxFeePerGasAtoken).toBeLessThanOrEqual(FEE * 2n);
      }
      expect((await house.read(id)).hashes.length).toBeGreaterThan(2);
      house.chain.unmined.clear();
      house.chain.mine();
      await lane.runRound(house.signal);
      await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL, fee_day_atoken = 0`);
      house.chain.arrived.length = 0;
    }
  });

  it("waits without a nonce while the day's fees are used up, and the lane says so", async () => {
    const { gas } = house.context().settings;
    const lane = house.lane({ gas: { ...gas, feePerDayAtoken: FEE * 2n } });
    const [first, second] = [await house.acceptTo(), await house.acceptTo()];
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect((await house.read(first.id)).status).toBe("settled");
    const waiting = await house.read(second.id);
    expect([waiting.status, waiting.nonce]).toEqual(["accepted", undefined]);
    expect(waiting.reason).toContain("budget of network fees");
    await house.database.query(`UPDATE withdrawal SET next_try_at = now()
      WHERE status = 'accepted'`);
    await lane.runRound(house.signal);
    expect(lane.status().blockedReason).toContain("budget of network fees");
    await house.database.query(`UPDATE hot_wallet SET fee_day = fee_day - 1`);
    await house.database.query(`UPDATE withdrawal SET next_try_at = now()
      WHERE status = 'accepted'`);
    house.clock.ms += 5_000;
    await lane.runRound(house.signal);
    expect((await house.read(second.id)).status).toBe("broadcast");
    expect(lane.status().blockedReason).toBeUndefined();
  });

  it("is not said to stand still where the day's fees do not cover one dear payment alone", async () => {
    const { gas } = house.context().settings;
    const lane = house.lane({ gas: { ...gas, feePerDayAtoken: FEE * 10n } });
    const dear = await house.acceptTo();
    house.chain.gasOf.set(dear.to, 400_000n);
    await lane.runRound(house.signal);
    const waiting = await house.read(dear.id);
    expect([waiting.status, waiting.nonce]).toEqual(["accepted", undefined]);
    expect(waiting.reason).toContain("budget of network fees");
    expect(lane.status().blockedReason).toBeUndefined();
    const cheap = await house.acceptTo();
    await lane.runRound(house.signal);
    expect((await house.read(cheap.id)).status).toBe("broadcast");
    expect(lane.status().blockedReason).toBeUndefined();
  });

  it("fails in the end: a transfer of nothing takes its nonce and the hold goes back", async () => {
    const { id, to } = await house.acceptTo();
    house.chain.unmined.add(to);
    const behind = await house.acceptTo();
    const lane = house.lane();
    await house.pass(lane, { rounds: 9, stepMs: 100_000 });
    const failed = await house.read(id);
    expect(failed.status).toBe("failed");
    expect(failed.reason).toContain("not mined within 600 s");
    expect((await house.read(behind.id)).status).toBe("settled");
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
    expect(house.chain.balances.get(to) ?? 0n).toBe(0n);
    const cancel = decodeRaw(house.chain.arrived.find((raw) => decodeRaw(raw).to === WALLET) ?? "");
    expect([cancel.nonce, cancel.valueAtoken, cancel.gasLimit]).toEqual([0n, 0n, 21_000n]);
    const slot = await house.database.query(`SELECT outcome FROM nonce_slot WHERE nonce = 0`);
    expect(slot).toEqual([{ outcome: "cancelled" }]);
    await expectEvenBooks(house);
  });

  it("is waited for from its signature on, however long who signs said nothing", async () => {
    let isSilent = true;
    const { signer } = house.context();
    const lane = house.laneWith({
      signer: {
        address: signer.address,
        review: (payments) => signer.review(payments),
        trouble: () => undefined,
        sign: async (intents, options) =>
          isSilent
            ? intents.map(() => ({ kind: "unanswered", reason: "silent" }) as const)
            : signer.sign(intents, options),
      },
    });
    const { id, to } = await house.acceptTo();
    await house.pass(lane, { rounds: 5, stepMs: 300_000 });
    expect((await house.read(id)).status).toBe("slotted");
    isSilent = false;
    // Signed and sent; then looked at before the next block.
    for (let round = 0; round < 3; round += 1) await lane.runRound(house.signal);
    await house.pass(lane, { rounds: 2, stepMs: 2_000 });
    expect(await house.read(id)).toMatchObject({ status: "settled", nonce: 0n });
    expect(house.chain.balances.get(to)).toBe(TOKEN);
  });

  it("is waited for anew behind a time in which the lane might not work, and not behind one look", async () => {
    let isOpen = true;
    const lane = house.laneWith({ guard: { mayGoOn: async () => isOpen } });
    const { id, to } = await house.acceptTo();
    house.chain.unmined.add(to);
    for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
    house.clock.ms += 20_000;
    for (const may of [false, true]) {
      isOpen = may;
      await lane.runRound(house.signal);
    }
    expect(lane.status().stalledMs).toBe(20_000);
    isOpen = false;
    await house.pass(lane, { rounds: 3, stepMs: 300_000 });
    isOpen = true;
    for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
    house.chain.unmined.clear();
    await house.pass(lane, { rounds: 2, stepMs: 2_000 });
    expect(await house.read(id)).toMatchObject({ status: "settled", nonce: 0n });
  });

  it("is not given up while signing is frozen, when nothing could take its nonce", async () => {
    const { id, to } = await house.acceptTo();
    house.chain.unmined.add(to);
    const lane = house.lane();
    for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
    await freezeSigning(house.database, WALLET, "a person looks");
    await house.pass(lane, { rounds: 5, stepMs: 300_000 });
    expect((await house.read(id)).status).toBe("broadcast");
    await releaseSigning(house.database, WALLET);
    for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
    house.chain.unmined.clear();
    await house.pass(lane, { rounds: 2, stepMs: 2_000 });
    expect(await house.read(id)).toMatchObject({ status: "settled", nonce: 0n });
  });

  it("makes the lane say that it does not move, with the nonce and the node's answer", async () => {
    const { to } = await house.acceptTo();
    house.chain.unmined.add(to);
    const lane = house.lane();
    for (let round = 0; round < 2; round++) await lane.runRound(house.signal);
    expect(lane.status().blockedReason).toBeUndefined();
    house.clock.ms += 61_000;
    await lane.runRound(house.signal);
    expect(lane.status().blockedReason).toMatch(/nonce 0 .*broadcast.* 61 s.*sent/);
    expect(lane.status().stalledMs).toBe(61_000);
    house.chain.unmined.clear();
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(lane.status()).toMatchObject({ blockedReason: undefined, stalledMs: 0 });
  });

  it("keeps its nonce while the chain stands still: nobody is mined then", async () => {
    const { id } = await house.acceptTo();
    const lane = house.lane();
    for (let round = 0; round < 12; round++) {
      house.clock.ms += 100_000;
      await lane.runRound(house.signal);
    }
    const waiting = await house.read(id);
    expect(waiting.status).toBe("broadcast");
    expect(waiting.hashes).toHaveLength(1);
    expect(lane.status().blockedReason).toContain("nonce 0");
  });
});
