/** keccak-256 as Ethereum uses it (the Keccak submission's padding), which browsers do not have. */

const MASK = (1n << 64n) - 1n;

/** Bytes of a block: 1,600 bits less twice the hash's 256. */
const RATE = 136;

/** Round constants by the submission's LFSR, and the rotations and order of rho and pi. */
const { constants, rotations, order } = makeTables();

function makeTables() {
  const made = { constants: [], rotations: [], order: [] };
  let bit = 1;
  for (let round = 0; round < 24; round++) {
    let constant = 0n;
    for (let power = 0; power < 7; power++) {
      if (bit & 1) constant |= 1n << BigInt((1 << power) - 1);
      bit = (bit << 1) ^ ((bit >> 7) * 0x171);
    }
    made.constants.push(constant);
  }
  let [x, y] = [1, 0];
  for (let step = 0; step < 24; step++) {
    made.order.push(x + 5 * y);
    made.rotations.push(BigInt((((step + 1) * (step + 2)) / 2) % 64));
    [x, y] = [y, (2 * x + 3 * y) % 5];
  }
  return made;
}

function rotate(lane, by) {
  return ((lane << by) | (lane >> (64n - by))) & MASK;
}

function permute(lanes) {
  for (const constant of constants) {
    const sums = [0, 1, 2, 3, 4].map(
      (x) => lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20],
    );
    for (let index = 0; index < 25; index++) {
      const x = index % 5;
      lanes[index] ^= sums[(x + 4) % 5] ^ rotate(sums[(x + 1) % 5], 1n);
    }
    let carried = lanes[1];
    for (let step = 0; step < 24; step++) {
      // The lane at each place moves on to the next one of the order.
      const to = order[(step + 1) % 24];
      const kept = lanes[to];
      lanes[to] = rotate(carried, rotations[step]);
      carried = kept;
    }
    for (let y = 0; y < 25; y += 5) {
      const row = lanes.slice(y, y + 5);
      for (let x = 0; x < 5; x++) {
        lanes[y + x] = row[x] ^ (~row[(x + 1) % 5] & MASK & row[(x + 2) % 5]);
      }
    }
    lanes[0] ^= constant;
  }
}

/** keccak-256 of bytes, 32 bytes. */
export function keccak256(bytes) {
  const padded = new Uint8Array((Math.floor(bytes.length / RATE) + 1) * RATE);
  padded.set(bytes);
  padded[bytes.length] |= 0x01;
  padded[padded.length - 1] |= 0x80;
  const view = new DataView(padded.buffer);
  const lanes = Array.from({ length: 25 }, () => 0n);
  for (let start = 0; start < padded.length; start += RATE) {
    for (let lane = 0; lane < RATE / 8; lane++) {
      lanes[lane] ^= view.getBigUint64(start + 8 * lane, true);
    }
    permute(lanes);
  }
  const hash = new Uint8Array(32);
  const out = new DataView(hash.buffer);
  for (let lane = 0; lane < 4; lane++) out.setBigUint64(8 * lane, lanes[lane], true);
  return hash;
}
