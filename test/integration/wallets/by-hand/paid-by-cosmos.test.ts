/**
 * What somebody pays by hand with the wallet's key and a Cosmos transaction (`causeway tx bank send`): it
 * uses a nonce like any other, and has no receipt that could settle a request.
 */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../../chain/hex.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { Desk, destination, TOKEN, WALLET } from "../../recovery/desk.js";

const REASON = ["--reason", "paid by hand"];
const WISH = { key: "w", customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

async function payByHand(): Promise<Hash32> {
  const payment = desk.chain.cosmosPayment(WALLET, destination(1), 4n * TOKEN);
  desk.chain.mine([payment]);
  await desk.watch();
  return payment.hash;
}

/** As the refusal of `--paid-by` says: taken back, borne by its customer, let go on. */
async function bear(id: WithdrawalId, hash: Hash32): Promise<void> {
  await expect(
    desk.causeway("withdrawals", "release", id, "--paid-by", hash),
  ).rejects.toMatchObject({
    code: "NO_WALLET_TRANSACTION",
    message: expect.stringMatching(/cancel .*accept-outflow .*release/),
  });
  await desk.causeway("withdrawals", "cancel", id, ...REASON);
  await desk.causeway(
    "ledger",
    "accept-outflow",
    hash,
    "--account",
    "liability:customer:alice",
    ...REASON,
  );
  await desk.causeway("withdrawals", "release", id, "--not-paid");
  await desk.causeway("withdrawals", "release");
  await desk.work(4);
  await desk.watch();
  expect((await desk.read(id)).status).toBe("cancelled");
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
  expect(await desk.breaks()).toBe("");
}

it("is not paid again when it is acknowledged", async () => {
  const { id } = await desk.request(WISH);
  const hash = await payByHand();
  await desk.causeway("withdrawals", "release", "--acknowledge", hash, ...REASON);
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  await bear(id, hash);
});

it("is not paid again where it has used the nonce of the very request", async () => {
  desk.chain.wireFault = (methods) =>
    methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
  const { id } = await desk.request(WISH);
  await expect(desk.lane().runRound(desk.signal)).rejects.toThrow();
  desk.chain.wireFault = () => undefined;
  expect((await desk.read(id)).status).toBe("signed");
  const hash = await payByHand();
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  const looked = await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  expect([looked.code, looked.text]).toEqual([1, expect.stringContaining(`${id}: ${hash}`)]);
  await desk.work(4);
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  await bear(id, hash);
});

/** The ledger of before the payment comes back, and a recovery finds it. @returns the payment */
async function payBehindBackup() {
  const backup = await desk.backup();
  const payment = desk.chain.cosmosPayment(WALLET, destination(1), 4n * TOKEN);
  desk.chain.mine([payment]);
  await desk.register("bob");
  await desk.useDatabase(backup);
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  return payment;
}

it("is booked with its fee by a recovery, and not paid again before a person has looked", async () => {
  const payment = await payBehindBackup();
  expect(await desk.breaks()).toBe("");
  const { id } = await desk.request(WISH);
  await desk.work(4);
  expect(await desk.read(id)).toMatchObject({
    status: "frozen",
    reason: expect.stringContaining(payment.hash),
  });
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
});

it("is settled by the recovered payment that a person links to it, which has no receipt", async () => {
  const payment = await payBehindBackup();
  const { id } = await desk.request(WISH);
  await desk.work(2);
  const link = ["ledger", "link-payment", payment.hash, "--withdrawal", id, ...REASON];
  expect((await desk.causeway(...link)).code).toBe(0);
  expect(await desk.read(id)).toMatchObject({ status: "settled", txHash: payment.hash });
  expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  expect(await desk.breaks()).toBe("");
});

it("is not linked to a recovered payment whose block the chain has lost", async () => {
  const height = desk.chain.head;
  const payment = await payBehindBackup();
  const { id } = await desk.request(WISH);
  await desk.work(2);
  await desk.loseAbove(height);
  await desk.causeway("recover", "--apply");
  const link = ["ledger", "link-payment", payment.hash, "--withdrawal", id, ...REASON];
  await expect(desk.causeway(...link)).rejects.toMatchObject({ code: "INVALID_DECISION" });
  // Mined again in a higher block than it was found in.
  desk.chain.mine([payment]);
  await desk.watch();
  expect((await desk.causeway(...link)).code).toBe(0);
  expect((await desk.read(id)).status).toBe("settled");
});

it("is taken from a customer whose request holds all that there is, as page and refusals say", async () => {
  const page = readFileSync("docs/restore.md", "utf8");
  const { id } = await desk.request({ ...WISH, amountAtoken: 10n * TOKEN });
  const payment = desk.chain.cosmosPayment(WALLET, destination(1), 10n * TOKEN);
  const { hash } = payment;
  desk.chain.mine([payment]);
  await desk.watch();
  await desk.causeway("withdrawals", "cancel", id, ...REASON);
  const accept = ["ledger", "accept-outflow", hash, ...REASON];
  await expect(
    desk.causeway(...accept, "--account", "liability:customer:alice"),
  ).rejects.toMatchObject({
    code: "INSUFFICIENT_BALANCE",
    message: expect.stringMatching(
      /asset:break.*cancel.*--not-paid.*adjust --key KEY --debit .*:alice/,
    ),
  });
  await expect(
    desk.causeway("withdrawals", "release", id, "--paid-by", hash),
  ).rejects.toMatchObject({ message: expect.stringMatching(/asset:break.*--not-paid.*adjust/) });
  await desk.causeway(...accept);
  // Nobody has said yet that this was all that the wallet has done unasked.
  const early = await desk.causeway("withdrawals", "release", id, "--not-paid");
  expect([early.code, early.text]).toEqual([1, expect.stringContaining("STILL FROZEN")]);
  await desk.causeway("withdrawals", "release", "--acknowledge", hash, ...REASON);
  expect((await desk.read(id)).status).toBe("frozen");
  expect(page).toContain("npm run causeway -- withdrawals release <id> --not-paid\n");
  await desk.causeway("withdrawals", "release", id, "--not-paid");
  expect((await desk.read(id)).status).toBe("cancelled");
  const sides = ["--debit", "liability:customer:alice", "--credit", "asset:break"];
  const amount = ["--amount-atoken", String(10n * TOKEN)];
  expect(page).toContain(`ledger adjust --key by-hand:<id> --debit liability:customer:<customer> `);
  await desk.causeway("ledger", "adjust", "--key", `by-hand:${id}`, ...sides, ...amount, ...REASON);
  await desk.work(4);
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(10n * TOKEN);
  expect(await desk.availableAtoken("alice")).toBe(0n);
  expect(await desk.breakAtoken()).toBe(0n);
  expect(await desk.breaks()).toBe("");
});

it("is not told to be paid where it is let go on behind its cancellation, but to have ended", async () => {
  const { id } = await desk.request(WISH);
  const hash = await payByHand();
  await desk.causeway("withdrawals", "cancel", id, ...REASON);
  await desk.causeway("ledger", "accept-outflow", hash, ...REASON);
  await desk.causeway("withdrawals", "release", "--acknowledge", hash, ...REASON);
  const said = await desk.causeway("withdrawals", "release", id, "--not-paid");
  expect([said.code, said.text]).toEqual([0, expect.stringContaining("it ended as cancelled")]);
  expect(said.text).not.toContain("will be paid");
});

it("is taken from its customer with the request's end, and cannot be asked for in between", async () => {
  const page = readFileSync("docs/restore.md", "utf8");
  const wish = { ...WISH, amountAtoken: 10n * TOKEN };
  const { id } = await desk.request(wish);
  const payment = desk.chain.cosmosPayment(WALLET, destination(1), 10n * TOKEN);
  const { hash } = payment;
  desk.chain.mine([payment]);
  await desk.watch();
  await desk.causeway("withdrawals", "cancel", id, ...REASON);
  const take = () => {
    const what = [
      "--key",
      `by-hand:${id}`,
      "--withdrawal",
      id,
      "--amount-atoken",
      `${10n * TOKEN}`,
    ];
    const sides = ["--debit", "liability:customer:alice", "--credit", "asset:break"];
    return desk.causeway("ledger", "adjust", ...what, ...sides, ...REASON);
  };
  // Nobody has said yet what the transaction was.
  await expect(take()).rejects.toMatchObject({ code: "INVALID_DECISION" });
  await desk.causeway("ledger", "accept-outflow", hash, ...REASON);
  expect(page).toMatch(/ledger adjust --key by-hand:<id> .*--withdrawal <id> --reason/);
  expect((await take()).code).toBe(0);
  const { status, reason } = await desk.read(id);
  expect([status, reason]).toEqual(["cancelled", "paid by hand"]);
  expect(await desk.availableAtoken("alice")).toBe(0n);
  await desk.causeway("withdrawals", "release", "--acknowledge", hash, ...REASON);
  await desk.work(4);
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(10n * TOKEN);
  expect(await desk.breakAtoken()).toBe(0n);
  expect(await desk.breaks()).toBe("");
});
