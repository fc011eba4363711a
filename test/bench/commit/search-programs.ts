/** Random loop bodies for the search of what takes longest: each leaves the turn's number on the stack's top. */
import type { Random } from "../../helpers/random.js";

/** A body: parts that leave the stack as they found it. */
export type Body = readonly string[];

/** Parts of a body at most; a loop of more is made of the same. */
const MOST_PARTS = 24;

const ONES = "f".repeat(64);
const WORDS = [0n, 1n, 2n, 31n, 255n, 0xffff_ffffn, 2n ** 128n - 3n, 2n ** 255n, 2n ** 256n - 3n];
const SIZES = [0, 1, 20, 32, 64, 256, 1_024, 8_192, 24_576];
const BINARY = [1, 2, 3, 4, 5, 6, 7, 0x0a, 0x0b, 0x10, 0x11, 0x12, 0x13, 0x14];
const BITWISE = [0x16, 0x17, 0x18, 0x1a, 0x1b, 0x1c, 0x1d];
/** What pushes a word by itself: the frame, the block, memory and gas. */
const GIVING = [
  0x30, 0x32, 0x33, 0x34, 0x36, 0x38, 0x3a, 0x3d, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46,
].concat([0x47, 0x48, 0x4a, 0x58, 0x59, 0x5a]);
const PRECOMPILES = 10;

const byte = (value: number): string => value.toString(16).padStart(2, "0");

function push(value: number | bigint): string {
  const hex = value.toString(16);
  const length = Math.ceil(hex.length / 2);
  return value === 0 || value === 0n ? "5f" : byte(0x5f + length) + hex.padStart(2 * length, "0");
}

/** Kinds of parts; DUP1 (0x80) copies the turn's number, as long as it lies on top. */
const KINDS: readonly ((random: Random) => string)[] = [
  (random) => `${word(random)}${word(random)}${byte(random.pick([...BINARY, ...BITWISE]))}50`,
  (random) => `${word(random)}${word(random)}${word(random)}${byte(random.pick([8, 9]))}50`,
  (random) => `${word(random)}${byte(random.pick([0x15, 0x19]))}50`,
  (random) => `${byte(random.pick(GIVING))}50`.repeat(1 + random.integer(8)),
  (random) => "5b".repeat(1 + random.integer(64)),
  (random) => `7f${ONES}50`.repeat(1 + random.integer(8)),
  (random) => `${place(random)}5150`,
  (random) => `${word(random)}${place(random)}${byte(random.pick([0x52, 0x53]))}`,
  (random) => `${size(random)}${place(random)}2050`,
  (random) => `${key(random)}${byte(random.pick([0x54, 0x5c, 0x35]))}50`,
  (random) => `${key(random)}${random.pick(["81", "5f", "6001"])}55`,
  (random) => `8080${byte(random.pick([0x55, 0x5d]))}`,
  (random) => `${account(random)}${byte(random.pick([0x31, 0x3b, 0x3f]))}50`,
  (random) => `${size(random)}5f${place(random)}${account(random)}3c`,
  (random) => `${size(random)}5f${place(random)}${byte(random.pick([0x37, 0x39, 0x5e]))}`,
  (random) => topics(random),
  (random) => called(random),
  (random) => `${push(random.pick(SIZES.slice(0, 6)))}5f5ff050`,
  (random) => {
    const depth = 1 + random.integer(15);
    const code = byte(random.pick([0x80, 0x90]) + depth - 1);
    const pops = "50".repeat(depth + 1 + (code.startsWith("8") ? 1 : 0));
    return `${"5f".repeat(depth + 1)}${code}${pops}`;
  },
];

function word(random: Random): string {
  return random.integer(4) === 0 ? "80" : push(random.pick(WORDS));
}

const size = (random: Random): string => push(random.pick(SIZES));
const place = (random: Random): string => push(random.pick([0, 1, 32, 4_096]));
const key = (random: Random): string => random.pick(["80", "80", "5f", push(random.integer(64))]);

/** The turn's number as an address, one of a few, or the contract itself. */
function account(random: Random): string {
  return random.pick(["80", push(1 + random.integer(PRECOMPILES)), push(0xffff), "30"]);
}

/** LOG0 to LOG4, with the turn's number among the topics. */
function topics(random: Random): string {
  const count = random.integer(5);
  // Each topic stands on one more item: DUPn still finds the turn's number.
  const items = Array.from({ length: count }, (_, depth) => byte(0x80 + depth));
  return `${items.join("")}${push(random.pick(SIZES.slice(0, 7)))}5f${byte(0xa0 + count)}`;
}

/** A call of an account with 20,000 gas; precompiles take what lies in memory. */
function called(random: Random): string {
  const opcode = random.pick([0xf1, 0xf2, 0xf4, 0xfa]);
  const hasValue = opcode === 0xf1 || opcode === 0xf2;
  const ranges = `${size(random)}5f${size(random)}5f`;
  const value = hasValue ? random.pick(["5f", "6001"]) : "";
  // The turn's number lies below what was pushed.
  const turn = byte(0x80 + (hasValue ? 5 : 4));
  const target = random.pick([turn, push(1 + random.integer(PRECOMPILES)), push(0xffff)]);
  return `${ranges}${value}${target}614e20${byte(opcode)}50`;
}

/** A body from nothing. */
export function randomBody(random: Random): Body {
  return Array.from({ length: 1 + random.integer(4) }, () => random.pick(KINDS)(random));
}

/** A body that differs from another one in a part or two. */
export function mutatedBody(random: Random, body: Body): Body {
  const parts = [...body];
  for (let change = 0; change <= random.integer(2); change++) {
    const at = random.integer(parts.length + 1);
    const part = random.pick([...KINDS.map((kind) => kind(random)), ...parts]);
    const isRoomy = parts.length < MOST_PARTS;
    parts.splice(at, isRoomy && random.integer(2) === 0 ? 0 : 1, part);
    if (parts.length > 1 && random.integer(3) === 0) parts.splice(random.integer(parts.length), 1);
  }
  return parts;
}
