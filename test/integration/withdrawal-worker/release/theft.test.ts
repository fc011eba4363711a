/** Coins that left a hot wallet and nobody had asked for: signing waits for an operator's word. */
import { describe, expect, it } from "@jest/globals";
import { runFreezeWithdrawals } from "../../../../cli/commands/withdrawals/withdrawals.js";
import { looked, operatorBeside } from "../../../helpers/exchange/operator.js";
import { House, houseForEachTest, WALLET } from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const { printed, command, release } = operatorBeside(() => house);

describe("a theft", () => {
  const theft = `0x${"e".repeat(64)}`;

  /** What the watcher writes when coins left the hot wallet and nobody had asked for it. */
  async function steal(hash = theft): Promise<void> {
    await house.ledger.owner.query(
      `INSERT INTO foreign_outflow (wallet, tx_hash, amount_units, fee_atoken, height)
       VALUES ($1, $2, 123, 4, 1)`,
      [WALLET, hash],
    );
    await house.database.query(
      `UPDATE signing_freeze SET frozen = true, reason = 'theft' WHERE wallet = $1`,
      [WALLET],
    );
  }

  it("keeps signing frozen until each of its transactions is acknowledged by its hash", async () => {
    await house.lane().runRound(house.signal);
    const second = `0x${"d".repeat(64)}`;
    await steal();
    await steal(second);
    expect(await release()).toBe(1);
    expect(printed.join("\n")).toContain(`${theft} (block 1) took 123 atoken`);
    expect(await house.isFrozen()).toBe(true);
    await expect(release({ acknowledge: [theft] })).rejects.toThrow("--reason");
    await expect(release(looked(`0x${"c".repeat(64)}`))).rejects.toMatchObject({
      code: "NO_WALLET_TRANSACTION",
    });
    expect(await release(looked(theft))).toBe(1);
    expect(printed.join("\n")).toContain(second);
    expect(printed.join("\n")).not.toContain(theft);
    expect(await house.isFrozen()).toBe(true);
    expect(await release(looked(second))).toBe(0);
    expect(await house.isFrozen()).toBe(false);
    const word = await house.database.query<{ reason: string; by: string }>(
      `SELECT tx_hash, reason, acknowledged_by <> '' AS named, at IS NOT NULL AS dated
         FROM foreign_transaction_acknowledged ORDER BY tx_hash`,
    );
    const common = { reason: "the key is rotated", named: true, dated: true };
    expect(word).toEqual([
      { tx_hash: second, ...common },
      { tx_hash: theft, ...common },
    ]);
  });

  it("that was acknowledged once does not stand in the way of the next release", async () => {
    await house.lane().runRound(house.signal);
    await steal();
    expect(await release(looked(theft))).toBe(0);
    expect(await runFreezeWithdrawals(command(), { reason: "looking" })).toBe(0);
    expect(await release()).toBe(0);
  });
});
