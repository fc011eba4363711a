/** What the watcher holds against the chain before it credits. */
import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { parseHash32 } from "../../../chain/hex.js";
import { type CheckedNode, CheckedNodes } from "../../../deposit-watcher/chain-check.js";
import type { NodeBlockHeader } from "../../../rpc-client/evm-client.js";

const address = parseAddress(`0x${"ab".repeat(20)}`);
const last = { height: 7, hash: parseHash32(`0x${"07".repeat(32)}`) };
const { signal } = new AbortController();

/** A node that gives these balances, whatever it is asked. */
function nodeWith(balances: readonly bigint[]): CheckedNode {
  const unasked = () => Promise.reject(new Error("not asked for here"));
  const header: NodeBlockHeader = { ...last, parentHash: last.hash, timestampSeconds: 0 };
  return {
    chainId: unasked,
    genesisHash: unasked,
    isSyncing: unasked,
    blockNumber: unasked,
    getBlockHeader: () => Promise.resolve(header),
    getBalances: () => Promise.resolve([...balances]),
  };
}

const verify = (balances: readonly bigint[], deltaAtoken: bigint) =>
  new CheckedNodes(nodeWith(balances)).verifyTouches(
    { last, touches: [{ address, height: 7, deltaAtoken }] },
    { signal },
  );

describe("the check of touched addresses", () => {
  it("passes where the operations explain the balances", async () => {
    await expect(verify([2n, 7n], 5n)).resolves.toBeUndefined();
  });

  it("finds an incident where they do not", async () => {
    await expect(verify([2n, 7n], 4n)).rejects.toMatchObject({ code: "INCIDENT" });
  });

  it("never takes a missing balance for zero", async () => {
    await expect(verify([5n], -5n)).rejects.toMatchObject({ code: "MISSING_ANSWER" });
    await expect(verify([], 0n)).rejects.toMatchObject({ code: "MISSING_ANSWER" });
  });
});
