/** The transaction that took an account's sequence is found, however many blocks there are. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import { searchTransactions } from "../../../../node/rpc/comet/search/event-search.js";
import { parseQuery } from "../../../../node/rpc/comet/search/query.js";
import type { CometChain } from "../../../../node/rpc/comet/ports.js";
import { EventStore } from "../../../../node/store/blocks/event-store.js";
import { ExecutionChain, testGenesis } from "../../../helpers/chains/execution-chain.js";
import { signWithCosmJs } from "../../../helpers/cosmos/cosmjs.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const faucet = Wallet.fromPhrase(MNEMONIC);
const payer = toBech32(parseAddress(faucet.address));
const to = parseAddress(`0x${"77".repeat(20)}`);
/** Of the transaction in the middle that is Ethereum's. */
const EVM_SEQUENCE = 4;
const COUNT = 9;

/** A single block with a single transaction may be read. */
const LEAST = { results: 1, blocks: 1, transactions: 1 };

/** All of them may. */
const WIDE = { results: 1, blocks: 100, transactions: 100 };

let chain: ExecutionChain;
/** Heights by sequence. */
const heights: number[] = [];

beforeAll(async () => {
  const genesis = testGenesis(faucet.address);
  chain = await ExecutionChain.open(genesis);
  const value = {
    fromAddress: payer,
    toAddress: toBech32(to),
    amount: [{ denom: "atoken", amount: "1" }],
  };
  const raws = signWithCosmJs(
    MNEMONIC,
    Array.from({ length: COUNT }, (_, sequence) => ({
      chainId: genesis.cosmosChainId,
      gas: 70_000,
      fee: [{ denom: "atoken", amount: "4000" }],
      sequence,
      messages: [{ typeUrl: "/cosmos.bank.v1beta1.MsgSend", value }],
    })),
  ).map(({ raw }) => raw);
  for (const [nonce, raw] of raws.entries()) {
    if (nonce % 3 === 0) await chain.mine([]);
    const isEvm = nonce === EVM_SEQUENCE;
    const sent = { type: 0, chainId: 6940, nonce, gasPrice: 25_000_000n, gasLimit: 21_000n, to };
    if (isEvm) await chain.mine([await faucet.signTransaction(sent)]);
    else await chain.mine([], [raw]);
    heights.push(chain.view.head().height);
  }
});

afterAll(() => chain.close());

/** @param oldestState what is below it is pruned, and so are blocks and journals below `oldestJournal` */
async function search(
  text: string,
  limits = LEAST,
  oldestState = 0,
  oldestJournal = 0,
): Promise<number[]> {
  const { view, stores } = chain;
  const seen = Object.assign(Object.create(view) as typeof view, {
    oldest: () => ({ block: oldestJournal, journal: oldestJournal, state: oldestState, proof: 0 }),
    account: (...[address, height]: Parameters<typeof view.account>) => {
      expect(height).toBeGreaterThanOrEqual(oldestState);
      return view.account(address, height);
    },
  });
  const consensus = { height: () => view.head().height };
  const events = new EventStore(stores.database);
  const ports = { view: seen, events, consensus } as unknown as CometChain;
  const { signal } = new AbortController();
  const found = await searchTransactions(ports, parseQuery(text), signal, limits);
  return found.map(({ height }) => height);
}

it("in the one block that is read for it", async () => {
  for (const [sequence, height] of heights.entries()) {
    const expected = sequence === EVM_SEQUENCE ? [] : [height];
    expect([sequence, await search(`tx.acc_seq='${payer}/${sequence}'`)]).toEqual([
      sequence,
      expected,
    ]);
  }
  expect(await search(`tx.acc_seq='${payer}/${COUNT}'`)).toEqual([]);
  expect(await search(`tx.acc_seq='${toBech32(to)}/0'`)).toEqual([]);
  const at = (operator: string) =>
    search(`tx.acc_seq='${payer}/5' AND tx.height ${operator} ${heights[5]}`);
  expect([await at("<="), await at("<"), await at(">=")]).toEqual([[heights[5]], [], [heights[5]]]);
  expect(await at(">")).toEqual([]);
});

it("also where the state of then is pruned", async () => {
  for (const [sequence, height] of heights.entries()) {
    const expected = sequence === EVM_SEQUENCE ? [] : [height];
    const text = `tx.acc_seq='${payer}/${sequence}'`;
    expect([sequence, await search(text, WIDE, heights[6])]).toEqual([sequence, expected]);
  }
  expect(await search(`tx.acc_seq='${payer}/8'`, LEAST, heights[6])).toEqual([heights[8]]);
  expect(await search(`tx.acc_seq='${payer}/2' AND tx.height<9`, WIDE, heights[6])).toEqual([
    heights[2],
  ]);
});

it("without a height, on a node without the oldest blocks, where whoever took it stands above these", async () => {
  const at = (sequence: number) => `tx.acc_seq='${payer}/${sequence}'`;
  const [, , , , , before = 0, oldest = 0] = heights;
  // As state sync leaves a node (the journal begins a block above the state), and as pruning does.
  for (const journal of [oldest + 1, oldest, before]) {
    expect([journal, await search(at(7), LEAST, oldest, journal)]).toEqual([journal, [heights[7]]]);
    expect(await search(at(8), LEAST, oldest, journal)).toEqual([heights[8]]);
    expect(await search(at(COUNT), LEAST, oldest, journal)).toEqual([]);
    expect(await search(`${at(8)} AND tx.height>=1`, LEAST, oldest, journal)).toEqual([heights[8]]);
    // By then somebody has taken it: that may have been a block that is not here.
    await expect(search(at(6), WIDE, oldest, journal)).rejects.toMatchObject({
      message: `height 1 is not available, lowest height is ${journal}`,
    });
  }
  // The state of the last block that is gone says that nobody had taken it.
  expect(await search(at(6), LEAST, before, oldest)).toEqual([oldest]);
  await expect(search(at(5), WIDE, before, oldest)).rejects.toThrow("height 1 is not available");
  const head = heights.at(-1) ?? 0;
  expect(await search(at(COUNT), LEAST, head, head + 1)).toEqual([]);
  // What other conditions look for may stand anywhere.
  const unsigned = search("message.module='bank'", WIDE, oldest, oldest);
  await expect(unsigned).rejects.toThrow(`lowest height is ${oldest}`);
});

it("or it says that the block was pruned meanwhile", async () => {
  const { view, stores } = chain;
  const [from = 0, oldestState = 0] = [heights[2], heights[6]];
  let oldest = from;
  const seen = Object.assign(Object.create(view) as typeof view, {
    oldest: () => ({ block: oldest, journal: oldest, state: oldestState, proof: oldestState }),
    account: async (...asked: Parameters<typeof view.account>) => {
      const account = await view.account(...asked);
      // Meanwhile the oldest block goes, with its entries in the index.
      oldest = from + 1;
      return account;
    },
  });
  const index = new EventStore(stores.database);
  const events = {
    heightsOfType: (type: string, first: number, last: number) =>
      index.heightsOfType(type, Math.max(first, oldest), last),
  };
  const consensus = { height: () => view.head().height };
  const ports = { view: seen, events, consensus } as unknown as CometChain;
  const { signal } = new AbortController();
  const query = parseQuery(`tx.acc_seq='${payer}/2' AND tx.height>=${from}`);
  await expect(searchTransactions(ports, query, signal, WIDE)).rejects.toMatchObject({
    message: expect.stringContaining(`lowest height is ${from + 1}`),
  });
  expect(oldest).toBe(from + 1);
});
