/**
 * A withdrawal that is not wanted any more, or not in time: it is paid or cancelled, never both and
 * never neither.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { cancelWithdrawal } from "../../../../../../ledger/withdrawals/cancellation.js";
import { recordInclusions } from "../../../../../../ledger/withdrawals/recorded-inclusions.js";
import { receiptOfSlot } from "../../../../../../ledger/withdrawals/slot-outcomes.js";
import type { Withdrawal } from "../../../../../../ledger/withdrawals/withdrawals.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  statuses,
  TOKEN,
  WALLET,
} from "../../../../../helpers/exchange/house.js";
import { PERMISSIVE } from "../../../../../helpers/keys/signing.js";
import { expectEvenBooks } from "./even-books.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
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
    await expectEvenBooks(house);
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
    await expectEvenBooks(house);
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
