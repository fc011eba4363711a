/** A signer that holds what it is asked for against approvals that the ledger cannot make up. */
import { describe, expect, it } from "@jest/globals";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../../ledger/policy/policy.js";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { freshAddress, House, houseForEachTest, TOKEN } from "../../../helpers/exchange/house.js";
import { askSigned, SIGNED } from "../signed-requests.js";
import { overwrite } from "./overwrite.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const statusOf = async ({ id }: Pick<Withdrawal, "id">) => (await house.read(id)).status;

describe("a signer before a ledger that lies", () => {
  it("pays nobody whom the approver did not sign for", async () => {
    house.files.policy = SIGNED;
    const asked = await askSigned(house);
    const thief = freshAddress();
    await overwrite(
      house,
      `UPDATE withdrawal SET destination = $2, destination_text = $2 WHERE id = $1`,
      [asked.id, thief],
    );
    const lane = house.lane();
    await house.pass(lane, { rounds: 3 });
    const ended = await house.read(asked.id);
    expect(ended.status).toBe("rejected");
    expect(ended.reason).toContain("APPROVALS_MISSING of the signer");
    expect(house.chain.balances.get(thief)).toBeUndefined();
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
    // Its nonce was used up by a transfer of nothing: the next payment follows.
    house.files.policy = hashPolicy(PERMISSIVE_POLICY);
    const next = await house.accept();
    await house.pass(lane, { rounds: 3 });
    expect(await house.read(next.id)).toMatchObject({ status: "settled", nonce: 1n });
  });

  it("pays what the approver signed for once, whatever the ledger has forgotten", async () => {
    house.files.policy = SIGNED;
    const to = freshAddress();
    const asked = await askSigned(house, { destination: to, destinationText: to });
    // Nothing is known before it is to sign: a nonce is taken for what it will refuse.
    const { signer } = house.context();
    const late: typeof signer = {
      address: signer.address,
      review: (payments) => payments.map(() => undefined),
      trouble: () => signer.trouble(),
      sign: (intents, options) => signer.sign(intents, options),
    };
    const lane = house.laneWith({ signer: late });
    await house.pass(lane, { rounds: 3 });
    expect(await statusOf(asked)).toBe("settled");
    await overwrite(house, `UPDATE nonce_slot SET outcome = 'foreign' WHERE withdrawal_id = $1`, [
      asked.id,
    ]);
    await overwrite(house, `UPDATE withdrawal SET status = 'accepted' WHERE id = $1`, [asked.id]);
    await lane.runRound(house.signal);
    const again = await house.read(asked.id);
    expect([again.status, again.nonce]).toEqual(["cancelling", 1n]);
    expect(again.reason).toContain("APPROVALS_USED of the signer");
    house.chain.mine();
    expect(house.chain.balances.get(to)).toBe(TOKEN);
  });
});
