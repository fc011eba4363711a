/** The kill switch over payments: in every state they stop, and go on from there. */
import { describe, expect, it } from "@jest/globals";
import { setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import type { KillSwitchLevel } from "../../../../ledger/kill-switch/kill-switch-level.js";
import { rejudgePending } from "../../../../ledger/policy/stored-judgement.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { PERMISSIVE } from "../../../helpers/keys/signing.js";
import { House, houseForEachTest, TOKEN, WALLET } from "../../../helpers/exchange/house.js";
import { policyOf } from "../terms.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const statusOf = async ({ id }: Pick<Withdrawal, "id">) => (await house.read(id)).status;

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
