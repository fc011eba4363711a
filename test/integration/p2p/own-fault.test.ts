/** A node whose own state is not the network's: it halts and says so, and blames nobody. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { until } from "../../helpers/until.js";
import { validatorGenesis } from "../../helpers/chains/validator-node.js";
import { join, leave, leaveAll, place, reach } from "./members.js";

afterEach(leaveAll);

describe("a node that cannot take what the network decided", () => {
  it("halts with the reason, and keeps its honest peers", async () => {
    const { genesis, seeds } = validatorGenesis(1, { blockIntervalMs: 50 });
    const [honestPlace, brokenPlace] = await Promise.all([place(), place()]);
    const honest = await join(genesis, honestPlace, { seed: seeds[0], persistentPeers: [] });
    await reach([honest], 3);
    // As after a flipped bit: one account has another balance than everywhere else.
    const alloc = new Map(genesis.alloc);
    const account = { balanceAtoken: 1n, code: undefined, storage: new Map() };
    alloc.set(parseAddress(`0x${"ac".repeat(20)}`), account);
    const broken = await join({ ...genesis, alloc }, brokenPlace, {
      seed: undefined,
      persistentPeers: [honestPlace.address],
    });
    await until(() => broken.faults.length > 0, { timeoutMs: 20_000, what: "a halt" });
    await broken.node.ended();
    // One reason to halt, and nothing that would end the process.
    expect(broken.faults).toEqual([
      expect.stringMatching(/decided block 1, and this node cannot take it.*app_hash is wrong/),
    ]);
    expect(broken.node.height).toBe(0);
    expect(broken.network.peers().map(({ nodeId }) => nodeId)).toEqual([honestPlace.key.nodeId]);
    const { height } = honest.node;
    await reach([honest], height + 2);
    expect(honest.network.peers()).toHaveLength(1);
    await leave(broken);
  });
});
