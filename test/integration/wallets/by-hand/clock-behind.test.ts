/** A database whose clock went back, as a standby's does that takes over: times order nothing that was paid. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { Desk, destination, KEY, TOKEN } from "../../recovery/desk.js";
import { addWallet, payByHand } from "../second-wallet.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet beside a clock that goes back"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  await addWallet(desk, SECOND);
});
afterEach(() => desk.close());

it("pays no request again that was paid by hand behind it, and seen by a clock that is behind", async () => {
  const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  desk.chain.wireFault = (methods) =>
    methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
  const { id } = await desk.request({ key: "w", ...fields });
  await expect(desk.lane().runRound(desk.signal)).rejects.toThrow();
  desk.chain.wireFault = () => undefined;
  expect((await desk.read(id)).status).toBe("signed");
  // Its nonce is used for somebody else, and the second wallet pays it.
  payByHand(desk, KEY, 0n, destination(7));
  const paid = payByHand(desk, SECOND_KEY, 0n, destination(1));
  desk.chain.mine();
  await desk.database.query(
    `ALTER TABLE foreign_outflow ALTER COLUMN seen_at SET DEFAULT now() - interval '20 minutes'`,
  );
  await desk.watch();
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  const released = await desk.causeway("withdrawals", "release", id);
  expect([released.code, released.text]).toEqual([1, expect.stringContaining(paid)]);
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
});
