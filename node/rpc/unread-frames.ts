/**
 * What a WebSocket client has sent of a message that is not whole, told from the bytes as they come: the
 * library keeps it, and says nothing of it before its end. Source: RFC 6455, 5.2.
 */
import { PIECE_BYTES } from "./client-memory.js";

const FINAL = 0x80;
const OPCODE = 0x0f;
/** From here on they are pings, pongs and closes. */
const FIRST_CONTROL = 0x08;
const MASKED = 0x80;
const MASK_BYTES = 4;
const LENGTH = 0x7f;
/** In the place of a length that follows, in two bytes or in eight. */
const [IN_2_BYTES, IN_8_BYTES] = [126, 127];

/** The kinds of frames: those of control come between those of a message, and are no part of it. */
type FrameKind = "control" | "part" | "last";

/** Follows the frames of one connection. */
export class UnreadFrames {
  /** What is kept of the message, and takes for having come in pieces. */
  heldBytes = 0;
  private kind: FrameKind = "last";
  private isOpen = false;
  /** Of the frame that comes next, until it is whole. */
  private readonly head: number[] = [];
  /** Bytes that are missing of the frame that is coming. */
  private leftBytes = 0;

  /** Takes the bytes that have come, in order. */
  add(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.leftBytes > 0) {
        const count = Math.min(this.leftBytes, chunk.length - at);
        at += count;
        this.leftBytes -= count;
        if (this.kind !== "control") this.heldBytes += count;
      } else {
        this.head.push(chunk[at] ?? 0);
        at += 1;
        if (this.head.length < headBytes(this.head)) continue;
        this.begin();
      }
      if (this.leftBytes === 0) this.end();
    }
    if (this.isOpen) this.heldBytes += PIECE_BYTES;
  }

  private begin(): void {
    const [first = 0] = this.head;
    this.leftBytes = payloadBytes(this.head);
    this.head.length = 0;
    if ((first & OPCODE) >= FIRST_CONTROL) {
      this.kind = "control";
      return;
    }
    this.kind = (first & FINAL) === 0 ? "part" : "last";
    this.isOpen = true;
    this.heldBytes += PIECE_BYTES;
  }

  private end(): void {
    if (this.kind !== "last") return;
    this.isOpen = false;
    this.heldBytes = 0;
  }
}

/** Of a whole head, as far as what has come of it tells. */
function headBytes([, second = 0]: readonly number[]): number {
  const length = second & LENGTH;
  const maskBytes = (second & MASKED) === 0 ? 0 : MASK_BYTES;
  return 2 + lengthBytes(length) + maskBytes;
}

function lengthBytes(length: number): number {
  if (length === IN_8_BYTES) return 8;
  return length === IN_2_BYTES ? 2 : 0;
}

function payloadBytes(head: readonly number[]): number {
  const length = (head[1] ?? 0) & LENGTH;
  if (length < IN_2_BYTES) return length;
  return head.slice(2, 2 + lengthBytes(length)).reduce((sum, byte) => sum * 256 + byte, 0);
}
