/** Blocks that are read as a whole: tens of MiB each, and so never many at once, however many pages want one. */
import { expect, it } from "@jest/globals";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { proofRoutes } from "../../../../explorer/pages/proofs.js";
import { ChainSource } from "../../../../explorer/sources/chain-source.js";
import { NodeFault } from "../../../../rpc-client/errors.js";
import type { EvmClient } from "../../../../rpc-client/evm-client.js";
import type { JournaledBlock } from "../../../../rpc-client/journal-codec.js";
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

/** A block with so many changes by code, and calldata of a size. */
function blockOf(changes: number): Partial<JournaledBlock> {
  const change = { reason: "CALL", amountAtoken: 1n, effective: true, tracePath: "0_1" } as const;
  const transaction = {
    hash: HASH,
    index: 0,
    changes: Array.from({ length: changes }, () => ({ ...change, from: undefined, to: undefined })),
    input: `0x${"ab".repeat(1_000_000)}`,
    logs: [],
  };
  const transactions = [transaction as unknown as JournaledBlock["transactions"][number]];
  return { transactions, blockChanges: [], mintedAtoken: 0n, burnedAtoken: 0n };
}

/** A source over blocks by a number in their hash, and which of them the node was asked for. */
function readsOf(answer: (block: number) => Promise<Partial<JournaledBlock>>) {
  const read: number[] = [];
  const evm = {
    blockJournal: (hash: string) => {
      const block = Number.parseInt(hash.slice(-4), 16);
      read.push(block);
      return answer(block);
    },
  };
  const chain = new ChainSource({} as JsonRpcClient, evm as unknown as EvmClient);
  const { signal } = new AbortController();
  const journal = (block: number) =>
    chain.journal(parseHash32(`0x${block.toString(16).padStart(64, "0")}`), { signal });
  return { read, journal };
}

it("are read once for all of their transactions, whoever asks for one and when", async () => {
  const { read, journal } = readsOf(() => Promise.resolve(blockOf(3)));
  const told = await Promise.all([journal(1), journal(2), journal(1), journal(1)]);
  expect(await journal(1)).toBe(told[0]);
  expect(read).toEqual([1, 2]);
  expect(told[0]).toMatchObject({ transactions: [{ index: 0, changes: { length: 3 } }] });
});

it("are not read again to find that they are too large", async () => {
  const tooLarge = () => Promise.reject(new NodeFault("ANSWER_TOO_LARGE", "too large"));
  const { read, journal } = readsOf(tooLarge);
  expect(await Promise.all([journal(1), journal(1)])).toEqual(["too large", "too large"]);
  expect(read).toEqual([1]);
});

it("are kept within a bound, and one that is larger not at all", async () => {
  const { read, journal } = readsOf((block) =>
    Promise.resolve(blockOf(block === 9 ? 50_000 : 5_000)),
  );
  for (const block of [1, 2, 3, 4, 5, 9]) await journal(block);
  await journal(5);
  await journal(9);
  expect(read).toEqual([1, 2, 3, 4, 5, 9, 9]);
  await journal(6);
  await journal(1);
  expect(read.slice(7)).toEqual([6, 1]);
});
