/** eth_feeHistory: answers for every range of blocks that is here. */
import { beforeAll, describe, expect, it } from "@jest/globals";
import { ALICE, BOB, createTestNode, signLegacy } from "./fixture.js";

const node = createTestNode();

beforeAll(async () => {
  node.chain.add([{ raw: await signLegacy(ALICE, { nonce: 0, to: BOB.address }) }]);
});

describe("fee history", () => {
  it("always answers: zero base fees, real gas ratios, percentiles of prices paid", async () => {
    expect(await node.call("eth_feeHistory", "0x2", "latest", [0, 50, 100])).toEqual({
      oldestBlock: "0x0",
      baseFeePerGas: ["0x0", "0x0", "0x0"],
      gasUsedRatio: [0, 0.000035],
      reward: [
        ["0x0", "0x0", "0x0"],
        ["0x17d7840", "0x17d7840", "0x17d7840"],
      ],
    });
    const clamped = await node.call<{ gasUsedRatio: number[] }>("eth_feeHistory", 5_000, "latest");
    expect(clamped.gasUsedRatio).toHaveLength(2);
    expect(clamped).not.toHaveProperty("reward");
    expect(await node.call("eth_feeHistory", "0x2", "latest", [])).toEqual(clamped);
    for (const two of ["2", "0x02", 2]) {
      expect(await node.call("eth_feeHistory", two, "latest")).toEqual(clamped);
    }
    for (const wrong of ["two", "-1", "0x", "1.5", -1, null]) {
      expect((await node.ask("eth_feeHistory", wrong, "latest")).error?.code).toBe(-32602);
    }
  });

  // go-ethereum 1.16.7: {"oldestBlock":"0x0","gasUsedRatio":null}. Lists are never null here (D7).
  it("names no block that is not there for a history of none", async () => {
    expect(await node.call("eth_feeHistory", "0x0", "latest", [10])).toEqual({
      oldestBlock: "0x0",
      baseFeePerGas: ["0x0"],
      gasUsedRatio: [],
      reward: [],
    });
  });

  it("begins at the oldest block that is here", async () => {
    const pruned = createTestNode();
    for (let height = 1; height <= 9; height++) pruned.chain.add([]);
    const { oldest } = pruned.chain;
    const outline = pruned.chain.outline.bind(pruned.chain);
    pruned.chain.oldest = () => ({ ...oldest(), block: 7 });
    expect(await pruned.call("eth_feeHistory", "0x8", "latest")).toEqual({
      oldestBlock: "0x7",
      baseFeePerGas: ["0x0", "0x0", "0x0", "0x0"],
      gasUsedRatio: [0, 0, 0],
    });
    expect(await pruned.call("eth_feeHistory", "0x3", "0x0")).toMatchObject({ oldestBlock: "0x0" });
    const gone = { code: 4444, message: "pruned history unavailable" };
    expect((await pruned.ask("eth_feeHistory", "0x2", "0x6")).error).toEqual(gone);
    // Deleted while the history is made.
    pruned.chain.outline = (height) => (height === 8 ? undefined : outline(height));
    expect((await pruned.ask("eth_feeHistory", "0x8", "latest")).error).toEqual(gone);
  });

  it("refuses percentiles out of order and blocks beyond the head", async () => {
    // eth/gasprice/feehistory.go: "%w: %f" and "%w: #%d:%f >= #%d:%f".
    const cases = [
      [[50, 20], "#0:50.000000 >= #1:20.000000"],
      [[10, 20.5, 20.5], "#1:20.500000 >= #2:20.500000"],
      [[101], "101.000000"],
      [[-0.5], "-0.500000"],
    ] as const;
    for (const [percentiles, text] of cases) {
      expect((await node.ask("eth_feeHistory", "0x1", "latest", percentiles)).error).toEqual({
        code: -32602,
        message: `invalid reward percentile: ${text}`,
      });
    }
    expect((await node.ask("eth_feeHistory", "0x1", "0x63")).error?.message).toBe(
      "request beyond head block: requested 99, head 1",
    );
  });
});
