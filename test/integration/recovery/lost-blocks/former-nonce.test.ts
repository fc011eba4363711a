/**
 * A payment got a second nonce because a foreign transaction had used its first one, and the chain lost
 * both: the bytes that were signed first can be mined again.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { bytesToHex } from "../../../../chain/hex.js";
import type { Address } from "../../../../chain/address.js";
import { signLegacy } from "../../../../chain/transaction.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const REASON = ["--reason", "looked at the chain"];

/** Bytes that somebody with the key signs elsewhere. */
function foreign(nonce: bigint, to: Address, valueAtoken: bigint): string {
  const intent = { chainId: FAKE_CHAIN_ID, nonce, gasPriceAtoken: 90_000_000n };
  const rest = { gasLimit: 21_000n, to, valueAtoken, data: new Uint8Array(0) };
  return bytesToHex(signLegacy({ ...intent, ...rest }, KEY));
}

/** Paid on its second nonce; then the chain comes back without any of it. @returns the first bytes */
async function losePaidAgain(): Promise<string> {
  const kept = desk.chain.head;
  desk.chain.unmined.add(destination(1));
  const fields = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
  const { id } = await desk.request({ key: "w", ...fields });
  await desk.lane().runRound(desk.signal);
  const first = desk.chain.arrived.at(-1) ?? "";
  desk.chain.submit(foreign(0n, destination(7), TOKEN));
  desk.chain.mine();
  await desk.watch();
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  desk.chain.unmined.clear();
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  await desk.work();
  await desk.watch();
  expect((await desk.read(id)).status).toBe("settled");
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  const lost = desk.chain.head;
  desk.chain.rollBack(kept);
  while (desk.chain.head <= lost) desk.chain.mine();
  return first;
}

it("is not sent again while its first nonce is free, and pays once that is used up", async () => {
  await losePaidAgain();
  await desk.watch();
  const { code, text } = await desk.causeway("recover", "--apply");
  expect([code, text]).toEqual([1, expect.stringContaining("NOT SENT")]);
  desk.chain.mine();
  await desk.watch();
  // By hand, as the freeze says.
  desk.chain.submit(foreign(0n, WALLET, 0n));
  desk.chain.mine();
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(0n);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  desk.chain.mine();
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
});

it("is not sent again where its first bytes were mined: it is paid", async () => {
  const first = await losePaidAgain();
  // Another validator's pool kept them.
  desk.chain.submit(first);
  desk.chain.mine();
  await desk.watch();
  const { text } = await desk.causeway("recover", "--apply");
  expect(text).toContain("NOT SENT");
  desk.chain.mine();
  await desk.watch();
  await desk.work(3);
  await desk.causeway("recover", "--apply");
  desk.chain.mine();
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
});
