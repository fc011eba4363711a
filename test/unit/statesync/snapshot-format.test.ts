/** Manifests and chunks: what is written can be read, and nothing else can. */
import { describe, expect, it } from "@jest/globals";
import { createHash } from "node:crypto";
import { encodeRlp, encodeRlpListOfEncoded } from "../../../chain/encoding/rlp-writer.js";
import { ChainError } from "../../../chain/errors.js";
import { bytesToHash32, type Hash32 } from "../../../chain/hex.js";
import { SnapshotError } from "../../../node/statesync/snapshot/snapshot-error.js";
import {
  decodeManifest,
  encodeManifest,
  MAX_CHUNK_BYTES,
  MAX_CHUNKS,
  MAX_MANIFEST_BYTES,
  type SnapshotManifest,
  snapshotIdOf,
} from "../../../node/statesync/snapshot/snapshot-manifest.js";
import {
  ChunkBuilder,
  ChunkReader,
  RECORD_KIND,
  slicesOf,
  type SnapshotRecord,
} from "../../../node/statesync/snapshot/snapshot-records.js";
import { createRandom } from "../../helpers/random.js";

const SEED = 20_261_120;
const random = createRandom(SEED);
const hash = (): Hash32 => bytesToHash32(random.bytes(32));

const manifest: SnapshotManifest = {
  format: 1,
  genesisHash: hash(),
  height: 4_000,
  chunkHashes: [hash(), hash(), hash()],
  counts: { accounts: 70_000, slots: 0, codes: 3 },
  supply: { totalAtoken: 10n ** 27n, mintedAtoken: 10n ** 27n + 5n, burnedAtoken: 5n },
};

const INVALID = expect.objectContaining({ code: "SNAPSHOT_INVALID" });

const account = (number: number, value = Buffer.alloc(40, 1)): SnapshotRecord => {
  const id = Buffer.alloc(20);
  id.writeUInt32BE(number);
  return { kind: RECORD_KIND.account, id, value };
};

function chunkOf(records: readonly SnapshotRecord[]): Uint8Array {
  return encodeRlp(records.map(({ kind, id, value }) => [Buffer.from([kind, ...id]), value]));
}

describe("a manifest", () => {
  it("is read as it was written, and named by its SHA-256", () => {
    const bytes = encodeManifest(manifest);
    expect(decodeManifest(bytes)).toEqual(manifest);
    expect(snapshotIdOf(bytes)).toBe(`0x${createHash("sha256").update(bytes).digest("hex")}`);
  });

  it("with any bit flipped is refused or another snapshot's", () => {
    const bytes = encodeManifest(manifest);
    let refused = 0;
    for (let at = 0; at < bytes.length * 8; at++) {
      const damaged = Uint8Array.from(bytes);
      damaged[at >> 3] = (damaged[at >> 3] ?? 0) ^ (1 << (at & 7));
      expect(snapshotIdOf(damaged)).not.toBe(snapshotIdOf(bytes));
      try {
        expect(decodeManifest(damaged)).not.toEqual(manifest);
      } catch (error) {
        expect(error).toEqual(INVALID);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(200);
  });

  it("cut short, with bytes behind it, or of random bytes is refused", () => {
    const bytes = encodeManifest(manifest);
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeManifest(bytes.subarray(0, length))).toThrow(INVALID);
    }
    expect(() => decodeManifest(Buffer.concat([bytes, Buffer.alloc(1)]))).toThrow(INVALID);
    for (let length = 0; length < 300; length++) {
      expect(() => decodeManifest(random.bytes(length))).toThrow(INVALID);
    }
  });

  it("is refused with an unknown format, height 0, no chunks, or a supply that does not add up", () => {
    const wrong: Partial<SnapshotManifest>[] = [
      { format: 2 },
      { format: 0 },
      { height: 0 },
      { chunkHashes: [] },
      { supply: { ...manifest.supply, burnedAtoken: 6n } },
    ];
    for (const change of wrong) {
      expect(() => decodeManifest(encodeManifest({ ...manifest, ...change }))).toThrow(INVALID);
    }
  });

  it("may have as many chunks as there is room for, and no more", () => {
    const hashes = Array.from({ length: MAX_CHUNKS + 1 }, () => manifest.genesisHash);
    const most = encodeManifest({ ...manifest, chunkHashes: hashes.slice(1) });
    expect(most.length).toBeLessThanOrEqual(MAX_MANIFEST_BYTES);
    expect(decodeManifest(most).chunkHashes).toHaveLength(MAX_CHUNKS);
    const tooMany = encodeManifest({ ...manifest, chunkHashes: hashes });
    expect(tooMany.length).toBeLessThanOrEqual(MAX_MANIFEST_BYTES);
    expect(() => decodeManifest(tooMany)).toThrow(INVALID);
    expect(() => decodeManifest(Buffer.alloc(MAX_MANIFEST_BYTES + 1))).toThrow(INVALID);
  });

  it("that claims 10^9 chunks is refused by its length", () => {
    // A list whose length says 33 * 10^9 bytes, and one that says 2^32 - 1.
    for (const head of ["f9ff", "fc07aef40a00", "fbffffffff", "ffffffffffffffffff"]) {
      const claim = Buffer.concat([Buffer.from(head, "hex"), Buffer.alloc(64)]);
      expect(() => decodeManifest(claim)).toThrow(INVALID);
    }
  });

  it("does not take huge counts for numbers", () => {
    const bytes = encodeRlp([
      Buffer.from([1]),
      Buffer.alloc(32, 1),
      Buffer.from([9]),
      [Buffer.alloc(32, 2)],
      [Buffer.alloc(7, 0xff), Buffer.alloc(0), Buffer.alloc(0)],
      [Buffer.from([1]), Buffer.from([1]), Buffer.alloc(0)],
    ]);
    expect(() => decodeManifest(bytes)).toThrow(INVALID);
  });
});

describe("chunks", () => {
  it("hold all records in their order, each record whole, in about a MiB", () => {
    const records = [
      ...slicesOf(RECORD_KIND.block, Buffer.alloc(1_200_000, "block")),
      ...slicesOf(RECORD_KIND.receipts, Uint8Array.of(0xc0)),
      ...Array.from({ length: 20_000 }, (_, number) => account(number)),
    ];
    const builder = new ChunkBuilder();
    const chunks = [...records.map((record) => builder.add(record)), builder.finish()].filter(
      (chunk) => chunk !== undefined,
    );
    expect(builder.finish()).toBeUndefined();
    expect(chunks.length).toBeGreaterThan(2);
    for (const chunk of chunks) expect(chunk.length).toBeLessThanOrEqual(1024 * 1024);
    const reader = new ChunkReader();
    const read = chunks.flatMap((chunk) => reader.read(chunk));
    expect(read).toHaveLength(records.length);
    const isSame = read.every(({ kind, id, value }, index) => {
      const record = records[index];
      return (
        record?.kind === kind &&
        Buffer.compare(record.id, id) === 0 &&
        Buffer.compare(record.value, value) === 0
      );
    });
    expect(isSame).toBe(true);
  });

  it("are refused when keys do not ascend, within one or from one to the next", () => {
    const wrong = [
      [[account(1), account(1)]],
      [[account(2), account(1)]],
      [[account(1)], [account(1)]],
      [[account(5)], [account(4)]],
      [[{ ...account(1), kind: RECORD_KIND.code, id: Buffer.alloc(32) }, account(9)]],
    ];
    for (const chunks of wrong) {
      const reader = new ChunkReader();
      expect(() => chunks.map((records) => reader.read(chunkOf(records)))).toThrow(INVALID);
    }
  });

  it("are refused when they are empty, too long, cut short, or not of records", () => {
    const good = chunkOf([account(1), account(2)]);
    const wrong = [
      new Uint8Array(0),
      encodeRlp([]),
      encodeRlp(Buffer.from([1, 2])),
      encodeRlp([[Buffer.from([3])]]),
      encodeRlp([[Buffer.alloc(21, 3), Buffer.alloc(1), Buffer.alloc(1)]]),
      encodeRlp([[Buffer.alloc(21, 3), [Buffer.alloc(1)]]]),
      // A key that is too short or too long, no key, and kinds that do not exist.
      encodeRlp([[Buffer.alloc(20, 3), Buffer.alloc(1)]]),
      encodeRlp([[Buffer.alloc(22, 3), Buffer.alloc(1)]]),
      encodeRlp([[new Uint8Array(0), Buffer.alloc(1)]]),
      encodeRlp([[Buffer.alloc(21, 0), Buffer.alloc(1)]]),
      encodeRlp([[Buffer.alloc(21, 6), Buffer.alloc(1)]]),
      Buffer.concat([good, Buffer.alloc(1)]),
      Buffer.alloc(MAX_CHUNK_BYTES + 1),
      ...Array.from({ length: good.length }, (_, length) => good.subarray(0, length)),
      ...Array.from({ length: 200 }, (_, length) => random.bytes(length)),
    ];
    for (const chunk of wrong) expect(() => new ChunkReader().read(chunk)).toThrow(INVALID);
    expect(new ChunkReader().read(good)).toHaveLength(2);
  });

  it("are read no further than to the first wrong record", () => {
    // What comes last is wrong as well: whoever reads that has made an object of everything before.
    const endingBadly = (item: string) =>
      encodeRlpListOfEncoded([Buffer.from(`${item.repeat(1_000_000)}8101`, "hex")]);
    const faults = ["01", "c28080"].map((item) => {
      try {
        return new ChunkReader().read(endingBadly(item));
      } catch (error) {
        return error instanceof SnapshotError ? [error.details["reason"], error.cause] : error;
      }
    });
    expect(faults).toEqual([
      ["a chunk cannot be read", new ChainError("INVALID_RLP", "expected a list")],
      ["a record of an unknown kind", undefined],
    ]);
  });
});
