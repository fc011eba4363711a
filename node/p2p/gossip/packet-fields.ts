/**
 * How much is in a packet of the gossip router, or in a batch, counted on the wire before anything of it is
 * read.
 */

/** Which fields hold messages, and what those hold: the router's protobuf, as far as it is read. */
interface Shape {
  readonly [field: number]: Shape;
}

const LEAVES: Shape = {};
/** ihave, iwant, graft, prune, idontwant. */
const CONTROL: Shape = { 1: LEAVES, 2: LEAVES, 3: LEAVES, 4: LEAVES, 5: LEAVES };
/** Subscription, message, control. */
const PACKET: Shape = { 1: LEAVES, 2: LEAVES, 3: CONTROL };

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Where the counting is. */
interface Place {
  readonly bytes: Uint8Array;
  readonly most: number;
  at: number;
  count: number;
}

/**
 * Fields of a packet, those of messages inside it included.
 * @returns undefined where there are more than `most`, or the bytes are no protobuf
 */
export function countFields(bytes: Uint8Array, most: number): number | undefined {
  return countOf(PACKET, bytes, most);
}

/** Fields of any message, without what is inside them. @returns as `countFields` */
export function countOwnFields(bytes: Uint8Array, most: number): number | undefined {
  return countOf(LEAVES, bytes, most);
}

function countOf(shape: Shape, bytes: Uint8Array, most: number): number | undefined {
  const place = { bytes, most, at: 0, count: 0 };
  return walk(place, bytes.length, shape) ? place.count : undefined;
}

function walk(place: Place, end: number, shape: Shape): boolean {
  while (place.at < end) {
    const tag = varint(place);
    if (++place.count > place.most) return false;
    const wireType = tag % 8;
    if (wireType === BYTES) {
      const contentEnd = varint(place) + place.at;
      if (!(contentEnd <= end)) return false;
      const inner = shape[Math.floor(tag / 8)];
      if (inner !== undefined && !walk(place, contentEnd, inner)) return false;
      place.at = contentEnd;
    } else if (wireType === VARINT) {
      varint(place);
    } else if (wireType === FIXED64 || wireType === FIXED32) {
      place.at += wireType === FIXED64 ? 8 : 4;
    } else {
      return false;
    }
  }
  return place.at === end;
}

/** NaN where it does not end: nothing is within that. */
function varint(place: Place): number {
  let value = 0;
  for (let factor = 1; ; factor *= 0x80) {
    const byte = place.bytes[place.at++];
    if (byte === undefined) return Number.NaN;
    value += (byte % 0x80) * factor;
    if (byte < 0x80) return value;
  }
}
