/** The log: what was written is read back, torn tails go, and it stays small (wal_test.go). */
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import * as fc from "fast-check";
import { PART_BYTES, splitIntoParts } from "../../../chain/consensus/consensus-block.js";
import { VOTE_TYPE } from "../../../chain/consensus/vote.js";
import { STEP } from "../../../node/consensus/machine/consensus-state.js";
import { crc32c } from "../../../node/consensus/log/crc32c.js";
import type { RoundMessage } from "../../../node/consensus/log/message-codec.js";
import { RangeChecksums } from "../../../node/consensus/log/range-checksums.js";
import { frameOf, isCutShort, type WalRecord } from "../../../node/consensus/log/records.js";
import { readTail } from "../../../node/consensus/log/tail.js";
import { Wal } from "../../../node/consensus/log/wal.js";
import { withFlippedBit } from "../../helpers/raw-level.js";
import { blockNamed, orderedValidators } from "./scenario.js";

let folder = "";
const file = () => path.join(folder, "wal");

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-wal-"));
});

afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

const signature = new Uint8Array(64).fill(7);
const blockId = blockNamed("A");
if (blockId === undefined) throw new Error("no block");

function partMessage(bytes: Uint8Array): RoundMessage {
  const { header, parts } = splitIntoParts(bytes);
  const [part] = parts;
  if (part === undefined) throw new Error("no part");
  return { type: "part", height: 3, round: 1, header, part };
}

function partOf(bytes: Uint8Array): WalRecord {
  return { type: "message", isOwn: false, message: partMessage(bytes) };
}

const messages: readonly RoundMessage[] = [
  {
    type: "proposal",
    proposal: { height: 3, round: 1, polRound: 0, blockId, timeNs: 9n, signature },
  },
  partMessage(Buffer.from("a block")),
  {
    type: "vote",
    vote: {
      type: VOTE_TYPE.precommit,
      height: 3,
      round: 1,
      blockId: undefined,
      timeNs: 1_700_000_000_000_000_001n,
      validatorAddress: orderedValidators(1).set.proposer.address,
      validatorIndex: 0,
      signature,
    },
  },
];
const records: readonly WalRecord[] = [
  { type: "timeout", height: 3, round: 0, step: STEP.newHeight },
  ...messages.flatMap((message): WalRecord[] => [
    { type: "message", isOwn: true, message },
    { type: "message", isOwn: false, message },
  ]),
  { type: "timeout", height: 3, round: 1, step: STEP.precommitWait },
];

/** Bytes as plain arrays, so that kinds of buffers compare equal. */
const plain = (value: unknown) =>
  JSON.parse(
    JSON.stringify(value, (_, one: unknown) => {
      if (one instanceof Uint8Array) return [...one];
      return typeof one === "bigint" ? one.toString() : one;
    }).replaceAll(/\{"type":"Buffer","data":(\[[^\]]*\])\}/g, "$1"),
  );

async function write(list: readonly WalRecord[]): Promise<void> {
  const { wal } = await Wal.open(folder, 2);
  for (const record of list) await wal.append(record);
  await wal.close();
}

async function reopen() {
  const { wal, tail } = await Wal.open(folder, 2);
  await wal.close();
  return tail;
}

describe("crc32c", () => {
  it("is the Castagnoli checksum (RFC 3720, B.4)", () => {
    expect(crc32c(Buffer.from("123456789"))).toBe(0xe3069283);
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
    expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
  });
});

describe("the log", () => {
  it("gives back what was written since the last end of a height", async () => {
    await write([...records, { type: "end-height", height: 2 }, ...records]);
    const tail = await reopen();
    expect(tail.endHeight).toBe(2);
    expect(plain(tail.records)).toEqual(plain(records));
    expect(tail.cutBytes).toBe(0);
  });

  it("leaves nothing of what a killed process was writing in its place", async () => {
    await write(records);
    const draft = path.join(folder, `.wal.${randomUUID()}.tmp`);
    fs.copyFileSync(file(), draft);
    expect((await reopen()).records).toHaveLength(records.length);
    expect(fs.readdirSync(folder)).toEqual(["wal"]);
  });

  it("knows no height when none ended", async () => {
    await write(records);
    const tail = await reopen();
    expect(tail.endHeight).toBeUndefined();
    expect(tail.records).toHaveLength(records.length);
  });

  it("has on disk what was forced there, and not before", async () => {
    const { wal } = await Wal.open(folder, 2);
    const [record] = records;
    if (record === undefined) throw new Error("no record");
    await wal.append(record);
    expect(fs.statSync(file()).size).toBe(0);
    await wal.sync();
    expect(fs.statSync(file()).size).toBeGreaterThan(8);
    await wal.close();
  });

  it("cuts a torn tail at whatever byte it was torn, and goes on after it", async () => {
    await write(records);
    const whole = fs.readFileSync(file());
    for (let length = whole.length - 1; length > whole.length - 60; length -= 7) {
      fs.writeFileSync(file(), whole.subarray(0, length));
      const tail = await reopen();
      expect(tail.cutBytes).toBeGreaterThan(0);
      const kept = tail.records.length;
      expect(kept).toBeLessThan(records.length);
      await write([{ type: "end-height", height: 3 }]);
      expect(await reopen()).toMatchObject({ endHeight: 3, cutBytes: 0, records: [] });
    }
  });

  it("reads what lies on both sides of a damaged record, and says that one is missing", async () => {
    await write(records);
    const bytes = fs.readFileSync(file());
    const middle = bytes.length >> 1;
    fs.writeFileSync(file(), withFlippedBit(bytes, middle * 8));
    const tail = await reopen();
    expect(tail.hasGap).toBe(true);
    expect(tail.records).toHaveLength(records.length - 1);
  });

  it("does not take a length for more than it is", async () => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(0xffff_ffff, 4);
    fs.writeFileSync(file(), head);
    expect(await reopen()).toMatchObject({ damagedBytes: 8, records: [] });
  });

  it("is read in pieces: the system gives no file of 2 GiB in one", async () => {
    const part = splitIntoParts(Buffer.alloc(300 * PART_BYTES, 5));
    const long = part.parts.map((one): WalRecord => {
      const message: RoundMessage = {
        type: "part",
        height: 3,
        round: 1,
        header: part.header,
        part: one,
      };
      return { type: "message", isOwn: false, message };
    });
    await write(long);
    const handle = await fs.promises.open(file(), "r");
    const reads = jest.spyOn(Object.getPrototypeOf(handle), "read");
    await handle.close();
    const { wal, tail } = await Wal.open(folder, 2);
    const lengths = reads.mock.calls.map(([, , length]) => Number(length));
    reads.mockRestore();
    await wal.close();
    expect(tail).toMatchObject({ damagedBytes: 0, cutBytes: 0, hasGap: false });
    expect(plain(tail.records.at(-1))).toEqual(plain(long.at(-1)));
    expect(tail.records).toHaveLength(long.length);
    expect(lengths.length).toBeGreaterThan(1);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(16 * 1_048_576);
    const sizeBytes = fs.statSync(file()).size;
    expect(lengths.reduce((sum, one) => sum + one, 0)).toBe(sizeBytes);
  });

  it("takes no record that it would read back as damage (WALWrite)", async () => {
    const { wal } = await Wal.open(folder, 2);
    const message = partMessage(Buffer.from("a block"));
    if (message.type !== "part") throw new Error("no part");
    const ofLength = (length: number): WalRecord => {
      const part = { ...message.part, bytes: new Uint8Array(length) };
      return { type: "message", isOwn: false, message: { ...message, part } };
    };
    await wal.append(ofLength(1_048_000));
    await expect(wal.append(ofLength(1_048_577))).rejects.toThrow(RangeError);
    await wal.append({ type: "timeout", height: 3, round: 0, step: STEP.propose });
    await wal.close();
    expect(await reopen()).toMatchObject({ cutBytes: 0, records: [{}, { type: "timeout" }] });
  });

  it("starts anew at the end of a height when it has become large", async () => {
    const { wal } = await Wal.open(folder, 2);
    const message = partMessage(Buffer.alloc(65_536, 1));
    for (let height = 1; height <= 3; height++) {
      for (let index = 0; index < 140; index++) {
        await wal.append({ type: "message", isOwn: false, message });
      }
      await wal.endHeight(height);
    }
    // Two heights of 9 MB pass 16 MiB: at the end of the second the file was begun again.
    expect(fs.statSync(file()).size).toBeLessThan(10_000_000);
    const [first] = records;
    if (first === undefined) throw new Error("no record");
    await wal.append(first);
    await wal.close();
    expect(await reopen()).toMatchObject({ endHeight: 3, records: [{ type: "timeout" }] });
    expect(fs.readdirSync(folder)).toEqual(["wal"]);
  });

  it("starts anew also where the end mark would fill the buffer", async () => {
    const { wal } = await Wal.open(folder, 2);
    const message = partMessage(Buffer.from("a block"));
    if (message.type !== "part") throw new Error("no part");
    const ofLength = (length: number): WalRecord => {
      const part = { ...message.part, bytes: new Uint8Array(length) };
      return { type: "message", isOwn: false, message: { ...message, part } };
    };
    // What the log buffers before it writes unforced, and where a height's end begins it anew.
    const [flushBytes, rotateBytes] = [1_048_576, 16 * 1_048_576];
    let [written, buffered] = [0, 0];
    const put = async (record: WalRecord) => {
      await wal.append(record);
      buffered += frameOf(record).length;
      if (buffered >= flushBytes) [written, buffered] = [written + buffered, 0];
    };
    for (let index = 0; index < 40; index++) await put(ofLength(500_000));
    expect(written).toBeGreaterThan(rotateBytes);
    const overhead = frameOf(ofLength(500_000)).length - 500_000;
    await put(ofLength(500_000));
    await put(ofLength(flushBytes - 1 - buffered - overhead));
    expect(buffered).toBe(flushBytes - 1);
    await wal.endHeight(1);
    await wal.close();
    expect(fs.statSync(file()).size).toBeLessThan(1_000);
    expect(await reopen()).toMatchObject({ endHeight: 1, records: [] });
  });

  it("says when it cannot be written", async () => {
    fs.writeFileSync(path.join(folder, "not-a-folder"), "");
    await expect(Wal.open(path.join(folder, "not-a-folder"), 2)).rejects.toMatchObject({
      code: "WAL_WRITE_FAILED",
    });
  });
});

/** Ends of the frames in a log, 0 first. */
function frameEnds(bytes: Buffer): number[] {
  const ends = [0];
  for (let at = 0; at < bytes.length; ends.push(at)) at += 8 + bytes.readUInt32BE(at + 4);
  return ends;
}

const heightTwo: readonly WalRecord[] = [
  { type: "timeout", height: 2, round: 0, step: STEP.newHeight },
  { type: "timeout", height: 2, round: 0, step: STEP.propose },
];

/** What a proposer may write into a block: records of heights that nobody decided. */
const forgedBeyond = Buffer.concat([
  frameOf({ type: "end-height", height: 1_000 }),
  frameOf({ type: "timeout", height: 1_001, round: 0, step: STEP.propose }),
]);

describe("a flipped bit in the log", () => {
  it("at any byte costs at most its record, is told, and never hides the height in progress", async () => {
    const before: WalRecord[] = [...heightTwo, { type: "end-height", height: 2 }];
    await write([...before, ...records]);
    const whole = fs.readFileSync(file());
    const ends = frameEnds(whole);
    const markStart = ends[before.length - 1] ?? 0;
    const markEnd = ends[before.length] ?? 0;
    for (let at = 0; at < whole.length; at++) {
      const damaged = withFlippedBit(whole, at * 8 + (at % 8));
      const { tail, content } = readTail(damaged, 2);
      const isBefore = at < markStart;
      const hit = ends.findIndex((end) => at < end) - 1;
      const lost = at < markEnd ? -1 : hit - before.length;
      // The last frame's length may say that it is not all there: then it looks torn.
      const looksTorn = tail.cutBytes > 0 && lost === records.length - 1;
      expect({ at, ...tail, records: plain(tail.records) }).toEqual({
        at,
        endHeight: 2,
        records: plain(records.filter((_, index) => index !== lost)),
        hasGap: !isBefore && !looksTorn,
        cutBytes: looksTorn ? expect.any(Number) : 0,
        damagedBytes: looksTorn ? 0 : expect.any(Number),
      });
      const again = readTail(content, 2).tail;
      expect({ ...again, records: plain(again.records) }).toEqual({
        ...tail,
        records: plain(tail.records),
        cutBytes: 0,
        damagedBytes: 0,
      });
    }
  });

  it("in a proposed block brings in nothing that the block only looks like", async () => {
    // A proposer's bytes: an end mark of the height before, then a vote that nobody cast.
    const [, , , vote] = records;
    if (vote === undefined) throw new Error("no record");
    const forged = Buffer.concat([frameOf({ type: "end-height", height: 2 }), frameOf(vote)]);
    const part = partOf(forged);
    const [first] = records;
    if (first === undefined) throw new Error("no record");
    await write([...heightTwo, { type: "end-height", height: 2 }, first, part, first]);
    const whole = fs.readFileSync(file());
    const start = frameEnds(whole)[4] ?? 0;
    for (const at of [start, start + 4, start + 6, start + 12]) {
      fs.writeFileSync(file(), withFlippedBit(whole, at * 8));
      const tail = await reopen();
      // What was before the part is still there: the forged mark did not end the height.
      expect([at, tail.endHeight, tail.hasGap]).toEqual([at, 2, true]);
      expect(plain(tail.records[0])).toEqual(plain(first));
      expect(tail.records.at(-1)).toMatchObject({ type: "timeout", height: 3 });
    }
  });

  it("lets nothing follow that the store knows nothing of", async () => {
    const [first] = records;
    if (first === undefined) throw new Error("no record");
    const part = partOf(forgedBeyond);
    await write([...heightTwo, { type: "end-height", height: 2 }, first, part, first]);
    const whole = fs.readFileSync(file());
    fs.writeFileSync(file(), withFlippedBit(whole, ((frameEnds(whole)[4] ?? 0) + 6) * 8));
    const tail = await reopen();
    expect(tail).toMatchObject({ endHeight: 2, hasGap: true, cutBytes: 0 });
    expect(plain(tail.records)).toEqual(plain([first, first]));
  });

  it("leaves the file as it was beside the one that goes on, ten times and no more", async () => {
    await write(records);
    const damaged = withFlippedBit(fs.readFileSync(file()), 100);
    fs.writeFileSync(file(), damaged);
    const { wal, keptFile, tail } = await Wal.open(folder, 2);
    await wal.close();
    expect(fs.readFileSync(keptFile ?? "").equals(damaged)).toBe(true);
    const again = await Wal.open(folder, 2);
    await again.wal.close();
    expect(again.keptFile).toBeUndefined();
    expect(plain(again.tail.records)).toEqual(plain(tail.records));
    for (let round = 0; round < 13; round++) {
      fs.rmSync(file(), { force: true });
      await write(records);
      fs.writeFileSync(file(), withFlippedBit(fs.readFileSync(file()), 100));
      await reopen();
    }
    const kept = fs.readdirSync(folder).filter((name) => name.startsWith("wal.damaged-"));
    expect(kept).toHaveLength(10);
  });
});

describe("a record that is not all there", () => {
  it("is cut off, whatever records the block in it holds", () => {
    const [first] = records;
    if (first === undefined) throw new Error("no record");
    const before = Buffer.concat([frameOf({ type: "end-height", height: 2 }), frameOf(first)]);
    const latest: WalRecord = {
      type: "timeout",
      height: 3,
      round: 2 ** 31 - 2,
      step: STEP.propose,
    };
    const forged = Buffer.concat([forgedBeyond, frameOf(latest)]);
    const whole = Buffer.concat([before, frameOf(partOf(forged))]);
    const forgedEnd = whole.indexOf(forged) + forged.length;
    for (let length = forgedEnd; length < whole.length; length++) {
      const { tail } = readTail(whole.subarray(0, length), 2);
      expect({ length, ...tail, records: plain(tail.records) }).toEqual({
        length,
        endHeight: 2,
        records: plain([first]),
        hasGap: false,
        cutBytes: length - before.length,
        damagedBytes: 0,
      });
    }
  });

  it("is told by its lengths, however many bytes these have", () => {
    const before = frameOf({ type: "end-height", height: 2 });
    const sizes = new Set<number>();
    for (const first of [1, 16_100]) {
      for (let size = first; size < first + 300; size++) {
        const frame = frameOf(partOf(Buffer.alloc(size)));
        sizes.add(frame.readUInt32BE(4));
        expect(isCutShort(frame, 0)).toBe(false);
        expect([size, isCutShort(frame.subarray(0, -1), 0)]).toEqual([size, true]);
        const { tail } = readTail(Buffer.concat([before, frame.subarray(0, -1)]), 2);
        expect([size, tail.damagedBytes]).toEqual([size, 0]);
      }
    }
    // Where a length gets a byte more: 16,384 bytes behind it.
    for (const edge of [16_385, 16_386]) expect([edge, sizes.has(edge)]).toEqual([edge, true]);
  });
});

describe("the search for the next record behind damage", () => {
  it("reads each byte once, whatever lengths lie in what is damaged", () => {
    // Every twelve bytes something that could be the head of a record of a megabyte, as whoever
    // proposes a block may write it into the block: one sum for each would take hours.
    const bait = Buffer.alloc(4_000_000);
    for (let at = 0; at + 12 <= bait.length; at += 12) {
      const sizeBytes = 900_000;
      bait.writeUInt32BE(sizeBytes, at + 4);
      // Field 2 of the length that fits.
      bait.set([0x12, ...varint(sizeBytes - 4)], at + 8);
    }
    const whole = Buffer.concat(records.map(frameOf));
    const mark = frameOf({ type: "end-height", height: 2 });
    const { tail, content } = readTail(Buffer.concat([bait, mark, bait, whole]), 2);
    expect(tail).toMatchObject({ endHeight: 2, hasGap: true, cutBytes: 0 });
    expect(tail.damagedBytes).toBe(2 * bait.length);
    expect(plain(tail.records)).toEqual(plain(records));
    expect(plain(readTail(content, 2).tail.records)).toEqual(plain(records));
  });

  it("knows the checksum of any stretch from one pass over the bytes", () => {
    const seed = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20261120);
    console.log(`wal: seed ${seed} (CAUSEWAY_TEST_SEED)`);
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 20_000, size: "max" }),
        fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 50 }),
        (data, places) => {
          const bytes = Buffer.from(data);
          const sums = new RangeChecksums(bytes, 0, bytes.length);
          const stretches = places
            .map(([from, length]) => [from % bytes.length, length % (bytes.length + 1)] as const)
            .map(([from, length]) => [from, Math.min(from + length, bytes.length)] as const)
            .toSorted(([one], [other]) => one - other);
          for (const [from, to] of stretches) {
            expect(sums.of(from, to)).toBe(crc32c(bytes.subarray(from, to)));
          }
          expect(sums.readBytes).toBeLessThanOrEqual(bytes.length);
        },
      ),
      { seed, numRuns: 200 },
    );
  });

  it("keeps no more of the sums than the longest record needs", () => {
    const bytes = Buffer.alloc(300_000, "some bytes");
    const sums = new RangeChecksums(bytes, 1_000, 5_000);
    for (let from = 1_000; from + 5_000 <= bytes.length; from += 777) {
      expect(sums.of(from, from + 5_000)).toBe(crc32c(bytes.subarray(from, from + 5_000)));
    }
    expect(() => sums.of(1_000, 2_000)).toThrow(RangeError);
    expect(() => sums.of(299_000, 304_001)).toThrow(RangeError);
    expect(sums.readBytes).toBeLessThan(bytes.length);
  });
});

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}
