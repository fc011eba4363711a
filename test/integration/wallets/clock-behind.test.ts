/** A database whose clock went back, as a standby's does that takes over: times order nothing that was paid. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../chain/hashes.js";
import { bytesToHex, type Hash32 } from "../../../chain/hex.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { signLegacy } from "../../../chain/transaction.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { Desk, destination, KEY, TOKEN } from "../recovery/desk.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet beside a clock that goes back"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  desk.writeKeystore("wallets/second.json", SECOND);
  await desk.restart();
  desk.pay([SECOND, 5_000n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
});
afterEach(() => desk.close());

/** Somebody with the key pays by hand. */
function payByHand(key: Uint8Array, to: number): Hash32 {
  const intent = { chainId: FAKE_CHAIN_ID, nonce: 0n, gasPriceAtoken: 90_000_000n };
  const rest = { gasLimit: 21_000n, to: destination(to), data: new Uint8Array(0) };
  const signed = signLegacy({ ...intent, ...rest, valueAtoken: 4n * TOKEN }, key);
  return desk.chain.submit(bytesToHex(signed));
}

it("pays no request again that was paid by hand behind it, and seen by a clock that is behind", async () => {
  const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  desk.chain.wireFault = (methods) =>
    methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
  const { id } = await desk.request({ key: "w", ...fields });
  await expect(desk.lane().runRound(desk.signal)).rejects.toThrow();
  desk.chain.wireFault = () => undefined;
  expect((await desk.read(id)).status).toBe("signed");
  // Its nonce is used for somebody else, and the second wallet pays it.
  payByHand(KEY, 7);
  const paid = payByHand(SECOND_KEY, 1);
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
