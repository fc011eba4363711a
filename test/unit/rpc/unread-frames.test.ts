/** How much of a WebSocket message is kept before it is whole, however its bytes come. */
import { expect, it } from "@jest/globals";
import { PIECE_BYTES } from "../../../node/rpc/client-memory.js";
import { UnreadFrames } from "../../../node/rpc/unread-frames.js";

const [TEXT, NEXT, PING] = [0x01, 0x00, 0x09];
const LAST = 0x80;

/** A frame as clients send it; source of the head: RFC 6455, 5.2. */
function frame(first: number, sizeBytes: number): Buffer {
  const mask = Buffer.alloc(4, 0x5a);
  return Buffer.concat([
    Buffer.of(first),
    lengthOf(sizeBytes),
    mask,
    Buffer.alloc(sizeBytes, 0xff),
  ]);
}

/** With the bit that a mask follows. */
function lengthOf(sizeBytes: number): Buffer {
  if (sizeBytes < 126) return Buffer.of(0x80 | sizeBytes);
  if (sizeBytes < 65_536) return Buffer.of(0xfe, sizeBytes >> 8, sizeBytes & 0xff);
  const length = Buffer.alloc(9, 0);
  length.writeUInt8(0xff);
  length.writeUInt32BE(sizeBytes, 5);
  return length;
}

/** What is held after all of it came in pieces of a size; the pieces themselves are left out. */
function heldAfter(bytes: Buffer, pieceBytes: number): number {
  const frames = new UnreadFrames();
  let pieces = 0;
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const before = frames.heldBytes;
    frames.add(bytes.subarray(at, at + pieceBytes));
    pieces = frames.heldBytes === 0 ? 0 : pieces + Number(frames.heldBytes > before);
  }
  return frames.heldBytes - pieces * PIECE_BYTES;
}

const SIZES = [0, 1, 125, 126, 300, 65_535, 65_536, 70_000];

it("counts a message until its last byte, frames of every length", () => {
  for (const sizeBytes of SIZES) {
    const whole = frame(TEXT | LAST, sizeBytes);
    for (const pieceBytes of [1, 2, 3, 7, 4_096, 100_000]) {
      const place = `${sizeBytes} bytes in pieces of ${pieceBytes}`;
      expect([place, heldAfter(whole, pieceBytes)]).toEqual([place, 0]);
      if (sizeBytes === 0) continue;
      const held = heldAfter(whole.subarray(0, -1), pieceBytes);
      expect([place, held]).toEqual([place, sizeBytes - 1 + PIECE_BYTES]);
    }
  }
});

it("counts fragments together, each with what it takes beside its bytes", () => {
  const parts = SIZES.map((sizeBytes, index) => frame(index === 0 ? TEXT : NEXT, sizeBytes));
  const sum = SIZES.reduce((total, sizeBytes) => total + sizeBytes, 0);
  const begun = Buffer.concat(parts);
  for (const pieceBytes of [1, 5, 1_000, 1_000_000]) {
    expect(heldAfter(begun, pieceBytes)).toBe(sum + SIZES.length * PIECE_BYTES);
    expect(heldAfter(Buffer.concat([begun, frame(NEXT | LAST, 3)]), pieceBytes)).toBe(0);
  }
});

it("counts each piece of a message that is not whole", () => {
  const frames = new UnreadFrames();
  for (const byte of frame(TEXT | LAST, 1_000).subarray(0, 508)) frames.add(Buffer.of(byte));
  // The head's last byte is the first that tells of a message.
  expect(frames.heldBytes).toBe(500 + PIECE_BYTES + 501 * PIECE_BYTES);
});

it("counts no pings, alone or between fragments, and no message that is over", () => {
  const frames = new UnreadFrames();
  for (let count = 0; count < 1_000; count++) frames.add(frame(PING | LAST, 125));
  expect(frames.heldBytes).toBe(0);
  const [ping, part] = [frame(PING | LAST, 10), frame(TEXT, 100)];
  frames.add(Buffer.concat([ping, part, ping]));
  expect(frames.heldBytes).toBe(100 + 2 * PIECE_BYTES);
  frames.add(Buffer.concat([frame(NEXT | LAST, 7), ping, frame(TEXT | LAST, 5)]));
  expect(frames.heldBytes).toBe(0);
});
