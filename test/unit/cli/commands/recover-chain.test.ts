/** A node that has deleted old blocks is asked how far the chain has what is booked. */
import { expect, it } from "@jest/globals";
import { ZERO_HASH } from "../../../../chain/hex.js";
import { recoverChain } from "../../../../cli/commands/recover-chain.js";
import type { OpenedLedger } from "../../../../cli/ledger/ledger-tools.js";
import type { Sql } from "../../../../runtime/sql/sql.js";
import { RpcError } from "../../../../rpc-client/errors.js";

const HEAD = 900;
const OLDEST = 400;
const [OURS, OTHER] = [ZERO_HASH.replace(/0$/, "1"), ZERO_HASH.replace(/0$/, "2")];

/** A ledger that has booked up to 800, and of the blocks before these. */
function ledgerOf(known: readonly number[]): Sql {
  const cursor = { height: "800", block_hash: OURS, next_address_index: "0", rewinds: 0 };
  const blocks = known.map((height) => ({ height: `${height}`, hash: OURS }));
  return {
    async query<Row>(text: string) {
      const isOf = (words: string) => text.includes(words);
      if (isOf("FROM watch_cursor")) return [cursor] as Row[];
      if (text.endsWith(")::text AS height")) return [{ height: "0" }] as Row[];
      return (isOf("AS known") ? blocks : []) as Row[];
    },
  };
}

/** @param common the heights at which the chain has what is booked */
async function recover(known: readonly number[], common: readonly number[] = []) {
  const lines: string[] = [];
  const node = {
    blockNumber: async () => HEAD,
    getTransactionReceipts: async () => [],
    async getBlockHeader(height: number) {
      const refusal = { rpcCode: 4444, method: "eth_getBlockByNumber" };
      // As a node does that has begun by a snapshot: the genesis is there.
      if (height > 0 && height < OLDEST) throw new RpcError("pruned history unavailable", refusal);
      return { hash: common.includes(height) ? OURS : OTHER };
    },
  };
  const { signal } = new AbortController();
  const print = (line: string) => void lines.push(line);
  const command = { home: "/no-home", portOffset: 0, json: false, env: {}, signal, print };
  const opened = { database: ledgerOf(known), node } as unknown as OpenedLedger;
  await recoverChain(command, opened, { isRemembering: true, operator: "ann" });
  return lines.join("\n");
}

it("is told which block it would have to have", async () => {
  for (const known of [
    [100, 200, 300],
    [300, 450, 500, 550, 600],
  ]) {
    await expect(recover(known)).rejects.toMatchObject({
      code: "RECOVERY",
      message:
        "the last block of ours that can be compared is 300, and the node has none below 400: " +
        "ask a node with the whole chain",
    });
  }
  // Where all others differ, the chain's first one would have to be there.
  await expect(recover([500])).rejects.toThrow("compared is 0, and the node has none below 400");
});

it("is enough where it has the newest block that is still the same", async () => {
  const text = await recover([300, 450, 500, 550, 600], [450]);
  expect(text).toContain("the watcher goes back to block 450");
});
