/** Ways out: no payment keeps a nonce for ever, and no hold stays without a way back. */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { cancelWithdrawal } from "../../../../../ledger/withdrawals/cancellation.js";
import { freezeSigning, releaseSigning } from "../../../../../ledger/requests/signing-freeze.js";
import { recordInclusions } from "../../../../../ledger/withdrawals/recorded-inclusions.js";
import { receiptOfSlot } from "../../../../../ledger/withdrawals/slot-outcomes.js";
import type { Withdrawal } from "../../../../../ledger/withdrawals/withdrawals.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  statuses,
  WALLET,
  decodeRaw,
} from "../../../../helpers/exchange/house.js";
import { PERMISSIVE } from "../../../../helpers/keys/signing.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const FEE = 21_000n * 25_000_000n;

/** What the wallet spent on the chain is what the books say that it spent. */
async function expectEvenBooks(): Promise<void> {
  const spent = 1_000n * TOKEN - (house.chain.balances.get(WALLET) ?? 0n);
  expect(100n * TOKEN - (await house.accountAtoken(`asset:wallet:${WALLET}`))).toBe(spent);
}

describe("the limit of the node", () => {
  it("is asked before a nonce is taken: what does not fit with its margin fails at once", async () => {
    house.chain.maxTransactionGas = 500_000n;
    const greedy = await house.acceptTo();
    house.chain.gasOf.set(greedy.to, 450_000n);
    const plain = await house.acceptTo();
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    const failed = await house.read(greedy.id);
    expect(failed.status).toBe("failed");
    expect(failed.nonce).toBeUndefined();
    expect((await house.read(plain.id)).status).toBe("settled");
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
  });

  it("of a node that names none: the payment that it refuses gives its nonce up", async () => {
    house.chain.namesTransactionGas = false;
    house.chain.maxTransactionGas = 500_000n;
    const greedy = await house.acceptTo();
    house.chain.gasOf.set(greedy.to, 450_000n);
    const plain = await Promise.all([house.acceptTo(), house.acceptTo(), house.acceptTo()]);
    const lane = house.lane();
    // It reverts behind its first estimate: there is no gas with which it could be paid.
    house.chain.wireFault = (methods) => {
      if (methods.includes("eth_sendRawTransaction")) house.chain.reverting.add(greedy.to);
      return undefined;
    };
    await lane.runRound(house.signal);
    await house.pass(lane, { rounds: 4, stepMs: 2_000 });
    for (const { id } of plain) expect((await house.read(id)).status).toBe("settled");
    const failed = await house.read(greedy.id);
    expect(statuses(failed).slice(-3)).toEqual(["cancelling", "included", "failed"]);
    expect(failed.reason).toContain("refuses its payment for good");
    expect(house.chain.balances.get(greedy.to) ?? 0n).toBe(0n);
    expect(await house.balance("alice")).toEqual({ available: 97n * TOKEN, held: 0n });
    expect(house.chain.nonces.get(WALLET)).toBe(4n);
    await expectEvenBooks();
  });
});

describe("a payment that its node refuses and that cannot be estimated with what the wallet has", () => {
  it("waits: with more coins it may work", async () => {
    house.chain.balances.set(WALLET, TOKEN + 10n ** 13n);
    house.chain.mine();
    const { id } = await house.acceptTo();
    const { node } = house.context();
    let isRefused = false;
    const lane = house.laneWith({
      node: {
        ...node,
        estimate: async (wallet, payments, options) => {
          if (!isRefused) return node.estimate(wallet, payments, options);
          const reason = "gas required exceeds allowance (40000)";
          return payments.map(() => ({ kind: "refused-by-destination", reason }));
        },
      },
    });
    house.chain.override = (method) => {
      if (method !== "eth_sendRawTransaction") return undefined;
      isRefused = true;
      return { error: { code: -32_000, message: "exceeds block gas limit" } };
    };
    await house.pass(lane, { rounds: 3, stepMs: 2_000 });
    expect((await house.read(id)).status).toBe("signed");
    house.chain.override = () => undefined;
    await house.pass(lane, { rounds: 4, stepMs: 15_000 });
    expect((await house.read(id)).status).toBe("settled");
  });
});

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
    await expectEvenBooks();
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
    await expectEvenBooks();
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
    await releaseSigning(house.database, WALLET, "looked at");
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

describe("a request to cancel", () => {
  const cancel = (id: Withdrawal["id"], reason = "the customer asked") =>
    cancelWithdrawal(house.database, id, reason);

  it("ends what has no nonce at once, gives the hold back once, and may be repeated", async () => {
    const { id } = await house.acceptTo();
    expect(await Promise.all([cancel(id), cancel(id), cancel(id)])).toEqual([
      "done",
      "done",
      "done",
    ]);
    const cancelled = await house.read(id);
    expect(statuses(cancelled)).toEqual(["accepted", "cancelled"]);
    expect(cancelled.reason).toBe("the customer asked");
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
    await house.lane().runRound(house.signal);
    expect(house.chain.arrived).toEqual([]);
    const events = await house.database.query<{ type: string }>(`SELECT type FROM event`);
    expect(events.map(({ type }) => type)).toEqual(["withdrawal.accepted", "withdrawal.cancelled"]);
  });

  it("replaces what waits in the pool by a transfer of nothing, which ends it as cancelled", async () => {
    const { id, to } = await house.acceptTo();
    const lane = house.lane();
    await lane.runRound(house.signal);
    expect(await cancel(id)).toBe("done");
    expect((await house.read(id)).status).toBe("cancelling");
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: TOKEN });
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    const cancelled = await house.read(id);
    expect(statuses(cancelled).slice(-3)).toEqual(["cancelling", "included", "cancelled"]);
    expect(cancelled.txHash).toBe(cancelled.hashes[1]);
    expect(house.chain.balances.get(to) ?? 0n).toBe(0n);
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
    expect(await cancel(id)).toBe("done");
    await expectEvenBooks();
  });

  it("may be repeated between the transfer's receipt and its booking", async () => {
    const { id } = await house.acceptTo();
    const lane = house.lane();
    await lane.runRound(house.signal);
    await cancel(id);
    await lane.runRound(house.signal);
    house.chain.mine();
    const { ledger, node } = house.context();
    const [slot] = await ledger.readLiveSlots({
      wallet: WALLET,
      statuses: ["cancelling"],
      limit: 1,
    });
    const hashes = slot?.attempts.map(({ hash }) => hash) ?? [];
    const { byHash } = await node.receipts(hashes, { signal: house.signal });
    const receipt = slot === undefined ? undefined : receiptOfSlot(slot, byHash);
    await recordInclusions(house.database, receipt === undefined ? [] : [receipt]);
    expect((await house.read(id)).status).toBe("included");
    expect(await cancel(id)).toBe("done");
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("cancelled");
  });

  it("races every step of the lane: each is paid or cancelled, never both and never neither", async () => {
    const all = [];
    for (let n = 0; n < 24; n++) all.push(await house.acceptTo(TOKEN / 10n));
    const lane = house.lane({ batchSize: 5 });
    for (let round = 0; round < 4; round++) {
      const some = all.filter((_, index) => index % 4 === round).slice(0, 4);
      await Promise.all([lane.runRound(house.signal), ...some.map(({ id }) => cancel(id))]);
      if (round % 2 === 1) house.chain.mine();
    }
    await house.pass(lane, { rounds: 8, stepMs: 2_000 });
    let settled = 0n;
    for (const { id, to } of all) {
      const { status } = await house.read(id);
      const paid = house.chain.balances.get(to) ?? 0n;
      expect({ status, paid }).toEqual(
        status === "settled" ? { status, paid: TOKEN / 10n } : { status: "cancelled", paid: 0n },
      );
      if (status === "settled") settled += 1n;
    }
    const available = 100n * TOKEN - (settled * TOKEN) / 10n;
    expect(await house.balance("alice")).toEqual({ available, held: 0n });
    expect(await house.isFrozen()).toBe(false);
    await expectEvenBooks();
  });

  it("that comes too late changes nothing: the payment that was mined is settled", async () => {
    const { id, to } = await house.acceptTo();
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.chain.mine();
    expect(await cancel(id)).toBe("done");
    await lane.runRound(house.signal);
    const settled = await house.read(id);
    expect(settled.status).toBe("settled");
    expect(settled.txHash).toBe(settled.hashes[0]);
    expect(house.chain.balances.get(to)).toBe(TOKEN);
    expect(await cancel(id)).toBe("mined");
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
  });

  it("reaches a node whose pool holds the first price: it is raised until it replaces it", async () => {
    const { id, to } = await house.acceptTo();
    house.chain.unmined.add(to);
    const lane = house.lane();
    await lane.runRound(house.signal);
    await cancel(id);
    let refusals = 2;
    house.chain.override = (method) =>
      method === "eth_sendRawTransaction" && refusals-- > 0
        ? { error: { code: -32000, message: "replacement transaction underpriced" } }
        : undefined;
    await house.pass(lane, { rounds: 3, stepMs: 2_000 });
    expect((await house.read(id)).status).toBe("cancelled");
    expect(await house.isFrozen()).toBe(false);
  });

  it("of a slot that nothing is signed for signs nothing but the transfer", async () => {
    const { id, to } = await house.acceptTo();
    const lane = house.lane();
    await lane.runRound(house.signal);
    const second = await house.acceptTo();
    const context = house.context();
    const view = await context.node.view(WALLET, { signal: house.signal });
    const lease = await house.database.query<{ lease_epoch: string }>(
      `SELECT lease_epoch::text FROM hot_wallet`,
    );
    await context.ledger.takeSlots(
      { wallet: WALLET, epoch: BigInt(lease[0]?.lease_epoch ?? "0") },
      [
        {
          id: second.id,
          amountUnits: TOKEN,
          gasLimit: 25_200n,
          gasPriceAtoken: 25_000_000n,
          entersCode: false,
        },
      ],
      {
        budget: {
          balanceAtoken: view.balanceAtoken,
          balanceHeight: view.height,
          nonce: view.nonce,
          maxLiveSlots: 10,
          maxCodeGas: 1n,
          feePerDayAtoken: TOKEN,
        },
        policy: PERMISSIVE,
      },
    );
    expect((await house.read(second.id)).status).toBe("slotted");
    expect(await cancel(second.id)).toBe("done");
    await house.pass(lane, { rounds: 2, stepMs: 1_000 });
    const cancelled = await house.read(second.id);
    expect(cancelled.status).toBe("cancelled");
    expect(cancelled.hashes).toHaveLength(1);
    expect(house.chain.balances.get(second.to) ?? 0n).toBe(0n);
    expect((await house.read(id)).status).toBe("settled");
    expect(house.chain.balances.get(to)).toBe(TOKEN);
  });
});

describe("a deadline", () => {
  const past = () => Date.now() - 60_000;

  it("ends what has no nonce by then, and cancels what has one", async () => {
    const to = freshAddress();
    const fields = { destination: to, destinationText: to };
    const early = await house.accept({ ...fields, expiresAtMs: past() });
    const lane = house.lane();
    await lane.runRound(house.signal);
    const ended = await house.read(early.id);
    expect(statuses(ended)).toEqual(["accepted", "cancelled"]);
    expect(ended.reason).toContain("deadline");
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });

    const soon = await house.accept({ ...fields, expiresAtMs: Date.now() + 3_600_000 });
    await lane.runRound(house.signal);
    expect((await house.read(soon.id)).status).toBe("broadcast");
    await house.ledger.owner.query(`ALTER TABLE withdrawal DISABLE TRIGGER withdrawal_fixed`);
    await house.ledger.owner.query(`UPDATE withdrawal SET expires_at = now() WHERE id = $1`, [
      soon.id,
    ]);
    await house.ledger.owner.query(`ALTER TABLE withdrawal ENABLE TRIGGER withdrawal_fixed`);
    await house.pass(lane, { rounds: 2, stepMs: 1_000 });
    expect((await house.read(soon.id)).status).toBe("cancelled");
    expect(house.chain.balances.get(to) ?? 0n).toBe(0n);
  });

  it("is part of the request that a key is bound to", async () => {
    const idempotencyKey = randomUUID();
    const to = freshAddress();
    const same = { idempotencyKey, destination: to, destinationText: to };
    const first = await house.accept({ ...same, expiresAtMs: 5_000_000_000_000 });
    const repeat = await house.request({ ...same, expiresAtMs: 5_000_000_000_000 });
    expect(repeat).toMatchObject({ outcome: "repeated", withdrawal: { id: first.id } });
    const other = await house.request({ ...same, expiresAtMs: 5_000_000_000_001 });
    expect(other).toMatchObject({ refusal: "IDEMPOTENCY_KEY_REUSED" });
    expect(await house.request(same)).toMatchObject({ refusal: "IDEMPOTENCY_KEY_REUSED" });
  });
});

describe("the database", () => {
  it("refuses to give a hold back while a transaction of the withdrawal may still pay", async () => {
    const { id } = await house.acceptTo();
    await house.lane().runRound(house.signal);
    for (const status of ["failed", "cancelled", "rejected", "settled"]) {
      const outcome = await house.database
        .query(`UPDATE withdrawal SET status = $2 WHERE id = $1`, [id, status])
        .then(
          () => "done",
          (error: unknown) => String(error),
        );
      expect(`${status}: ${outcome}`).toMatch(/may still be paid|settles without a payment/);
    }
    expect((await house.read(id)).status).toBe("broadcast");
  });
});
