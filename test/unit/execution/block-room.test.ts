/** One block's room, as builders and checkers of blocks count it. */
import { describe, expect, it } from "@jest/globals";
import { BlockRoom } from "../../../node/blocks/block-room.js";

const call = (gasLimit: bigint) => ({ gasLimit, entersCode: true });
const transfer = (gasLimit: bigint) => ({ gasLimit, entersCode: false });

describe("the room of a block", () => {
  it("is asked for the gas limit, and gets back what was not used", () => {
    const room = new BlockRoom({ maxGas: 100_000n, maxCallGas: 100_000n });
    const first = room.take(transfer(60_000n));
    expect(room.take(transfer(40_001n))).toBeUndefined();
    first?.executed(21_000n);
    expect(room.take(transfer(79_001n))).toBeUndefined();
    expect(room.take(transfer(79_000n))).toBeDefined();
    expect(room.isFull).toBe(true);
  });

  it("counts code's gas in its own part and in the whole", () => {
    const room = new BlockRoom({ maxGas: 100_000n, maxCallGas: 50_000n });
    expect(room.take(call(50_001n))).toBeUndefined();
    const first = room.take(call(50_000n));
    expect(room.take(call(1n))).toBeUndefined();
    expect(room.take(transfer(50_000n))).toBeDefined();
    first?.executed(30_000n);
    expect(room.take(transfer(20_001n))).toBeUndefined();
    expect(room.take(call(20_001n))).toBeUndefined();
    expect(room.take(call(20_000n))).toBeDefined();
  });

  it("gives everything back for what is not in the block", () => {
    const room = new BlockRoom({ maxGas: 21_000n, maxCallGas: 21_000n, maxBytes: 100 });
    const taken = room.take({ ...call(21_000n), sizeBytes: 100 });
    expect(room.isFull).toBe(true);
    taken?.giveBack();
    expect(room.take({ ...call(21_000n), sizeBytes: 101 })).toBeUndefined();
    expect(room.take({ ...call(21_000n), sizeBytes: 100 })).toBeDefined();
  });

  it("is full when a plain transfer no longer fits", () => {
    expect(new BlockRoom({ maxGas: 20_999n, maxCallGas: 0n }).isFull).toBe(true);
    expect(new BlockRoom({ maxGas: 21_000n, maxCallGas: 0n }).isFull).toBe(false);
  });
});
