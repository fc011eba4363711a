/**
 * A wallet that is registered and has not paid anything by the kit yet: its lane never ran. What somebody
 * paid with its key by hand counts like what was paid with any other.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { change, FEE_COLLECTOR } from "../../../helpers/chains/fake-chain.js";
import { Desk, destination, STRANGER, TOKEN } from "../../recovery/desk.js";
import { addWallet, payByHand } from "../second-wallet.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet, whose lane never ran"));
const SECOND = privateKeyToAddress(SECOND_KEY);
const REASON = ["--reason", "looked at the chain"];

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  await addWallet(desk, SECOND, 50n * TOKEN);
});
afterEach(() => desk.close());

/** With the second wallet's key. */
const paySecond = (nonce: bigint, to = destination(1)) => payByHand(desk, SECOND_KEY, nonce, to);

const WISH = { key: "w", customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };

it("is not paid again by another wallet what was acknowledged as paid by it", async () => {
  const { id } = await desk.request(WISH);
  const hash = paySecond(0n);
  desk.chain.mine();
  await desk.watch();
  const said = await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  expect(said.text).toContain("1 withdrawals may be paid already");
  expect((await desk.read(id)).status).toBe("frozen");
  await desk.work(4);
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  const adopted = await desk.causeway("withdrawals", "release", id, "--paid-by", hash);
  expect([adopted.code, adopted.text]).toEqual([0, expect.stringContaining("is its payment")]);
  await desk.causeway("withdrawals", "release");
  await desk.work(4, [desk.lane(), desk.laneOf(SECOND_KEY)]);
  expect(await desk.read(id)).toMatchObject({ status: "settled", wallet: SECOND, txHash: hash });
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  expect(await desk.breaks()).toBe("");
});

it("freezes what equals a payment that its lane opened behind", async () => {
  const { id } = await desk.request(WISH);
  paySecond(0n);
  desk.chain.mine();
  await desk.watch();
  await desk.laneOf(SECOND_KEY).runRound(desk.signal);
  const said = await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  expect(said.text).toContain("1 withdrawals may be paid already");
  await desk.work(4, [desk.lane(), desk.laneOf(SECOND_KEY)]);
  expect((await desk.read(id)).status).toBe("frozen");
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
});

it("is not paid again before a person has looked", async () => {
  paySecond(0n);
  desk.chain.mine();
  await desk.watch();
  const { id } = await desk.request(WISH);
  await desk.work(4);
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  expect((await desk.read(id)).status).toBe("accepted");
  expect((await desk.causeway("withdrawals", "list")).text).toContain("FROZEN");
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  await desk.causeway("withdrawals", "release", id, "--not-paid");
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("settled");
  expect(desk.paidAtoken(destination(1))).toBe(8n * TOKEN);
});

it("does not freeze a second time what a person has let go on", async () => {
  const { id } = await desk.request(WISH);
  const hash = paySecond(0n);
  desk.chain.mine();
  await desk.watch();
  const said = ["withdrawals", "release", "--acknowledge", hash, ...REASON];
  await desk.causeway(...said);
  expect((await desk.causeway("withdrawals", "release", id, "--not-paid")).code).toBe(0);
  expect((await desk.causeway(...said)).code).toBe(0);
  expect((await desk.read(id)).status).toBe("accepted");
});

it("has acknowledged what somebody else's transaction took out of it, named by its hash alone", async () => {
  const fee = change({ reason: "FEE", from: STRANGER, to: FEE_COLLECTOR, amountAtoken: 21n });
  const taken = change({ from: SECOND, to: destination(3), amountAtoken: TOKEN });
  const transaction = desk.chain.transaction(fee, taken);
  desk.chain.mine([transaction]);
  await desk.watch();
  const said = await desk.causeway(
    "withdrawals",
    "release",
    "--acknowledge",
    transaction.hash,
    ...REASON,
  );
  expect([said.code, said.text]).toEqual([
    0,
    expect.not.stringContaining("no foreign transaction"),
  ]);
  expect((await desk.causeway("withdrawals", "list")).text).not.toContain("FROZEN");
});

it("gives no hold back of a request that somebody may have paid by hand before a person has looked", async () => {
  const { id } = await desk.request(WISH);
  const hash = paySecond(0n);
  desk.chain.mine();
  await desk.watch();
  const cancel = ["withdrawals", "cancel", id, "--reason", "the client changed its mind"];
  await desk.causeway(...cancel);
  expect(await desk.read(id)).toMatchObject({
    status: "frozen",
    reason: expect.stringContaining(hash),
  });
  expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  expect((await desk.causeway("withdrawals", "release", id, "--paid-by", hash)).code).toBe(0);
  await desk.causeway("withdrawals", "release");
  await desk.work(4, [desk.lane(), desk.laneOf(SECOND_KEY)]);
  await desk.watch();
  expect((await desk.read(id)).status).toBe("settled");
  expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
  expect(await desk.breaks()).toBe("");
});

it("gives the hold back once a person has found that it was another payment", async () => {
  const { id } = await desk.request(WISH);
  paySecond(0n, destination(7));
  desk.chain.mine();
  await desk.watch();
  await desk.causeway("withdrawals", "cancel", id, "--reason", "the client changed its mind");
  expect((await desk.read(id)).status).toBe("frozen");
  const early = await desk.causeway("withdrawals", "release", id, "--not-paid");
  expect([early.code, early.text]).toEqual([1, expect.stringContaining("took the same amount")]);
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  await desk.causeway("withdrawals", "release", id, "--not-paid");
  expect((await desk.read(id)).status).toBe("cancelled");
  expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
});

it("is not paid again what a person books before it is acknowledged", async () => {
  const { id } = await desk.request(WISH);
  const other = await desk.request({ ...WISH, key: "o", to: destination(2) });
  const hash = paySecond(0n);
  desk.chain.mine();
  await desk.watch();
  const accept = ["ledger", "accept-outflow", hash, "--account", "asset:cold_storage", ...REASON];
  expect((await desk.causeway(...accept)).code).toBe(0);
  expect(await desk.read(id)).toMatchObject({
    status: "frozen",
    reason: expect.stringContaining(hash),
  });
  await desk.work(4);
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  expect((await desk.read(other.id)).status).toBe("settled");
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  await desk.work(4, [desk.lane(), desk.laneOf(SECOND_KEY)]);
  expect((await desk.read(id)).status).toBe("frozen");
  await desk.causeway("withdrawals", "release", id, "--not-paid");
  await desk.work(4, [desk.lane(), desk.laneOf(SECOND_KEY)]);
  expect((await desk.read(id)).status).toBe("settled");
  await desk.watch();
  expect(await desk.breaks()).toBe("");
});

it("does not freeze again what a person has let go on before the payment was booked", async () => {
  const { id } = await desk.request(WISH);
  const hash = paySecond(0n);
  desk.chain.mine();
  await desk.watch();
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  await desk.causeway("withdrawals", "release", id, "--not-paid");
  expect((await desk.causeway("ledger", "accept-outflow", hash, ...REASON)).code).toBe(0);
  expect((await desk.read(id)).status).toBe("accepted");
});

it("freezes what equals an outflow that the wallet did not sign, whoever is to be paid", async () => {
  const { id } = await desk.request(WISH);
  const fee = change({ reason: "FEE", from: STRANGER, to: FEE_COLLECTOR, amountAtoken: 21n });
  const taken = change({ from: SECOND, to: destination(1), amountAtoken: 4n * TOKEN });
  const transaction = desk.chain.transaction(fee, taken);
  desk.chain.mine([transaction]);
  await desk.watch();
  await desk.causeway("ledger", "accept-outflow", transaction.hash, ...REASON);
  expect((await desk.read(id)).status).toBe("frozen");
});
