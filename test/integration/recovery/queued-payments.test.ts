/**
 * Payments that a lost ledger had signed and the node keeps in its pool behind a nonce that is missing: they
 * are made as soon as somebody uses that nonce, so that nothing is paid before they are.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { bytesToHex, type Hash32 } from "../../../chain/hex.js";
import { signLegacy } from "../../../chain/transaction.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { Desk, destination, KEY, TOKEN } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const REASON = ["--reason", "the client's own records", "--operator", "ann"];
const WISH = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };

/** What the lost ledger had signed on a nonce, sent by whoever has the bytes. */
function send(nonce: bigint, valueAtoken: bigint): Hash32 {
  const intent = { chainId: FAKE_CHAIN_ID, nonce, gasPriceAtoken: 90_000_000n };
  const rest = { gasLimit: 21_000n, to: destination(1), valueAtoken, data: new Uint8Array(0) };
  return desk.chain.submit(bytesToHex(signLegacy({ ...intent, ...rest }, KEY)));
}

/** Alice's request is signed on nonce 1 behind the backup, and nonce 0 was never taken by the node. */
async function loseSigned(): Promise<Hash32> {
  const backup = await desk.backup();
  await desk.register("bob");
  await (await desk.guard()).keep();
  const payment = send(1n, WISH.amountAtoken);
  await desk.useDatabase(backup);
  await desk.watch();
  return payment;
}

it("keep the ledger closed until they are mined, so that a client who asks again is paid once", async () => {
  const payment = await loseSigned();
  const plan = await desk.causeway("recover");
  expect([plan.code, plan.text]).toEqual([1, expect.stringMatching(/WAIT: 1 trans.*nonce 0,/)]);
  await expect(desk.causeway("recover", "--apply")).rejects.toMatchObject({
    code: "RECOVERY",
    message: expect.stringContaining("nonce 0, which nothing has used"),
  });
  await expect(desk.request({ key: "again", ...WISH })).rejects.toMatchObject({ code: "RECOVERY" });

  send(0n, 0n);
  desk.chain.mine();
  expect(desk.ownHashes()).toContain(payment);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  const again = await desk.request({ key: "again", ...WISH });
  await desk.work(3);
  expect((await desk.read(again.id)).status).toBe("frozen");
  const link = ["ledger", "link-payment", payment, "--withdrawal", again.id];
  expect((await desk.causeway(...link, ...REASON)).code).toBe(0);
  await desk.work(2);
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
  expect(await desk.breaks()).toBe("");
});

it("are waited for no longer than the pool keeps them", async () => {
  await loseSigned();
  await expect(desk.causeway("recover", "--apply")).rejects.toMatchObject({ code: "RECOVERY" });
  desk.chain.clearPool();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
});

it("of which a node does not tell are named as not known", async () => {
  await loseSigned();
  desk.chain.override = (method) =>
    method === "txpool_contentFrom"
      ? { error: { code: -32601, message: "no such method" } }
      : undefined;
  for (const more of [[], ["--apply"]]) {
    const { text } = await desk.causeway("recover", ...more);
    expect(text).toContain("NOT KNOWN: the node does not tell (txpool_contentFrom)");
  }
});

it("of the wallet that nobody asked for keep it frozen until they are gone", async () => {
  expect((await desk.causeway("withdrawals", "freeze")).code).toBe(0);
  send(1n, TOKEN);
  const looked = await desk.causeway("withdrawals", "release");
  expect([looked.code, looked.text]).toEqual([1, expect.stringMatching(/FROZEN: .*nonce 0,/)]);
  desk.chain.clearPool();
  expect((await desk.causeway("withdrawals", "release")).code).toBe(0);
});
