/**
 * Which Ed25519 signatures count: those of ZIP-215, as in CometBFT. The 196 cases are those that
 * ZIP-215 was published with: every pair of the 14 encodings of points of small order, as key and
 * as R, with s = 0 over "Zcash"; all of them count.
 */
import { verify as nodeVerify, createPublicKey } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { ed25519 } from "@noble/curves/ed25519.js";
import {
  isAnybodysKey,
  signingKeyOf,
  verifySignature,
} from "../../../../chain/consensus/ed25519.js";
import { littleEndian, ORDER_EIGHT, SMALL_ORDER } from "../../../helpers/keys/small-order.js";

/** Order of the prime subgroup (RFC 8032). */
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const message = Buffer.from("Zcash");

describe("Ed25519 by ZIP-215", () => {
  it("counts all 196 signatures of small order", () => {
    expect(new Set(SMALL_ORDER.map((one) => Buffer.from(one).toString("hex"))).size).toBe(14);
    let nodeCount = 0;
    for (const key of SMALL_ORDER) {
      for (const r of SMALL_ORDER) {
        const signature = Buffer.concat([r, new Uint8Array(32)]);
        const name = Buffer.concat([key, r]).toString("hex");
        expect({ name, counts: verifySignature(key, message, signature) }).toEqual({
          name,
          counts: true,
        });
        if (nodeCounts(key, signature)) nodeCount++;
      }
    }
    // What RFC 8032 alone would have counted: the reason for the second look.
    expect(nodeCount).toBeLessThan(100);
  });

  it("knows the keys that anybody can sign for, and no other", () => {
    expect(SMALL_ORDER.map(isAnybodysKey)).toEqual(SMALL_ORDER.map(() => true));
    const { publicKey } = signingKeyOf(Buffer.alloc(32, 7));
    // No key at all, one that is no point, and one with a part of small order.
    const none = [new Uint8Array(0), new Uint8Array(33), littleEndian(2n)];
    const torsion = ed25519.Point.fromHex(ORDER_EIGHT[0] ?? "");
    const mixed = ed25519.Point.fromBytes(publicKey).add(torsion).toBytes();
    const all = [publicKey, mixed, ...none];
    expect(all.map(isAnybodysKey)).toEqual(all.map(() => false));
  });

  it("counts a signature whose R has a part of small order, as its equation is cofactored", () => {
    const key = signingKeyOf(Buffer.alloc(32, 7));
    const { publicKey } = key;
    expect(verifySignature(publicKey, message, key.sign(message))).toBe(true);
    // With a key of order 8 and R = [s]B - [k]A + T the equation holds only after times eight.
    const torsion = ed25519.Point.fromBytes(
      Uint8Array.from(Buffer.from(ORDER_EIGHT[0] ?? "", "hex")),
    );
    const r = ed25519.Point.BASE.multiply(5n).add(torsion).toBytes();
    const signature = Buffer.concat([r, littleEndian(5n)]);
    expect(verifySignature(littleEndian(1n), message, signature)).toBe(true);
    expect(nodeCounts(littleEndian(1n), signature)).toBe(false);
  });

  it("counts no s beyond the order, no other message, no other length, no key off the curve", () => {
    const key = signingKeyOf(Buffer.alloc(32, 7));
    const { publicKey } = key;
    const good = key.sign(message);
    const s = good.slice(32).reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n);
    const longer = Buffer.concat([good.slice(0, 32), littleEndian(s + L)]);
    expect(verifySignature(publicKey, message, longer)).toBe(false);
    expect(verifySignature(publicKey, Buffer.from("zcash"), good)).toBe(false);
    expect(verifySignature(publicKey, message, good.slice(0, 63))).toBe(false);
    expect(verifySignature(publicKey, message, Buffer.concat([good, good]))).toBe(false);
    // y = 2 has no x.
    expect(verifySignature(littleEndian(2n), message, good)).toBe(false);
  });
});

function nodeCounts(publicKey: Uint8Array, signature: Uint8Array): boolean {
  const x = Buffer.from(publicKey).toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return nodeVerify(null, message, key, signature);
}
