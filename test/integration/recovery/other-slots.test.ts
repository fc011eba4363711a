/** A recovery that finds the nonces of its open slots used by hand: one for another request's payment. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { keccak256 } from "../../../chain/hashes.js";
import { bytesToHex } from "../../../chain/hex.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { signLegacy } from "../../../chain/transaction.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "./desk.js";

let desk: Desk;

const SECOND_KEY = keccak256(Buffer.from("second hot wallet of the recovery tests"));
const SECOND = privateKeyToAddress(SECOND_KEY);

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

/** Dearer bytes than the kit's, which take their place. */
function byHand(nonce: bigint, to: Address, valueAtoken: bigint, key = KEY): string {
  const intent = { chainId: FAKE_CHAIN_ID, nonce, gasPriceAtoken: 60_000_000n };
  const rest = { gasLimit: 25_200n, to, valueAtoken, data: new Uint8Array(0) };
  return bytesToHex(signLegacy({ ...intent, ...rest }, key));
}

it("gives no hold back for a nonce that was used up where another slot's nonce may have paid it", async () => {
  for (const number of [1, 2]) desk.chain.unmined.add(destination(number));
  const ask = (number: number, amountAtoken: bigint) => {
    const key = `w${number}`;
    return desk.request({ key, customer: "alice", to: destination(number), amountAtoken });
  };
  const [first, second] = [await ask(1, 4n * TOKEN), await ask(2, 2n * TOKEN)];
  await desk.lane().runRound(desk.signal);
  const backup = await desk.backup();
  desk.chain.unmined.clear();
  desk.chain.submit(byHand(0n, WALLET, 0n));
  desk.chain.submit(byHand(1n, destination(1), 4n * TOKEN));
  desk.chain.mine();
  const [, hash = ""] = desk.ownHashes();
  await desk.useDatabase(backup);
  const { text } = await desk.causeway("recover", "--declare", "restored", "--apply");
  expect(text).not.toContain(`${first.id} was cancelled`);
  await desk.watch();
  await desk.work(4);
  const states = [await desk.read(first.id), await desk.read(second.id)];
  expect(states.map(({ status }) => status)).toEqual(["frozen", "frozen"]);
  expect(await desk.availableAtoken("alice")).toBe(4n * TOKEN);
  const released = await desk.causeway("withdrawals", "release");
  expect(released.text).toContain(`--paid-by ${hash}`);
  await desk.work(4);
  expect((await desk.read(first.id)).status).toBe("frozen");
  expect([1, 2].map((number) => desk.paidAtoken(destination(number)))).toEqual([4n * TOKEN, 0n]);
});

it("gives none back where another wallet may have paid it", async () => {
  desk.writeKeystore("wallets/second.json", SECOND);
  await desk.restart();
  desk.pay([SECOND, 5n * TOKEN]);
  await desk.watch();
  desk.chain.unmined.add(destination(1));
  const fields = { key: "w", customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  const { id } = await desk.request(fields);
  await desk.lane().runRound(desk.signal);
  const backup = await desk.backup();
  desk.chain.unmined.clear();
  desk.chain.submit(byHand(0n, WALLET, 0n));
  desk.chain.submit(byHand(0n, destination(1), 4n * TOKEN, SECOND_KEY));
  desk.chain.mine();
  await desk.useDatabase(backup);
  await desk.causeway("recover", "--declare", "restored", "--apply");
  await desk.watch();
  await desk.work(4);
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  expect((await desk.read(id)).status).toBe("frozen");
  expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
  // It was: what is said leads to the end of it, with its customer charged once.
  const [payment] = await desk.database.query<{ hash: string }>(
    `SELECT tx_hash AS hash FROM recovered_payment WHERE destination = $1`,
    [destination(1)],
  );
  const hash = payment?.hash ?? "";
  const word = ["--reason", "paid by hand", "--operator", "ann"];
  const linked = desk.causeway("ledger", "link-payment", hash, "--withdrawal", id, ...word);
  await expect(linked).rejects.toThrow(`write-off-payment ${hash}`);
  await desk.causeway("ledger", "write-off-payment", hash, ...word);
  await desk.causeway("withdrawals", "release");
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("cancelled");
  const sides = ["--debit", "liability:customer:alice", "--credit", "expense:write_off"];
  const amount = ["--amount-atoken", `${4n * TOKEN}`];
  await desk.causeway("ledger", "adjust", "--key", `by-hand:${id}`, ...sides, ...amount, ...word);
  await desk.watch();
  expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
  expect([await desk.breaks(), await desk.breakAtoken()]).toEqual(["", 0n]);
});
