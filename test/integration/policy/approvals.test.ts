/** Persons' approvals: who may, for what, and what they are worth when something changed. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type ApprovalOutcome,
  decideWithdrawal,
  type NewApproval,
} from "../../../ledger/policy/approvals.js";
import { countingApprovals } from "../../../ledger/policy/approval-rows.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import type { HashedPolicy } from "../../../ledger/policy/policy.js";
import { setKillSwitch } from "../../../ledger/kill-switch/kill-switch.js";
import { rejudgePending } from "../../../ledger/policy/stored-judgement.js";
import { freezeBehindChain, releaseSigning } from "../../../ledger/requests/signing-freeze.js";
import { cancelWithdrawal } from "../../../ledger/withdrawals/cancellation.js";
import { resumeUnpaid } from "../../../ledger/withdrawals/operator-decisions.js";
import { createHotWallet } from "../../../ledger/wallets/wallet-lease.js";
import { acceptWithdrawals, type Withdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { ANY_REQUEST, PERMISSIVE } from "../../helpers/keys/signing.js";
import { freshAddress, House, requestOf, WALLET } from "../../helpers/exchange/house.js";
import { APPROVERS, policyOf, signatureOf } from "./terms.js";

const TWO = policyOf({ approvals: [{ aboveUnits: 10n, needed: 2, signed: false }] });
const SIGNED = policyOf(
  { approvals: [{ aboveUnits: 10n, needed: 2, signed: true }] },
  { approvers: APPROVERS.slice(0, 2).map(({ name, publicKey }) => ({ name, publicKey })) },
);

let house: House;

beforeAll(async () => {
  house = await House.withAlice(1_000_000n);
});

afterAll(async () => {
  await house.close();
});

async function pending(policy: HashedPolicy, amountUnits = 100n): Promise<Withdrawal> {
  house.files.policy = policy;
  return house.accept({ amountUnits, requestedBy: "asker" });
}

const say = (
  { id }: Pick<Withdrawal, "id">,
  keyId: string,
  more: Partial<NewApproval> & { policy?: HashedPolicy } = {},
): Promise<ApprovalOutcome> => {
  const { policy = house.files.policy, ...said } = more;
  return decideWithdrawal(
    house.database,
    { id, keyId, decision: "approve", reason: "looked at it", ...said },
    { policy, chainId: FAKE_CHAIN_ID },
  );
};

const statusOf = async ({ id }: Pick<Withdrawal, "id">) => (await house.read(id)).status;

describe("a withdrawal above the threshold", () => {
  it("waits for its approvals, with its hold, and shows who gave them", async () => {
    const small = await pending(TWO, 10n);
    expect(small).toMatchObject({ status: "accepted", approval: { needed: 0 } });
    const before = await house.balance("alice");
    const asked = await pending(TWO);
    expect(asked).toMatchObject({
      status: "pending_approval",
      history: [{ status: "pending_approval" }],
      approval: { needed: 2, policyHash: TWO.hash, approvals: [] },
    });
    expect((await house.balance("alice")).held).toBe(before.held + 100n);
    expect(await say(asked, "ann")).toBe("done");
    expect(await statusOf(asked)).toBe("pending_approval");
    expect(await say(asked, "ben")).toBe("done");
    const approved = await house.read(asked.id);
    expect(approved.status).toBe("accepted");
    expect(approved.approval.approvals.map(({ keyId }) => keyId)).toEqual(["ann", "ben"]);
    const events = await house.database.query<{ type: string }>(
      `SELECT type FROM event WHERE data->>'withdrawalId' = $1 ORDER BY seq`,
      [asked.id],
    );
    expect(events.map(({ type }) => type)).toEqual([
      "withdrawal.pending_approval",
      "withdrawal.accepted",
    ]);
  });

  it("is not approved by the key that asked, twice by one key, or after it ended", async () => {
    const asked = await pending(TWO);
    expect(await say(asked, "asker")).toBe("own-request");
    expect(await say(asked, "ann")).toBe("done");
    expect(await say(asked, "ann")).toBe("done");
    expect(await say(asked, "ann", { decision: "reject" })).toBe("said-otherwise");
    expect(await statusOf(asked)).toBe("pending_approval");
    expect(await say({ id: `wd_${randomUUID()}` as Withdrawal["id"] }, "ann")).toBe("unknown");
    expect(await cancelWithdrawal(house.database, asked.id, "not needed")).toBe("done");
    expect(await statusOf(asked)).toBe("cancelled");
    expect(await say(asked, "ben")).toBe("not-pending");
  });

  it("counts an approval whose number the database had drawn before", async () => {
    const asked = await pending(TWO);
    expect(await say(asked, "ann")).toBe("done");
    await house.ledger.owner.query(
      `SELECT setval(pg_get_serial_sequence('withdrawal_approval', 'id'), 1, false)`,
    );
    expect(await say(asked, "ben")).toBe("done");
    expect(await statusOf(asked)).toBe("accepted");
  });

  it("ends with one rejection, which gives the hold back and names the rule", async () => {
    const before = await house.balance("alice");
    const asked = await pending(TWO);
    expect(await say(asked, "ann")).toBe("done");
    expect(await say(asked, "ben", { decision: "reject", reason: "unknown payee" })).toBe("done");
    const ended = await house.read(asked.id);
    expect(ended).toMatchObject({ status: "rejected" });
    expect(ended.reason).toBe("rule approvals: ben rejected it: unknown payee");
    expect(await house.balance("alice")).toEqual(before);
  });

  it("that froze at its rejection, since it may be paid, ends so once it is found that it was not", async () => {
    const { owner } = house.ledger;
    const before = await house.balance("alice");
    const asked = await pending(TWO);
    expect(await say(asked, "ann")).toBe("done");
    await createHotWallet(owner, { wallet: WALLET, firstNonce: 0n });
    await freezeBehindChain(owner, { wallet: WALLET, seen: 1n, known: 0n });
    expect(await say(asked, "ben", { decision: "reject", reason: "unknown payee" })).toBe("done");
    const { id, status, reason = "" } = await house.read(asked.id);
    expect(status).toBe("frozen");
    await releaseSigning(owner, WALLET);
    expect(await resumeUnpaid(owner, { id, reason })).toBe(true);
    const ended = await house.read(id);
    expect([ended.status, ended.reason]).toEqual([
      "rejected",
      "rule approvals: ben rejected it: unknown payee",
    ]);
    expect(await house.balance("alice")).toEqual(before);
  });

  it("moves once when approvals race", async () => {
    const asked = await pending(TWO);
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, index) => say(asked, `key ${index}`)),
    );
    expect(outcomes.filter((outcome) => outcome === "done")).toHaveLength(2);
    expect((await house.read(asked.id)).history.map(({ status }) => status)).toEqual([
      "pending_approval",
      "accepted",
    ]);
  });
});

describe("a signed approval", () => {
  it("counts once for a person who has two keys, who may still say no", async () => {
    const [ann, ben] = APPROVERS.map(({ publicKey }) => publicKey);
    if (ann === undefined || ben === undefined) throw new Error("no approvers");
    const policy = policyOf(
      { approvals: [{ aboveUnits: 10n, needed: 2, signed: true }] },
      {
        approvers: [
          { name: "ann", publicKey: ann },
          { name: "ann", publicKey: ben },
        ],
      },
    );
    const asked = await pending(policy);
    expect(await say(asked, "first", { signature: signatureOf(0, asked, policy) })).toBe("done");
    const again = { signature: signatureOf(1, asked, policy) };
    expect(await say(asked, "second", again)).toBe("said-otherwise");
    expect(await statusOf(asked)).toBe("pending_approval");
    const no = { decision: "reject", signature: signatureOf(1, asked, policy, "reject") } as const;
    expect(await say(asked, "second", no)).toBe("done");
    expect(await statusOf(asked)).toBe("rejected");
  });

  it("by another person through the same API key is refused, and not taken for a repeat", async () => {
    const asked = await pending(SIGNED);
    const [ann, ben] = [signatureOf(0, asked, SIGNED), signatureOf(1, asked, SIGNED)];
    expect(await say(asked, "desk", { signature: ann })).toBe("done");
    expect(await say(asked, "desk", { signature: ann })).toBe("done");
    expect(await say(asked, "desk", { signature: ben })).toBe("said-otherwise");
    expect(countingApprovals((await house.read(asked.id)).approval)).toHaveLength(1);
    expect(await say(asked, "ben", { signature: ben })).toBe("done");
    expect(await statusOf(asked)).toBe("accepted");
  });

  it("counts only by an approver of the policy, over this withdrawal, policy and decision", async () => {
    const asked = await pending(SIGNED);
    const other = await pending(SIGNED);
    const bad = [
      signatureOf(2, asked, SIGNED),
      signatureOf(0, other, SIGNED),
      signatureOf(0, { ...asked, amountUnits: 99n }, SIGNED),
      signatureOf(0, { ...asked, destination: freshAddress() }, SIGNED),
      signatureOf(0, { ...asked, customerId: "bob" }, SIGNED),
      signatureOf(0, asked, TWO),
      signatureOf(0, asked, SIGNED, "reject"),
      { ...signatureOf(0, asked, SIGNED), publicKey: APPROVERS[1]?.publicKey ?? "" },
    ];
    for (const signature of bad)
      expect(await say(asked, "k1", { signature })).toBe("bad-signature");
    expect(await say(asked, "k1")).toBe("signature-needed");
    expect(await say(asked, "k1", { signature: signatureOf(0, asked, SIGNED) })).toBe("done");
    // Another key, the same person.
    expect(await say(asked, "k2", { signature: signatureOf(0, asked, SIGNED) })).toBe(
      "said-otherwise",
    );
    expect(await say(asked, "k2", { signature: signatureOf(1, asked, SIGNED) })).toBe("done");
    expect(await statusOf(asked)).toBe("accepted");
    expect(await statusOf(other)).toBe("pending_approval");
  });
});

describe("a policy that changes while persons are asked", () => {
  it("makes what they said under the former one count no more", async () => {
    const asked = await pending(TWO);
    expect(await say(asked, "ann")).toBe("done");
    const three = policyOf({ approvals: [{ aboveUnits: 0n, needed: 3, signed: false }] });
    expect(await say(asked, "ben", { policy: three })).toBe("policy-changed");
    await rejudgePending(house.database, three);
    house.files.policy = three;
    expect((await house.read(asked.id)).approval).toMatchObject({
      needed: 3,
      policyHash: three.hash,
    });
    for (const key of ["ann", "ben"]) expect(await say(asked, key)).toBe("done");
    expect(await statusOf(asked)).toBe("pending_approval");
    expect(await say(asked, "cleo")).toBe("done");
    expect(await statusOf(asked)).toBe("accepted");
  });

  it("keeps what they said where it asks for the same, and for signatures or more persons not", async () => {
    const asked = await pending(TWO);
    expect(await say(asked, "ann")).toBe("done");
    const two = [{ aboveUnits: 0n, needed: 2, signed: false }];
    const dearer = policyOf({ approvals: two, maximumUnits: 10n ** 20n });
    await rejudgePending(house.database, dearer);
    expect((await house.read(asked.id)).approval).toMatchObject({
      needed: 2,
      policyHash: dearer.hash,
    });
    expect(await say(asked, "ann", { policy: dearer })).toBe("done");
    expect(await statusOf(asked)).toBe("pending_approval");
    expect(await say(asked, "asker", { policy: dearer })).toBe("own-request");
    expect(await say(asked, "ben", { policy: dearer })).toBe("done");
    expect(await statusOf(asked)).toBe("accepted");
    const other = await pending(TWO);
    expect(await say(other, "ann")).toBe("done");
    await rejudgePending(house.database, SIGNED);
    expect((await house.read(other.id)).approval.approvals).toHaveLength(1);
    await rejudgePending(house.database, TWO);
    expect(countingApprovals((await house.read(other.id)).approval)).toHaveLength(1);
  });

  it("lets what needs nobody any more go on, and ends what it forbids, in order", async () => {
    const [first, second] = [await pending(TWO), await pending(TWO)];
    await rejudgePending(house.database, policyOf({ maximumUnits: 1_000n }));
    expect([await statusOf(first), await statusOf(second)]).toEqual(["accepted", "accepted"]);
    const [third, fourth] = [await pending(TWO), await pending(TWO, 200n)];
    await rejudgePending(house.database, policyOf({ maximumUnits: 150n }));
    expect([await statusOf(third), await statusOf(fourth)]).toEqual(["accepted", "rejected"]);
    expect((await house.read(fourth.id)).reason).toBe("rule ABOVE_MAXIMUM of the policy");
  });

  it("counts nothing that was accepted before, and that it forbids itself", async () => {
    const customerId = parseCustomerId("dora");
    await house.fund(customerId, 1_000n);
    const ask = (amountUnits: bigint) => house.accept({ customerId, amountUnits });
    house.files.policy = PERMISSIVE;
    const [large, small] = [await ask(60n), await ask(5n)];
    const approvals = [{ aboveUnits: 30n, needed: 2, signed: false }];
    house.files.policy = policyOf({ approvals });
    const asked = await ask(40n);
    expect(asked.status).toBe("pending_approval");
    const limits = [
      { by: "customer" as const, window: "day" as const, maxUnits: 50n, maxCount: undefined },
    ];
    const stricter = policyOf({ approvals, limits });
    await rejudgePending(house.database, stricter);
    const states = await Promise.all([large, small, asked].map(statusOf));
    expect(states).toEqual(["rejected", "accepted", "pending_approval"]);
    expect((await house.read(large.id)).reason).toContain("LIMIT_EXCEEDED");
    expect((await house.read(asked.id)).approval.policyHash).toBe(stricter.hash);
    // A further look finds nothing to judge.
    await rejudgePending(house.database, stricter);
    expect(await Promise.all([large, small, asked].map(statusOf))).toEqual(states);
    await cancelWithdrawal(house.database, asked.id, "not needed");
  });

  it("judges no long backlog of accepted ones first: all of the worker waits for that", async () => {
    const customerId = parseCustomerId("erin");
    await house.fund(customerId, 1_000n);
    house.files.policy = PERMISSIVE;
    const rules = { ...ANY_REQUEST, policy: PERMISSIVE };
    const [{ accepted } = { accepted: 0 }] = await house.database.query<{ accepted: number }>(
      `SELECT count(*)::integer AS accepted FROM withdrawal WHERE status = 'accepted'`,
    );
    const length = 200 - accepted;
    const backlog = Array.from({ length }, () => requestOf({ customerId, amountUnits: 1n }));
    await acceptWithdrawals(house.database, backlog, rules);
    const approvals = [{ aboveUnits: 30n, needed: 2, signed: false }];
    house.files.policy = policyOf({ approvals });
    const asked = await house.accept({ customerId, amountUnits: 40n });
    const judgedBy = async (maxCount: number) => {
      const by = "customer" as const;
      const limits = [{ by, window: "day" as const, maxUnits: undefined, maxCount }];
      const policy = policyOf({ approvals, limits });
      await rejudgePending(house.database, policy);
      const rows = await house.database.query<{ id: string }>(
        `SELECT withdrawal_id AS id FROM policy_decision WHERE policy_hash = $1`,
        [policy.hash],
      );
      return rows.map(({ id }) => id);
    };
    expect(await judgedBy(1_000)).toHaveLength(201);
    house.files.policy = PERMISSIVE;
    const early = await house.accept({ customerId, amountUnits: 1n });
    house.files.policy = policyOf({ approvals });
    const late = await house.accept({ customerId, amountUnits: 40n });
    expect(new Set(await judgedBy(2_000))).toEqual(new Set([asked.id, late.id]));
    expect(await Promise.all([early, asked, late].map(statusOf))).toEqual([
      "accepted",
      "pending_approval",
      "pending_approval",
    ]);
    for (const { id } of [asked, late]) await cancelWithdrawal(house.database, id, "not needed");
  });

  it("gives no hold back for what it forbids while the ledger has lost nonces that may have paid it", async () => {
    await createHotWallet(house.database, { wallet: WALLET, firstNonce: 4n });
    const asked = await pending(TWO, 200n);
    const held = await house.balance("alice");
    // A standby took over: it may lack the approvals of this one, its nonce and its payment.
    const shown = new Map([[WALLET, { nonce: 5n }]]);
    await rejudgePending(house.database, policyOf({ maximumUnits: 150n }), shown);
    const frozen = await house.read(asked.id);
    expect(frozen.status).toBe("frozen");
    expect(frozen.reason).toContain(`the ledger has lost nonces of wallet ${WALLET}`);
    expect(await house.balance("alice")).toEqual(held);
  });

  it("is asked about each of them, however many wait", async () => {
    // Of numbers with two digits, three and four.
    const requests = Array.from({ length: 1_200 }, () => requestOf({ amountUnits: 100n }));
    await acceptWithdrawals(house.database, requests, { ...ANY_REQUEST, policy: TWO });
    const waiting = async () => {
      const rows = await house.database.query(
        `SELECT 1 FROM withdrawal WHERE status = 'pending_approval'`,
      );
      return rows.length;
    };
    expect(await waiting()).toBeGreaterThanOrEqual(requests.length);
    await rejudgePending(house.database, policyOf({}));
    expect(await waiting()).toBe(0);
  });
});

describe("the database itself", () => {
  it("refuses a nonce, a step and an approval that the rules refuse", async () => {
    const asked = await pending(TWO);
    const { owner } = house.ledger;
    await expect(
      owner.query(`UPDATE withdrawal SET status = 'accepted' WHERE id = $1`, [asked.id]),
    ).rejects.toThrow("lacks approvals");
    await expect(
      owner.query(
        `INSERT INTO withdrawal_approval (withdrawal_id, key_id, decision, reason, policy_hash,
           digest) VALUES ($1, 'asker', 'approve', 'mine', $2, $3)`,
        [asked.id, TWO.hash, "0".repeat(64)],
      ),
    ).rejects.toThrow("was asked for with this key");
    await createHotWallet(owner, { wallet: WALLET, firstNonce: 0n });
    const slot = (id: string) =>
      owner.query(
        `INSERT INTO nonce_slot (wallet, nonce, withdrawal_id, gas_limit, gas_price_atoken,
           reserved_atoken) VALUES ($1, 0, $2, 21000, 1, 0)`,
        [WALLET, id],
      );
    await expect(slot(asked.id)).rejects.toThrow("lacks approvals");
    const free = await pending(TWO, 1n);
    const drill = { reason: "drill", by: "tests" };
    await setKillSwitch(owner, { level: "stop-sign", ...drill });
    await expect(slot(free.id)).rejects.toThrow("is stopped by the kill switch");
    await setKillSwitch(owner, { level: "none", ...drill });
    await slot(free.id);
    await expect(
      owner.query(`UPDATE withdrawal SET fee_units = 1 WHERE id = $1`, [asked.id]),
    ).rejects.toThrow("cannot change its terms");
    await expect(
      owner.query(`UPDATE withdrawal SET requested_by = 'ann' WHERE id = $1`, [asked.id]),
    ).rejects.toThrow("cannot change its terms");
    await expect(owner.query(`DELETE FROM withdrawal_approval`)).rejects.toThrow("append-only");
  });
});
