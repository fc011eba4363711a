/**
 * What somebody pays to several recipients by one transaction with the wallet's key (`MsgMultiSend`): it
 * equals no request as a whole, and may have paid each of those that it pays among others.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../../chain/hex.js";
import { readStatement } from "../../../../ledger/books/statement.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import { Desk, destination, TOKEN, WALLET } from "../../recovery/desk.js";

const REASON = ["--reason", "paid by hand"];
const FIRST = { key: "a", customer: "alice", to: destination(1), amountAtoken: 3n * TOKEN };
const SECOND = { key: "b", customer: "alice", to: destination(2), amountAtoken: 2n * TOKEN };
/** Nobody has paid it. */
const THIRD = { key: "c", customer: "alice", to: destination(3), amountAtoken: TOKEN };

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

/** The first in two parts, the second at once, and somebody who has asked for nothing. */
function payByHand() {
  const payment = desk.chain.cosmosPayments(WALLET, [
    [destination(1), TOKEN],
    [destination(2), 2n * TOKEN],
    [destination(1), 2n * TOKEN],
    [destination(9), 5n * TOKEN],
  ]);
  desk.chain.mine([payment]);
  return payment.hash;
}

async function askAll(): Promise<readonly WithdrawalId[]> {
  const asked = [];
  for (const wish of [FIRST, SECOND, THIRD]) asked.push((await desk.request(wish)).id);
  return asked;
}

const statuses = (ids: readonly WithdrawalId[]) =>
  Promise.all(ids.map(async (id) => (await desk.read(id)).status));

/** By the chain: each once, whatever the kit has done since. */
function expectPaidOnce(): void {
  const paid = [1, 2].map((number) => desk.paidAtoken(destination(number)));
  expect(paid).toEqual([3n * TOKEN, 2n * TOKEN]);
}

const accept = (hash: Hash32) =>
  desk.causeway("ledger", "accept-outflow", hash, "--account", "asset:break", ...REASON);

it("is not paid again by each of them when it is acknowledged", async () => {
  const ids = await askAll();
  const hash = payByHand();
  await desk.watch();
  await desk.causeway("withdrawals", "release", "--acknowledge", hash, ...REASON);
  expect(await statuses(ids)).toEqual(["frozen", "frozen", "accepted"]);
  await desk.work(4);
  expect(await statuses(ids)).toEqual(["frozen", "frozen", "settled"]);
  expectPaidOnce();
});

it("ends with one payment each as the refusal of --paid-by says", async () => {
  const [first, second] = await askAll();
  const hash = payByHand();
  await desk.watch();
  await accept(hash);
  // Before, further transactions of the wallet may have paid them, and what is taken back stays frozen.
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  for (const [id, wish] of [
    [first, FIRST],
    [second, SECOND],
  ] as const) {
    if (id === undefined) throw new Error("no request");
    await expect(
      desk.causeway("withdrawals", "release", id, "--paid-by", hash),
    ).rejects.toMatchObject({ message: expect.stringMatching(/cancel .*accept-outflow .*adjust/) });
    await desk.causeway("withdrawals", "cancel", id, ...REASON);
    await desk.causeway("withdrawals", "release", id, "--not-paid");
    expect((await desk.read(id)).status).toBe("cancelled");
    const adjusted = await desk.causeway(
      "ledger",
      "adjust",
      "--key",
      `by-hand:${id}`,
      "--debit",
      "liability:customer:alice",
      "--credit",
      "asset:break",
      "--amount-atoken",
      wish.amountAtoken.toString(),
      ...REASON,
    );
    expect(adjusted.code).toBe(0);
  }
  await desk.work(4);
  await desk.watch();
  expectPaidOnce();
  expect(await desk.availableAtoken("alice")).toBe(4n * TOKEN);
  expect(await desk.breakAtoken()).toBe(5n * TOKEN);
  expect(await desk.breaks()).toBe("");
});

it("is not paid again by each of them when it is booked, and frozen once", async () => {
  const ids = await askAll();
  const hash = payByHand();
  await desk.watch();
  expect((await accept(hash)).code).toBe(0);
  expect(await statuses(ids)).toEqual(["frozen", "frozen", "accepted"]);
  const [first] = ids;
  if (first === undefined) throw new Error("no request");
  // The wallet is behind by its nonces still: what a person has let go on stays so.
  await desk.causeway("withdrawals", "release", first, "--not-paid");
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  expect(await statuses(ids)).toEqual(["accepted", "frozen", "accepted"]);
  await desk.work(4);
  expect(await statuses(ids)).toEqual(["settled", "frozen", "settled"]);
});

it("freezes what asks again before the wallet goes on", async () => {
  const hash = payByHand();
  const other = desk.chain.cosmosPayments(WALLET, [[destination(8), TOKEN]]);
  desk.chain.mine([other]);
  await desk.watch();
  await desk.causeway("withdrawals", "release", "--acknowledge", hash, ...REASON);
  const { id } = await desk.request(SECOND);
  await desk.causeway("withdrawals", "release", "--acknowledge", other.hash, ...REASON);
  expect((await desk.read(id)).status).toBe("frozen");
});

/** A request with a nonce that never left, which the payment by hand has used. */
async function useItsNonce(): Promise<{ readonly id: WithdrawalId; readonly hash: Hash32 }> {
  desk.chain.wireFault = (methods) =>
    methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
  const { id } = await desk.request(SECOND);
  await expect(desk.lane().runRound(desk.signal)).rejects.toThrow();
  desk.chain.wireFault = () => undefined;
  expect((await desk.read(id)).status).toBe("signed");
  const hash = payByHand();
  await desk.watch();
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  return { id, hash };
}

it("is not paid again where it has used the nonce of one of them", async () => {
  const { id, hash } = await useItsNonce();
  const looked = await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  expect([looked.code, looked.text]).toEqual([1, expect.stringContaining(`${id}: ${hash}`)]);
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  expectPaidOnce();
});

it("waits for a person's word where the payment on its nonce was booked first", async () => {
  const { id, hash } = await useItsNonce();
  await accept(hash);
  const looked = await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  expect([looked.code, looked.text]).toEqual([1, expect.stringContaining("--not-paid")]);
  await desk.causeway("withdrawals", "release", id);
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  expectPaidOnce();
  const said = await desk.causeway("withdrawals", "release", id, "--not-paid");
  expect([said.code, said.text]).toEqual([0, expect.stringContaining("it gets a new one")]);
  await desk.causeway("withdrawals", "release");
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("settled");
  expect(desk.paidAtoken(destination(2))).toBe(4n * TOKEN);
  await desk.watch();
  expect(await desk.breaks()).toBe("");
});

it("gives no hold back while nobody has looked at what may have paid it among others", async () => {
  const [first, second, third] = await askAll();
  payByHand();
  await desk.watch();
  const ids = [first, second, third].flatMap((id) => id ?? []);
  // By what the ledger itself has: who is asked looks at the chain before, and ends nothing at all.
  for (const id of ids) await cancelWithdrawal(desk.database, id, "paid by hand");
  expect(await statuses(ids)).toEqual(["frozen", "frozen", "cancelled"]);
  expect(await desk.availableAtoken("alice")).toBe(5n * TOKEN);
});

/** The ledger of before the payment comes back, and it is in recovery. */
async function payBehindBackup(): Promise<Hash32> {
  const backup = await desk.backup();
  const hash = payByHand();
  await desk.register("bob");
  await desk.useDatabase(backup);
  await desk.watch();
  return hash;
}

/** A person takes what it paid for a request from its customer, with the request's end. */
function take(id: WithdrawalId, amountAtoken: bigint, ...who: readonly string[]) {
  const sides = ["--debit", "liability:customer:alice", "--credit", "expense:write_off"];
  const amount = ["--amount-atoken", amountAtoken.toString(), "--withdrawal", id];
  const words = ["ledger", "adjust", "--key", `by-hand:${id}`, ...sides, ...amount];
  return desk.causeway(...words, ...REASON, ...who);
}

it("is booked by a recovery, and freezes each request that it may have paid", async () => {
  const hash = await payBehindBackup();
  const plan = await desk.causeway("recover");
  expect(plan.text).toContain("to 3 addresses");
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  expect(await desk.breaks()).toBe("");
  const ids = await askAll();
  await desk.work(4);
  expect(await statuses(ids)).toEqual(["frozen", "frozen", "settled"]);
  expectPaidOnce();
  expect((await desk.causeway("ledger", "open")).text).toContain(hash);
  const [first, second] = ids;
  const link = ["ledger", "link-payment", hash, "--withdrawal", String(first), ...REASON];
  await expect(desk.causeway(...link)).rejects.toMatchObject({
    code: "INVALID_DECISION",
    message: expect.stringMatching(/adjust .*alice .*--withdrawal .*write-off-payment/),
  });
  for (const [id, { amountAtoken }] of [
    [first, FIRST],
    [second, SECOND],
  ] as const) {
    if (id === undefined) throw new Error("no request");
    const before = await desk.availableAtoken("alice");
    expect((await take(id, amountAtoken)).code).toBe(0);
    expect((await desk.read(id)).status).toBe("cancelled");
    // Nobody could have asked for it meanwhile.
    expect(await desk.availableAtoken("alice")).toBe(before);
  }
  expect(await desk.availableAtoken("alice")).toBe(4n * TOKEN);
  const period = { from: new Date(0), to: new Date("2100-01-01T00:00:00Z") };
  const { signal } = new AbortController();
  const statement = await readStatement(desk.database, parseCustomerId("alice"), period, {
    signal,
  });
  const taken = statement.assets.flatMap(({ movements }) =>
    movements.filter(({ kind }) => kind === "ledger.adjustment"),
  );
  expect(taken.map(({ evidence }) => evidence.withdrawalId)).toEqual([first, second]);
  // Its client repeats it once more: the payment is there until somebody writes it off.
  const again = await desk.request({ ...FIRST, key: "again" });
  await desk.work(4);
  expect((await desk.read(again.id)).status).toBe("frozen");
  await desk.causeway("ledger", "write-off-payment", hash, ...REASON);
  await desk.watch();
  expect(await desk.breaks()).toBe("");
  expectPaidOnce();
});

it("ends no request by a word of before a recovery that another person says behind it", async () => {
  desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = "true";
  const hash = await payBehindBackup();
  await desk.causeway("recover", "--apply");
  await desk.watch();
  const { id } = await desk.request(FIRST);
  await desk.work(2);
  const proposed = await take(id, FIRST.amountAtoken, "--operator", "ann");
  expect(proposed.text).toContain("approve 1");
  expect((await desk.causeway("recover", "--declare", "lost again", "--apply")).code).toBe(0);
  const approve = () => desk.causeway("ledger", "approve", "1", "--operator", "bob");
  await expect(approve()).rejects.toMatchObject({
    code: "INVALID_DECISION",
    message: expect.stringContaining("propose it anew"),
  });
  expect((await desk.read(id)).status).toBe("frozen");
  expect((await desk.causeway("ledger", "open")).text).toContain(hash);
});
