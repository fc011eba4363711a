/** Cosmos transactions in the pool: one nonce line with those of the EVM. */
import { describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { bytesToHash32, parseHexBytes } from "../../../chain/hex.js";
import { sha256 } from "../../../chain/hashes.js";
import { signWithCosmJs } from "../../helpers/cosmjs.js";
import { createFixture, refusal } from "./support.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const owner = Wallet.fromPhrase(MNEMONIC);
const address = parseAddress(owner.address);
const receiver = toBech32(parseAddress(`0x${"77".repeat(20)}`));

const base = {
  messages: [
    {
      typeUrl: "/cosmos.bank.v1beta1.MsgSend",
      value: {
        fromAddress: toBech32(address),
        toAddress: receiver,
        amount: [{ denom: "atoken", amount: "7" }],
      },
    },
  ],
  chainId: "chain_6940-1",
  gas: 70_000,
};
const fee = (amount: number) => [{ denom: "atoken", amount: String(amount) }];
const [first, second, dearer, foreign, free] = signWithCosmJs(MNEMONIC, [
  { ...base, fee: fee(7_000_000) },
  { ...base, fee: fee(7_000_000), sequence: 1 },
  { ...base, fee: fee(7_700_000) },
  { ...base, fee: fee(7_000_000), chainId: "chain_6941-1" },
  { ...base, fee: [] },
]).map(({ raw }) => raw);
if (!first || !second || !dearer || !foreign || !free) throw new Error("nothing was signed");
const hashOf = (raw: Uint8Array) => bytesToHash32(sha256(raw));

async function fixture() {
  const made = await createFixture();
  made.state.nonces.set(address, 0n);
  made.state.balances.set(address, 10n ** 18n);
  return made;
}

describe("Cosmos transactions", () => {
  it("come back after a restart, in nonce order", async () => {
    const made = await fixture();
    expect(await made.pool.submit([first, second])).toEqual([first, second].map(hashOf));
    const pool = await made.restart();
    expect(pool.status(hashOf(second))).toEqual({ status: "pending" });
    expect(pool.pendingNonce(address)).toBe(2n);
    expect(pool.getBySdkHash(hashOf(first))?.from).toBe(address);
  });

  it("are replaced by a tenth more, by either kind", async () => {
    const { pool } = await fixture();
    await pool.submit([first]);
    expect(await pool.submit([dearer])).toEqual([hashOf(dearer)]);
    expect(pool.status(hashOf(first))).toEqual({ status: "replaced", by: hashOf(dearer) });
    const raw = await owner.signTransaction({
      type: 0,
      chainId: 6940,
      nonce: 0,
      gasPrice: 1_000n,
      gasLimit: 21_000n,
      to: `0x${"77".repeat(20)}`,
      value: 1n,
    });
    const [hash] = await pool.submit([parseHexBytes(raw)]);
    expect(pool.status(hashOf(dearer))).toEqual({ status: "replaced", by: hash });
  });

  it("wait behind a gap where a peer sent them, and are refused where a client did", async () => {
    const { pool } = await fixture();
    const [answer] = await pool.submit([second]);
    expect(refusal(answer)).toEqual({
      code: "SDK_FAULT",
      message: "account sequence mismatch, expected 0, got 1: incorrect account sequence",
    });
    expect(await pool.submit([second], "peer")).toEqual([hashOf(second)]);
    expect(pool.status(hashOf(second))).toEqual({ status: "queued", missingNonce: 0n });
  });

  it("are kept only when they are signed for this chain, paid and affordable", async () => {
    const { pool, state } = await fixture();
    const answers = await pool.submit([foreign, free, Buffer.from("0a00", "hex")]);
    expect(answers.map((answer) => refusal(answer).message)).toEqual([
      expect.stringContaining("signature verification failed"),
      "insufficient fees; got:  required: 1750atoken: insufficient fee",
      expect.stringContaining("tx parse error"),
    ]);
    state.balances.set(address, 7_000_006n);
    const [poor] = await pool.submit([first]);
    expect(refusal(poor).message).toBe(
      "spendable balance 7000006atoken is smaller than 7000007atoken: insufficient funds",
    );
    expect(pool.counts()).toEqual({ pending: 0, queued: 0 });
  });
});
