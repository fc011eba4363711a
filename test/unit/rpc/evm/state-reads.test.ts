/** Reads of state, and proofs of it, by every form of block reference and of key. */
import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { EMPTY_CODE_HASH, EMPTY_TRIE_ROOT, parseHash32, ZERO_HASH } from "../../../../chain/hex.js";
import { turnsOf } from "../../../helpers/effort/turns.js";
import { ALICE, BOB, createTestNode } from "./fixture.js";

const node = createTestNode();
const bob = parseAddress(BOB.address);
node.chain.accounts.set(bob, {
  nonce: 3n,
  balanceAtoken: 10n ** 18n,
  codeHash: EMPTY_CODE_HASH,
  storageRoot: EMPTY_TRIE_ROOT,
});
node.chain.slots.set(bob + parseHash32(`0x${"0".repeat(63)}1`), 255n);

describe("a node that is asked for state", () => {
  it("reads by every form of block reference", async () => {
    const { hash } = node.chain.head();
    const refs = [
      undefined,
      null,
      "latest",
      "earliest",
      "safe",
      "finalized",
      "pending",
      "0x0",
      hash,
      { blockNumber: "0x0" },
      { blockHash: hash, requireCanonical: true },
    ];
    for (const ref of refs) {
      expect([ref, await node.call("eth_getBalance", BOB.address, ref)]).toEqual([
        ref,
        "0xde0b6b3a7640000",
      ]);
    }
    expect(await node.call("eth_getBalance", ALICE.address)).toBe("0x0");
  });

  it("answers an unknown block with header not found, and a malformed reference with -32602", async () => {
    for (const ref of ["0x63", ZERO_HASH, { blockHash: ZERO_HASH }]) {
      expect((await node.ask("eth_getBalance", BOB.address, ref)).error).toEqual({
        code: -32000,
        message: "header not found",
      });
    }
    for (const ref of [{}, { blockHash: ZERO_HASH, blockNumber: "0x1" }, 5, []]) {
      expect((await node.ask("eth_getBalance", BOB.address, ref)).error?.code).toBe(-32602);
    }
  });

  it("takes the pending nonce from the pool and others from state", async () => {
    node.pool.nonce = 9n;
    expect(await node.call("eth_getTransactionCount", BOB.address, "pending")).toBe("0x9");
    expect(await node.call("eth_getTransactionCount", BOB.address, "latest")).toBe("0x3");
  });

  it("reads code and storage; slots in any length", async () => {
    node.chain.codes.set(bob, Uint8Array.of(0x60, 0));
    expect(await node.call("eth_getCode", BOB.address, "latest")).toBe("0x6000");
    expect(await node.call("eth_getCode", ALICE.address, "latest")).toBe("0x");
    for (const slot of ["0x1", "0x01", `0x${"0".repeat(63)}1`]) {
      expect(await node.call("eth_getStorageAt", BOB.address, slot, "latest")).toBe(
        `0x${"ff".padStart(64, "0")}`,
      );
    }
  });

  // internal/ethapi: decodeStorageKey, and what GetStorageAt and GetProof make of its errors.
  it("takes storage keys as go-ethereum does, with and without prefix", async () => {
    const one = `${"0".repeat(63)}1`;
    for (const slot of ["1", "01", "0X1", "001", one, `0X${one}`]) {
      expect([slot, await node.call("eth_getStorageAt", BOB.address, slot, "latest")]).toEqual([
        slot,
        `0x${"ff".padStart(64, "0")}`,
      ]);
    }
    for (const slot of ["", "0x", "0"]) {
      expect([slot, await node.call("eth_getStorageAt", BOB.address, slot, "latest")]).toEqual([
        slot,
        `0x${"0".repeat(64)}`,
      ]);
    }
    const tooLong = `0x${"1".repeat(65)}`;
    for (const [slot, text] of [
      [tooLong, `storage key too long (want at most 32 bytes): "${tooLong}"`],
      ["1".repeat(66), `storage key too long (want at most 32 bytes): "${"1".repeat(66)}"`],
      ["0xg1", 'invalid hex in storage key: "0xg1"'],
      [" 0x1", 'invalid hex in storage key: " 0x1"'],
      ['"\n', 'invalid hex in storage key: "\\"\\n"'],
    ] as const) {
      const error = { code: -32602, message: text };
      expect((await node.ask("eth_getStorageAt", BOB.address, slot)).error).toEqual(error);
      expect((await node.ask("eth_getProof", BOB.address, ["0x1", slot])).error).toEqual(error);
    }
    const shown = (await node.ask("eth_getStorageAt", BOB.address, "z".repeat(10_000))).error;
    expect(shown?.message.length).toBeLessThan(300);
    for (const value of [1, true, {}, ["0x1"]]) {
      const { error } = await node.ask("eth_getStorageAt", BOB.address, value);
      expect(error).toEqual({ code: -32602, message: "invalid argument 1: non-string" });
    }
  });

  it("gives others their turns while many slots are read", async () => {
    const slots = Array.from({ length: 1_024 }, (_, slot) => `0x${slot.toString(16)}`);
    const read = () => node.call("eth_getStorageValues", { [BOB.address]: slots });
    expect(await turnsOf(read)).toBeGreaterThan(200);
  });

  it("proves accounts, repeating the form of each key", async () => {
    const whole = "0".repeat(63) + "1";
    const long = `0x${whole}`;
    const keys = ["0x1", long, "1", whole, "0x0001"];
    const { storageProof } = (await node.call("eth_getProof", BOB.address, keys)) as {
      readonly storageProof: readonly { readonly key: string }[];
    };
    expect(storageProof.map(({ key }) => key)).toEqual(["0x1", long, "0x1", long, "0x1"]);
    expect(await node.call("eth_getProof", BOB.address, ["0x1", long], "latest")).toEqual({
      address: bob,
      accountProof: ["0xc0"],
      balance: "0xde0b6b3a7640000",
      codeHash: EMPTY_CODE_HASH,
      nonce: "0x3",
      storageHash: EMPTY_TRIE_ROOT,
      storageProof: [
        { key: "0x1", value: "0xff", proof: ["0xc1"] },
        { key: long, value: "0xff", proof: ["0xc1"] },
      ],
    });
  });
});
