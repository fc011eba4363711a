/** What a node tells its operator of a decided block that it cannot take. */
import { expect, it } from "@jest/globals";
import { cannotTake } from "../../../node/consensus/decided-refusal.js";

it("tells to move the chain away, after a look whether somebody has its blocks, never to delete it", () => {
  const { message } = cannotTake(7, new Error("app_hash is wrong"), {
    tip: { height: 0 },
    blocks: {
      oldest: () => 0,
      blockChanges: () => {
        throw new Error("nothing was executed");
      },
    },
  });
  expect(message).toMatch(/decided block 7, .*\(app_hash is wrong\).*Run the version that/);
  // Whoever has pruned peers has the only copy of the older blocks, and every block below this one is good.
  expect(message).toMatch(/earliest_block_height.*move data\/chain away/);
  expect(message).not.toMatch(/delete/);
});
