/**
 * Coins of a block's own transaction (the end of an unbonding, a refund) whose block the chain lost: mined
 * again they stand in another block, and so in a transaction of another name.
 */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { Desk, derivation, destination, STRANGER, TOKEN } from "../desk.js";
import { change } from "../../../helpers/chains/fake-chain.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

/** A block that pays an address by itself. */
function payOut(amountAtoken: bigint): void {
  const to = derivation.addressAt(0);
  desk.chain.mine([], [change({ reason: "UNBOND_COMPLETE", from: STRANGER, to, amountAtoken })]);
}

async function watchBehind(blocks = 2): Promise<void> {
  for (let block = 0; block < blocks; block += 1) desk.chain.mine();
  await desk.watch();
}

const suspended = () =>
  desk.database.query<{ id: string }>(
    `SELECT id FROM deposit WHERE status = 'suspense' ORDER BY seq`,
  );

async function inSuspense(): Promise<bigint> {
  const [row] = await desk.database.query<{ units: string }>(
    `SELECT coalesce(sum(CASE WHEN credit = 'liability:suspense' THEN amount_units
                              ELSE -amount_units END), 0)::text AS units
       FROM posting WHERE 'liability:suspense' IN (debit, credit)`,
  );
  return BigInt(row?.units ?? "0");
}

/** A person gives the first deposit in suspense to bob. */
async function assign(): Promise<void> {
  const [row] = await suspended();
  const to = ["--customer", "bob", "--reason", "it is the end of bob's unbonding"];
  await desk.causeway("ledger", "assign-deposit", row?.id ?? "", ...to);
}

async function withdraw(key: string, amountAtoken: bigint) {
  await desk.request({ key, customer: "bob", to: destination(1), amountAtoken });
  await desk.work();
  await desk.watch();
}

async function loseAbove(height: number): Promise<void> {
  await desk.loseAbove(height);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await watchBehind(1);
}

const state = async () => [
  await desk.availableAtoken("bob"),
  await inSuspense(),
  await desk.breakAtoken(),
];

describe("coins of a block's own transaction that the chain lost and mined again", () => {
  it("fill what their customer had withdrawn of them, and no person gives them twice", async () => {
    await desk.register("bob");
    await desk.watch();
    const kept = desk.chain.head;
    payOut(5n * TOKEN);
    await watchBehind();
    await assign();
    await withdraw("w", 4n * TOKEN);
    for (let loss = 0; loss < 2; loss += 1) {
      await loseAbove(kept);
      expect(await state()).toEqual([0n, 0n, 4n * TOKEN]);
      payOut(5n * TOKEN);
      await watchBehind();
      expect(await state()).toEqual([0n, TOKEN, 0n]);
      await assign();
      expect(await state()).toEqual([TOKEN, 0n, 0n]);
      expect(await desk.breaks()).toBe("");
    }
  });

  it("fill no more than is missing, and nothing where another amount or address is paid", async () => {
    await desk.register("bob");
    await desk.register("carol");
    await desk.watch();
    const kept = desk.chain.head;
    payOut(5n * TOKEN);
    payOut(5n * TOKEN);
    await watchBehind();
    await assign();
    await withdraw("w", 5n * TOKEN);
    await loseAbove(kept);
    expect(await state()).toEqual([0n, 0n, 5n * TOKEN]);
    payOut(6n * TOKEN);
    const to = derivation.addressAt(1);
    const paid = { from: STRANGER, to, amountAtoken: 5n * TOKEN };
    desk.chain.mine([], [change({ reason: "UNBOND_COMPLETE", ...paid })]);
    desk.pay([derivation.addressAt(0), 5n * TOKEN]);
    await watchBehind();
    expect(await state()).toEqual([5n * TOKEN, 11n * TOKEN, 5n * TOKEN]);
    payOut(5n * TOKEN);
    payOut(5n * TOKEN);
    await watchBehind();
    expect(await state()).toEqual([5n * TOKEN, 16n * TOKEN, 0n]);
    expect(await desk.breaks()).toBe("");
  });

  it("are not given again where a person had taken of them by their name", async () => {
    await desk.register("bob");
    await desk.register("carol");
    await desk.watch();
    payOut(5n * TOKEN);
    await watchBehind();
    const kept = desk.chain.head;
    payOut(5n * TOKEN);
    await watchBehind();
    const last = async () => (await suspended()).at(-1)?.id ?? "";
    const adjust = async (key: string) => {
      const sides = ["--debit", "liability:suspense", "--credit", "liability:customer:bob"];
      const amount = ["--deposit", await last(), "--amount-atoken", `${5n * TOKEN}`];
      return desk.causeway(
        "ledger",
        "adjust",
        "--key",
        key,
        ...amount,
        ...sides,
        "--reason",
        "his",
      );
    };
    await adjust("his");
    expect(await state()).toEqual([5n * TOKEN, 5n * TOKEN, 0n]);
    await loseAbove(kept);
    payOut(5n * TOKEN);
    await watchBehind();
    expect(await state()).toEqual([5n * TOKEN, 5n * TOKEN, 0n]);
    await expect(adjust("again")).rejects.toMatchObject({ code: "INVALID_DECISION" });
    // The one that was never lost is as it was.
    await assign();
    expect(await state()).toEqual([10n * TOKEN, 0n, 0n]);
    expect(await desk.breaks()).toBe("");
  });
});
