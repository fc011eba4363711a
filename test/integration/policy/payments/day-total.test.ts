/** The total that a signer signs for in a day, by its own file, and what gives up its nonce for it. */
import { describe, expect, it } from "@jest/globals";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { freshAddress, House, houseForEachTest, TOKEN } from "../../../helpers/exchange/house.js";
import { policyOf } from "../terms.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const statusOf = async ({ id }: Pick<Withdrawal, "id">) => (await house.read(id)).status;

describe("a signer's total of a day", () => {
  it("signs no more in a day than its own file allows, whatever the ledger has forgotten", async () => {
    house.files.policy = policyOf({ signerDayMaxUnits: 3n * TOKEN });
    const lane = house.lane();
    const paid = await house.accept({ amountUnits: 2n * TOKEN });
    await house.pass(lane);
    expect(await statusOf(paid)).toBe("settled");
    const more = await house.accept({ amountUnits: 2n * TOKEN });
    await house.pass(lane);
    const waiting = await house.read(more.id);
    expect(waiting).toMatchObject({ status: "accepted", nonce: undefined });
    expect(waiting.reason).toContain("within 24 hours");
    const less = await house.accept({ amountUnits: TOKEN });
    await house.pass(lane);
    expect(await statusOf(less)).toBe("settled");
    // What no day would ever have room for is not taken.
    expect(await house.request({ amountUnits: 4n * TOKEN })).toMatchObject({
      refusal: "ABOVE_MAXIMUM",
    });
  });

  it("holds up nobody for a day behind a nonce that its total does not cover any more", async () => {
    house.files.policy = policyOf({ signerDayMaxUnits: 3n * TOKEN });
    const lane = house.lane();
    const shop = freshAddress();
    house.chain.withCode.add(shop);
    house.chain.gasOf.set(shop, 50_000n);
    const toCode = { destination: shop, destinationText: shop, amountUnits: 2n * TOKEN };
    const first = await house.accept(toCode);
    await lane.runRound(house.signal);
    expect(await statusOf(first)).toBe("slotted");
    // Looked at while the first one is not counted yet.
    const beyond = await house.accept({ amountUnits: 2n * TOKEN });
    await house.pass(lane);
    expect([await statusOf(first), await statusOf(beyond)]).toEqual(["settled", "slotted"]);
    const behind = await house.accept({ amountUnits: TOKEN });
    await house.pass(lane);
    expect(await statusOf(behind)).toBe("broadcast");
    expect(lane.status().blockedReason).toContain("within 24 hours");
    await house.pass(lane, { rounds: 4, stepMs: 300_000 });
    const ended = await house.read(beyond.id);
    expect(ended).toMatchObject({ status: "rejected", nonce: 1n });
    expect(ended.reason).toContain("DAY_TOTAL");
    expect(await statusOf(behind)).toBe("settled");
    expect(await house.balance("alice")).toEqual({ available: 97n * TOKEN, held: 0n });
  });

  it("gives up together what its total does not cover any more", async () => {
    house.files.policy = policyOf({ signerDayMaxUnits: 3n * TOKEN });
    const lane = house.lane();
    const shop = freshAddress();
    house.chain.withCode.add(shop);
    house.chain.gasOf.set(shop, 50_000n);
    await house.accept({ destination: shop, destinationText: shop, amountUnits: 2n * TOKEN });
    await lane.runRound(house.signal);
    // Looked at while the first one is not counted yet, which leaves room for neither of them.
    const amountUnits = (12n * TOKEN) / 10n;
    const beyond = [await house.accept({ amountUnits }), await house.accept({ amountUnits })];
    const behind = await house.accept({ amountUnits: TOKEN / 10n });
    await house.pass(lane, { rounds: 4, stepMs: 300_000 });
    for (const [index, { id }] of beyond.entries()) {
      const ended = await house.read(id);
      expect(ended).toMatchObject({ status: "rejected", nonce: BigInt(index + 1) });
      expect(ended.reason).toContain("DAY_TOTAL");
    }
    expect(await statusOf(behind)).toBe("settled");
  });

  it("gives up what its total does not cover any more with the payment before it that no block takes", async () => {
    house.files.policy = policyOf({ signerDayMaxUnits: 3n * TOKEN });
    const lane = house.lane();
    const shop = freshAddress();
    house.chain.withCode.add(shop);
    house.chain.gasOf.set(shop, 50_000n);
    house.chain.unmined.add(shop);
    const toShop = { destination: shop, destinationText: shop, amountUnits: 2n * TOKEN };
    const stuck = await house.accept(toShop);
    await lane.runRound(house.signal);
    // Looked at while the first one is not counted yet, which leaves room for neither of them.
    const amountUnits = (12n * TOKEN) / 10n;
    const beyond = [await house.accept({ amountUnits }), await house.accept({ amountUnits })];
    await house.pass(lane, { rounds: 2 });
    const all = [stuck, ...beyond];
    expect(await Promise.all(all.map(statusOf))).toEqual(["broadcast", "slotted", "slotted"]);
    // One wait is over for all of them.
    await house.pass(lane, { stepMs: 300_000 });
    await house.pass(lane);
    expect(await Promise.all(all.map(statusOf))).toEqual(["failed", "rejected", "rejected"]);
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
  });
});
