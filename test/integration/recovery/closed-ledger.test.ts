/** What a recovery, a person's decision and a cancellation do to each other's money. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { listEvents } from "../../helpers/events.js";
import { openIncident } from "../../../ledger/incidents.js";
import { readHomeWallets } from "../../../ledger/wallets/home-wallets.js";
import { walletStatus } from "../../../ledger/wallets/wallet.js";
import { cancelWithdrawal } from "../../../ledger/withdrawals/cancellation.js";
import { NATIVE_ASSET, parseCustomerId } from "../../../ledger/journal/accounts.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { acceptWithdrawals } from "../../../ledger/withdrawals/withdrawals.js";
import { encryptKeystore } from "../../../chain/signing/keystore.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "./desk.js";
import { ANY_REQUEST } from "../../helpers/keys/signing.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

const REASON = ["--reason", "the client's own records", "--operator", "ann"];

/** Alice has 10 TOKEN; nothing is open. */
async function rich(): Promise<void> {
  const alice = await desk.register("alice");
  desk.pay([alice.address, 10n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.lane().runRound(desk.signal);
}

async function requestUntil(key: string, expiresAtMs: number): Promise<WithdrawalId> {
  const [outcome] = await acceptWithdrawals(
    desk.database,
    [
      {
        idempotencyKey: key,
        customerId: parseCustomerId("alice"),
        asset: NATIVE_ASSET,
        destination: destination(1),
        destinationText: destination(1),
        amountUnits: 4n * TOKEN,
        expiresAtMs,
      },
    ],
    ANY_REQUEST,
  );
  if (outcome?.outcome !== "accepted") throw new Error("not accepted");
  return outcome.withdrawal.id;
}

describe("a ledger in recovery", () => {
  it("lets nobody cancel what waited in the backup: it may be paid already", async () => {
    await rich();
    const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
    const waiting = await desk.request({ key: "w", ...fields });
    const backup = await desk.backup();
    await desk.work();
    expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
    await desk.register("bob");
    await desk.useDatabase(backup);
    await desk.watch(); // the ledger is closed: RECOVERY
    const cancel = cancelWithdrawal(desk.database, waiting.id, "it took too long");
    await expect(cancel).rejects.toMatchObject({ code: "RECOVERY" });
    await desk.causeway("recover", "--apply");
    await desk.watch();
    // Paid once, so 6 are left to her, and not 10.
    expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
  });

  it("takes no wish to cancel, whatever it says of the request", async () => {
    await rich();
    const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
    const frozen = await desk.request({ key: "w", ...fields });
    const freeze = `UPDATE withdrawal SET status = 'frozen', reason = 'looked at' WHERE id = $1`;
    await desk.database.query(freeze, [frozen.id]);
    const backup = await desk.backup();
    const later = await desk.request({ key: "x", ...fields });
    await desk.register("bob");
    await desk.useDatabase(backup);
    await desk.watch(); // the ledger is closed: RECOVERY
    for (const { id } of [frozen, later]) {
      const cancel = cancelWithdrawal(desk.workerDatabase, id, "it took too long");
      await expect(cancel).rejects.toMatchObject({ code: "RECOVERY" });
      const typed = desk.causeway("withdrawals", "cancel", id, "--reason", "it took too long");
      await expect(typed).rejects.toMatchObject({ code: "RECOVERY" });
    }
    const kept = await desk.database.query(`SELECT cancel_cause FROM withdrawal`);
    expect(kept).toEqual([{ cancel_cause: null }]);
  });

  it("lets no deadline end what waited in the backup: it may be paid already", async () => {
    await rich();
    await requestUntil("w", Date.now() + 86_400_000);
    const backup = await desk.backup();
    await desk.work();
    expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
    await desk.register("bob");
    await desk.useDatabase(backup);
    await desk.watch();
    // The deadline passes while the ledger is closed.
    await desk.database.query(`ALTER TABLE withdrawal DISABLE TRIGGER USER`);
    await desk.database.query(`UPDATE withdrawal SET expires_at = now() - interval '1 second'`);
    await desk.database.query(`ALTER TABLE withdrawal ENABLE TRIGGER USER`);
    await desk.work(1);
    await desk.causeway("recover", "--apply");
    await desk.watch();
    expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
  });

  it.each([
    ["add", "--label", "second"],
    ["activate", WALLET],
    ["retire", WALLET, "--leave-behind"],
  ])("is found by who types `wallets %s`, and hears no such word", async (...words) => {
    // A home that has its keys: in none other is a wallet added.
    const keystore = join(desk.home, "config", "hot-wallet.json");
    writeFileSync(keystore, await encryptKeystore(KEY, "of a test"));
    await rich();
    await desk.causeway("wallets", "drain", WALLET, ...REASON);
    const backup = await desk.backup();
    await desk.register("bob");
    await desk.useDatabase(backup);
    await expect(desk.causeway("wallets", ...words, ...REASON)).rejects.toMatchObject({
      code: "RECOVERY",
    });
    expect(await openIncident(desk.database)).toMatchObject({ kind: "RECOVERY" });
    expect(await walletStatus(desk.database, WALLET)).toBe("draining");
    expect(readHomeWallets(desk.home)).toHaveLength(1);
    // Opened again it takes them.
    await desk.causeway("recover", "--apply");
    expect((await desk.causeway("wallets", ...words, ...REASON)).code).toBe(0);
  });

  it("lets a wallet be drained, which stops something", async () => {
    await rich();
    const backup = await desk.backup();
    await desk.register("bob");
    await desk.useDatabase(backup);
    expect((await desk.causeway("wallets", "drain", WALLET, ...REASON)).code).toBe(0);
    expect(await openIncident(desk.database)).toMatchObject({ kind: "RECOVERY" });
    expect(await walletStatus(desk.database, WALLET)).toBe("draining");
  });

  it("uses no event number a second time", async () => {
    await rich();
    const fields = { customer: "alice", amountAtoken: TOKEN };
    await desk.request({ key: "w", to: destination(1), ...fields });
    await desk.lane().runRound(desk.signal); // slotted, signed, sent
    const backup = await desk.backup();
    await desk.register("bob");
    await desk.request({ key: "x", to: destination(2), ...fields });
    await desk.work();
    const told = await listEvents(desk.database, { afterSeq: 0, limit: 1_000 });
    await (await desk.guard()).beforeTelling({ eventSeq: told.at(-1)?.seq ?? 0 });
    await desk.useDatabase(backup);
    await desk.watch();
    await desk.work(2); // in recovery: the lane books what is mined
    await desk.causeway("recover", "--apply");
    await desk.work(1);
    const now = await listEvents(desk.database, { afterSeq: 0, limit: 1_000 });
    const before = new Map(told.map((event) => [event.seq, JSON.stringify(event.data) + event.at]));
    const changed = now.filter(
      ({ seq, data, at }) => before.has(seq) && before.get(seq) !== JSON.stringify(data) + at,
    );
    expect(changed.map(({ seq, type }) => `${seq} ${type}`)).toEqual([]);
  });
});

describe("recovered payments", () => {
  it("freeze an equal request instead of giving its hold back", async () => {
    await rich();
    const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
    const backup = await desk.backup();
    await desk.request({ key: "lost", ...fields });
    await desk.work();
    await desk.register("bob");
    await desk.useDatabase(backup);
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    const again = await desk.request({ key: "lost", ...fields });
    const endAll = desk.database.query(`UPDATE withdrawal SET status = 'cancelled' WHERE id = $1`, [
      again.id,
    ]);
    await expect(endAll).rejects.toThrow("may be the recovered payment");
    expect(await cancelWithdrawal(desk.database, again.id, "it took too long")).toBe("done");
    expect((await desk.read(again.id)).status).toBe("frozen");
    expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
    const [hash = ""] = desk.ownHashes();
    await desk.causeway("ledger", "link-payment", hash, "--withdrawal", again.id, ...REASON);
    expect((await desk.read(again.id)).status).toBe("settled");
    expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
    expect(await desk.breaks()).toBe("");
  });

  it("can be linked where two are equal", async () => {
    await rich();
    const fields = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
    const backup = await desk.backup();
    await desk.request({ key: "w1", ...fields });
    await desk.request({ key: "w2", ...fields });
    await desk.work();
    await desk.register("bob");
    await desk.useDatabase(backup);
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    const [first = "", second = ""] = desk.ownHashes();
    for (const [hash, key] of [
      [first, "w1"],
      [second, "w2"],
    ] as const) {
      const claim = ["--customer", "alice", "--idempotency-key", key];
      await desk.causeway("ledger", "link-payment", hash, ...claim, ...REASON);
    }
    expect(await desk.availableAtoken("alice")).toBe(8n * TOKEN);
  });

  it("are no cancelled request: a nonce that the lost ledger used up for nothing cancels it", async () => {
    await rich();
    const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
    desk.chain.unmined.add(destination(1));
    const wanted = await desk.request({ key: "w", ...fields });
    await desk.lane().runRound(desk.signal);
    expect((await desk.read(wanted.id)).status).toBe("broadcast");
    const backup = await desk.backup();
    // Behind the backup the client cancels, and is told that nothing was paid.
    await cancelWithdrawal(desk.database, wanted.id, "the client changed its mind");
    await desk.work(5);
    expect((await desk.read(wanted.id)).status).toBe("cancelled");
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
    await desk.register("bob");
    desk.chain.unmined.clear();
    await desk.useDatabase(backup);
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    await desk.work(5);
    await desk.causeway("withdrawals", "release", "--accept-foreign");
    await desk.work(5);
    await desk.watch();
    await desk.causeway("withdrawals", "release", "--accept-foreign");
    await desk.work(5);
    expect(desk.paidAtoken(destination(1))).toBe(0n);
    expect((await desk.read(wanted.id)).status).toBe("cancelled");
  });

  it("are no failed request: what the chain shows as failed on its nonce stays failed", async () => {
    await rich();
    const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
    desk.chain.unmined.add(destination(1));
    desk.chain.revertingOnChain.add(destination(1));
    const wanted = await desk.request({ key: "w", ...fields });
    await desk.lane().runRound(desk.signal);
    const backup = await desk.backup();
    desk.chain.unmined.clear();
    await desk.work(3);
    expect((await desk.read(wanted.id)).status).toBe("failed");
    await desk.register("bob");
    await desk.useDatabase(backup);
    // As if the backup was made between nonce and signature: the hash is lost as well.
    for (const table of ["withdrawal", "withdrawal_attempt"]) {
      await desk.database.query(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
    }
    await desk.database.query(`DELETE FROM withdrawal_attempt`);
    await desk.database.query(`UPDATE withdrawal SET status = 'slotted'`);
    for (const table of ["withdrawal", "withdrawal_attempt"]) {
      await desk.database.query(`ALTER TABLE ${table} ENABLE TRIGGER USER`);
    }
    await desk.watch();
    const { text } = await desk.causeway("recover", "--apply");
    expect(text).toContain(`${wanted.id} failed by ${desk.ownHashes()[0]}`);
    await desk.watch();
    desk.chain.revertingOnChain.clear();
    await desk.work(3);
    expect((await desk.read(wanted.id)).status).toBe("failed");
    expect(desk.paidAtoken(destination(1))).toBe(0n);
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
    await desk.watch();
    expect(await desk.breaks()).toBe("");
  });

  it("are not booked a second time as an outflow that a person accepts", async () => {
    await rich();
    const backup = await desk.backup();
    const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
    await desk.request({ key: "w", ...fields });
    await desk.work();
    const [hash = ""] = desk.ownHashes();
    // A home that remembers nothing: the watcher goes on, and finds an outflow nobody asked for.
    rmSync(join(desk.home, "data"), { recursive: true, force: true });
    await desk.useDatabase(backup);
    await desk.watch();
    await desk.work(1);
    await desk.causeway("recover", "--declare", "restored", "--apply", "--operator", "ann");
    await desk.watch();
    expect(await desk.breaks()).toBe("");
    // What the command names is done.
    const open = await desk.causeway("ledger", "open");
    if (open.text.includes(`outflow ${hash}`)) {
      await desk.causeway("ledger", "accept-outflow", hash, ...REASON).catch(() => undefined);
    }
    expect(await desk.breaks()).toBe("");
  });
});
