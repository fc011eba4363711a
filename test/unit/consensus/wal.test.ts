/** The log: what was written is read back, torn tails go, and it stays small (wal_test.go). */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { splitIntoParts } from "../../../chain/consensus/consensus-block.js";
import { VOTE_TYPE } from "../../../chain/consensus/vote.js";
import { STEP } from "../../../node/consensus/consensus-state.js";
import { crc32c } from "../../../node/consensus/crc32c.js";
import type { RoundMessage } from "../../../node/consensus/message-codec.js";
import { Wal, type WalRecord } from "../../../node/consensus/wal.js";
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
  const { wal } = await Wal.open(folder);
  for (const record of list) await wal.append(record);
  await wal.close();
}

async function reopen() {
  const { wal, tail } = await Wal.open(folder);
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

  it("knows no height when none ended", async () => {
    await write(records);
    const tail = await reopen();
    expect(tail.endHeight).toBeUndefined();
    expect(tail.records).toHaveLength(records.length);
  });

  it("has on disk what was forced there, and not before", async () => {
    const { wal } = await Wal.open(folder);
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

  it("reads nothing behind a damaged record", async () => {
    await write(records);
    const bytes = fs.readFileSync(file());
    const middle = bytes.length >> 1;
    bytes[middle] = (bytes[middle] ?? 0) ^ 1;
    fs.writeFileSync(file(), bytes);
    const tail = await reopen();
    expect(tail.records.length).toBeLessThan(records.length);
    expect(plain(tail.records)).toEqual(plain(records.slice(0, tail.records.length)));
  });

  it("does not take a length for more than it is", async () => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(0xffff_ffff, 4);
    fs.writeFileSync(file(), head);
    expect(await reopen()).toMatchObject({ cutBytes: 8, records: [] });
  });

  it("takes no record that it would read back as damage (WALWrite)", async () => {
    const { wal } = await Wal.open(folder);
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
    const { wal } = await Wal.open(folder);
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

  it("says when it cannot be written", async () => {
    fs.writeFileSync(path.join(folder, "not-a-folder"), "");
    await expect(Wal.open(path.join(folder, "not-a-folder"))).rejects.toMatchObject({
      code: "WAL_WRITE_FAILED",
    });
  });
});
