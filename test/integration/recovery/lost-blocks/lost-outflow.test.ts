/** Transactions that nobody asked for, in blocks that a chain has lost: what a person sees, and what waits behind. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { bytesToHex } from "../../../../chain/hex.js";
import type { Address } from "../../../../chain/address.js";
import { signLegacy } from "../../../../chain/transaction.js";
import { readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { derivation, Desk, destination, KEY, STRANGER, TOKEN, WALLET } from "../desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const REASON = ["--reason", "looked at the chain"];

/** Bytes that somebody with the key signs elsewhere for the wallet's first nonce. */
function foreign(to: Address, valueAtoken: bigint): string {
  const intent = { chainId: FAKE_CHAIN_ID, nonce: 0n, gasPriceAtoken: 30_000_000n };
  const rest = { gasLimit: 21_000n, to, valueAtoken, data: new Uint8Array(0) };
  return bytesToHex(signLegacy({ ...intent, ...rest }, KEY));
}

/** Mined, seen, and let go by a person. @returns the block below it */
async function letGo(raw: string): Promise<number> {
  const kept = desk.chain.head;
  desk.chain.submit(raw);
  desk.chain.mine();
  await desk.watch();
  await desk.work(2);
  expect((await desk.causeway("withdrawals", "release", "--accept-foreign")).code).toBe(0);
  return kept;
}

/** The chain comes back without the blocks above a height, and a person recovers. */
async function loseAbove(height: number): Promise<void> {
  await desk.loseAbove(height);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
}

it("has nothing signed behind the nonce that it had used, and says so until somebody uses it", async () => {
  await loseAbove(await letGo(foreign(destination(7), TOKEN)));
  await desk.causeway("withdrawals", "release");
  expect((await desk.causeway("ledger", "open")).text).toBe("Nothing waits for a person.");
  const fields = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
  const { id } = await desk.request({ key: "behind", ...fields });
  await desk.work(3);
  // Signed now, it could never be mined, and nobody would know why.
  expect((await desk.read(id)).status).toBe("accepted");
  const { frozen, reason } = await readFreeze(desk.database, WALLET);
  expect({ frozen, reason }).toMatchObject({ frozen: true });
  expect(reason).toContain("nonce 0");
  expect(desk.lane().status().blockedReason).toContain("nonce 0");
  // By hand, as docs/restore.md says: a transfer of nothing to the wallet itself.
  const byHand = foreign(WALLET, 0n);
  desk.chain.submit(byHand);
  desk.chain.mine();
  await desk.watch();
  await desk.causeway("withdrawals", "release", "--accept-foreign");
  await desk.work();
  await desk.watch();
  expect((await desk.read(id)).status).toBe("settled");
  await desk.causeway("ledger", "accept-outflow", desk.ownHashes()[0] ?? "", ...REASON);
  expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
});

it("names what is behind a payment that cannot be mined again without it", async () => {
  const kept = await letGo(foreign(destination(7), TOKEN));
  const fields = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
  const { id } = await desk.request({ key: "behind", ...fields });
  await desk.work();
  await desk.watch();
  expect((await desk.read(id)).status).toBe("settled");
  await loseAbove(kept);
  await desk.work(3);
  expect(desk.paidAtoken(destination(1))).toBe(0n);
  expect((await readFreeze(desk.database, WALLET)).reason).toContain("used up by hand");
  desk.chain.submit(foreign(WALLET, 0n));
  desk.chain.mine();
  await desk.watch();
  await desk.causeway("withdrawals", "release", "--accept-foreign");
  await desk.work(2);
  await desk.watch();
  // The stored bytes wait in the pool behind it, and pay once.
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  await desk.causeway("ledger", "accept-outflow", desk.ownHashes()[0] ?? "", ...REASON);
  expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
});

it("is what the chain that came back shows of it, where it is mined again and does otherwise", async () => {
  desk.chain.revertingOnChain.add(destination(7));
  const raw = foreign(destination(7), TOKEN);
  const kept = await letGo(raw);
  desk.chain.revertingOnChain.clear();
  await loseAbove(kept);
  desk.chain.submit(raw);
  desk.chain.mine();
  await desk.watch();
  expect(desk.paidAtoken(destination(7))).toBe(TOKEN);
  expect((await desk.causeway("ledger", "open")).text).toContain("1 TOKEN");
  await desk.causeway("ledger", "accept-outflow", desk.ownHashes()[0] ?? "", ...REASON);
  expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", TOKEN]);
});

it("is accepted by nobody who saw it before, where it is mined again and does otherwise", async () => {
  desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = "true";
  desk.chain.revertingOnChain.add(destination(7));
  const raw = foreign(destination(7), TOKEN);
  const kept = await letGo(raw);
  // Its fee alone is the exchange's.
  const bearer = ["--account", "expense:network_fee", "--operator", "ann", ...REASON];
  const accept = ["ledger", "accept-outflow", desk.ownHashes()[0] ?? "", ...bearer];
  expect((await desk.causeway(...accept)).code).toBe(0);
  desk.chain.revertingOnChain.clear();
  await loseAbove(kept);
  desk.chain.submit(raw);
  desk.chain.mine();
  await desk.watch();
  expect(desk.paidAtoken(destination(7))).toBe(TOKEN);
  const approve = (id: string) => desk.causeway("ledger", "approve", id, "--operator", "bea");
  await expect(approve("1")).rejects.toThrow("decision 1 was proposed before");
  expect(await desk.breaks()).not.toBe("");
  await desk.causeway("ledger", "refuse", "1", "--operator", "bea");
  await desk.causeway(...accept);
  await approve("2");
  expect(await desk.breaks()).toBe("");
});

it("counts what left a deposit address, and a person explained, from where a shorter chain has it", async () => {
  const kept = desk.chain.head;
  const taken = desk.chain.payment(derivation.addressAt(0), destination(7), TOKEN);
  for (let block = 0; block < 6; block += 1) desk.chain.mine();
  desk.chain.mine([taken]);
  await desk.watch();
  expect((await desk.causeway("ledger", "accept-outflow", taken.hash, ...REASON)).code).toBe(0);
  expect(await desk.breaks()).toBe("");

  await desk.loseAbove(kept);
  desk.chain.rollBack(kept);
  desk.chain.mine([taken]);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", TOKEN]);
  // Lost once more, and as long as before: it is counted once.
  await desk.loseAbove(kept);
  desk.chain.rollBack(kept);
  desk.chain.mine([taken]);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  for (let block = 0; block < 12; block += 1) desk.chain.mine();
  await desk.watch();
  expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", TOKEN]);
});

it.each([
  ["a deposit address", () => derivation.addressAt(0), "asset:deposit_addresses"],
  ["a wallet", () => WALLET, `asset:wallet:${WALLET}`],
])("counts a correction about %s from where a shorter chain has it", async (_, ours, account) => {
  const kept = desk.chain.head;
  // Nobody logs it: what a rebase takes and gives, for example.
  const [gone, came] = [2n * TOKEN, 3n * TOKEN];
  const unseen = (direction: 1n | -1n, amountAtoken: bigint) => {
    const change = direction * amountAtoken;
    desk.chain.balances.set(ours(), (desk.chain.balances.get(ours()) ?? 0n) + change);
    return desk.chain.mine();
  };
  for (let block = 0; block < 6; block += 1) desk.chain.mine();
  const evidence = desk.chain.payment(STRANGER, destination(7), 1n);
  unseen(-1n, gone);
  unseen(1n, came);
  desk.chain.mine([evidence]);
  await desk.watch();
  const adjust = (key: string, amountAtoken: bigint, debit: string, credit: string) => {
    const what = ["--key", key, "--debit", debit, "--credit", credit, "--tx", evidence.hash];
    const at = ["--block", `${desk.chain.head}`, "--amount-atoken", `${amountAtoken}`];
    const whose = account === "asset:deposit_addresses" ? ["--address", ours()] : [];
    return desk.causeway("ledger", "adjust", ...what, ...at, ...whose, ...REASON);
  };
  await adjust("gone", gone, "asset:break", account);
  await adjust("came", came, account, "liability:suspense");
  expect(await desk.breaks()).toBe("");

  for (let loss = 0; loss < 2; loss += 1) {
    await desk.loseAbove(kept);
    desk.chain.rollBack(kept);
    unseen(-1n, gone);
    unseen(1n, came);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", gone]);
  }
  for (let block = 0; block < 14; block += 1) desk.chain.mine();
  await desk.watch();
  expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", gone]);
});

it("counts both sides of what a person explained by another address of ours, from there on", async () => {
  const kept = desk.chain.head;
  for (let block = 0; block < 6; block += 1) desk.chain.mine();
  const moved = desk.chain.payment(derivation.addressAt(0), destination(7), TOKEN);
  const booked = desk.chain.mine([moved]).height;
  await desk.watch();
  const wallet = `asset:wallet:${WALLET}`;
  const explained = ["ledger", "accept-outflow", moved.hash, "--account", wallet, ...REASON];
  expect((await desk.causeway(...explained)).code).toBe(0);
  // It never came there, as is found out later.
  const sides = ["--debit", "asset:break", "--credit", wallet, "--amount-atoken", `${TOKEN}`];
  const at = ["--tx", moved.hash, "--block", `${booked}`];
  await desk.causeway("ledger", "adjust", "--key", "never", ...sides, ...at, ...REASON);
  expect(await desk.breaks()).toBe("");

  for (let loss = 0; loss < 2; loss += 1) {
    await desk.loseAbove(kept);
    desk.chain.rollBack(kept);
    desk.chain.mine([moved]);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();
    expect(desk.chain.head).toBeLessThan(booked);
    expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", TOKEN]);
  }
  for (let block = 0; block < 14; block += 1) desk.chain.mine();
  await desk.watch();
  expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", TOKEN]);
});
