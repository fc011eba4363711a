/** `causeway withdrawals cancel`: what an operator takes back, and when it is too late. */
import { describe, expect, it } from "@jest/globals";
import { runCancelWithdrawal } from "../../../../cli/commands/withdrawals/withdrawals.js";
import { operatorBeside } from "../../../helpers/exchange/operator.js";
import { House, houseForEachTest, TOKEN } from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const { printed, command, release, sendForeign, signUnsent } = operatorBeside(() => house);

describe("causeway withdrawals cancel", () => {
  it("cancels at once, repeats, and says when it is too late", async () => {
    const { id } = await house.accept();
    const options = { id, reason: "a mistake" };
    await expect(runCancelWithdrawal(command(), { id, reason: " " })).rejects.toThrow("--reason");
    expect(await runCancelWithdrawal(command(), options)).toBe(0);
    expect(printed.join("\n")).toContain(`${id} cancelled alice 1 TOKEN`);
    expect(await runCancelWithdrawal(command(true), options)).toBe(0);
    expect(JSON.parse(printed.join(""))).toMatchObject({ outcome: "done" });
    expect(await runCancelWithdrawal(command(), { id: "wd_none", reason: "x" })).toBe(1);
    const paid = await house.accept();
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(await runCancelWithdrawal(command(), { id: paid.id, reason: "too late" })).toBe(1);
    expect(printed.join("\n")).toContain("its payment is mined");
  });

  it("of a payment whose nonce a foreign transaction took ends it without paying", async () => {
    const { id, lane, to } = await signUnsent();
    expect(await runCancelWithdrawal(command(), { id, reason: "unwanted" })).toBe(0);
    await sendForeign({ nonce: 0n });
    house.chain.mine();
    for (let round = 0; round < 3; round++) {
      await lane.runRound(house.signal);
      house.clock.ms += 5_000;
    }
    expect((await house.read(id)).status).toBe("frozen");
    expect(await release()).toBe(0);
    expect((await house.read(id)).status).toBe("cancelled");
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
    await lane.runRound(house.signal);
    expect(house.chain.balances.get(to) ?? 0n).toBe(0n);
  });
});
