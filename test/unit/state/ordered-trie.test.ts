import { createMPT } from "@ethereumjs/mpt";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { encodeRlp as ethersRlp, toBeArray } from "ethers";
import { EMPTY_TRIE_ROOT, hexToBytes } from "../../../chain/hex.js";
import { orderedTrieRoot } from "../../../node/state/ordered-trie.js";
import { Random, seedOf, toHex } from "./trie-fixtures.js";

let seed = 1;
beforeAll(() => {
  seed = seedOf("ordered-trie");
});

describe("orderedTrieRoot", () => {
  it("gives the transaction and receipt roots of Ethereum block 46,147", () => {
    const transaction = ethersRlp([
      "0x",
      "0x2d79883d2000",
      "0x5208",
      "0x5df9b87991262f6ba471f09758cde1c0fc1de734",
      "0x7a69",
      "0x",
      "0x1c",
      "0x88ff6cf0fefd94db46111149ae4bfc179e9b94721fffd821d38d16464b3f71d0",
      "0x45e0aff800961cfce805daef7016b9b675c137a6a41a548f7b60a3484c06a33a",
    ]);
    expect(orderedTrieRoot([hexToBytes(transaction)])).toBe(
      "0x4513310fcb9f6f616972a3b948dc5d547f280849a87ebb5af0191f98b87be598",
    );
    const stateRoot = "0x96a8e009d2b88b1483e6941e6812e32263b05683fac202abc622a3e31aed1957";
    const receipt = ethersRlp([stateRoot, "0x5208", `0x${"00".repeat(256)}`, []]);
    expect(orderedTrieRoot([hexToBytes(receipt)])).toBe(
      "0xfe2bf2a941abf41d72637e5b91750332a30283efd40c424dc522b77e6f0ed8c4",
    );
  });

  it("equals @ethereumjs/mpt for every length up to 300, where key lengths change", async () => {
    const random = new Random(seed);
    const trie = await createMPT();
    const values: Uint8Array[] = [];
    expect(orderedTrieRoot([])).toBe(EMPTY_TRIE_ROOT);
    while (values.length < 300) {
      const value = random.value();
      await trie.put(hexToBytes(ethersRlp(toBeArray(values.length))), value);
      values.push(value);
      const expected = [values.length, `0x${toHex(trie.root())}`];
      expect([values.length, orderedTrieRoot(values)]).toEqual(expected);
    }
  });

  it("tells lists apart that differ in order or in one item", () => {
    const random = new Random(seed + 1);
    const values = Array.from({ length: 2_000 }, () => random.bytes(20));
    const root = orderedTrieRoot(values);
    expect(orderedTrieRoot(values.toReversed())).not.toBe(root);
    expect(orderedTrieRoot(values.with(1_999, Uint8Array.of(1)))).not.toBe(root);
    expect(orderedTrieRoot(values.slice(1))).not.toBe(root);
  });
});
