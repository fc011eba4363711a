/** The Merkle-sum tree of liabilities, and messages that wallets sign, against independent sources. */
import { createHash, createHmac, randomBytes } from "node:crypto";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { hashMessage, Signature, verifyMessage, Wallet } from "ethers";
import { array, assert, bigInt, property } from "fast-check";
import { type Address, parseAddress, publicKeyToAddress } from "../../../../chain/address.js";
import { publicKeyOf } from "../../../../chain/crypto.js";
import { bytesToHex } from "../../../../chain/hex.js";
import { MAX_TOKENS } from "../../../../chain/token-list.js";
import {
  personalDigest,
  readPersonalSignature,
  recoverPersonalMessage,
  signPersonalMessage,
} from "../../../../chain/signing/personal-message.js";
import { rootsSchema } from "../../../../cli/audit/reserves/reserves-file.js";
import {
  buildTree,
  leafNode,
  liabilitiesRoot,
  MAX_LEVELS,
  parentNode,
  rootOf,
} from "../../../../cli/audit/reserves/sum-tree.js";
import { missingSignatures } from "../../../../cli/audit/reserves/verify-reserves.js";

const randomHex = () => randomBytes(32).toString("hex");
const MAX = 2n ** 256n - 1n;

const leavesOf = (amounts: readonly bigint[]) =>
  amounts.map((units, index) => ({
    asset: "TOKEN",
    customerId: `customer-${index}`,
    units,
    salt: randomHex(),
  }));

describe("a tree of liabilities", () => {
  it("hashes leaves and nodes as its rule says", () => {
    const [left, right] = leavesOf([5n, 7n]);
    if (left === undefined || right === undefined) throw new Error("two leaves");
    const hmac = createHmac("sha256", Buffer.from(left.salt, "hex"));
    hmac.update("causeway-liability/1\nTOKEN\ncustomer-0\n5");
    expect(leafNode(left)).toEqual({ hash: hmac.digest("hex"), sumUnits: 5n });
    const [one, other] = [leafNode(left), leafNode(right)];
    const sum = (units: bigint) => units.toString(16).padStart(64, "0");
    const text = `00${one.hash}${sum(5n)}${other.hash}${sum(7n)}`;
    expect(parentNode(0, one, other)).toEqual({
      hash: createHash("sha256").update(Buffer.from(text, "hex")).digest("hex"),
      sumUnits: 12n,
    });
    expect(parentNode(1, one, other).hash).not.toBe(parentNode(0, one, other).hash);
    expect(parentNode(0, other, one).hash).not.toBe(parentNode(0, one, other).hash);
  });

  it("has every leaf in its sum, and no other", () => {
    const amounts = array(bigInt({ min: 0n, max: 2n ** 200n }), {
      minLength: 1,
      maxLength: 40,
    });
    assert(
      property(amounts, (list) => {
        const leaves = leavesOf(list);
        const { root, proofOf } = buildTree("TOKEN", leaves, randomHex);
        expect(root.sumUnits).toBe(list.reduce((sum, units) => sum + units, 0n));
        for (const [place, leaf] of leaves.entries()) {
          const steps = proofOf(place);
          expect(steps).toHaveLength(root.levels);
          expect(rootOf(leafNode(leaf), steps)).toEqual({
            hash: root.hash,
            sumUnits: root.sumUnits,
          });
          const more = { ...leaf, units: leaf.units + 1n };
          expect(rootOf(leafNode(more), steps).hash).not.toBe(root.hash);
          const other = { ...leaf, customerId: "somebody" };
          expect(rootOf(leafNode(other), steps).hash).not.toBe(root.hash);
        }
      }),
      { numRuns: 50 },
    );
  });

  it("takes no sum below zero or beyond 256 bits, at any place", () => {
    const [leaf] = leavesOf([1n]);
    if (leaf === undefined) throw new Error("one leaf");
    const hash = randomHex();
    for (const units of [-1n, MAX + 1n]) {
      expect(() => leafNode({ ...leaf, units })).toThrow(RangeError);
      const step = { side: "left" as const, hash, sumUnits: units };
      expect(() => rootOf(leafNode(leaf), [step])).toThrow(RangeError);
    }
    // What overflows is no sum either.
    const full = { side: "right" as const, hash, sumUnits: MAX };
    expect(() => rootOf(leafNode(leaf), [full])).toThrow(RangeError);
    const zero = { side: "left" as const, hash, sumUnits: 0n };
    const long = Array.from({ length: MAX_LEVELS + 1 }, () => zero);
    expect(() => rootOf(leafNode(leaf), long)).toThrow(RangeError);
  });

  it("binds the sums on both sides, so that none is moved to hide a part", () => {
    const [left, right] = [
      { hash: randomHex(), sumUnits: 100n },
      { hash: randomHex(), sumUnits: 1n },
    ];
    const moved = parentNode(0, { ...left, sumUnits: 1n }, { ...right, sumUnits: 100n });
    expect(moved.sumUnits).toBe(101n);
    expect(moved.hash).not.toBe(parentNode(0, left, right).hash);
  });

  it("has one root over all assets, in any order", () => {
    const roots = ["TOKEN", "GOLD"].map(
      (asset) => buildTree(asset, leavesOf([1n, 2n, 3n]), randomHex).root,
    );
    expect(liabilitiesRoot(roots)).toBe(liabilitiesRoot(roots.toReversed()));
    const [first, ...others] = roots;
    if (first === undefined) throw new Error("two roots");
    const less = [{ ...first, sumUnits: 5n }, ...others];
    expect(liabilitiesRoot(less)).not.toBe(liabilitiesRoot(roots));
  });

  it("has room for as many tokens as a list may have, beside the chain's own coin", () => {
    const rootOfAsset = (asset: string) => ({ asset, levels: 0, hash: randomHex(), sumUnits: "1" });
    const tokens = Array.from({ length: MAX_TOKENS }, (_, index) => `T${index}`);
    const roots = ["TOKEN", ...tokens].map(rootOfAsset);
    expect(rootsSchema.safeParse(roots).success).toBe(true);
    expect(rootsSchema.safeParse([...roots, rootOfAsset("MORE")]).success).toBe(false);
  });
});

describe("a message that an account signs", () => {
  it("is what ethers signs and verifies", async () => {
    const wallet = new Wallet(`0x${"42".repeat(32)}`);
    const address = parseAddress(wallet.address);
    for (const text of ["", "one\ntwo", "\u00fcber \u{1f600}", "x".repeat(1_000)]) {
      const signature = signPersonalMessage(text, Buffer.from("42".repeat(32), "hex"));
      expect(signature).toBe(await wallet.signMessage(text));
      expect(verifyMessage(text, signature)).toBe(wallet.address);
      expect(recoverPersonalMessage(text, signature)).toBe(address);
      expect(recoverPersonalMessage(`${text} `, signature)).not.toBe(address);
    }
    for (const wrong of ["", "0x", `0x${"00".repeat(65)}`, `0x${"11".repeat(64)}`, "signature"]) {
      expect(recoverPersonalMessage("text", wrong)).toBeUndefined();
    }
  });
});

describe("a message that somebody's program signed", () => {
  const wallet = new Wallet(`0x${"42".repeat(32)}`);
  const address = parseAddress(wallet.address);
  const text = "one\ntwo";
  const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

  it("is read in any form that names the same one, and written in that of ethers", async () => {
    const whole = await wallet.signMessage(text);
    const { r, s, yParity } = Signature.from(whole);
    const high = (ORDER - BigInt(s)).toString(16).padStart(64, "0");
    const byte = (value: number) => value.toString(16).padStart(2, "0");
    const low = [r, s.slice(2)].join("");
    const other = [r, high].join("");
    for (const form of [
      whole,
      whole.toUpperCase().replace("0X", "0x"),
      low,
      `${low}${byte(yParity)}`,
      other,
      `${other}${byte(28 - yParity)}`,
    ]) {
      const read = readPersonalSignature(text, form, address) ?? "";
      expect({ form, read }).toEqual({ form, read: whole });
      expect(verifyMessage(text, read)).toBe(wallet.address);
    }
    expect(bytesToHex(personalDigest(text))).toBe(hashMessage(text));
  });

  it("is refused of another text, key or point", async () => {
    const whole = await wallet.signMessage(text);
    const { r, s, yParity } = Signature.from(whole);
    const [low, wrongV] = [`${r}${s.slice(2)}`, (28 - yParity).toString(16)];
    const stranger = new Wallet(`0x${"43".repeat(32)}`);
    for (const [signed, form] of [
      [`${text}\n`, whole],
      ["one\ntwO", whole],
      [text, await stranger.signMessage(text)],
      [text, `${low}${wrongV}`],
      [text, `${low}1d`],
      [text, `${low.slice(0, -1)}${low.endsWith("0") ? "1" : "0"}`],
      [text, `${r}${"ff".repeat(32)}`],
      [text, `0x${"00".repeat(65)}`],
      [text, low.slice(2)],
      [text, "0x"],
    ] as const) {
      expect({ form, read: readPersonalSignature(signed, form, address) }).toEqual({
        form,
        read: undefined,
      });
    }
  });
});

describe("signatures of a proof of reserves", () => {
  const text = "we hold the keys of these accounts";
  let signatures: { address: Address; signature: string }[];
  beforeAll(() => {
    signatures = Array.from({ length: 300 }, (_, index) => {
      const key = Buffer.from((index + 1).toString(16).padStart(64, "0"), "hex");
      const address = publicKeyToAddress(publicKeyOf(key));
      return { address, signature: signPersonalMessage(text, key) };
    });
  });
  const walletsOf = (signed: typeof signatures) =>
    signed.map(({ address }) => ({ address, role: "hot-wallet" as const }));

  it("are one of each wallet, and no more", async () => {
    const [one, two, three] = signatures;
    if (one === undefined || two === undefined || three === undefined) throw new Error("three");
    const check = async (...signed: typeof signatures) =>
      missingSignatures({ signatures: signed }, { wallets: walletsOf([one, two]), text });
    expect(await check(two, one)).toEqual([]);
    expect(await check(one)).toEqual([two.address]);
    expect(await check()).toEqual([one.address, two.address]);
    const others = { ...one, signature: two.signature };
    for (const wrong of [
      [one, one],
      [one, three],
      [three],
      [others],
      [one, two, three],
      [one, two, two],
    ]) {
      await expect(check(...wrong)).rejects.toMatchObject({ code: "NOT_PROVEN" });
    }
  });

  it("are given up in the middle, however many a stranger has put into the file", async () => {
    const controller = new AbortController();
    setImmediate(() => controller.abort(new Error("Ctrl-C")));
    const wallets = walletsOf(signatures);
    const checked = async () =>
      missingSignatures({ signatures }, { wallets, text }, controller.signal);
    await expect(checked()).rejects.toThrow("Ctrl-C");
  });
});
