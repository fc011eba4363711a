/** A wallet whose first block the chain has lost, and with it what it was taken to hold before. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { keccak256 } from "../../../../chain/hashes.js";
import { registerWallets } from "../../../../ledger/wallets/wallet-registry.js";
import { derivation, Desk, destination, STRANGER, TOKEN } from "../desk.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet of the recovery tests"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

/** Behind the head: its first block is the next one. */
async function registerSecond(): Promise<void> {
  await desk.watch();
  const wallet = { address: SECOND, label: "second", operator: "ann", reason: "a second line" };
  await registerWallets(desk.database, [wallet]);
  await desk.restart();
  await desk.watch();
}

/** A block that the ledger has a hash of: the watcher goes back to it. */
async function keep(): Promise<number> {
  const { address } = await desk.register("bob");
  desk.pay([address, 50n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  return desk.chain.head - 1;
}

async function loseAbove(height: number): Promise<void> {
  await desk.loseAbove(height);
  const { code, text } = await desk.causeway("recover", "--apply");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
}

describe("a wallet that was registered above the block that the chain came back to", () => {
  it("has what it had there, and what comes from then on, each once", async () => {
    desk.pay([SECOND, TOKEN]);
    const kept = await keep();
    const lost = desk.chain.payment(STRANGER, SECOND, 4n * TOKEN);
    desk.chain.mine([lost]);
    desk.chain.mine();
    await registerSecond();
    expect(await desk.breaks()).toBe("");
    await loseAbove(kept);
    await desk.watch();
    expect(await desk.breaks()).toBe("");
    desk.chain.mine([lost]);
    desk.chain.mine();
    await desk.watch();
    expect(await desk.breaks()).toBe("");
    expect(desk.paidAtoken(SECOND)).toBe(5n * TOKEN);
    // And once more: what was booked anew is as easily lost.
    await loseAbove(kept);
    await desk.watch();
    expect(await desk.breaks()).toBe("");
  });

  it("holds no recovery up when it is registered while the watcher stands still", async () => {
    desk.pay([SECOND, TOKEN]);
    const kept = await keep();
    const lost = desk.chain.payment(STRANGER, SECOND, 4n * TOKEN);
    desk.chain.mine([lost]);
    desk.chain.mine();
    await desk.watch();
    await desk.loseAbove(kept);
    // Its past waits for a watcher that books nothing before the recovery.
    const wallet = { address: SECOND, label: "second", operator: "ann", reason: "a second line" };
    await registerWallets(desk.database, [wallet]);
    const { code, text } = await desk.causeway("recover", "--apply");
    expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
    await desk.restart();
    desk.chain.mine([lost]);
    for (let block = 0; block < 4; block += 1) desk.chain.mine();
    await desk.watch();
    expect(await desk.breaks()).toBe("");
    expect(desk.chain.balances.get(SECOND)).toBe(5n * TOKEN);
    const past = `SELECT p.amount_units::text AS units FROM journal_entry e
                    JOIN posting p ON p.journal_id = e.id WHERE e.kind = 'wallet.past'`;
    expect(await desk.database.query(past)).toEqual([{ units: TOKEN.toString() }]);
  });

  it("has its payments counted once that are mined again below its first block", async () => {
    desk.pay([SECOND, 9n * TOKEN]);
    const kept = await keep();
    for (let block = 0; block < 6; block += 1) desk.chain.mine();
    await registerSecond();
    await desk.lane().runRound(desk.signal);
    const lane = desk.laneOf(SECOND_KEY);
    await lane.runRound(desk.signal);
    const { id } = await desk.request({
      key: "w",
      customer: "bob",
      to: destination(1),
      amountAtoken: TOKEN,
    });
    await desk.work(4, [lane]);
    await desk.watch();
    expect(await desk.read(id)).toMatchObject({ status: "settled", wallet: SECOND });
    const head = desk.chain.head;
    desk.chain.rollBack(kept);
    for (let block = 0; block < 2; block += 1) desk.chain.mine();
    desk.chain.submit(desk.chain.arrived.at(-1) ?? "");
    while (desk.chain.head <= head) desk.chain.mine();
    await desk.watch();
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();
    expect(await desk.breaks()).toBe("");
  });
});

it("takes what had left an address before it was given out back with its block", async () => {
  const kept = await keep();
  const early = derivation.addressAt(1);
  const paid = desk.chain.payment(STRANGER, early, 5n * TOKEN);
  desk.chain.mine([paid]);
  desk.chain.mine([desk.chain.payment(early, destination(3), 2n * TOKEN)]);
  await desk.watch();
  await desk.register("carol");
  await desk.watch();
  expect(await desk.breaks()).toBe("");
  await loseAbove(kept);
  desk.chain.mine([paid]);
  desk.chain.mine();
  await desk.watch();
  expect(await desk.breaks()).toBe("");
});
