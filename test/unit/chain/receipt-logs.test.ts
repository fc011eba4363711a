/** Logs as receipts encode them, and blooms, beside other implementations. */
import { RLP } from "@ethereumjs/rlp";
import { Bloom } from "@ethereumjs/vm";
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import { bytesToHex, type Hash32, hexToBytes } from "../../../chain/hex.js";
import { encodeLogs, type Log, logsToBloom } from "../../../chain/receipt.js";

const address = (index: number) => `0x${index.toString(16).padStart(40, "a")}` as Address;
const topic = (index: number) => `0x${index.toString(16).padStart(64, "c")}` as Hash32;

/** On both sides of where an encoding gets a longer header. */
const DATA_SIZES = [0, 1, 2, 55, 56, 255, 256, 65_535, 65_536];

function someLogs(): Log[] {
  return DATA_SIZES.flatMap((sizeBytes, index) =>
    [0, 1, 2, 3, 4].map((count) => ({
      address: address(index),
      topics: Array.from({ length: count }, (_, item) => topic(index * 5 + item)),
      data: new Uint8Array(sizeBytes).fill(count % 2 === 0 ? 0x7f : 0x80),
    })),
  );
}

/** The same for a library. */
function asItem(log: Log): (Uint8Array | Uint8Array[])[] {
  return [hexToBytes(log.address), log.topics.map((each) => hexToBytes(each)), log.data];
}

describe("the logs of a receipt", () => {
  it("are encoded one by one as @ethereumjs/rlp does it", () => {
    for (const log of someLogs()) {
      expect(bytesToHex(encodeLogs([log]).bytes)).toBe(bytesToHex(RLP.encode([asItem(log)])));
    }
  });

  it("are encoded together, alone and inside of another list", () => {
    const logs = someLogs();
    const items = logs.map(asItem);
    expect(bytesToHex(encodeLogs(logs).bytes)).toBe(bytesToHex(RLP.encode(items)));
    const around = encodeRlp([Uint8Array.of(1), encodeLogs(logs), [encodeLogs([])]]);
    expect(bytesToHex(around)).toBe(bytesToHex(RLP.encode([Uint8Array.of(1), items, [[]]])));
  });

  it("have the bloom of @ethereumjs/vm, also where many values take turns", () => {
    const logs = Array.from({ length: 10_000 }, (_, index) => ({
      address: address(index % 7),
      topics: [topic(index), topic(index * 4_096)],
      data: new Uint8Array(0),
    }));
    for (let at = 0; at < logs.length; at += 1_000) {
      const some = [...logs.slice(at, at + 20), ...logs.slice(0, 5)];
      const expected = new Bloom();
      for (const log of some) {
        expected.add(hexToBytes(log.address));
        for (const each of log.topics) expected.add(hexToBytes(each));
      }
      expect(Buffer.from(logsToBloom(some))).toEqual(Buffer.from(expected.bitvector));
      logsToBloom(logs.slice(at, at + 1_000));
    }
  });
});
