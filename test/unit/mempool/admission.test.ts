/** What is refused, in which words, and that the sums agree with other implementations. */
import { describe, expect, it } from "@jest/globals";
import { createCustomCommon, Hardfork, Mainnet } from "@ethereumjs/common";
import { createTxFromRLP } from "@ethereumjs/tx";
import { type TransactionRequest, Wallet } from "ethers";
import type { Address } from "../../../chain/address.js";
import { hexToBytes } from "../../../chain/hex.js";
import { decodeTransaction } from "../../../chain/transaction.js";
import { intrinsicGas, MAX_TRANSACTION_BYTES } from "../../../chain/transaction-rules.js";
import { dryCheck } from "../../../node/mempool/admission/admission.js";
import { COSMOS_RULES } from "../../helpers/chains/cosmos-rules.js";
import {
  account,
  CountedRecovery,
  createFixture,
  PRECOMPILE,
  RECIPIENT,
  refusal,
  submit,
  transfer,
} from "./support.js";

const alice = account(1);
const wallet = new Wallet(`0x${Buffer.from(alice.key).toString("hex")}`);

/** Raw bytes as ethers signs them: independent of our encoder. */
async function signed(changes: TransactionRequest): Promise<Uint8Array> {
  const base = { chainId: 6940, nonce: 0, gasLimit: 21_000, to: RECIPIENT, value: 1 };
  const price = changes.type === 2 ? {} : { type: changes.type ?? 0, gasPrice: 10 };
  return hexToBytes(await wallet.signTransaction({ ...base, ...price, ...changes }));
}

async function refusalOf(raw: Uint8Array) {
  const { pool } = await createFixture();
  return refusal((await pool.submit([raw]))[0]);
}

describe("admission", () => {
  it("takes types 0, 1 and 2 as ethers signs them and answers ethers' hash", async () => {
    const { pool } = await createFixture();
    const raws = [
      await signed({ type: 0, nonce: 0 }),
      await signed({ type: 1, nonce: 1, accessList: [] }),
      await signed({ type: 2, nonce: 2, maxFeePerGas: 30, maxPriorityFeePerGas: 20 }),
    ];
    const answers = await pool.submit(raws);
    const expected = await Promise.all(
      raws.map(async (raw) => (await import("ethers")).keccak256(raw)),
    );
    expect(answers).toEqual(expected);
    expect(pool.contentFrom(alice.address).pending.map(({ from }) => from)).toEqual(
      Array(3).fill(wallet.address.toLowerCase()),
    );
    expect(pool.pendingNonce(alice.address)).toBe(3n);
  });

  it("refuses an unprotected transaction", async () => {
    // EIP-155's own key and fields, signed without a chain id.
    const raw = await new Wallet(`0x${"46".repeat(32)}`).signTransaction({
      type: 0,
      nonce: 9,
      gasPrice: 20_000_000_000n,
      gasLimit: 21_000,
      to: `0x${"35".repeat(20)}`,
      value: 10n ** 18n,
    });
    expect(await refusalOf(hexToBytes(raw))).toEqual({
      code: "UNPROTECTED",
      message: "only replay-protected (EIP-155) transactions allowed over RPC",
    });
  });

  it("refuses another chain's transaction before recovering its sender", async () => {
    const recovery = new CountedRecovery(alice.address);
    const { pool } = await createFixture({ recovery });
    const [answer] = await pool.submit([await signed({ chainId: 1 })]);
    expect(refusal(answer)).toEqual({
      code: "INVALID_CHAIN_ID",
      message: "invalid sender: invalid chain id for signer: have 1 want 6940",
    });
    expect(recovery.count).toBe(0);
  });

  it("recovers each sender once, duplicates of pool transactions not at all", async () => {
    const recovery = new CountedRecovery(alice.address);
    const { pool } = await createFixture({ recovery });
    const raw = await signed({});
    await pool.submit([raw]);
    await pool.submit([raw]);
    expect(recovery.count).toBe(1);
  });

  it.each([3, 4, 0x7f])("refuses type %i", async (type) => {
    expect(await refusalOf(Uint8Array.of(type, 0xc0))).toEqual({
      code: "TYPE_NOT_SUPPORTED",
      message: "transaction type not supported",
    });
  });

  it.each([3, 4])("refuses type %i for its type, however large it is", async (type) => {
    const raw = new Uint8Array(MAX_TRANSACTION_BYTES + 1);
    raw[0] = type;
    const expected = { code: "TYPE_NOT_SUPPORTED", message: "transaction type not supported" };
    expect(await refusalOf(raw)).toEqual(expected);
    const { state } = await createFixture();
    const own = { chainId: 6940n, minGasPriceAtoken: 1n, maxTransactionGas: 30_000_000n };
    const ports = { rules: { ...COSMOS_RULES, ...own }, state, isKnown: () => false };
    expect(refusal(dryCheck(raw, ports))).toEqual(expected);
  });

  it("refuses bytes that are no transaction", async () => {
    for (const raw of [new Uint8Array(0), Uint8Array.of(0xc1), Uint8Array.of(0xc0)]) {
      expect((await refusalOf(raw)).code).toBe("INVALID_TRANSACTION");
    }
  });

  it("refuses a signature in the upper half of s", async () => {
    const tx = decodeTransaction(await signed({}));
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    const low = tx.s.toString(16).padStart(64, "0");
    const high = (order - tx.s).toString(16).padStart(64, "0");
    const raw = hexToBytes(`0x${Buffer.from(tx.raw).toString("hex").replace(low, high)}`);
    expect(await refusalOf(raw)).toEqual({
      code: "INVALID_SENDER",
      message: "invalid sender: invalid transaction v, r, s values",
    });
  });

  it("refuses a price under the floor, by the effective price of type 2", async () => {
    const { pool } = await createFixture({ rules: { minGasPriceAtoken: 25n } });
    const [legacy, dynamic] = await pool.submit([
      await signed({ gasPrice: 24 }),
      await signed({ type: 2, maxFeePerGas: 100, maxPriorityFeePerGas: 1 }),
    ]);
    expect(refusal(legacy)).toEqual({
      code: "GAS_PRICE_BELOW_MINIMUM",
      message: "transaction gas price below minimum: gas tip cap 24, minimum needed 25",
    });
    expect(refusal(dynamic).message).toBe(
      "transaction gas price below minimum: gas tip cap 1, minimum needed 25",
    );
  });

  it("refuses too little gas for the transaction's own bytes", async () => {
    expect(await refusalOf(await signed({ gasLimit: 20_000 }))).toEqual({
      code: "INTRINSIC_GAS_TOO_LOW",
      message: "intrinsic gas too low: gas 20000, minimum needed 21000",
    });
    const withData = await signed({ gasLimit: 21_019, data: "0x00ff" });
    expect((await refusalOf(withData)).message).toMatch(/minimum needed 21020$/);
  });

  it("computes intrinsic gas as @ethereumjs/tx does under Cancun", async () => {
    const common = createCustomCommon({ chainId: 6940 }, Mainnet, { hardfork: Hardfork.Cancun });
    const key = `0x${"22".repeat(32)}`;
    const cases: TransactionRequest[] = [
      { data: "0x" },
      { data: `0x${"00".repeat(100)}${"fe".repeat(77)}` },
      { to: null, data: `0x${"60".repeat(33)}00`, value: 0 },
      { to: null, data: `0x${"5b".repeat(49_152)}`, value: 0 },
      { type: 1, accessList: [{ address: RECIPIENT, storageKeys: [key, key] }] },
      {
        type: 2,
        maxFeePerGas: 9,
        maxPriorityFeePerGas: 9,
        data: "0x0102",
        accessList: [
          { address: RECIPIENT, storageKeys: [] },
          { address: PRECOMPILE, storageKeys: [key] },
        ],
      },
    ];
    for (const request of cases) {
      const raw = await signed({ gasLimit: 20_000_000, ...request });
      const expected = createTxFromRLP(raw, { common }).getIntrinsicGas();
      expect(intrinsicGas(decodeTransaction(raw))).toBe(expected);
    }
  });

  it("refuses raw transactions over 128 KiB and creation code over 49,152 bytes", async () => {
    expect(await refusalOf(new Uint8Array(MAX_TRANSACTION_BYTES + 1))).toEqual({
      code: "TRANSACTION_TOO_LARGE",
      message: "oversized data: transaction size 131073, limit 131072",
    });
    const creation = { to: null, value: 0, gasLimit: 20_000_000 };
    expect(
      await refusalOf(await signed({ ...creation, data: `0x${"5b".repeat(49_153)}` })),
    ).toEqual({
      code: "INITCODE_TOO_LARGE",
      message: "max initcode size exceeded: code size 49153, limit 49152",
    });
  });

  it("refuses more gas than a transaction may name, whether it enters code or not", async () => {
    const { pool, state } = await createFixture();
    const contract = `0x${"cc".repeat(20)}` as Address;
    state.contracts.add(contract);
    const over = { gasLimit: 30_000_001, gasPrice: 1 };
    const answers = await pool.submit([
      await signed(over),
      await signed({ ...over, to: contract }),
      await signed({ ...over, to: PRECOMPILE }),
      await signed({ ...over, to: null }),
    ]);
    for (const answer of answers) {
      expect(refusal(answer)).toEqual({
        code: "GAS_LIMIT_EXCEEDED",
        message: "exceeds block gas limit",
      });
    }
    const fitting = await pool.submit([
      await signed({ gasLimit: 30_000_000, gasPrice: 1 }),
      await signed({ nonce: 1, gasLimit: 30_000_000, gasPrice: 1, to: contract }),
    ]);
    expect(fitting.every((answer) => typeof answer === "string")).toBe(true);
  });

  it("refuses a tip above the fee cap, in geth's words", async () => {
    // ethers refuses to sign it, so the two are swapped in the bytes: ..., nonce, tip, cap, ...
    const raw = await signed({ type: 2, maxFeePerGas: 101, maxPriorityFeePerGas: 100 });
    const at = Buffer.from(raw).indexOf(Buffer.from("806465", "hex"));
    raw.set([0x65, 0x64], at + 1);
    expect(await refusalOf(raw)).toEqual({
      code: "TIP_ABOVE_FEE_CAP",
      message: "max priority fee per gas higher than max fee per gas",
    });
  });

  it("refuses what the balance does not cover at the fee cap, not at the price", async () => {
    const { pool, state } = await createFixture();
    state.balances.set(alice.address, 10n ** 15n);
    const greedy = { type: 2, maxFeePerGas: 2n ** 200n, maxPriorityFeePerGas: 1 };
    const costAtoken = 21_000n * 2n ** 200n + 1n;
    const [answer] = await pool.submit([await signed(greedy)]);
    expect(refusal(answer)).toEqual({
      code: "INSUFFICIENT_FUNDS",
      message:
        `insufficient funds for gas * price + value: balance ${10n ** 15n}, ` +
        `tx cost ${costAtoken}, overshot ${costAtoken - 10n ** 15n}`,
    });
    // The cap counts for what follows, too: 21,000 x 40,000,000,000 of the 10^15 are spoken for.
    const wide = { type: 2, maxFeePerGas: 4n * 10n ** 10n, maxPriorityFeePerGas: 1 };
    const answers = await pool.submit([await signed(wide), await signed({ ...wide, nonce: 1 })]);
    expect(typeof answers[0]).toBe("string");
    expect(refusal(answers[1]).code).toBe("INSUFFICIENT_FUNDS");
  });

  it("refuses a sender with code", async () => {
    const { pool, state } = await createFixture();
    state.contracts.add(alice.address);
    const [answer] = await submit(pool, transfer(alice, 0));
    expect(refusal(answer)).toEqual({
      code: "SENDER_NOT_EOA",
      message: `sender not an eoa: address ${alice.address}`,
    });
  });

  it("refuses a used nonce and the one that can never be used", async () => {
    const { pool, state } = await createFixture();
    state.nonces.set(alice.address, 8n);
    const [low] = await submit(pool, transfer(alice, 5));
    expect(refusal(low)).toEqual({
      code: "NONCE_TOO_LOW",
      message: "nonce too low: next nonce 8, tx nonce 5",
    });
    // ethers refuses to sign it, so the bytes are patched; the recovered sender does not matter.
    const raw = Buffer.from(await signed({ nonce: Number.MAX_SAFE_INTEGER }));
    const at = raw.indexOf(Buffer.from("871fffffffffffff", "hex"));
    const patched = Buffer.concat([
      raw.subarray(0, at),
      Buffer.from("88ffffffffffffffff", "hex"),
      raw.subarray(at + 8),
    ]);
    patched[1] = (patched[1] ?? 0) + 1;
    const [high] = await pool.submit([patched]);
    expect(refusal(high)).toEqual({ code: "NONCE_TOO_HIGH", message: "nonce has max value" });
  });

  it("refuses what the balance does not cover, the sender's earlier ones included", async () => {
    const { pool, state } = await createFixture();
    state.balances.set(alice.address, 420_002n);
    const [alone, first, second, third] = await submit(
      pool,
      transfer(alice, 0, { valueAtoken: 210_003n }),
      transfer(alice, 0),
      transfer(alice, 1),
      transfer(alice, 2, { valueAtoken: 5n }),
    );
    const start = "insufficient funds for gas * price + value: balance 420002";
    expect(refusal(alone)).toEqual({
      code: "INSUFFICIENT_FUNDS",
      message: `${start}, tx cost 420003, overshot 1`,
    });
    expect([typeof first, typeof second]).toEqual(["string", "string"]);
    expect(refusal(third).message).toBe(
      `${start}, queued cost 420002, tx cost 210005, overshot 210005`,
    );
    const [bumped] = await submit(pool, transfer(alice, 1, { priceAtoken: 11n }));
    expect(refusal(bumped).message).toBe(
      `${start}, queued cost 420002, tx bumped 21000, overshot 21000`,
    );
  });

  it("answers each transaction of a batch by itself, in order", async () => {
    const { pool } = await createFixture();
    const good = transfer(alice, 0);
    const answers = await pool.submit([Uint8Array.of(3), good.raw, good.raw, new Uint8Array(0)]);
    expect(answers[1]).toBe(good.hash);
    expect(refusal(answers[0]).code).toBe("TYPE_NOT_SUPPORTED");
    expect(refusal(answers[2])).toEqual({ code: "ALREADY_KNOWN", message: "already known" });
    expect(refusal(answers[3]).code).toBe("INVALID_TRANSACTION");
    expect(await pool.submit([])).toEqual([]);
    expect(Object.fromEntries(pool.stats().refusedTotal)).toEqual({
      TYPE_NOT_SUPPORTED: 1,
      ALREADY_KNOWN: 1,
      INVALID_TRANSACTION: 1,
    });
  });
});
