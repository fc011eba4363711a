/** What PostgreSQL itself refuses about slots, attempts and withdrawals, whoever asks. */
import { describe, expect, it } from "@jest/globals";
import { House, houseForEachTest } from "../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

describe("the tables", () => {
  it("refuse to forget, recycle or change what was signed", async () => {
    await house.accept();
    const lane = house.lane();
    await lane.runRound(house.signal);
    for (const statement of [
      "DELETE FROM nonce_slot",
      "DELETE FROM withdrawal_attempt",
      "DELETE FROM withdrawal",
      "UPDATE withdrawal_attempt SET raw = '0x00'",
      "UPDATE nonce_slot SET nonce = nonce + 1",
      "UPDATE hot_wallet SET next_nonce = next_nonce - 1",
      "UPDATE withdrawal SET amount_units = amount_units * 2",
      "UPDATE withdrawal SET destination = '0x' || repeat('1', 40)",
      "TRUNCATE nonce_slot CASCADE",
      `INSERT INTO nonce_slot (wallet, nonce, withdrawal_id, gas_limit, gas_price_atoken,
         reserved_atoken) SELECT wallet, nonce + 1, withdrawal_id, 1, 1, 1 FROM nonce_slot`,
      `INSERT INTO withdrawal_attempt (slot_id, n, hash, gas_limit, gas_price_atoken)
         SELECT id, 9, '0x' || repeat('1', 64), 1, 1 FROM nonce_slot`,
    ]) {
      const outcome = await house.database.query(statement).then(
        () => "done",
        () => "refused",
      );
      expect({ statement, outcome }).toEqual({ statement, outcome: "refused" });
    }
    house.chain.mine();
    await lane.runRound(house.signal);
    const reopened = await house.database.query("UPDATE withdrawal SET status = 'accepted'").then(
      () => "done",
      () => "refused",
    );
    expect(reopened).toBe("refused");
  });
});
