/** Blocks that are read as a whole: tens of MiB each, and so never many at once, however many pages want one. */
import { expect, it } from "@jest/globals";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { proofRoutes } from "../../../../explorer/pages/proofs.js";
import { ChainSource } from "../../../../explorer/sources/chain-source.js";
import type { EvmClient } from "../../../../rpc-client/evm-client.js";
import type { JsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { openPage } from "../../../helpers/pages/explorer-page.js";

const HASH = parseHash32(`0x${"ab".repeat(32)}`);
const ASKED = 5;

/** How many answers of whole blocks are on their way, and how many were at most. */
class Counter {
  most = 0;
  private now = 0;

  /** An answer that takes a while. */
  async answer<T>(value: T): Promise<T> {
    this.now += 1;
    this.most = Math.max(this.most, this.now);
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    this.now -= 1;
    return value;
  }
}

function chainOf(counter: Counter): ChainSource {
  const evm = { blockJournal: () => counter.answer(undefined) };
  return new ChainSource({} as JsonRpcClient, evm as unknown as EvmClient);
}

const all = (one: () => Promise<unknown>) => Promise.all(Array.from({ length: ASKED }, one));

it("are journals, one after the other", async () => {
  const counter = new Counter();
  const chain = chainOf(counter);
  const { signal } = new AbortController();
  await all(() => chain.journal(HASH, { signal }));
  expect(counter.most).toBe(1);
});

it("are proofs of transactions, beside them", async () => {
  const counter = new Counter();
  const place = { height: 7, index: 0 };
  const chain = Object.assign(chainOf(counter), {
    head: () => Promise.resolve({ height: 9 }),
    transaction: () => Promise.resolve({ place }),
    raw: (method: string) =>
      method === "debug_getRawBlock"
        ? counter.answer("0x")
        : Promise.resolve(method === "debug_getRawReceipts" ? [] : "0x"),
  });
  const nothing = () => Promise.resolve({});
  const context = {
    chain,
    consensus: { rawCommit: nothing, rawValidators: () => Promise.resolve([]) },
    network: { cosmosChainId: "chain_6940-1" },
  } as unknown as PageContext;
  const route = proofRoutes(context).find(({ path }) => path === "/proof/tx");
  const { signal } = new AbortController();
  await Promise.all([
    all(() => chain.journal(HASH, { signal })),
    all(async () => await openPage(route, { parameter: HASH, signal })),
  ]);
  expect(counter.most).toBe(1);
});
