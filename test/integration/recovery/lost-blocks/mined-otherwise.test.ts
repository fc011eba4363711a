/** Payments of a lost chain that are mined again with another outcome: booked, named, and decided once. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { readLiabilities } from "../../../../ledger/books/liabilities.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../../ledger/policy/policy.js";
import { readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import { openMove } from "../../../../ledger/treasury/moves.js";
import { readTreasury } from "../../../../ledger/treasury/treasury-figures.js";
import { bytesToHex } from "../../../../chain/hex.js";
import { signLegacy } from "../../../../chain/transaction.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { Desk, destination, KEY, STRANGER, TOKEN, WALLET } from "../desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const FIELDS = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
const REASON = ["--reason", "looked at the chain"];

describe("a payment that failed on a lost chain", () => {
  it("is booked where it pays on the one that came back, and the customer is charged once", async () => {
    const kept = desk.chain.head;
    desk.chain.revertingOnChain.add(destination(1));
    const failed = await desk.request({ key: "f", ...FIELDS });
    await desk.work();
    await desk.watch();
    expect((await desk.read(failed.id)).status).toBe("failed");
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
    desk.chain.revertingOnChain.clear();
    await loseAbove(kept);
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    // The coins are gone, and both sides say so; who bears them, a person says.
    expect(await desk.breaks()).toBe("");
    expect(await desk.breakAtoken()).toBe(TOKEN);
    expect((await readFreeze(desk.database, WALLET)).reason).toContain(failed.id);
    const open = await desk.causeway("ledger", "open");
    expect(open).toMatchObject({ code: 1 });
    for (const text of [failed.id, "failed", "1 TOKEN", "accept-remined", desk.ownHashes()[0]]) {
      expect(open.text).toContain(text);
    }
    await desk.causeway("withdrawals", "release");
    expect((await desk.causeway("ledger", "open")).code).toBe(1);
    await accept(`${failed.id}-r1`, "liability:customer:alice");
    expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
    const again = accept(`${failed.id}-r1`, "liability:customer:alice");
    await expect(again).rejects.toMatchObject({ code: "DECIDED_ALREADY" });
    expect((await desk.causeway("ledger", "open")).text).toBe("Nothing waits for a person.");
    await paysOn();
  });

  it("is borne by suspense only as far as coins lie there", async () => {
    const kept = desk.chain.head;
    desk.chain.revertingOnChain.add(destination(1));
    const failed = await desk.request({ key: "f", ...FIELDS });
    await desk.work();
    await desk.watch();
    desk.chain.revertingOnChain.clear();
    await loseAbove(kept);
    const name = `${failed.id}-r1`;
    await expect(accept(name, "liability:suspense")).rejects.toMatchObject({
      code: "INVALID_DECISION",
      message: expect.stringContaining("suspense holds"),
    });
    desk.pay([WALLET, TOKEN]);
    desk.chain.mine();
    await desk.watch();
    await accept(name, "liability:suspense");
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
  });

  it("is booked anew by a further loss, and taken back with the blocks that had it", async () => {
    const kept = desk.chain.head;
    desk.chain.revertingOnChain.add(destination(1));
    const failed = await desk.request({ key: "f", ...FIELDS });
    await desk.work();
    await desk.watch();
    desk.chain.revertingOnChain.clear();
    await loseAbove(kept);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", TOKEN]);
    desk.chain.revertingOnChain.add(destination(1));
    await loseAbove(kept);
    // It fails again, as it is booked.
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
    expect((await desk.causeway("ledger", "open")).text).toBe("Nothing waits for a person.");
    const gone = accept(`${failed.id}-r1`, "expense:write_off");
    await expect(gone).rejects.toMatchObject({ code: "INVALID_DECISION" });
    desk.chain.revertingOnChain.clear();
    await loseAbove(kept);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", TOKEN]);
    await accept(`${failed.id}-r3`, "expense:write_off");
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
  });
});

describe("a payment that was settled on a lost chain", () => {
  it("is booked where it fails on the one that came back, and the customer gets it back", async () => {
    const kept = desk.chain.head;
    const settled = await desk.request({ key: "s", ...FIELDS });
    await desk.work();
    await desk.watch();
    expect((await desk.read(settled.id)).status).toBe("settled");
    desk.chain.revertingOnChain.add(destination(1));
    await loseAbove(kept);
    expect(desk.paidAtoken(destination(1))).toBe(0n);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", -TOKEN]);
    expect((await readFreeze(desk.database, WALLET)).frozen).toBe(true);
    expect((await desk.causeway("ledger", "open")).text).toContain(`${settled.id}-r1`);
    const onChain = accept(`${settled.id}-r1`, "asset:deposit_addresses");
    await expect(onChain).rejects.toMatchObject({ code: "INVALID_DECISION" });
    await accept(`${settled.id}-r1`, "liability:customer:alice");
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
    desk.chain.revertingOnChain.clear();
    await paysOn();
  });

  it("is booked as well where the watcher had not come to the blocks that were lost", async () => {
    const kept = desk.chain.head;
    const settled = await desk.request({ key: "s", ...FIELDS });
    await desk.work();
    expect((await desk.read(settled.id)).status).toBe("settled");
    desk.chain.revertingOnChain.add(destination(1));
    await loseAbove(kept);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", -TOKEN]);
    await accept(`${settled.id}-r0`, "liability:customer:alice");
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
  });

  /** A settled payment fails on the chain that came back, and a person gives its coins to who asked. */
  async function failedAndGiven() {
    const kept = desk.chain.head;
    const settled = await desk.request({ key: "s", ...FIELDS });
    await desk.work();
    await desk.watch();
    desk.chain.revertingOnChain.add(destination(1));
    await loseAbove(kept);
    await accept(`${settled.id}-r1`, "liability:customer:alice");
    return { kept, settled };
  }

  it("takes back what a person gave for it where those blocks are lost as well", async () => {
    const { kept, settled } = await failedAndGiven();
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
    desk.chain.revertingOnChain.clear();
    await loseAbove(kept);
    // It pays again, as it was booked: given back besides, it would be paid twice, and nobody told.
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
    expect((await desk.causeway("ledger", "open")).text).toBe("Nothing waits for a person.");
    // And once more the other way: the matter is a new one.
    desk.chain.revertingOnChain.add(destination(1));
    await loseAbove(kept);
    await accept(`${settled.id}-r3`, "expense:write_off");
    expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
  });

  it("leaves as a break what was given for it and is withdrawn when those blocks are lost", async () => {
    const { kept } = await failedAndGiven();
    await desk.causeway("withdrawals", "release");
    const all = { customer: "alice", to: destination(2), amountAtoken: 10n * TOKEN };
    await desk.request({ key: "all", ...all });
    await desk.work();
    await desk.watch();
    desk.chain.revertingOnChain.clear();
    expect(await loseAbove(kept)).toContain("customers have withdrawn 1 TOKEN");
    desk.chain.mine();
    await desk.watch();
    expect([1, 2].map((n) => desk.paidAtoken(destination(n)))).toEqual([TOKEN, 10n * TOKEN]);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", TOKEN]);
  });

  it("takes back what a person gave for it from requests that only wait, too", async () => {
    const { kept } = await failedAndGiven();
    const all = { customer: "alice", to: destination(2), amountAtoken: 10n * TOKEN };
    const waiting = await desk.request({ key: "all", ...all });
    desk.chain.revertingOnChain.clear();
    expect(await loseAbove(kept)).toContain(waiting.id);
    expect((await desk.read(waiting.id)).status).toBe("rejected");
    expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
  });

  describe("by a customer whose deposit is lost with it", () => {
    /** Bob's 5 TOKEN and his payment of 4 are gone; the payment fails on the chain that came back. */
    async function failShort() {
      const { address } = await desk.register("bob");
      desk.pay([address, 1n]);
      await desk.watch();
      const kept = desk.chain.head;
      const deposit = desk.chain.payment(STRANGER, address, 5n * TOKEN);
      desk.chain.mine([deposit]);
      desk.chain.mine();
      await desk.watch();
      const fields = { customer: "bob", to: destination(1), amountAtoken: 4n * TOKEN };
      const settled = await desk.request({ key: "s", ...fields });
      await desk.work();
      await desk.watch();
      desk.chain.revertingOnChain.add(destination(1));
      await loseAbove(kept);
      expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", -1n]);
      await accept(`${settled.id}-r1`, "liability:customer:bob");
      return { kept, deposit };
    }

    const bob = async () => [await desk.availableAtoken("bob"), await desk.breakAtoken()];

    it("fills what is missing of the deposit before anything is given back", async () => {
      const { deposit } = await failShort();
      // All that this chain has of his.
      expect(await bob()).toEqual([1n, 0n]);
      for (let height = 1; height <= desk.chain.head; height += 1) {
        // It throws where somebody is owed less than nothing.
        expect((await readLiabilities(desk.database, { height })).liabilities).toBeDefined();
      }
      desk.chain.mine([deposit]);
      desk.chain.mine();
      await desk.watch();
      expect(await bob()).toEqual([5n * TOKEN + 1n, 0n]);
      expect(await desk.breaks()).toBe("");
    });

    it("is short of it again where the payment pays in the end", async () => {
      const { kept, deposit } = await failShort();
      desk.chain.revertingOnChain.clear();
      await loseAbove(kept);
      expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
      expect(await bob()).toEqual([0n, 4n * TOKEN - 1n]);
      desk.chain.mine([deposit]);
      desk.chain.mine();
      await desk.watch();
      expect(await bob()).toEqual([TOKEN + 1n, 0n]);
      expect(await desk.breaks()).toBe("");
    });
  });

  it("costs what the new chain took for it, without anybody", async () => {
    const kept = desk.chain.head;
    const settled = await desk.request({ key: "s", ...FIELDS });
    await desk.work();
    await desk.watch();
    desk.chain.gasPerPayment = 24_000n;
    await loseAbove(kept);
    expect((await desk.read(settled.id)).status).toBe("settled");
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
    expect((await readFreeze(desk.database, WALLET)).reason).not.toContain(settled.id);
    expect((await desk.causeway("ledger", "open")).text).toBe("Nothing waits for a person.");
  });
});

describe("a move to cold storage that was settled on a lost chain", () => {
  const COLD = destination(0xc01d);
  const ANY = { sweepMinimumUnits: 1n, sweepFeeMaxAtoken: 1n, band: undefined };
  const policy = hashPolicy({
    ...PERMISSIVE_POLICY,
    treasury: { topUpMaxAtoken: 0n, assets: new Map([["TOKEN", { ...ANY, coldAddress: COLD }]]) },
  });

  const coldUnits = async () => {
    const figures = await readTreasury(desk.database);
    return figures.find(({ asset }) => asset === "TOKEN")?.coldUnits;
  };

  it("is borne by cold storage where it fails, as the list of open matters says", async () => {
    const kept = desk.chain.head;
    desk.files.policy = policy;
    const to = { destination: COLD, amountUnits: TOKEN };
    const move = { kind: "cold", asset: "TOKEN", afterId: 0, ...to } as const;
    const rules = { minimumAtoken: 0n, policy, isStopped: false };
    expect(await openMove(desk.workerDatabase, move, rules)).toBeUndefined();
    await desk.work();
    await desk.watch();
    await desk.endMoves();
    expect([await coldUnits(), desk.paidAtoken(COLD)]).toEqual([TOKEN, TOKEN]);
    desk.chain.revertingOnChain.add(COLD);
    await loseAbove(kept);
    expect(desk.paidAtoken(COLD)).toBe(0n);
    const { text } = await desk.causeway("ledger", "open");
    const [, name = "", account = ""] = /accept-remined (\S+) --account ([^\s,]+)/.exec(text) ?? [];
    // Coins that nobody is owed would be owed to nobody, and cold storage have them by the books.
    await expect(accept(name, "liability:customer:causeway:treasury")).rejects.toMatchObject({
      code: "INVALID_DECISION",
      message: "causeway:treasury stands for nobody",
    });
    await accept(name, account);
    expect([await coldUnits(), await desk.breakAtoken(), await desk.breaks()]).toEqual([
      0n,
      0n,
      "",
    ]);
    expect((await desk.causeway("ledger", "open")).text).toBe("Nothing waits for a person.");
    await paysOn();
  });
});

describe("a payment that was cancelled on a lost chain", () => {
  it("is booked where it was mined in the place of its cancellation", async () => {
    const kept = desk.chain.head;
    const { wanted, payment } = await desk.cancelOnTheWay(FIELDS);
    expect((await desk.read(wanted.id)).status).toBe("cancelled");
    const lost = desk.chain.head;
    desk.chain.rollBack(kept);
    desk.chain.unmined.clear();
    // Another validator's pool kept the payment.
    desk.chain.submit(payment);
    while (desk.chain.head <= lost) desk.chain.mine();
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    // The fee of the cancellation was never paid on this chain.
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", TOKEN]);
    expect((await readFreeze(desk.database, WALLET)).reason).toContain(wanted.id);
    await accept(`${wanted.id}-r1`, "liability:customer:alice");
    expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
    await paysOn();
  });
});

describe("a payment that is mined again in a lower block than before", () => {
  it("hides none of the wallet's transactions that nobody asked for", async () => {
    const kept = desk.chain.head;
    for (let block = 0; block < 10; block += 1) desk.chain.mine();
    await desk.request({ key: "s", ...FIELDS });
    await desk.work();
    await desk.watch();
    const [payment = ""] = desk.chain.arrived;
    const waiting = await desk.request({ key: "w", ...FIELDS, to: destination(3) });
    const lost = desk.chain.head;
    desk.chain.rollBack(kept);
    desk.chain.submit(payment);
    desk.chain.mine();
    // Somebody who has the key pays what waits.
    const stranger = signLegacy(
      {
        chainId: FAKE_CHAIN_ID,
        nonce: 1n,
        gasPriceAtoken: 30_000_000n,
        gasLimit: 21_000n,
        to: destination(3),
        valueAtoken: TOKEN,
        data: new Uint8Array(0),
      },
      KEY,
    );
    desk.chain.submit(bytesToHex(stranger));
    while (desk.chain.head <= lost) desk.chain.mine();
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
    await desk.work();
    expect((await desk.read(waiting.id)).status).toBe("frozen");
    expect(desk.paidAtoken(destination(3))).toBe(TOKEN);
  });
});

/** The chain comes back without the blocks above a height, and a person recovers. */
async function loseAbove(height: number): Promise<string> {
  await desk.loseAbove(height);
  await desk.work(3);
  const { code, text } = await desk.causeway("recover", "--apply");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
  desk.chain.mine();
  await desk.watch();
  return text;
}

async function accept(remined: string, account: string): Promise<void> {
  await desk.causeway("ledger", "accept-remined", remined, "--account", account, ...REASON);
}

/** Nothing stands in the way of the next payment. */
async function paysOn(): Promise<void> {
  expect((await desk.causeway("withdrawals", "release")).code).toBe(0);
  const next = await desk.request({
    key: "next",
    customer: "alice",
    to: destination(2),
    amountAtoken: TOKEN,
  });
  await desk.work();
  await desk.watch();
  expect((await desk.read(next.id)).status).toBe("settled");
  expect(await desk.breaks()).toBe("");
}
