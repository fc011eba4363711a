/** One block's room, as builders and checkers of blocks count it. */
import { describe, expect, it } from "@jest/globals";
import { NEWEST_WEIGHTS, weightsOf } from "../../../../chain/evm/compute-weights.js";
import { BlockRoom, computeForGas } from "../../../../node/blocks/block-room.js";

const maxComputeNs = 1_000_000_000;
const computeWeights = NEWEST_WEIGHTS;
const { transactionNs } = weightsOf(computeWeights);
const transfer = (gasLimit: bigint) => ({ gasLimit });

describe("the room of a block", () => {
  it("is asked for the gas limit, and gets back what was not used", () => {
    const room = new BlockRoom({ maxGas: 100_000n, maxComputeNs, computeWeights });
    const first = room.take(transfer(60_000n));
    expect(room.take(transfer(40_001n))).toBeUndefined();
    first?.executed({ gasUsed: 21_000n, computeNs: 0 });
    expect(room.take(transfer(79_001n))).toBeUndefined();
    expect(room.take(transfer(79_000n))).toBeDefined();
    expect(room.isFull).toBe(true);
  });

  it("loses the compute units that were used, and none for what is not in the block", () => {
    const room = new BlockRoom({ maxGas: 10n ** 9n, maxComputeNs: 200_000, computeWeights });
    room.take(transfer(21_000n))?.executed({ gasUsed: 21_000n, computeNs: 60_000 });
    expect(room.computeLeftNs).toBe(140_000);
    room.take(transfer(21_000n))?.giveBack();
    expect([room.computeLeftNs, room.isFull]).toEqual([140_000, false]);
    room.take(transfer(21_000n))?.executed({ gasUsed: 21_000n, computeNs: 140_000 });
    expect(room.isFull).toBe(true);
  });

  it("gives everything back for what is not in the block", () => {
    const room = new BlockRoom({ maxGas: 21_000n, maxComputeNs, maxBytes: 100, computeWeights });
    const taken = room.take({ ...transfer(21_000n), sizeBytes: 100 });
    expect(room.isFull).toBe(true);
    taken?.giveBack();
    expect(room.take({ ...transfer(21_000n), sizeBytes: 101 })).toBeUndefined();
    expect(room.take({ ...transfer(21_000n), sizeBytes: 100 })).toBeDefined();
  });

  it("has as much less compute as it has less gas where a proposer makes it smaller", () => {
    const limits = { maxGas: 600_000_000n, maxComputeNs };
    expect(computeForGas(limits, 600_000_000n)).toBe(maxComputeNs);
    expect(computeForGas(limits, 150_000_000n)).toBe(maxComputeNs / 4);
    expect(computeForGas(limits, 2_100_000n)).toBe(3_500_000);
    expect(computeForGas(limits, 700_000_000n)).toBe(maxComputeNs);
  });

  it("is full when a plain transfer no longer fits", () => {
    expect(new BlockRoom({ maxGas: 20_999n, maxComputeNs, computeWeights }).isFull).toBe(true);
    expect(new BlockRoom({ maxGas: 21_000n, maxComputeNs, computeWeights }).isFull).toBe(false);
    const maxGas = 10n ** 9n;
    expect(new BlockRoom({ maxGas, maxComputeNs: transactionNs - 1, computeWeights }).isFull).toBe(
      true,
    );
    expect(new BlockRoom({ maxGas, maxComputeNs: transactionNs, computeWeights }).isFull).toBe(
      false,
    );
  });
});
