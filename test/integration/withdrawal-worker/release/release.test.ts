/** `causeway withdrawals`: what an operator sees, freezes and releases, with the chain's proof. */
import { describe, expect, it } from "@jest/globals";
import { parseHash32 } from "../../../../chain/hex.js";
import {
  runFreezeWithdrawals,
  runListWithdrawals,
  runShowWithdrawal,
} from "../../../../cli/commands/withdrawals/withdrawals.js";
import { setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import { releaseWithdrawal } from "../../../../ledger/withdrawals/release/release.js";
import { freezeWithdrawals } from "../../../../ledger/withdrawals/slot-outcomes.js";
import { releaseWithForeignNonce } from "../../../../ledger/withdrawals/foreign-transactions.js";
import { standing } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";
import { policyOf } from "../../policy/terms.js";
import { looked, operatorBeside } from "../../../helpers/exchange/operator.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  WALLET,
} from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const { printed, command, release, sendForeign, signUnsent } = operatorBeside(() => house);

/** A withdrawal whose nonce a foreign transaction consumed. */
async function frozenByForeign(foreign: { sameAs?: boolean } = {}) {
  const { id, lane, to } = await signUnsent();
  const target = foreign.sameAs === true ? { to, valueAtoken: TOKEN } : {};
  const hash = await sendForeign({ nonce: 0n, ...target });
  house.chain.mine();
  for (let round = 0; round < 2; round++) {
    await lane.runRound(house.signal);
    house.clock.ms += 5_000;
  }
  expect((await house.read(id)).status).toBe("frozen");
  return { id, lane, hash, to };
}

describe("causeway withdrawals", () => {
  it("lists and shows withdrawals, and freezes and releases signing", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    await lane.runRound(house.signal);
    expect(await runListWithdrawals(command(), {})).toBe(0);
    expect(printed.join("\n")).toContain(`${id} broadcast alice 1 TOKEN`);
    expect(await runListWithdrawals(command(true), { status: "settled" })).toBe(0);
    expect(JSON.parse(printed.join(""))).toMatchObject({ withdrawals: [] });
    expect(await runShowWithdrawal(command(), id)).toBe(0);
    expect(printed.join("\n")).toContain("nonce 0");
    expect(await runShowWithdrawal(command(), "wd_none")).toBe(1);
    expect(await runShowWithdrawal(command(true), "wd_none")).toBe(1);
    const none = { schemaVersion: 1, outcome: "unknown", withdrawal: null };
    expect(JSON.parse(printed.join(""))).toEqual(none);
    await expect(runListWithdrawals(command(), { status: "odd" })).rejects.toThrow("--status");
    expect(await runFreezeWithdrawals(command(), { reason: "looking" })).toBe(0);
    expect(await runListWithdrawals(command(), {})).toBe(1);
    expect(printed[0]).toContain("FROZEN");
    expect(printed[0]).toContain("looking");
    const waiting = await house.accept();
    await lane.runRound(house.signal);
    expect((await house.read(waiting.id)).status).toBe("accepted");
    expect(await release()).toBe(0);
    await lane.runRound(house.signal);
    expect((await house.read(waiting.id)).status).toBe("broadcast");
  });

  it("does not end well while the kill switch stops what it has let go on", async () => {
    await runFreezeWithdrawals(command(), { reason: "looking" });
    const word = { reason: "drill", by: "ann" };
    await setKillSwitch(house.ledger.owner, { level: "stop-sign", ...word });
    expect(await release()).toBe(1);
    expect(printed).toEqual([
      "signing is released",
      expect.stringMatching(/^STILL FROZEN: kill switch stop-sign: drill.*killswitch lift/),
      expect.stringMatching(/is FROZEN since .*: kill switch stop-sign: drill/),
    ]);
    // It stops no signature.
    await setKillSwitch(house.ledger.owner, { level: "stop-new", ...word });
    expect(await release()).toBe(0);
  });

  it("lists and freezes while the node is down", async () => {
    const { id } = await house.accept();
    await house.lane().runRound(house.signal);
    house.chain.wireFault = () => "reset-before";
    expect(await runListWithdrawals(command(), {})).toBe(0);
    expect(printed.join("\n")).toContain(id);
    expect(await runFreezeWithdrawals(command(), {})).toBe(0);
    expect(await house.isFrozen()).toBe(true);
    await expect(release()).rejects.toThrow();
    expect(await house.isFrozen()).toBe(true);
  });

  it("gives a withdrawal a second nonce only with the transaction that consumed the first", async () => {
    const { id, lane, to } = await frozenByForeign();
    expect(await release()).toBe(0);
    expect((await house.read(id)).status).toBe("accepted");
    const proof = await house.database.query(
      `SELECT outcome, mined_hash IS NOT NULL AS proven FROM nonce_slot WHERE nonce = 0`,
    );
    expect(proof).toEqual([{ outcome: "foreign", proven: true }]);
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    const paid = await house.read(id);
    expect(paid.status).toBe("settled");
    expect(paid.nonce).toBe(1n);
    expect(house.chain.balances.get(to)).toBe(TOKEN);
  });

  it("pays it within the wallet's limit, which the nonce that was taken counts nothing towards", async () => {
    house.files.policy = policyOf({
      limits: [{ by: "wallet", window: "day", maxUnits: TOKEN, maxCount: 1 }],
    });
    const { id, lane, to } = await frozenByForeign();
    expect(await release()).toBe(0);
    await house.pass(lane, { rounds: 2, stepMs: 2_000 });
    expect(await house.read(id)).toMatchObject({ status: "settled", nonce: 1n });
    expect(house.chain.balances.get(to)).toBe(TOKEN);
    // This one counts.
    const late = await house.accept();
    await house.pass(lane, { rounds: 2, stepMs: 2_000 });
    expect((await house.read(late.id)).reason).toContain("wallet's limit");
  });

  it("does not pay what was cancelled while it was frozen, and gives its hold back", async () => {
    const before = await house.balance("alice");
    const { id, lane, to } = await frozenByForeign();
    expect(await cancelWithdrawal(house.database, id, "changed my mind")).toBe("done");
    expect(await cancelWithdrawal(house.database, id, "another word")).toBe("done");
    // It may have been paid: only a person ends it.
    expect((await house.read(id)).status).toBe("frozen");
    expect(await release()).toBe(0);
    expect(await house.read(id)).toMatchObject({ status: "cancelled", reason: "changed my mind" });
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(house.chain.balances.get(to) ?? 0n).toBe(0n);
    expect(await house.balance("alice")).toEqual(before);
  });

  it("has its nonce waited for anew: no block could have it while a person looked", async () => {
    const lane = house.lane();
    house.chain.wireFault = (methods) =>
      methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
    const { id, to } = await house.acceptTo();
    await lane.runRound(house.signal).catch(() => undefined);
    await freezeWithdrawals(house.database, [{ id, reason: "looked at by a person" }]);
    house.chain.wireFault = () => undefined;
    await house.pass(lane, { rounds: 3, stepMs: 300_000 });
    expect((await house.read(id)).status).toBe("frozen");
    expect(await release()).toBe(0);
    await house.pass(lane, { rounds: 1, stepMs: 2_000 });
    expect(await house.read(id)).toMatchObject({ status: "settled", nonce: 0n });
    expect(house.chain.balances.get(to)).toBe(TOKEN);
  });

  it("does not send what is cancelled while the release looks at the chain", async () => {
    const lane = house.lane();
    house.chain.gasPriceAtoken = 1n;
    house.chain.minimumPriceAtoken = 10n;
    const { id, to } = await house.acceptTo();
    await lane.runRound(house.signal);
    await freezeWithdrawals(house.database, [{ id, reason: "looked at by a person" }]);
    const cancel = () => cancelWithdrawal(house.database, id, "changed my mind");
    const report = await releaseWithdrawal(
      {
        database: house.ledger.owner,
        wallet: WALLET,
        chainOf: () => ({
          headHeight: async () => house.chain.head,
          // Its client is told that it will not be paid, in the very moment of the release.
          nonceAt: async () => ((await cancel()) === "done" ? 0n : -1n),
          queuedNonces: async () => [],
          receipts: async (hashes) => hashes.map(() => undefined),
          transactions: async () => [],
        }),
        paymentOf: async () => undefined,
      },
      id,
      { decision: "look-again" },
    );
    expect(report.steps).toEqual([{ step: "slot-resumed", id, nonce: 0n }]);
    expect((await house.read(id)).status).toBe("cancelling");
    house.chain.minimumPriceAtoken = 1n;
    await house.pass(lane, { rounds: 3, stepMs: 2_000 });
    expect((await house.read(id)).status).toBe("cancelled");
    expect(house.chain.balances.get(to) ?? 0n).toBe(0n);
  });

  it("settles what was cancelled while it was frozen, where the chain shows that it was paid", async () => {
    const { id, lane, hash, to } = await frozenByForeign({ sameAs: true });
    expect(await cancelWithdrawal(house.database, id, "changed my mind")).toBe("done");
    expect(await release({ id, paidBy: hash })).toBe(0);
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("settled");
    expect(house.chain.balances.get(to)).toBe(TOKEN);
    expect(await cancelWithdrawal(house.database, id, "too late")).toBe("mined");
  });

  it("closes no slot of a withdrawal whose receipt is recorded at the same moment", async () => {
    const { id, hash } = await frozenByForeign();
    const { owner } = house.ledger;
    const [slot] = await house.context().ledger.readLiveSlots({
      wallet: WALLET,
      statuses: ["frozen"],
      limit: 1,
    });
    const proof = {
      slotId: slot?.slotId ?? "",
      withdrawalId: id,
      foreignHash: parseHash32(hash),
      blockNumber: house.chain.head,
    };
    let released: Promise<boolean> | undefined;
    await standing(owner, async (tx) => {
      await tx.query(`UPDATE withdrawal SET status = 'included' WHERE id = $1`, [id]);
      released = releaseWithForeignNonce(owner, proof);
      // Asked outside: a transaction is shown for its whole time the sessions that it saw first.
      const waiting = `SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      await until(async () => (await owner.query(waiting)).length > 0, {
        timeoutMs: 10_000,
        what: "the release waits for the receipt",
      });
    });
    expect(await released).toBe(false);
    const rows = await owner.query(`SELECT outcome, mined_hash FROM nonce_slot WHERE id = $1`, [
      proof.slotId,
    ]);
    expect(rows).toEqual([{ outcome: null, mined_hash: null }]);
    expect((await house.read(id)).status).toBe("included");
  });

  it("keeps it frozen without that proof", async () => {
    const { id } = await frozenByForeign();
    house.chain.override = (method) =>
      method === "causeway_getAccountJournal" ? { result: { entries: [], next: null } } : undefined;
    expect(await release()).toBe(1);
    expect((await house.read(id)).status).toBe("frozen");
    expect(printed.join("\n")).toContain("nothing shows who consumed nonce 0");
  });

  it("does not pay again what the foreign transaction may have paid, but takes it over", async () => {
    const { id, lane, hash, to } = await frozenByForeign({ sameAs: true });
    expect(await release()).toBe(1);
    expect((await house.read(id)).status).toBe("frozen");
    expect(printed.join("\n")).toContain(`--paid-by ${hash}`);
    expect(await release({ id, paidBy: hash })).toBe(0);
    await lane.runRound(house.signal);
    const settled = await house.read(id);
    expect(settled.status).toBe("settled");
    expect(settled.txHash).toBe(hash);
    expect(house.chain.balances.get(to)).toBe(TOKEN);
    expect(house.chain.nonces.get(WALLET)).toBe(1n);
  });

  it("after a restored backup names the unknown payments and pays none of them twice", async () => {
    const lane = house.lane();
    await lane.runRound(house.signal);
    const to = freshAddress();
    // The backup knows this request as waiting; before the loss it had been paid with nonce 0.
    const paid = await house.accept({ destination: to, destinationText: to });
    const other = await house.accept();
    const hash = await sendForeign({ nonce: 0n, to, valueAtoken: TOKEN });
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(await house.isFrozen()).toBe(true);
    expect(await release()).toBe(1);
    expect(printed.join("\n")).toContain(hash);
    expect(await house.isFrozen()).toBe(true);
    expect(await release(looked(hash))).toBe(1);
    expect((await house.read(paid.id)).status).toBe("frozen");
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    const settled = await house.read(other.id);
    expect(settled.status).toBe("settled");
    expect(settled.nonce).toBe(1n);
    expect(await release({ id: other.id, paidBy: hash }).catch(() => "refused")).toBe("refused");
    expect(await release({ id: paid.id, paidBy: hash })).toBe(0);
    await lane.runRound(house.signal);
    expect((await house.read(paid.id)).status).toBe("settled");
    expect(house.chain.balances.get(to)).toBe(TOKEN);
    const spent = 1_000n * TOKEN - (house.chain.balances.get(WALLET) ?? 0n);
    expect(100n * TOKEN - (await house.accountAtoken(`asset:wallet:${WALLET}`))).toBe(spent);
  });

  it("pays what an operator says was never paid", async () => {
    const lane = house.lane();
    await lane.runRound(house.signal);
    const to = freshAddress();
    const { id } = await house.accept({ destination: to, destinationText: to });
    const hash = await sendForeign({ nonce: 0n, to, valueAtoken: TOKEN });
    house.chain.mine();
    await lane.runRound(house.signal);
    await release(looked(hash));
    expect(await release({ id, notPaid: true })).toBe(0);
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("settled");
    expect(house.chain.balances.get(to)).toBe(2n * TOKEN);
  });

  it("names each further transaction that may have paid what is frozen already, and once", async () => {
    const lane = house.lane();
    await lane.runRound(house.signal);
    const to = freshAddress();
    const { id } = await house.accept({ destination: to, destinationText: to });
    const hashes: string[] = [];
    for (const nonce of [0n, 1n]) {
      hashes.push(await sendForeign({ nonce, to, valueAtoken: TOKEN }));
      house.chain.mine();
      await lane.runRound(house.signal);
      expect(await release(looked(hashes.at(-1) ?? ""))).toBe(1);
      expect(printed.join("\n")).toContain("1 withdrawals may be paid already");
      expect(await house.isFrozen()).toBe(false);
    }
    const { status, reason = "" } = await house.read(id);
    expect(status).toBe("frozen");
    for (const hash of hashes) expect(reason.split(hash)).toHaveLength(2);
    expect(await release(looked(...hashes))).toBe(1);
    expect((await house.read(id)).reason).toBe(reason);
    expect(await release({ id, notPaid: true })).toBe(0);
  });
});
