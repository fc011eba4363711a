/** One transaction of the hot wallet is booked once, whichever command a person types first. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { bytesToHex } from "../../../chain/hex.js";
import { signLegacy } from "../../../chain/transaction.js";
import { cancelWithdrawal } from "../../../ledger/withdrawals/cancellation.js";
import { readFreeze } from "../../../ledger/requests/signing-freeze.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const FIELDS = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
const REASON = ["--reason", "looked at the records", "--operator", "ann"];

/** A payment behind the backup, in a home that remembers nothing: an outflow that nobody asked for. */
async function losePayment(): Promise<{ readonly id: WithdrawalId; readonly hash: string }> {
  const { id } = await desk.request({ key: "w", ...FIELDS });
  const backup = await desk.backup();
  await desk.work();
  const [hash = ""] = desk.ownHashes();
  rmSync(join(desk.home, "data"), { recursive: true, force: true });
  await desk.useDatabase(backup);
  await desk.watch();
  await desk.work(1);
  return { id, hash };
}

describe("an outflow that a person accepted", () => {
  it("is not booked again by a recovery", async () => {
    const { hash } = await losePayment();
    await desk.causeway("ledger", "accept-outflow", hash, ...REASON);
    expect(await desk.breaks()).toBe("");
    await desk.causeway("recover", "--declare", "restored", "--apply", "--operator", "ann");
    await desk.watch();
    expect(await desk.breaks()).toBe("");
  });

  it("is no withdrawal's payment any more", async () => {
    const { id, hash } = await losePayment();
    await desk.causeway("withdrawals", "release", "--accept-foreign");
    expect((await desk.read(id)).status).toBe("frozen");
    await desk.causeway("ledger", "accept-outflow", hash, ...REASON);
    const adopt = desk.causeway("withdrawals", "release", id, "--paid-by", hash);
    await expect(adopt).rejects.toMatchObject({ code: "INVALID_DECISION" });
    await desk.work(2);
    expect(await desk.breaks()).toBe("");
  });
});

describe("an outflow that a person accepted, on the nonce of the withdrawal that it paid", () => {
  /** Paid behind the backup by dearer bytes; the home remembers nothing, and a person takes it for foreign. */
  async function acceptPaid(): Promise<{ readonly id: WithdrawalId; readonly hash: string }> {
    desk.chain.unmined.add(destination(1));
    const { id } = await desk.request({ key: "w", ...FIELDS });
    await desk.lane().runRound(desk.signal);
    const backup = await desk.backup();
    desk.chain.unmined.clear();
    const dearer = {
      chainId: FAKE_CHAIN_ID,
      nonce: 0n,
      gasPriceAtoken: 60_000_000n,
      gasLimit: 25_200n,
      to: destination(1),
      valueAtoken: FIELDS.amountAtoken,
      data: new Uint8Array(0),
    };
    desk.chain.submit(bytesToHex(signLegacy(dearer, KEY)));
    desk.chain.mine();
    rmSync(join(desk.home, "data"), { recursive: true, force: true });
    await desk.useDatabase(backup);
    await desk.watch();
    await desk.work(4);
    const [hash = ""] = desk.ownHashes();
    await desk.causeway("ledger", "accept-outflow", hash, ...REASON);
    return { id, hash };
  }

  /** Paid once, charged once, and nobody bears anything. */
  async function expectSettled(id: WithdrawalId): Promise<void> {
    await desk.work(3);
    await desk.watch();
    expect((await desk.read(id)).status).toBe("settled");
    expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
    expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
  }

  it("is booked once where a recovery finds it", async () => {
    const { id } = await acceptPaid();
    await desk.causeway("recover", "--declare", "restored", "--apply", "--operator", "ann");
    await expectSettled(id);
  });

  it("is booked once where a person finds it, and leaves nothing frozen for ever", async () => {
    const { id, hash } = await acceptPaid();
    await desk.causeway("withdrawals", "release", "--accept-foreign");
    expect((await desk.read(id)).status).toBe("frozen");
    await desk.causeway("withdrawals", "release", id, "--paid-by", hash);
    await expectSettled(id);
  });
});

describe("an outflow that was taken over as a payment", () => {
  it("is accepted by nobody any more, and waits for nobody", async () => {
    const { id, hash } = await losePayment();
    await desk.causeway("withdrawals", "release", "--accept-foreign");
    await desk.causeway("withdrawals", "release", id, "--paid-by", hash);
    const accept = desk.causeway("ledger", "accept-outflow", hash, ...REASON);
    await expect(accept).rejects.toMatchObject({ code: "INVALID_DECISION" });
    await desk.work(2);
    expect((await desk.read(id)).status).toBe("settled");
    expect((await desk.causeway("ledger", "open")).text).toBe("Nothing waits for a person.");
    expect(await desk.breaks()).toBe("");
  });
});

describe("an outflow that a person acknowledged", () => {
  it("freezes nothing when the watcher meets it later", async () => {
    await desk.request({ key: "w", ...FIELDS });
    const backup = await desk.backup();
    await desk.work();
    rmSync(join(desk.home, "data"), { recursive: true, force: true });
    await desk.useDatabase(backup);
    // The worker is there first: the nonces freeze it, and a person looks.
    await desk.work(1);
    await desk.causeway("withdrawals", "release", "--accept-foreign");
    expect((await readFreeze(desk.database, WALLET)).frozen).toBe(false);
    await desk.watch();
    expect((await readFreeze(desk.database, WALLET)).frozen).toBe(false);
    expect((await desk.causeway("ledger", "open")).text).toContain("outflow");
  });
});

describe("a nonce that the lost ledger used up for nothing", () => {
  /** Cancelled behind the backup, in a home that remembers nothing; `after` follows it. */
  async function loseCancellation(after: () => Promise<unknown>): Promise<WithdrawalId> {
    desk.chain.unmined.add(destination(1));
    const { id } = await desk.request({ key: "w", ...FIELDS });
    await desk.lane().runRound(desk.signal);
    const backup = await desk.backup();
    await cancelWithdrawal(desk.database, id, "the client changed its mind");
    await desk.work(5);
    desk.chain.unmined.clear();
    await after();
    rmSync(join(desk.home, "data"), { recursive: true, force: true });
    await desk.useDatabase(backup);
    await desk.watch();
    await desk.work(4);
    expect((await desk.read(id)).status).toBe("frozen");
    return id;
  }

  it("is the cancellation of the withdrawal that it belonged to", async () => {
    const id = await loseCancellation(() => Promise.resolve());
    await desk.causeway("withdrawals", "release", "--accept-foreign");
    await desk.work(3);
    expect((await desk.read(id)).status).toBe("cancelled");
    expect(desk.paidAtoken(destination(1))).toBe(0n);
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
  });

  it("costs its fee once where a person took it for foreign before", async () => {
    const id = await loseCancellation(() => Promise.resolve());
    await desk.causeway("ledger", "accept-outflow", desk.ownHashes().at(-1) ?? "", ...REASON);
    await desk.causeway("withdrawals", "release", "--accept-foreign");
    await desk.work(3);
    await desk.watch();
    expect((await desk.read(id)).status).toBe("cancelled");
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
  });

  it("gives no hold back while an equal payment is nobody's", async () => {
    const id = await loseCancellation(async () => {
      await desk.request({ key: "again", ...FIELDS });
      await desk.work();
    });
    const hash = desk.ownHashes().at(-1) ?? "";
    const { text } = await desk.causeway("withdrawals", "release", "--accept-foreign");
    expect(text).toContain(`--paid-by ${hash}`);
    await desk.work(3);
    expect((await desk.read(id)).status).toBe("frozen");
    await desk.causeway("ledger", "accept-outflow", hash, ...REASON);
    // Who books the payment has not said whose it was.
    const booked = await desk.causeway("withdrawals", "release");
    expect(booked.text).toContain(`${id}: ${hash}, booked as an outflow,`);
    await desk.work(3);
    expect((await desk.read(id)).status).toBe("frozen");
    await desk.causeway("withdrawals", "release", id, "--not-paid");
    await desk.work(3);
    expect((await desk.read(id)).status).toBe("cancelled");
    expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  });
});
