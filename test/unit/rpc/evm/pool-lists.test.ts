/** Lists of a pool that may be full: made in slices, and given up where they are too large. */
import { beforeAll, expect, it } from "@jest/globals";
import { type Address, parseAddress, toChecksumAddress } from "../../../../chain/address.js";
import type { SenderContent } from "../../../../node/mempool/pool-port.js";
import type { PendingTransaction } from "../../../../node/view/event-bus.js";
import type { EvmRpcLimits } from "../../../../node/rpc/evm/options.js";
import { ALICE, createTestNode, signLegacy } from "./fixture.js";

const SENDERS = 4_000;
let transaction: PendingTransaction;

beforeAll(async () => {
  const { block } = createTestNode().chain.add([{ raw: await signLegacy(ALICE, { nonce: 7 }) }]);
  const [mined] = block.transactions;
  if (mined === undefined) throw new Error("not mined");
  transaction = mined;
});

function addressOf(index: number): Address {
  return parseAddress(`0x${index.toString(16).padStart(40, "0")}`);
}

/** A node with a pool of many senders that says how many of them were asked for. */
function startNode(limits: Partial<EvmRpcLimits> = {}) {
  const node = createTestNode(limits);
  const taken = { count: 0 };
  node.pool.senders = function* senders() {
    for (let index = 1; index <= SENDERS; index++) {
      taken.count += 1;
      const list = [transaction];
      const content: SenderContent = { pending: index % 2 ? list : [], queued: list };
      yield [addressOf(index), content] as const;
    }
    // Left meanwhile, and came back.
    yield [addressOf(1), { pending: [], queued: [transaction] }] as const;
  };
  return { ...node, taken };
}

const LISTS = ["txpool_content", "txpool_inspect", "causeway_getPoolHashes"];

it.each(LISTS)("%s gives way before it has looked through a full pool", async (method) => {
  const { ask, taken } = startNode();
  const answer = ask(method);
  expect(taken.count).toBeLessThan(SENDERS);
  const { result } = (await answer) as unknown as {
    result: { pending: object; queued: object };
  };
  expect(taken.count).toBe(SENDERS);
  expect(Object.keys(result.pending)).toHaveLength(SENDERS / 2);
  expect(Object.keys(result.queued)).toHaveLength(SENDERS);
  if (method !== "txpool_content") return;
  const first = toChecksumAddress(addressOf(1));
  expect(Object.entries(result.pending)[0]).toMatchObject([
    first,
    { "7": { hash: transaction.tx.hash, nonce: "0x7", blockHash: null } },
  ]);
});

it.each(LISTS)("%s stops where its answer becomes too large", async (method) => {
  const { ask, taken } = startNode({ responseBytes: 10_000 });
  expect((await ask(method)).error).toEqual({ code: -32003, message: "response too large" });
  expect(taken.count).toBeLessThan(SENDERS / 10);
});

it("shows one sender's in both lists, and empty ones of who has none", async () => {
  const { ask, pool } = startNode();
  pool.contentFrom = () => ({ pending: [], queued: [transaction, transaction] });
  expect((await ask("txpool_contentFrom", addressOf(1))).result).toMatchObject({
    pending: {},
    queued: { "7": { hash: transaction.tx.hash } },
  });
  pool.contentFrom = () => ({ pending: [], queued: [] });
  const { result } = await ask("txpool_contentFrom", addressOf(1));
  expect(result).toEqual({ pending: {}, queued: {} });
});
