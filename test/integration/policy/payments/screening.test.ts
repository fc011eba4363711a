/** What a screening service decides before a payment is signed, and what waits while it says nothing. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { decideWithdrawal } from "../../../../ledger/policy/approvals.js";
import { recordVerdicts } from "../../../../ledger/policy/screening-verdicts.js";
import { rejudgePending } from "../../../../ledger/policy/stored-judgement.js";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { freshAddress, House, houseForEachTest, TOKEN } from "../../../helpers/exchange/house.js";
import { until } from "../../../helpers/until.js";
import { policyOf } from "../terms.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

/**
 * Rounds until all of these have such a status: on a busy machine a round may be over before the service is
 * heard, and what it was to be told about is put off.
 */
async function passUntil(
  lane: ReturnType<House["lane"]>,
  wanted: readonly (readonly [Pick<Withdrawal, "id">, Withdrawal["status"]])[],
): Promise<void> {
  const isThere = async () => {
    await house.pass(lane);
    await house.hurry();
    const found = await Promise.all(wanted.map(([withdrawal]) => statusOf(withdrawal)));
    return wanted.every(([, status], index) => status === found[index]);
  };
  const what = wanted.map(([, status]) => status).join(", ");
  await until(isThere, { timeoutMs: 60_000, what });
}

const statusOf = async ({ id }: Pick<Withdrawal, "id">) => (await house.read(id)).status;

describe("screening", () => {
  let service: Server;
  let answers: Record<string, { status: number; body: string }>;
  let asked: unknown[];
  let screening: { url: string; timeoutMs: number; reviewApprovals: number };

  beforeEach(async () => {
    asked = [];
    answers = {};
    service = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const terms = JSON.parse(Buffer.concat(chunks).toString());
        asked.push(terms);
        const { status, body } = answers[terms.destination] ?? { status: 503, body: "" };
        // Status 0 leaves it without an answer.
        if (status === 0) return;
        response.writeHead(status).end(body);
      });
    });
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}/`;
    screening = { url, timeoutMs: 60_000, reviewApprovals: 1 };
    house.files.policy = policyOf({}, { screening });
  });

  afterEach(async () => {
    service.closeAllConnections();
    await new Promise((resolve) => service.close(resolve));
  });

  const acceptTo = async (status: number, body: string) => {
    const destination = freshAddress();
    answers[destination] = { status, body };
    return house.accept({ destination, destinationText: destination, requestedBy: "asker" });
  };

  const approve = async (id: Withdrawal["id"], keyId: string) => {
    const said = { id, keyId, decision: "approve", reason: "looked at it" } as const;
    const by = { policy: house.files.policy, chainId: FAKE_CHAIN_ID };
    expect(await decideWithdrawal(house.database, said, by)).toBe("done");
  };

  it("asks further persons where it wants a review: who approved the amount had not seen that", async () => {
    const approvals = [{ aboveUnits: 0n, needed: 1, signed: false }];
    house.files.policy = policyOf({ approvals }, { screening });
    const { id } = await acceptTo(200, `{"decision":"review"}`);
    const lane = house.lane();
    await approve(id, "ann");
    await passUntil(lane, [[{ id }, "pending_approval"]]);
    expect(asked).toHaveLength(1);
    expect(await statusOf({ id })).toBe("pending_approval");
    await approve(id, "ben");
    await passUntil(lane, [[{ id }, "settled"]]);
    expect(await statusOf({ id })).toBe("settled");
  });

  it("says that it wants one, with its reference, however the withdrawal comes to wait for it", async () => {
    const approvals = [{ aboveUnits: 0n, needed: 1, signed: false }];
    house.files.policy = policyOf({ approvals }, { screening });
    const { id } = await acceptTo(200, `{"decision":"review","reference":"AML-4711"}`);
    const reasonOf = async () => (await house.read(id)).reason;
    expect(await reasonOf()).toBeUndefined();
    await approve(id, "ann");
    await passUntil(house.lane(), [[{ id }, "pending_approval"]]);
    const reason = "screening asks for a review (reference AML-4711)";
    expect(await reasonOf()).toBe(reason);
    const [told] = await house.database.query<{ data: object }>(
      `SELECT data FROM event WHERE type = 'withdrawal.pending_approval' ORDER BY seq DESC LIMIT 1`,
    );
    expect(told?.data).toMatchObject({ withdrawalId: id, reason, approvalsNeeded: 2 });
    // While it waits: a policy without the service, and one with it again.
    const rejudged = async (terms: { screening?: typeof screening }) => {
      house.files.policy = policyOf({ approvals, feeUnits: 1n }, terms);
      await rejudgePending(house.database, house.files.policy);
    };
    const other = await acceptTo(200, `{"decision":"review"}`);
    const answer = { withdrawalId: other.id, verdict: "review", reference: "" } as const;
    await recordVerdicts(house.database, [answer]);
    await rejudged({ screening });
    expect(await reasonOf()).toBe(reason);
    expect(await house.read(other.id)).toMatchObject({
      reason: "screening asks for a review",
      approval: { needed: 2 },
    });
    await rejudged({});
    expect((await house.read(other.id)).reason).toBeUndefined();
  });

  it("is approved by nobody who says that he has seen a withdrawal without its review", async () => {
    const approvals = [{ aboveUnits: 0n, needed: 1, signed: false }];
    house.files.policy = policyOf({ approvals }, { screening });
    const { id } = await acceptTo(200, `{"decision":"review"}`);
    const by = { policy: house.files.policy, chainId: FAKE_CHAIN_ID };
    const policyHash = by.policy.hash;
    const say = (keyId: string, needed: number, hash = policyHash) => {
      const seen = { needed, policyHash: hash };
      const said = { id, keyId, decision: "approve", reason: "looked at it", seen } as const;
      return decideWithdrawal(house.database, said, by);
    };
    expect(await say("ann", 1)).toBe("done");
    const lane = house.lane();
    await passUntil(lane, [[{ id }, "pending_approval"]]);
    expect(await say("ben", 1)).toBe("policy-changed");
    expect(await say("ben", 2, "0".repeat(64))).toBe("policy-changed");
    expect(await statusOf({ id })).toBe("pending_approval");
    // Sent again, as nobody heard the answer: it is written down.
    expect(await say("ann", 1)).toBe("done");
    expect(await say("ben", 2)).toBe("done");
    await passUntil(lane, [[{ id }, "settled"]]);
    expect(await statusOf({ id })).toBe("settled");
  });

  it("asks them also where an earlier policy had asked for as many, for the amount alone", async () => {
    const rules = (needed: number) => ({ approvals: [{ aboveUnits: 0n, needed, signed: false }] });
    const lane = house.lane();
    for (const [earlier, later] of [
      [["ann"], {}],
      [["ann", "ben"], rules(1)],
    ] as const) {
      house.files.policy = policyOf(rules(earlier.length));
      const { id } = await acceptTo(200, `{"decision":"review"}`);
      for (const person of earlier) await approve(id, person);
      house.files.policy = policyOf(later, { screening });
      await passUntil(lane, [[{ id }, "pending_approval"]]);
      expect(await statusOf({ id })).toBe("pending_approval");
      // Written down anew under a third policy, what was said is no later.
      house.files.policy = policyOf({ ...later, maximumUnits: 90n * TOKEN }, { screening });
      await rejudgePending(house.database, house.files.policy);
      expect(await statusOf({ id })).toBe("pending_approval");
      await approve(id, "cleo");
      await passUntil(lane, [[{ id }, "settled"]]);
      expect(await statusOf({ id })).toBe("settled");
    }
  });

  it("decides about who stands behind more withdrawals that it never answers about", async () => {
    screening.timeoutMs = 500;
    const silent = await Promise.all(Array.from({ length: 12 }, () => acceptTo(0, "")));
    const behind = await acceptTo(200, `{"decision":"allow"}`);
    const lane = house.lane();
    await house.hurry();
    await passUntil(lane, [[behind, "settled"]]);
    expect(new Set(await Promise.all(silent.map(statusOf)))).toEqual(new Set(["accepted"]));
  });

  it("decides by its answer, and pays nothing while there is none", async () => {
    const silent = await acceptTo(500, "");
    const unclear = await acceptTo(200, `{"decision":"maybe"}`);
    const allowed = await acceptTo(200, `{"decision":"allow","reference":"r-1"}`);
    const denied = await acceptTo(200, `{"decision":"deny"}`);
    const review = await acceptTo(200, `{"decision":"review"}`);
    const lane = house.lane();
    await passUntil(lane, [
      [allowed, "settled"],
      [denied, "rejected"],
      [review, "pending_approval"],
    ]);
    const all = [silent, unclear, allowed, denied, review];
    expect(await Promise.all(all.map(statusOf))).toEqual([
      "accepted",
      "accepted",
      "settled",
      "rejected",
      "pending_approval",
    ]);
    expect((await house.read(silent.id)).reason).toContain("screening has not answered");
    expect(asked[0]).toMatchObject({ withdrawalId: silent.id, amountUnits: TOKEN.toString() });
    answers[silent.destination] = { status: 200, body: `{"decision":"allow"}` };
    await approve(review.id, "ann");
    await house.hurry();
    await passUntil(lane, [
      [silent, "settled"],
      [review, "settled"],
    ]);
    expect(await Promise.all(all.map(statusOf))).toEqual([
      "settled",
      "accepted",
      "settled",
      "rejected",
      "settled",
    ]);
  });
});
