/** Payments that a recovery found and the chain lost afterwards: they settle nothing before they are mined again. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { bytesToHex, type Hash32 } from "../../../../chain/hex.js";
import { signLegacy } from "../../../../chain/transaction.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { Desk, destination, KEY, TOKEN } from "../desk.js";

const REASON = ["--reason", "our records show it"];

const NOT_MINED = {
  code: "INVALID_DECISION",
  message: expect.stringContaining("not on the chain as a payment now"),
};

let desk: Desk;
let raw: string;
let hash: Hash32;
let kept: number;
let backup: Awaited<ReturnType<Desk["backup"]>>;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  backup = await desk.backup();
  kept = desk.chain.head;
  const intent = { chainId: FAKE_CHAIN_ID, nonce: 0n, gasPriceAtoken: 30_000_000n };
  const rest = { gasLimit: 21_000n, to: destination(1), valueAtoken: TOKEN };
  raw = bytesToHex(signLegacy({ ...intent, ...rest, data: new Uint8Array(0) }, KEY));
  hash = desk.chain.submit(raw);
  desk.chain.mine();
});
afterEach(() => desk.close());

/** The payment is found by a recovery, its block is lost, and a client has repeated its request. */
async function recoverAndLose(): Promise<WithdrawalId> {
  await desk.register("bob");
  await desk.watch();
  await desk.useDatabase(backup);
  await desk.watch();
  await desk.causeway("recover", "--apply");
  await desk.watch();
  const { id } = await desk.request({
    key: "again",
    customer: "alice",
    to: destination(1),
    amountAtoken: TOKEN,
  });
  await desk.work(1);
  expect((await desk.read(id)).status).toBe("frozen");
  await desk.loseAbove(kept);
  await goBack();
  await desk.watch();
  return id;
}

/** The watcher goes back; that nobody here can send the payment again is said. */
async function goBack(): Promise<void> {
  const { code, text } = await desk.causeway("recover", "--apply");
  expect([code, text]).toEqual([
    1,
    expect.stringContaining(`NOT SENT: ${hash}: its bytes are not`),
  ]);
}

it("are linked to no request before they are mined again", async () => {
  const id = await recoverAndLose();
  const link = ["ledger", "link-payment", hash, "--withdrawal", id, ...REASON];
  await expect(desk.causeway(...link)).rejects.toMatchObject(NOT_MINED);
  expect((await desk.read(id)).status).toBe("frozen");
  desk.chain.submit(raw);
  desk.chain.mine();
  await desk.watch();
  expect((await desk.causeway(...link)).code).toBe(0);
  expect((await desk.read(id)).status).toBe("settled");
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  expect(await desk.breaks()).toBe("");
});

it("keep a recovery open that cannot send them, once they are linked, too", async () => {
  const id = await recoverAndLose();
  await goBack();
  desk.chain.submit(raw);
  desk.chain.mine();
  await desk.watch();
  await desk.causeway("ledger", "link-payment", hash, "--withdrawal", id, ...REASON);
  await desk.loseAbove(kept);
  await goBack();
  desk.chain.submit(raw);
  desk.chain.mine();
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  expect(await desk.breaks()).toBe("");
});

it("are claimed for nobody, nor approved by a second person, before they are mined again", async () => {
  await recoverAndLose();
  const request = ["--customer", "alice", "--idempotency-key", "lost", ...REASON];
  const claim = ["ledger", "link-payment", hash, ...request];
  await expect(desk.causeway(...claim)).rejects.toMatchObject(NOT_MINED);
  desk.chain.submit(raw);
  desk.chain.mine();
  await desk.watch();
  desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = "true";
  const proposed = await desk.causeway(...claim);
  expect(proposed.code).toBe(0);
  await desk.loseAbove(kept);
  await goBack();
  const number = /^([0-9]+) proposed/.exec(proposed.text)?.[1] ?? "none";
  const approve = ["ledger", "approve", number, "--operator", "somebody else"];
  await expect(desk.causeway(...approve)).rejects.toMatchObject(NOT_MINED);
});
