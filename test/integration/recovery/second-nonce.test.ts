/**
 * A payment whose first nonce a foreign transaction used, and which another transaction of the wallet
 * paid: in a ledger that was put back, and by hand.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { bytesToHex, type Hash32 } from "../../../chain/hex.js";
import { signLegacy } from "../../../chain/transaction.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { Desk, destination, KEY, TOKEN } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const REASON = ["--reason", "looked at the chain"];

/** Somebody with the key signs elsewhere. */
function signElsewhere(nonce: bigint, to: Address, valueAtoken: bigint): Hash32 {
  const intent = { chainId: FAKE_CHAIN_ID, nonce, gasPriceAtoken: 90_000_000n };
  const rest = { gasLimit: 21_000n, to, valueAtoken, data: new Uint8Array(0) };
  return desk.chain.submit(bytesToHex(signLegacy({ ...intent, ...rest }, KEY)));
}

/** A request of alice's that is sent and not mined. */
async function send(): Promise<WithdrawalId> {
  desk.chain.unmined.add(destination(1));
  const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  const { id } = await desk.request({ key: "w", ...fields });
  await desk.lane().runRound(desk.signal);
  expect((await desk.read(id)).status).toBe("broadcast");
  return id;
}

/** A foreign transaction has used its nonce; it is frozen by then. */
async function loseNonce(id: WithdrawalId): Promise<Hash32> {
  const foreign = signElsewhere(0n, destination(7), TOKEN);
  desk.chain.mine();
  await desk.watch();
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  desk.chain.unmined.clear();
  return foreign;
}

/** Paid once, charged once. */
async function expectSettled(id: WithdrawalId): Promise<void> {
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  await desk.work(4);
  await desk.watch();
  expect((await desk.read(id)).status).toBe("settled");
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
}

it("is linked to the payment that a lost ledger had made on its second nonce", async () => {
  const id = await send();
  const backup = await desk.backup();
  const foreign = await loseNonce(id);
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  await desk.work(4);
  await desk.watch();
  expect((await desk.read(id)).status).toBe("settled");
  const payment = desk.ownHashes().at(-1) ?? "";
  await (await desk.guard()).keep();

  await desk.useDatabase(backup);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  await desk.causeway("ledger", "accept-outflow", foreign, ...REASON);
  const looked = await desk.causeway("withdrawals", "release", id);
  expect(looked.text).toContain(`link-payment ${payment} --withdrawal ${id}`);
  const link = ["ledger", "link-payment", payment, "--withdrawal", id, ...REASON];
  expect((await desk.causeway(...link)).code).toBe(0);
  await expectSettled(id);
  expect((await desk.causeway("ledger", "open")).text).not.toContain(id);
});

it("is settled by a payment by hand that a person names", async () => {
  const id = await send();
  await loseNonce(id);
  const byHand = signElsewhere(1n, destination(1), 4n * TOKEN);
  desk.chain.mine();
  await desk.watch();
  const looked = await desk.causeway("withdrawals", "release", id);
  expect(looked.text).toContain(`--paid-by ${byHand}`);
  const adopted = await desk.causeway("withdrawals", "release", id, "--paid-by", byHand);
  expect([adopted.code, adopted.text]).toEqual([0, expect.stringContaining("is its payment")]);
  await expectSettled(id);
});
