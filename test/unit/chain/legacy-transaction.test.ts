/**
 * Transactions that @ethereumjs/tx builds and our own code checks: equal to what ethers signs, and
 * refused as soon as the two implementations differ in one bit.
 */
import { describe, expect, it, jest } from "@jest/globals";
import * as library from "@ethereumjs/tx";
import { Transaction, Wallet } from "ethers";
import { type Address } from "../../../chain/address.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { keccak256 } from "../../../chain/hashes.js";
import { bytesToHex, hexToBytes } from "../../../chain/hex.js";
import {
  buildAndSign,
  buildSigned,
  buildSigningDigest,
  checkBuilt,
} from "../../../chain/signing/legacy-transaction.js";
import { type LegacyIntent, recoverSender, signLegacy } from "../../../chain/transaction.js";
import { createRandom } from "../../helpers/random.js";

const SEED = 20_261_125;
const random = createRandom(SEED);
const word = (bits: number) =>
  BigInt(bytesToHex(random.bytes(32))) >> BigInt(256 - random.integer(bits + 1));

function draw(): LegacyIntent {
  const to = random.integer(8) === 0 ? undefined : (bytesToHex(random.bytes(20)) as Address);
  return {
    chainId: BigInt(1 + random.integer(70_000)),
    nonce: word(53),
    gasPriceAtoken: word(190),
    gasLimit: word(64),
    to,
    valueAtoken: word(256),
    data: random.bytes(random.integer(80)),
  };
}

const KEY = hexToBytes(`0x${"4c".repeat(32)}`);
const PLAIN: LegacyIntent = {
  chainId: 6940n,
  nonce: 7n,
  gasPriceAtoken: 25_000_000n,
  gasLimit: 25_200n,
  to: "0x52908400098527886e0f7030069857d2e4169ee7" as Address,
  valueAtoken: 10n ** 17n,
  data: new Uint8Array(0),
};

describe("a transaction of our own making", () => {
  it("has the digest and the bytes of ethers, for 200 random intents", async () => {
    for (let round = 0; round < 200; round++) {
      const intent = draw();
      const key = random.bytes(32);
      const wallet = new Wallet(bytesToHex(key));
      const fields = {
        type: 0,
        chainId: intent.chainId,
        nonce: Number(intent.nonce),
        gasPrice: intent.gasPriceAtoken,
        gasLimit: intent.gasLimit,
        to: intent.to ?? null,
        value: intent.valueAtoken,
        data: bytesToHex(intent.data),
      };
      const expected = Transaction.from(await wallet.signTransaction(fields));
      const place = { seed: SEED, round };
      const digest = bytesToHex(buildSigningDigest(intent));
      expect({ ...place, digest }).toEqual({ ...place, digest: expected.unsignedHash });
      const signed = buildAndSign(intent, key);
      expect({ ...place, raw: bytesToHex(signed.raw) }).toEqual({
        ...place,
        raw: expected.serialized,
      });
      expect(signed.hash).toBe(expected.hash);
      expect(recoverSender(signed)).toBe(privateKeyToAddress(key));
      const { r, s, yParity } = wallet.signingKey.sign(expected.unsignedHash);
      const parts = { r: hexToBytes(r), s: hexToBytes(s), recoveryId: yParity };
      expect(buildSigned(intent, parts).raw).toEqual(signed.raw);
    }
  });

  it("is refused with a code where the library takes a field for impossible", () => {
    for (const change of [
      { nonce: 2n ** 64n - 1n },
      { gasLimit: 2n ** 64n },
      { valueAtoken: 2n ** 256n },
      { gasPriceAtoken: 2n ** 250n },
    ]) {
      expect(() => buildAndSign({ ...PLAIN, ...change }, KEY)).toThrow(
        expect.objectContaining({ code: "INVALID_TRANSACTION" }),
      );
    }
  });

  it("is refused when any field or one byte differs from the intent", () => {
    const forged: readonly (readonly [string, Partial<LegacyIntent>])[] = [
      ["chainId", { chainId: 6941n }],
      ["nonce", { nonce: 8n }],
      ["gasPrice", { gasPriceAtoken: 25_000_001n }],
      ["gasLimit", { gasLimit: 25_201n }],
      ["to", { to: undefined }],
      ["value", { valueAtoken: PLAIN.valueAtoken + 1n }],
      ["data", { data: Uint8Array.of(0) }],
    ];
    for (const [field, change] of forged) {
      const raw = signLegacy({ ...PLAIN, ...change }, KEY);
      expect(() => checkBuilt(raw, PLAIN)).toThrow(
        expect.objectContaining({
          code: "IMPLEMENTATIONS_DISAGREE",
          details: { wrong: [field, "bytes"] },
        }),
      );
    }
    const raw = signLegacy(PLAIN, KEY);
    expect(checkBuilt(raw, PLAIN).hash).toBe(bytesToHex(keccak256(raw)));
  });
});

describe("a library that builds another transaction than was asked for", () => {
  it("makes the signer refuse, and the offline API hand out nothing to sign", async () => {
    jest.resetModules();
    jest.unstable_mockModule("@ethereumjs/tx", () => ({
      ...library,
      createLegacyTx: (fields: library.LegacyTxData, options: library.TxOptions) =>
        library.createLegacyTx({ ...fields, value: BigInt(String(fields.value)) + 1n }, options),
    }));
    const broken = await import("../../../chain/signing/legacy-transaction.js");
    const { createKeyHolder } = await import(
      "../../../withdrawal-worker/signers/keystore-holder.js"
    );
    const { ask } = await import("../sidecar/construction-api/handlers.js");
    const { FACTS, pair } = await import("../sidecar/construction-api/steps.js");
    expect(broken.buildAndSign).not.toBe(buildAndSign);
    const disagrees = expect.objectContaining({ code: "IMPLEMENTATIONS_DISAGREE" });
    const { to, ...rest } = PLAIN;
    const signer = createKeyHolder(KEY);
    const { signal } = new AbortController();
    await expect(
      signer.signTransaction({ ...rest, to: to ?? signer.address }, { signal }),
    ).rejects.toEqual(disagrees);
    expect(() => broken.buildSigningDigest(PLAIN)).toThrow(disagrees);
    const operations = pair(signer.address, PLAIN.to ?? "", 1n);
    await expect(ask("payloads", { operations, metadata: FACTS })).rejects.toEqual(disagrees);
  });
});
