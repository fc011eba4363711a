/** The policy when nonces are taken and payments signed: what changed meanwhile, and who lies. */
import { describe, expect, it } from "@jest/globals";
import { readBooks } from "../../../ledger/books/reconcile-books.js";
import { setKillSwitch } from "../../../ledger/kill-switch/kill-switch.js";
import type { KillSwitchLevel } from "../../../ledger/kill-switch/kill-switch-level.js";
import { activatePolicy } from "../../../ledger/policy/policy-store.js";
import { rejudgePending } from "../../../ledger/policy/stored-judgement.js";
import { cancelWithdrawal } from "../../../ledger/withdrawals/cancellation.js";
import { decideWithdrawal } from "../../../ledger/policy/approvals.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../ledger/policy/policy.js";
import { releaseSigning } from "../../../ledger/requests/signing-freeze.js";
import type { Withdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import type { LaneContext } from "../../../withdrawal-worker/lane/lane-context.js";
import { createWeb3Signer } from "../../../withdrawal-worker/signers/web3signer.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { bytesToHex } from "../../../chain/hex.js";
import { laneRules, PERMISSIVE } from "../../helpers/keys/signing.js";
import { Web3SignerStub } from "../../helpers/keys/web3signer-stub.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  WALLET,
  WALLET_KEY,
} from "../../helpers/exchange/house.js";
import { askSigned, SIGNED, signedWith } from "./signed-requests.js";
import { policyOf } from "./terms.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const statusOf = async ({ id }: Pick<Withdrawal, "id">) => (await house.read(id)).status;

/** A signer that says nothing to whatever it is asked for. */
function silentSigner(): LaneContext["signer"] {
  const { signer } = house.context();
  return {
    address: signer.address,
    trouble: () => undefined,
    review: (payments) => signer.review(payments),
    sign: async (intents) => intents.map(() => ({ kind: "unanswered", reason: "test" })),
  };
}

const internalBreaks = async () => {
  const books = await readBooks(house.database);
  return books.native.internalBreaks;
};

/** Behind the database's back: as one who has taken it over would. */
async function overwrite(sql: string, values: readonly unknown[]): Promise<void> {
  await house.ledger.owner.transaction(async (tx) => {
    await tx.query(`SET LOCAL session_replication_role = replica`);
    await tx.query(sql, values);
  });
}

describe("the service fee", () => {
  it("is earned by a payment, and given back where nothing is paid", async () => {
    house.files.policy = policyOf({ feeUnits: TOKEN });
    const lane = house.lane();
    const paid = await house.accept();
    expect(await internalBreaks()).toEqual([]);
    await house.pass(lane);
    expect(await statusOf(paid)).toBe("settled");
    expect(await internalBreaks()).toEqual([]);
    expect(await house.accountAtoken("revenue:withdrawal_fees")).toBe(-TOKEN);
    expect(await house.balance("alice")).toEqual({ available: 98n * TOKEN, held: 0n });
    const [refused, failing] = [freshAddress(), freshAddress()];
    house.chain.reverting.add(refused);
    house.chain.revertingOnChain.add(failing);
    const before = await house.accept({ destination: refused, destinationText: refused });
    const onChain = await house.accept({ destination: failing, destinationText: failing });
    await house.pass(lane);
    expect([await statusOf(before), await statusOf(onChain)]).toEqual(["failed", "failed"]);
    expect(await house.balance("alice")).toEqual({ available: 98n * TOKEN, held: 0n });
    expect(await house.accountAtoken("revenue:withdrawal_fees")).toBe(-TOKEN);
  });
});

describe("what a stricter policy forbids of accepted requests", () => {
  const limitedTo = (units: bigint) =>
    policyOf({
      limits: [{ by: "customer", window: "day", maxUnits: units * TOKEN, maxCount: undefined }],
    });

  it("counts against none behind it, also while it is put off", async () => {
    const ask = (tokens: bigint) => house.accept({ amountUnits: tokens * TOKEN });
    const [large, small] = [await ask(60n), await ask(20n)];
    await house.database.query(
      `UPDATE withdrawal SET next_try_at = now() + interval '1 hour' WHERE id = $1`,
      [large.id],
    );
    const stricter = limitedTo(50n);
    house.files.policy = stricter;
    await rejudgePending(house.database, stricter);
    await house.pass(house.lane({ retryDelayMs: 3_600_000 }));
    expect([await statusOf(large), await statusOf(small)]).toEqual(["rejected", "settled"]);
    expect((await house.read(large.id)).reason).toContain("LIMIT_EXCEEDED");
  });

  it("is looked for behind a change alone: all that waits would be looked through each time", async () => {
    await rejudgePending(house.database, limitedTo(90n));
    const asked = await house.accept({ amountUnits: 60n * TOKEN });
    const stricter = limitedTo(50n);
    await activatePolicy(house.database, async () => stricter);
    await overwrite(`UPDATE policy_activation SET at = now() - interval '121 s'`, []);
    await rejudgePending(house.database, stricter);
    expect(await statusOf(asked)).toBe("accepted");
    await overwrite(`UPDATE policy_activation SET at = now() - interval '110 s'`, []);
    await rejudgePending(house.database, stricter);
    expect(await statusOf(asked)).toBe("rejected");
  });
});

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

describe("a policy that changed since a request was accepted", () => {
  it("ends what it forbids, later ones before earlier ones, and asks persons about the rest", async () => {
    const [first, second] = [await house.accept(), await house.accept()];
    const big = await house.accept({ amountUnits: 20n * TOKEN });
    house.files.policy = policyOf({
      maximumUnits: 10n * TOKEN,
      limits: [{ by: "customer", window: "day", maxUnits: undefined, maxCount: 1 }],
    });
    await house.pass(house.lane());
    expect(await Promise.all([first, second, big].map(statusOf))).toEqual([
      "settled",
      "rejected",
      "rejected",
    ]);
    expect((await house.read(second.id)).reason).toContain("LIMIT_EXCEEDED");
    expect((await house.read(big.id)).reason).toContain("ABOVE_MAXIMUM");
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
  });

  it("counts nothing that it ends towards the limits of what was asked for behind that", async () => {
    const [large, dear] = [
      await house.accept({ amountUnits: 8n * TOKEN }),
      await house.accept({ amountUnits: 4n * TOKEN }),
    ];
    const small = [await house.accept(), await house.accept(), await house.accept()];
    house.files.policy = policyOf({
      maximumUnits: 5n * TOKEN,
      limits: [{ by: "customer", window: "day", maxUnits: 2n * TOKEN, maxCount: undefined }],
    });
    await house.pass(house.lane());
    expect(await Promise.all([large, dear, ...small].map(statusOf))).toEqual([
      "rejected",
      "rejected",
      "settled",
      "settled",
      "rejected",
    ]);
    expect(await house.balance("alice")).toEqual({ available: 98n * TOKEN, held: 0n });
  });

  it("counts ended requests behind a nonce where the signer counts the asset", async () => {
    const limits = [
      { by: "customer" as const, window: "day" as const, maxUnits: undefined, maxCount: 2 },
    ];
    const asked = await house.accept();
    await cancelWithdrawal(house.database, asked.id, "before it has a nonce");
    const lane = house.lane();
    const signed = await house.accept();
    await lane.runRound(house.signal);
    await cancelWithdrawal(house.database, signed.id, "its payment is signed");
    await house.pass(lane, { rounds: 3 });
    expect(await statusOf(signed)).toBe("cancelled");
    house.files.policy = policyOf({ limits });
    const second = await house.accept();
    await house.pass(lane, { rounds: 3 });
    expect(await statusOf(second)).toBe("settled");
    house.files.policy = policyOf({ limits, signerDayMaxUnits: 50n * TOKEN });
    expect(await house.request()).toMatchObject({ refusal: "LIMIT_EXCEEDED" });
    // Nobody else's share is used up by what is given back.
    house.files.policy = policyOf({ limits });
    expect(await house.request()).toMatchObject({ outcome: "accepted" });
  });

  it("counts nothing whose nonce the exchange gave up before its payment was signed", async () => {
    const { gas } = house.context().settings;
    const to = freshAddress();
    house.chain.gasOf.set(to, 450_000n);
    const asked = await house.accept({ destination: to, destinationText: to });
    await house.laneWith({ signer: silentSigner() }).runRound(house.signal);
    expect(await statusOf(asked)).toBe("slotted");
    await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL`);
    await house.pass(house.lane({ gas: { ...gas, limitMax: 100_000n } }), { rounds: 4 });
    expect(await statusOf(asked)).toBe("failed");
    house.files.policy = policyOf({
      limits: [{ by: "customer", window: "day", maxUnits: undefined, maxCount: 1 }],
      signerDayMaxUnits: 50n * TOKEN,
    });
    expect(await house.request()).toMatchObject({ outcome: "accepted" });
  });

  it("counts of signed payments that ended what others did, and nothing that the exchange gave up", async () => {
    const stall = { repriceAfterMs: 600_000, giveUpAfterMs: 4_000, alarmAfterMs: 600_000 };
    const lane = house.lane({ stall });
    const [unmined, failing] = [freshAddress(), freshAddress()];
    house.chain.unmined.add(unmined);
    house.chain.revertingOnChain.add(failing);
    const failed = await house.accept({ destination: failing, destinationText: failing });
    const waited = await house.accept({ destination: unmined, destinationText: unmined });
    await house.pass(lane, { rounds: 8 });
    expect([await statusOf(failed), await statusOf(waited)]).toEqual(["failed", "failed"]);
    house.files.policy = policyOf({
      limits: [{ by: "customer", window: "day", maxUnits: undefined, maxCount: 2 }],
      signerDayMaxUnits: 50n * TOKEN,
    });
    expect(await house.request()).toMatchObject({ outcome: "accepted" });
    expect(await house.request()).toMatchObject({ refusal: "LIMIT_EXCEEDED" });
    // As of a token's payment of which a person had to say that it paid nothing.
    await house.ledger.owner.query(
      `INSERT INTO operator_decision (kind, key, terms, reason, needs_second, status, proposed_by,
                                      decided_by, decided_at)
       VALUES ('transfer', $1, '{}', 'it paid nothing', false, 'done', 'ann', 'ann', now())`,
      [failed.id],
    );
    expect(await house.request()).toMatchObject({ outcome: "accepted" });
  });

  it("asks nobody again at the slot where as many persons are to agree as before", async () => {
    const approvals = [{ aboveUnits: 0n, needed: 1, signed: false }];
    house.files.policy = policyOf({ approvals });
    const asked = await house.accept({ requestedBy: "asker" });
    const said = { id: asked.id, keyId: "ann", decision: "approve", reason: "fine" } as const;
    const by = { policy: house.files.policy, chainId: FAKE_CHAIN_ID };
    expect(await decideWithdrawal(house.database, said, by)).toBe("done");
    house.files.policy = policyOf({ approvals, maximumUnits: 50n * TOKEN });
    await house.pass(house.lane());
    const paid = await house.read(asked.id);
    expect(paid.status).toBe("settled");
    expect(paid.history.map(({ status }) => status).slice(0, 3)).toEqual([
      "pending_approval",
      "accepted",
      "slotted",
    ]);
  });

  it("lets an approval count no more where more persons are to agree than before", async () => {
    const approvals = (needed: number) => [{ aboveUnits: 0n, needed, signed: false }];
    house.files.policy = policyOf({ approvals: approvals(1) });
    const asked = await house.accept({ requestedBy: "asker" });
    const approve = (keyId = "ann") =>
      decideWithdrawal(
        house.database,
        { id: asked.id, keyId, decision: "approve", reason: "fine" },
        { policy: house.files.policy, chainId: FAKE_CHAIN_ID },
      );
    expect(await approve()).toBe("done");
    house.files.policy = policyOf({ approvals: approvals(2) });
    const lane = house.lane();
    await house.pass(lane);
    expect(await statusOf(asked)).toBe("pending_approval");
    expect((await house.read(asked.id)).nonce).toBeUndefined();
    expect(await approve()).toBe("done");
    expect(await statusOf(asked)).toBe("pending_approval");
    expect(await approve("ben")).toBe("done");
    await house.pass(lane);
    expect(await statusOf(asked)).toBe("settled");
  });

  it("takes the nonce back from what the signer's file forbids by the time it is signed", async () => {
    const { signer } = laneRules({
      privateKey: WALLET_KEY,
      chainId: FAKE_CHAIN_ID,
      limits: { gasPriceCapAtoken: 1_000_000_000n, gasLimitMax: 1_000_000n },
      sql: house.database,
      files: { ...house.files, policy: policyOf({ maximumUnits: TOKEN }) },
    });
    const [big, small] = [await house.accept({ amountUnits: 2n * TOKEN }), await house.accept()];
    await house.pass(house.laneWith({ signer }), { rounds: 3 });
    const ended = await house.read(big.id);
    expect(ended).toMatchObject({ status: "rejected", nonce: 0n });
    expect(ended.reason).toContain("ABOVE_MAXIMUM of the signer");
    expect(ended.history.map(({ status }) => status)).toContain("cancelling");
    expect(await house.read(small.id)).toMatchObject({ status: "settled", nonce: 1n });
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
  });

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

describe("the kill switch", () => {
  const set = (level: KillSwitchLevel) =>
    setKillSwitch(house.ledger.owner, { level, reason: "drill", by: "tests" });

  it("stops a withdrawal in every state, and lets it go on from there", async () => {
    const lane = house.lane();
    const { id } = await house.accept();
    await set("stop-sign");
    await house.pass(lane);
    expect(await statusOf({ id })).toBe("accepted");
    expect(lane.status().blockedReason).toContain("kill switch stop-sign: drill");
    await set("none");
    // Sent, but no node has it: it is sent again, unless sending is stopped.
    house.chain.wireFault = (methods) =>
      methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
    await lane.runRound(house.signal).catch(() => undefined);
    expect(await statusOf({ id })).toBe("signed");
    house.chain.wireFault = () => undefined;
    await set("stop-broadcast");
    await house.pass(lane);
    expect(await statusOf({ id })).toBe("signed");
    expect(house.chain.arrived).toEqual([]);
    await set("stop-sign");
    house.clock.ms += 10_000;
    await lane.runRound(house.signal);
    // What was signed before goes out: only new signatures are stopped.
    expect(await statusOf({ id })).toBe("broadcast");
    await set("stop-broadcast");
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(await statusOf({ id })).toBe("settled");
    await set("none");
    expect(house.chain.balances.get(WALLET)).toBe(999n * TOKEN - 21_000n * 25_000_000n);
  });

  it("signs and sends nothing for any state before the chain's, and every one ends once lifted", async () => {
    let isSilent = true;
    const { signer } = house.context();
    const mute: typeof signer = {
      address: signer.address,
      review: (payments) => signer.review(payments),
      trouble: () => (isSilent ? "signer: silent" : signer.trouble()),
      sign: async (intents, options) =>
        isSilent
          ? intents.map(() => ({ kind: "unanswered", reason: "silent" }) as const)
          : signer.sign(intents, options),
    };
    const lane = house.laneWith({ signer: mute });
    const slotted = await house.accept();
    const cancelling = await house.accept();
    await lane.runRound(house.signal);
    expect(lane.status().blockedReason).toBe("signer: silent");
    expect(await cancelWithdrawal(house.database, cancelling.id, "drill")).toBe("done");
    const accepted = await house.accept();
    house.files.policy = policyOf({ approvals: [{ aboveUnits: 0n, needed: 1, signed: false }] });
    const pending = await house.accept();
    house.files.policy = PERMISSIVE;
    const all = [slotted, cancelling, accepted, pending];
    const states = ["slotted", "cancelling", "accepted", "pending_approval"];
    isSilent = false;
    for (const level of ["stop-sign", "stop-broadcast"] as const) {
      await set(level);
      await house.pass(lane);
      expect(await Promise.all(all.map(statusOf))).toEqual(states);
    }
    expect(house.chain.arrived).toEqual([]);
    expect(await house.database.query(`SELECT 1 FROM withdrawal_attempt`)).toEqual([]);
    // A person's word counts meanwhile; it pays nothing.
    await rejudgePending(house.database, house.files.policy);
    expect(await statusOf(pending)).toBe("accepted");
    await set("none");
    await house.pass(lane, { rounds: 3 });
    expect(await Promise.all(all.map(statusOf))).toEqual([
      "settled",
      "cancelled",
      "settled",
      "settled",
    ]);
    expect(await house.balance("alice")).toEqual({ available: 97n * TOKEN, held: 0n });
  });

  it("has no nonce given up for as long as it stopped: what was signed is paid behind it", async () => {
    const lane = house.lane();
    const { id } = await house.accept();
    house.chain.wireFault = (methods) =>
      methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
    for (let round = 0; round < 2; round += 1) {
      await lane.runRound(house.signal).catch(() => undefined);
    }
    expect(await statusOf({ id })).toBe("signed");
    house.chain.wireFault = () => undefined;
    await set("stop-broadcast");
    await house.pass(lane, { rounds: 3, stepMs: 300_000 });
    expect(house.chain.arrived).toEqual([]);
    await set("none");
    await house.pass(lane, { rounds: 1, stepMs: 2_000 });
    expect(await house.read(id)).toMatchObject({ status: "settled", nonce: 0n });
  });

  it("in the signer's own file stops signing though the ledger knows nothing of it", async () => {
    const lane = house.lane();
    const { id } = await house.accept();
    house.files.killSwitch = { level: "stop-sign", reason: "drill", by: "ann", at: undefined };
    await house.pass(lane);
    const waiting = await house.read(id);
    expect(waiting.status).toBe("accepted");
    expect(waiting.reason).toContain("kill switch stop-sign");
    expect(waiting.nonce).toBeUndefined();
    house.files.killSwitch = { ...house.files.killSwitch, level: "none" };
    await house.hurry();
    await house.pass(lane);
    expect(await statusOf({ id })).toBe("settled");
  });
});

describe("a signer before a ledger that lies", () => {
  it("pays nobody whom the approver did not sign for", async () => {
    house.files.policy = SIGNED;
    const asked = await askSigned(house);
    const thief = freshAddress();
    await overwrite(`UPDATE withdrawal SET destination = $2, destination_text = $2 WHERE id = $1`, [
      asked.id,
      thief,
    ]);
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
    await overwrite(`UPDATE nonce_slot SET outcome = 'foreign' WHERE withdrawal_id = $1`, [
      asked.id,
    ]);
    await overwrite(`UPDATE withdrawal SET status = 'accepted' WHERE id = $1`, [asked.id]);
    await lane.runRound(house.signal);
    const again = await house.read(asked.id);
    expect([again.status, again.nonce]).toEqual(["cancelling", 1n]);
    expect(again.reason).toContain("APPROVALS_USED of the signer");
    house.chain.mine();
    expect(house.chain.balances.get(to)).toBe(TOKEN);
  });

  it("makes nothing dearer that was approved under a former policy, and pays it as it was signed", async () => {
    house.files.policy = SIGNED;
    const to = freshAddress();
    house.chain.unmined.add(to);
    const asked = await askSigned(house, { destination: to, destinationText: to });
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.files.policy = signedWith({ maximumUnits: 50n * TOKEN });
    await house.pass(lane, { rounds: 4, stepMs: 40_000 });
    const waiting = await house.read(asked.id);
    expect([waiting.status, waiting.hashes.length]).toEqual(["broadcast", 1]);
    house.chain.unmined.clear();
    await house.pass(lane, { rounds: 3 });
    expect(await statusOf(asked)).toBe("settled");
  });

  it("gives up together what was approved under a former policy and is too cheap by now", async () => {
    const approvals = [{ aboveUnits: TOKEN, needed: 1, signed: true }];
    house.files.policy = signedWith({ approvals });
    const lane = house.lane();
    const stuck: Withdrawal[] = [];
    for (let count = 0; count < 2; count += 1) {
      const to = freshAddress();
      house.chain.unmined.add(to);
      const terms = { destination: to, destinationText: to, amountUnits: 2n * TOKEN };
      stuck.push(await askSigned(house, terms));
    }
    const behind = await house.accept();
    await lane.runRound(house.signal);
    house.files.policy = signedWith({ approvals, maximumUnits: 50n * TOKEN });
    house.chain.gasPriceAtoken *= 2n;
    await house.pass(lane, { rounds: 4, stepMs: 300_000 });
    for (const { id } of stuck) {
      const ended = await house.read(id);
      // One payment, never a dearer one, and the transfer of nothing.
      expect([ended.status, ended.hashes.length]).toEqual(["failed", 2]);
    }
    expect(await statusOf(behind)).toBe("settled");
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
  });

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

describe("a signer that answers wrongly", () => {
  it("is not asked again until a person has looked; then its nonce is used", async () => {
    const stub = await Web3SignerStub.start(bytesToHex(WALLET_KEY), FAKE_CHAIN_ID);
    const holder = createWeb3Signer({ url: stub.url, timeoutMs: 60_000, address: WALLET });
    try {
      const limits = { gasPriceCapAtoken: 1_000_000_000n, gasLimitMax: 1_000_000n };
      const rules = laneRules({
        privateKey: WALLET_KEY,
        chainId: FAKE_CHAIN_ID,
        limits,
        sql: house.database,
        files: house.files,
        holder,
      });
      const lane = house.laneWith(rules);
      const { id } = await house.accept();
      stub.lie = "other-value";
      await house.pass(lane);
      expect(await house.isFrozen()).toBe(true);
      expect(lane.status().blockedReason).toContain("the signer answered wrongly");
      expect(await house.read(id)).toMatchObject({ status: "slotted", nonce: 0n, hashes: [] });
      const asked = stub.methods.length;
      await house.pass(lane);
      expect(stub.methods).toHaveLength(asked);
      stub.lie = undefined;
      await releaseSigning(house.database, WALLET, "the signer was mended");
      await house.pass(lane);
      expect(await house.read(id)).toMatchObject({ status: "settled", nonce: 0n });
    } finally {
      await holder.close();
      await stub.stop();
    }
  });
});
