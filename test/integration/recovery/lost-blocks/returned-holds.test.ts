/**
 * A deposit that a person gave out of suspense, on its way out again when its block is lost: mined again it
 * brings back what was asked for, lies in suspense, and then the request ends without payment.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { present } from "../../../../chain/errors.js";
import { listEvents } from "../../../helpers/events.js";
import { inSuspense } from "../../../../ledger/deposits/suspense.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import type { FakeTransaction } from "../../../helpers/chains/fake-chain.js";
import { derivation, Desk, destination, STRANGER, TOKEN } from "../desk.js";

let desk: Desk;
let payment: FakeTransaction;
let kept: number;

beforeEach(async () => {
  desk = await Desk.open();
  desk.chain.mine();
  kept = desk.chain.head;
  payment = desk.chain.payment(STRANGER, derivation.addressAt(0), 5n * TOKEN);
  await mineAgain();
  await desk.register("bob");
  await desk.watch();
});
afterEach(() => desk.close());

it("is in suspense then, whose hold had been filled out of it, and nobody keeps it once lost", async () => {
  const id = await askOutOfIt();
  await end(id);
  expect(await state()).toEqual({ alice: 0n, carol: 0n, suspense: 5n, break: 0n });
  await loseAbove();
  expect(await state()).toEqual({ alice: 0n, carol: 0n, suspense: 0n, break: 0n });
  await mineAgain();
  await assign("alice");
  expect(await state()).toEqual({ alice: 5n, carol: 0n, suspense: 0n, break: 0n });
  expect(await counted("alice")).toBe(5n);
  expect(await desk.breaks()).toBe("");
});

it("is its new customer's where a person had given it to somebody else meanwhile", async () => {
  const id = await askOutOfIt();
  await assign("carol");
  expect(await state()).toEqual({ alice: 0n, carol: 0n, suspense: 0n, break: 0n });
  await end(id);
  expect(await state()).toEqual({ alice: 0n, carol: 5n, suspense: 0n, break: 0n });
  expect([await counted("alice"), await counted("carol")]).toEqual([0n, 5n]);
  await loseAbove();
  expect(await state()).toEqual({ alice: 0n, carol: 0n, suspense: 0n, break: 0n });
  expect([await counted("alice"), await counted("carol")]).toEqual([0n, 0n]);
  expect(await desk.breaks()).toBe("");
});

it("held coins of the lost deposit, although the database's clock went back before the loss", async () => {
  const id = await slotOutOfIt();
  await desk.database.query(
    `ALTER TABLE journal_entry ALTER posted_at SET DEFAULT clock_timestamp() - interval '20 minutes'`,
  );
  await loseAbove();
  expect(await state()).toEqual({ alice: 0n, carol: 0n, suspense: 0n, break: 5n });
  await desk.causeway("withdrawals", "release");
  await end(id);
  expect(await state()).toEqual({ alice: 0n, carol: 0n, suspense: 0n, break: 0n });
});

/** Alice is given the deposit and asks for it. */
async function slotOutOfIt() {
  await assign("alice");
  desk.chain.unmined.add(destination(1));
  const fields = { customer: "alice", to: destination(1), amountAtoken: 5n * TOKEN };
  const { id } = await desk.request({ key: "w", ...fields });
  await desk.lane().runRound(desk.signal);
  return id;
}

/** So it is; its block is lost, and it is mined again. */
async function askOutOfIt() {
  const id = await slotOutOfIt();
  await loseAbove();
  expect(await state()).toEqual({ alice: 0n, carol: 0n, suspense: 0n, break: 5n });
  await mineAgain();
  expect(await state()).toEqual({ alice: 0n, carol: 0n, suspense: 0n, break: 0n });
  await desk.causeway("withdrawals", "release");
  return id;
}

/** The transfer in its place is mined. */
async function end(id: Parameters<typeof cancelWithdrawal>[1]) {
  await cancelWithdrawal(desk.database, id, "not wanted");
  await desk.work(4);
  await desk.watch();
  expect((await desk.read(id)).status).toBe("cancelled");
}

async function mineAgain(): Promise<void> {
  desk.chain.mine([payment]);
  for (let block = 0; block < 3; block += 1) desk.chain.mine();
  await desk.watch();
}

/** In whole TOKEN. */
async function state() {
  const [row] = await desk.database.query<{ units: string }>(
    `SELECT ${inSuspense("'TOKEN'")}::text AS units`,
  );
  return {
    alice: ((await desk.availableAtoken("alice")) ?? 0n) / TOKEN,
    carol: ((await desk.availableAtoken("carol")) ?? 0n) / TOKEN,
    suspense: BigInt(present(row, "a sum").units) / TOKEN,
    break: (await desk.breakAtoken()) / TOKEN,
  };
}

/** A balance as somebody counts it who reads nothing but events of deposits. */
async function counted(customer: string): Promise<bigint> {
  let sum = 0n;
  for (const { type, data } of await listEvents(desk.database, { afterSeq: 0, limit: 1_000 })) {
    if (data["customerId"] !== customer) continue;
    const atoken = (field: string) => BigInt(String(data[field]));
    if (type === "deposit.credited") sum += atoken("creditedAtoken");
    if (type === "deposit.reversed") sum -= atoken("debitedAtoken");
  }
  return sum / TOKEN;
}

async function assign(customer: string): Promise<void> {
  const [row] = await desk.database.query<{ id: string }>(
    `SELECT id FROM deposit WHERE status = 'suspense' ORDER BY height`,
  );
  const to = ["--customer", customer, "--reason", "the sender asked"];
  await desk.causeway("ledger", "assign-deposit", present(row, "a deposit").id, ...to);
}

async function loseAbove(): Promise<void> {
  await desk.loseAbove(kept);
  const { code, text } = await desk.causeway("recover", "--apply");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
  desk.chain.mine();
  await desk.watch();
}
