/** Balances that several requests ask for in the same moment: what the node refuses to one is no other's. */
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { RpcError } from "../../../../rpc-client/errors.js";
import { createEvmClient } from "../../../../rpc-client/evm-client.js";
import type { JsonRpcClient, RpcCall, RpcOutcome } from "../../../../rpc-client/json-rpc.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import { createBalanceReader } from "../../../../sidecar/data-api/balance-reader.js";
import { TokenRegistry } from "../../../../sidecar/rosetta/token-registry.js";

const HOLDER = parseAddress(`0x${"a1".repeat(20)}`);
const blockAt = (index: number, byte: string) => ({
  index,
  hash: parseHash32(`0x${byte.repeat(32)}`),
});
const [PRUNED, KEPT] = [blockAt(3, "03"), blockAt(9, "09")];
const registry = new TokenRegistry([
  { contractAddress: parseAddress(`0x${"70".repeat(20)}`), symbol: "GOLD", decimals: 6 },
]);

/** A node that has deleted the state after block 3. */
const node: JsonRpcClient = {
  request: () => Promise.reject(new Error("not used")),
  batch: (calls) => Promise.resolve(calls.map(answerOf)),
  close: () => undefined,
};

function answerOf({ method, params }: RpcCall): RpcOutcome {
  if (JSON.stringify(params).includes(PRUNED.hash)) {
    const error = new RpcError("pruned history unavailable", { rpcCode: 4444, method });
    return { ok: false, error };
  }
  return { ok: true, result: `0x${"5".padStart(64, "0")}` };
}

it("a balance of a token after a deleted state is refused to who asked for that alone", async () => {
  const [token] = registry.tokens;
  if (token === undefined) throw new Error("there is a token");
  const balances = createBalanceReader({
    client: createEvmClient(node),
    index: { tokenBalance: () => Promise.resolve(5n), quarantineOf: () => undefined },
    log: createLogger({ component: "test", level: "silent" }),
    metrics: createMetrics({ processMetrics: false }),
    signal: new AbortController().signal,
  });
  const pruned = { status: "rejected", reason: expect.objectContaining({ code: "RPC_ERROR" }) };
  const read = { status: "fulfilled", value: 5n };
  // The second time from memory, as far as there is an answer.
  for (const round of [1, 2]) {
    const asked = [PRUNED, KEPT, PRUNED].map((block) => balances.token(token, HOLDER, block));
    const found = await Promise.allSettled(asked);
    expect({ round, found }).toEqual({ round, found: [pruned, read, pruned] });
  }
});
