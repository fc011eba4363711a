/** The way of raw transactions into the pool. */
import { expect, it } from "@jest/globals";
import { keccak256Hex } from "../../../chain/hashes.js";
import { SubmitLane } from "../../../node/rpc/submit-lane.js";

it("keeps transactions of the EVM apart from those of Cosmos that come in the same turn", async () => {
  const calls: Uint8Array[][] = [];
  const lane = new SubmitLane({
    submit: async (raws) => {
      calls.push([...raws]);
      return raws.map((raw) => keccak256Hex(raw));
    },
  });
  // A typed and a legacy transaction of Ethereum begin so, and a Cosmos transaction with its body's field.
  const [typed, legacy, cosmos] = [[0x02, 0xc0], [0xc0], [0x0a, 0x00]].map((bytes) =>
    Uint8Array.from(bytes),
  ) as [Uint8Array, Uint8Array, Uint8Array];
  await Promise.all([cosmos, typed, cosmos, legacy].map((raw) => lane.add(raw)));
  expect(calls).toHaveLength(2);
  expect(calls).toContainEqual([typed, legacy]);
  expect(calls).toContainEqual([cosmos, cosmos]);
});
