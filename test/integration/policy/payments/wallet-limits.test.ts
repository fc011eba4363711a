/** A wallet's own limits: who gets a nonce within them, who waits, and what no wallet may ever pay. */
import { describe, expect, it } from "@jest/globals";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { PERMISSIVE } from "../../../helpers/keys/signing.js";
import { House, houseForEachTest, TOKEN, WALLET } from "../../../helpers/exchange/house.js";
import { policyOf } from "../terms.js";
import { overwrite } from "./overwrite.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const statusOf = async ({ id }: Pick<Withdrawal, "id">) => (await house.read(id)).status;

describe("a wallet's limit", () => {
  it("keeps a wallet within its own limit of a window: the others wait", async () => {
    house.files.policy = policyOf({
      limits: [{ by: "wallet", window: "day", maxUnits: 2n * TOKEN, maxCount: undefined }],
    });
    const early = [await house.accept(), await house.accept()];
    const late = await house.accept();
    await house.pass(house.lane());
    expect(await Promise.all(early.map(statusOf))).toEqual(["settled", "settled"]);
    const waiting = await house.read(late.id);
    expect(waiting.status).toBe("accepted");
    expect(waiting.reason).toContain("wallet's limit");
  });

  it("has room in every window for who gets a nonce, and holds up nobody for who gets none", async () => {
    const limits = [
      { by: "wallet" as const, window: "day" as const, maxUnits: 9n * TOKEN, maxCount: undefined },
      { by: "wallet" as const, window: 3_600, maxUnits: 5n * TOKEN, maxCount: undefined },
    ];
    house.files.policy = policyOf({ limits });
    const lane = house.lane();
    const before = await house.accept();
    const lately = await house.accept({ amountUnits: 2n * TOKEN });
    await house.pass(lane);
    expect([await statusOf(before), await statusOf(lately)]).toEqual(["settled", "settled"]);
    await overwrite(
      house,
      `UPDATE nonce_slot SET taken_at = now() - interval '2 hours' WHERE withdrawal_id = $1`,
      [before.id],
    );
    // Of the day there is room for it, of the hour not: for the other one there is of both.
    const large = await house.accept({ amountUnits: 4n * TOKEN });
    const small = await house.accept({ amountUnits: (5n * TOKEN) / 2n });
    await house.pass(lane);
    expect([await statusOf(large), await statusOf(small)]).toEqual(["accepted", "settled"]);
    expect((await house.read(large.id)).reason).toContain("the wallet's limit (wallet 3600s)");
  });

  it("takes of a wallet's limit for nobody whom its coins do not cover now", async () => {
    house.files.policy = policyOf({
      limits: [{ by: "wallet", window: "day", maxUnits: 12n * TOKEN, maxCount: undefined }],
    });
    house.chain.balances.set(WALLET, 10n * TOKEN);
    house.chain.mine();
    const lane = house.lane();
    const onItsWay = await house.accept({ amountUnits: 5n * TOKEN });
    await lane.runRound(house.signal);
    const large = await house.accept({ amountUnits: 6n * TOKEN });
    const small = await house.accept({ amountUnits: 3n * TOKEN });
    await lane.runRound(house.signal);
    expect(await Promise.all([onItsWay, large, small].map(statusOf))).toEqual([
      "broadcast",
      "accepted",
      "broadcast",
    ]);
    expect((await house.read(large.id)).reason).toContain("free balance");
  });

  it("takes nothing that no wallet may ever pay, by number as by amount, and ends what waits", async () => {
    const lane = house.lane();
    for (const [maxUnits, maxCount] of [
      [0n, undefined],
      [undefined, 0],
    ] as const) {
      house.files.policy = PERMISSIVE;
      const waiting = await house.accept();
      house.files.policy = policyOf({
        limits: [{ by: "wallet", window: "day", maxUnits, maxCount }],
      });
      expect(await house.request()).toMatchObject({ refusal: "ABOVE_MAXIMUM" });
      await house.pass(lane);
      expect([maxCount, await statusOf(waiting)]).toEqual([maxCount, "rejected"]);
    }
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
  });
});
