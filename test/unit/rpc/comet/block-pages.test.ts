/**
 * A block of many Cosmos transactions is read a page at a time, and one of them without the others. Whoever
 * wants all of them gives others their turns in between.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import { dataPages } from "../../../../node/rpc/comet/chain-reads.js";
import { BlockJson } from "../../../../node/rpc/evm/json/block-json.js";
import { blockRangeJson } from "../../../../node/rpc/evm/json/block-range.js";
import { ExecutionChain, testGenesis } from "../../../helpers/chains/execution-chain.js";
import { signWithCosmJs } from "../../../helpers/cosmos/cosmjs.js";
import { turnsOf } from "../../../helpers/effort/turns.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const faucet = Wallet.fromPhrase(MNEMONIC);
const to = parseAddress(`0x${"77".repeat(20)}`);
const COUNT = 150;
const AT_ONCE = 64;
const ASKER = { signal: new AbortController().signal, client: "" };

let chain: ExecutionChain;
let raws: readonly Uint8Array[] = [];

beforeAll(async () => {
  const genesis = testGenesis(faucet.address);
  chain = await ExecutionChain.open(genesis);
  const amount = [{ denom: "atoken", amount: "1" }];
  raws = signWithCosmJs(
    MNEMONIC,
    Array.from({ length: COUNT }, (_, sequence) => ({
      chainId: genesis.cosmosChainId,
      gas: 70_000,
      fee: [{ denom: "atoken", amount: "4000" }],
      sequence,
      messages: [
        {
          typeUrl: "/cosmos.bank.v1beta1.MsgSend",
          value: {
            fromAddress: toBech32(parseAddress(faucet.address)),
            toAddress: toBech32(to),
            amount,
          },
        },
      ],
    })),
  ).map(({ raw }) => raw);
  await chain.mine([], raws);
});

afterAll(() => chain.close());

describe("transactions of a block", () => {
  it("are read as their page is made", () => {
    const { blocks } = chain.stores;
    const read: number[] = [];
    const view = {
      outline: () => blocks.outline(1),
      pages: () => blocks.pages(1),
      cosmosBytes: (_height: number, item: number) => {
        read.push(item);
        return blocks.cosmosBytes(1, item);
      },
    };
    const found: Uint8Array[] = [];
    for (const page of dataPages(view, 1)) {
      found.push(...page);
      expect(page.length).toBeLessThanOrEqual(AT_ONCE);
      expect(read).toHaveLength(found.length);
    }
    expect(found.map((raw) => Buffer.from(raw))).toEqual(raws.map((raw) => Buffer.from(raw)));
  });

  it("are found by their number, in memory and on disk, and none is where there is none", () => {
    const { blocks } = chain.stores;
    const all = blocks.cosmos(1);
    const items = [0, 77, COUNT - 1, -1, COUNT];
    const inMemory = items.map((item) => blocks.cosmosTransaction(1, item));
    expect(inMemory).toEqual([all[0], all[77], all[COUNT - 1], undefined, undefined]);
    blocks.forget(1);
    const onDisk = items.map((item) => blocks.cosmosTransaction(1, item));
    expect(onDisk.map((one) => one?.tx.hash)).toEqual(inMemory.map((one) => one?.tx.hash));
    expect(onDisk.map((one) => one?.result)).toEqual(inMemory.map((one) => one?.result));
    const bytes = items.map((item) => blocks.cosmosBytes(1, item));
    const expected = inMemory.map((one) => one?.tx.raw);
    const hex = (one: Uint8Array | undefined) => one && Buffer.from(one).toString("hex");
    expect(bytes.map(hex)).toEqual(expected.map(hex));
  });
});

/** Blocks that no consensus decided. */
const unsigned = { consensusBlockHash: () => undefined };
const limits = { cacheBytes: 0, responseBytes: 64 * 1024 * 1024 };

describe("others get their turns while all of a block are read", () => {
  const { signal } = new AbortController();
  const context = { signal, becameLarge: async () => undefined };
  const alone = { from: 1, to: 1, maxBytes: 1, recordsVersion: undefined };
  const entriesOf = async () => {
    let count = 0;
    for await (const entry of chain.view.accountJournal(to, 1, 1, signal)) count += entry.height;
    return count;
  };

  it.each([
    ["for a range of blocks", () => blockRangeJson(chain.view, alone, context)],
    [
      "for the block's journal",
      () => new BlockJson(chain.view, limits, unsigned).journal(1, ASKER),
    ],
    ["for an account's journal", entriesOf],
    ["for the block itself", () => chain.view.load(1, signal)],
  ])("%s", async (_, read) => {
    chain.stores.blocks.forget(1);
    expect(await turnsOf(read)).toBeGreaterThan(COUNT / 4);
  });

  it("and the answers have all of them", async () => {
    chain.stores.blocks.forget(1);
    const range = Buffer.concat((await blockRangeJson(chain.view, alone, context)).pieces());
    const journal = await new BlockJson(chain.view, limits, unsigned).journal(1, ASKER);
    type Journal = { cosmosTransactions: { hash: string; index: number; dataIndex: number }[] };
    const { blocks } = JSON.parse(range.toString()) as { blocks: Journal[] };
    const own = JSON.parse(String(journal?.content)) as Journal;
    const expected = chain.stores.blocks.cosmos(1).map(({ tx }, index) => {
      return { hash: tx.hash, index, dataIndex: index };
    });
    expect(own.cosmosTransactions).toMatchObject(expected);
    expect(blocks[0]?.cosmosTransactions).toEqual(own.cosmosTransactions);
    expect(await entriesOf()).toBe(COUNT);
    const whole = await chain.view.load(1, signal);
    expect(whole?.block.cosmos?.map(({ tx }) => tx.hash)).toEqual(expected.map(({ hash }) => hash));
  });
});
