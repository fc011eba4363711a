/** What the policy decides before a nonce, as it is written down. */
import { describe, expect, it } from "@jest/globals";
import { rejudgePending } from "../../../../ledger/policy/stored-judgement.js";
import { hashPolicy } from "../../../../ledger/policy/policy.js";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { House, houseForEachTest, TOKEN } from "../../../helpers/exchange/house.js";
import { policyOf } from "../terms.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const statusOf = async ({ id }: Pick<Withdrawal, "id">) => (await house.read(id)).status;

describe("what is decided before a nonce", () => {
  const decisionsOf = ({ id }: Withdrawal) =>
    house.database.query(
      `SELECT stage, outcome, policy_hash AS hash FROM policy_decision
        WHERE withdrawal_id = $1 ORDER BY id`,
      [id],
    );

  it("is written down once more where another policy says it, or something else was asked", async () => {
    const first = hashPolicy(house.files.policy.policy);
    const other = policyOf({ feeUnits: 1n });
    const limited = policyOf({
      limits: [{ by: "wallet", window: "day", maxUnits: 100n * TOKEN, maxCount: undefined }],
    });
    const lane = house.lane();
    const plain = await house.accept();
    await house.pass(lane);
    const late = await house.accept();
    house.files.policy = other;
    await house.pass(lane);
    house.files.policy = limited;
    const counted = await house.accept();
    await house.pass(lane);
    const pay = (stage: string, { hash }: { readonly hash: string }) => ({
      stage,
      outcome: "pay",
      hash,
    });
    expect(await decisionsOf(plain)).toEqual([pay("accept", first)]);
    expect(await decisionsOf(late)).toEqual([pay("accept", first), pay("slot", other)]);
    expect(await decisionsOf(counted)).toEqual([pay("accept", limited), pay("slot", limited)]);
  });

  it("is written down where the policy of acceptance is back, so that the last one is who paid", async () => {
    const first = hashPolicy(house.files.policy.policy);
    const asking = policyOf({ approvals: [{ aboveUnits: 0n, needed: 1, signed: false }] });
    const asked = await house.accept();
    house.files.policy = asking;
    const lane = house.lane();
    await house.pass(lane);
    expect(await statusOf(asked)).toBe("pending_approval");
    house.files.policy = first;
    await rejudgePending(house.database, first);
    await house.pass(lane);
    expect(await statusOf(asked)).toBe("settled");
    expect((await decisionsOf(asked)).at(-1)).toMatchObject({ outcome: "pay", hash: first.hash });
  });
});
