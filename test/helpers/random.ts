/** Seeded randomness for tests: the same seed gives the same run. */

/** A small generator (mulberry32). */
export interface Random {
  /** 0 <= n < bound. */
  integer(bound: number): number;
  bytes(length: number): Uint8Array;
  pick<T>(items: readonly T[]): T;
}

/** Makes a generator; print the seed where it is used. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (bound: number) => Math.floor(next() * bound);
  return {
    integer,
    bytes: (length) => Uint8Array.from({ length }, () => integer(256)),
    pick(items) {
      const item = items[integer(items.length)];
      if (item === undefined) throw new RangeError("nothing to pick from");
      return item;
    },
  };
}

/** True in this share of the cases, from 0 to 1. */
export function chance(random: Random, share: number): boolean {
  return random.integer(1_000_000) < share * 1_000_000;
}
