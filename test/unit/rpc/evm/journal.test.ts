/** The node's own methods: balance journal by block and by account, fate of a transaction. */
import { afterEach, describe, expect, it, jest } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import type { BalanceChange } from "../../../../chain/balance-change.js";
import { parseHash32, parseHexBytes, ZERO_HASH } from "../../../../chain/hex.js";
import { decodeTransaction } from "../../../../chain/transaction.js";
import { parseJournaledBlock } from "../../../../rpc-client/journal-codec.js";
import { ExecutionChain, testGenesis } from "../../../helpers/chains/execution-chain.js";
import {
  ALICE,
  BOB,
  CONSENSUS_BLOCK_HASH,
  createTestNode,
  MINER,
  signLegacy,
  transfer,
} from "./fixture.js";

afterEach(() => void jest.restoreAllMocks());

const alice = parseAddress(ALICE.address);
const bob = parseAddress(BOB.address);
type Entry = {
  operationIndex: number;
  delta: string;
  transactionIndex: number;
  blockNumber: string;
};
type Journal = { entries: Entry[]; next: number | null };

const fee = (from: string): BalanceChange => ({
  ...transfer(from, MINER, 5n),
  reason: "FEE",
  tracePath: undefined,
});

async function nodeWithJournal() {
  const node = createTestNode();
  const raw = await signLegacy(ALICE, { nonce: 0, to: BOB.address, value: 9n, data: "0xc0ffee" });
  const reverted = {
    ...transfer(BOB.address, ALICE.address, 4n),
    effective: false,
    tracePath: "0",
    error: "reverted",
  };
  node.chain.add(
    [
      {
        raw,
        changes: [
          fee(ALICE.address),
          transfer(ALICE.address, BOB.address, 9n),
          reverted,
          transfer(BOB.address, BOB.address, 2n),
        ],
      },
    ],
    [
      { ...transfer(MINER, MINER, 3n), reason: "FEE_BURN", to: undefined, tracePath: undefined },
      {
        ...transfer(BOB.address, BOB.address, 8n),
        reason: "MINT",
        from: undefined,
        tracePath: undefined,
      },
    ],
  );
  return node;
}

describe("causeway_getBlockJournal", () => {
  it("gives every transaction with its changes, then the block's own", async () => {
    const node = await nodeWithJournal();
    const { block } = node.chain.blocks[1] ?? node.chain.genesis();
    const journal = await node.call<Record<string, unknown>>(
      "causeway_getBlockJournal",
      block.hash,
    );
    expect(journal).toMatchObject({
      blockHash: block.hash,
      blockNumber: "0x1",
      parentHash: block.header.parentHash,
      consensusBlockHash: CONSENSUS_BLOCK_HASH,
      timestampMs: 1_700_000_002_120,
      minted: "0x7",
      burned: "0x3",
      blockChanges: [
        {
          reason: "FEE_BURN",
          from: MINER,
          to: null,
          amount: "0x3",
          effective: true,
          tracePath: null,
          error: null,
        },
        { reason: "MINT", from: null, to: bob, amount: "0x8" },
      ],
    });
    expect(journal["transactions"]).toEqual([
      {
        hash: block.transactions[0]?.tx.hash,
        index: 0,
        status: "0x1",
        from: alice,
        to: bob,
        contractAddress: null,
        gasUsed: "0x5208",
        gasPrice: "0x17d7840",
        nonce: "0x0",
        input: "0xc0ffee",
        changes: [
          {
            reason: "FEE",
            from: alice,
            to: MINER,
            amount: "0x5",
            effective: true,
            tracePath: null,
            error: null,
          },
          {
            reason: "CALL",
            from: alice,
            to: bob,
            amount: "0x9",
            effective: true,
            tracePath: "",
            error: null,
          },
          {
            reason: "CALL",
            from: bob,
            to: alice,
            amount: "0x4",
            effective: false,
            tracePath: "0",
            error: "reverted",
          },
          {
            reason: "CALL",
            from: bob,
            to: bob,
            amount: "0x2",
            effective: true,
            tracePath: "",
            error: null,
          },
        ],
        logs: [],
      },
    ]);
    expect(await node.call("causeway_getBlockJournal", ZERO_HASH)).toBeNull();
  });

  it("gives each transaction the logs that its receipt has", async () => {
    const node = createTestNode();
    const topic = (n: number) => parseHash32(`0x${n.toString(16).padStart(64, "0")}`);
    const log = (topics: number, bytes: number) => ({
      address: topics % 2 === 0 ? alice : bob,
      topics: Array.from({ length: topics }, (_, index) => topic(index + 1)),
      data: Uint8Array.from({ length: bytes }, (_, index) => index),
    });
    const { block } = node.chain.add([
      {
        raw: await signLegacy(ALICE, { nonce: 0, to: BOB.address }),
        logs: [log(0, 0), log(4, 33)],
      },
      { raw: await signLegacy(ALICE, { nonce: 1, to: BOB.address }) },
      { raw: await signLegacy(ALICE, { nonce: 2, to: BOB.address }), logs: [log(3, 32)] },
    ]);
    type Log = { address: string; topics: string[]; data: string };
    const { transactions } = await node.call<{ transactions: { hash: string; logs: Log[] }[] }>(
      "causeway_getBlockJournal",
      block.hash,
    );
    expect(transactions.map(({ logs }) => logs.length)).toEqual([2, 0, 1]);
    for (const { hash, logs } of transactions) {
      const receipt = await node.call<{ logs: Log[] }>("eth_getTransactionReceipt", hash);
      const shown = receipt.logs.map(({ address, topics, data }) => ({ address, topics, data }));
      expect({ hash, logs }).toEqual({ hash, logs: shown });
    }
  });
});

describe("a block that holds more than an answer may", () => {
  it("has the beginning of long input, and neither long data of logs, and says how much there is", async () => {
    const node = createTestNode();
    const long = { address: bob, topics: [], data: new Uint8Array(65).fill(7) };
    const input = (bytes: number) => `0x${"61".repeat(bytes)}`;
    const { block } = node.chain.add([
      { raw: await signLegacy(ALICE, { nonce: 0, to: BOB.address, data: input(1_024) }) },
      {
        raw: await signLegacy(ALICE, { nonce: 1, to: BOB.address, data: input(1_025) }),
        logs: [{ ...long, data: long.data.slice(1) }, long],
      },
    ]);
    const journal = await node.call<Record<string, unknown>>(
      "causeway_getBlockJournal",
      block.hash,
    );
    const { transactions } = journal as { transactions: Record<string, unknown>[] };
    expect(transactions[0]).toMatchObject({ input: input(1_024) });
    expect(transactions[0]).not.toHaveProperty("inputBytes");
    expect(transactions[1]).toMatchObject({
      input: input(1_024),
      inputBytes: 1_025,
      logs: [
        { address: bob, topics: [], data: `0x${"07".repeat(64)}` },
        { address: bob, topics: [], data: "0x", dataBytes: 65 },
      ],
    });
    const parsed = parseJournaledBlock(journal).transactions;
    expect(parsed.map(({ inputSizeBytes }) => inputSizeBytes)).toEqual([1_024, 1_025]);
  });
});

describe("causeway_getAccountJournal", () => {
  it("numbers operations as the Data API does and signs what moved", async () => {
    const node = await nodeWithJournal();
    const { entries, next } = await node.call<Journal>(
      "causeway_getAccountJournal",
      BOB.address,
      "0x0",
      "0x1",
    );
    expect(next).toBeNull();
    expect(
      entries.map(({ transactionIndex, operationIndex, delta }) => [
        transactionIndex,
        operationIndex,
        delta,
      ]),
    ).toEqual([
      [0, 3, "9"],
      [0, 4, "0"],
      [0, 6, "-2"],
      [0, 7, "2"],
      [1, 1, "8"],
    ]);
    const { entries: paid } = await node.call<Journal>(
      "causeway_getAccountJournal",
      ALICE.address,
      0,
      1,
    );
    expect(paid.map(({ operationIndex, delta }) => [operationIndex, delta])).toEqual([
      [0, "-5"],
      [2, "-9"],
      [5, "0"],
    ]);
  });

  it("pages by whole blocks and ends at the head", async () => {
    const node = createTestNode();
    for (let nonce = 0; nonce < 3; nonce++) {
      const raw = await signLegacy(ALICE, { nonce, to: BOB.address });
      const changes = Array.from({ length: 600 }, () => transfer(ALICE.address, BOB.address, 1n));
      node.chain.add([{ raw, changes }]);
    }
    const heights: string[][] = [];
    for (let from: number | null = 0; from !== null; ) {
      const page: Journal = await node.call<Journal>(
        "causeway_getAccountJournal",
        BOB.address,
        from,
        99,
      );
      heights.push([...new Set(page.entries.map(({ blockNumber }) => blockNumber))]);
      expect(page.entries).toHaveLength(600);
      from = page.next;
    }
    expect(heights).toEqual([["0x1"], ["0x2"], ["0x3"]]);
    expect(await node.call("causeway_getAccountJournal", BOB.address, 4, 99)).toEqual({
      entries: [],
      next: null,
    });
  });
});

describe("the journal of an account that is written in every block", () => {
  it("is answered in pages of so many blocks, also where none of them moved anything", async () => {
    const node = createTestNode();
    const at = [1, 2_000, 2_001, 4_500];
    for (let height = 1; height <= 4_600; height++) {
      node.chain.add([], at.includes(height) ? [transfer(ALICE.address, BOB.address, 1n)] : []);
    }
    // As for a contract whose storage changes.
    node.chain.accountHeights = async function* (_, from, to) {
      for (let height = from; height <= to; height++) yield height;
    };
    const read = jest.spyOn(node.chain, "accountJournal");
    const pages: { readonly found: number[]; readonly next: number | null }[] = [];
    for (let from: number | null = 0; from !== null; ) {
      const page: Journal = await node.call("causeway_getAccountJournal", BOB.address, from, 9_999);
      const found = page.entries.map(({ blockNumber }) => Number(blockNumber));
      pages.push({ found, next: page.next });
      from = page.next;
    }
    expect(pages).toEqual([
      { found: [1], next: 2_000 },
      { found: [2_000, 2_001], next: 4_000 },
      { found: [4_500], next: null },
    ]);
    expect(read.mock.calls.map(([, from, to]) => [from, to])).toEqual([
      [0, 1_999],
      [2_000, 3_999],
      [4_000, 4_600],
    ]);
  });

  it("is read no further when nobody waits for it any more", async () => {
    const chain = await ExecutionChain.open(testGenesis(ALICE.address));
    try {
      for (let height = 1; height <= 3; height++) await chain.mine([]);
      const pages = jest.spyOn(chain.stores.blocks, "pages");
      // Nothing is paid there, and every block writes it.
      chain.view.accountHeights = async function* () {
        yield* [1, 2, 3];
      };
      const ending = new AbortController();
      pages.mockImplementationOnce(() => {
        ending.abort(new Error("gone"));
        return [];
      });
      const entries = chain.view.accountJournal(bob, 0, 3, ending.signal)[Symbol.asyncIterator]();
      await expect(entries.next()).rejects.toThrow("gone");
      expect(pages).toHaveBeenCalledTimes(1);
    } finally {
      await chain.close();
    }
  });
});

describe("causeway_getAccountHeights", () => {
  type Page = { heights: number[]; next: number | null };

  it("pages by 1,000 heights, each once, and ends at the head", async () => {
    const node = createTestNode();
    const touch = [transfer(ALICE.address, BOB.address, 1n)];
    // Heights 1 to 2,300; every tenth leaves the account alone.
    for (let height = 1; height <= 2_300; height++) {
      node.chain.add([], height % 10 === 0 ? [] : touch);
    }
    const pages: Page[] = [];
    for (let from: number | null = 0; from !== null; ) {
      const page: Page = await node.call("causeway_getAccountHeights", alice, from, 99_999);
      pages.push(page);
      from = page.next;
    }
    expect(pages.map(({ heights }) => heights.length)).toEqual([1_000, 1_000, 70]);
    const expected = Array.from({ length: 2_300 }, (_, index) => index + 1);
    expect(pages.flatMap(({ heights }) => heights)).toEqual(
      expected.filter((height) => height % 10 !== 0),
    );
    expect(await node.call("causeway_getAccountHeights", alice, 7, "0xb")).toEqual({
      heights: [7, 8, 9, 11],
      next: null,
    });
    expect(await node.call("causeway_getAccountHeights", MINER, 0, 99_999)).toEqual({
      heights: [],
      next: null,
    });
  });

  it("gives nothing just above the head, and refuses a range that ends before it starts", async () => {
    const node = createTestNode();
    node.chain.add([], [transfer(ALICE.address, BOB.address, 1n)]);
    expect(await node.call("causeway_getAccountHeights", alice, 2, 9)).toEqual({
      heights: [],
      next: null,
    });
    for (const range of [
      [3, 9],
      [1, -1],
      ["0x1", null],
    ]) {
      const { error } = await node.ask("causeway_getAccountHeights", alice, ...range);
      expect({ range, code: error?.code }).toEqual({ range, code: -32602 });
    }
  });
});

describe("causeway_getPoolHashes", () => {
  it("gives the hashes of executable and queued transactions", async () => {
    const node = createTestNode();
    expect(await node.call("causeway_getPoolHashes")).toEqual({ pending: [], queued: [] });
    const entries = await Promise.all(
      [0, 1, 5].map(async (nonce) => {
        const tx = decodeTransaction(parseHexBytes(await signLegacy(ALICE, { nonce })));
        return { tx, from: alice };
      }),
    );
    const [first, second, gapped] = entries.map(({ tx }) => tx.hash);
    node.pool.content = () =>
      new Map([[alice, { pending: entries.slice(0, 2), queued: entries.slice(2) }]]);
    expect(await node.call("causeway_getPoolHashes")).toEqual({
      pending: [first, second],
      queued: [gapped],
    });
  });
});

describe("causeway_getTransactionStatus", () => {
  it("prefers the chain to the pool", async () => {
    const node = await nodeWithJournal();
    const mined = node.chain.block(1)?.block.transactions[0]?.tx.hash;
    expect(await node.call("causeway_getTransactionStatus", mined)).toEqual({
      status: "included",
      height: "0x1",
      index: "0x0",
    });
    expect(await node.call("causeway_getTransactionStatus", ZERO_HASH)).toEqual({
      status: "queued",
      missingNonce: "0x4",
    });
  });

  it("names places as the journal has them, by the hash of consensus too", async () => {
    const node = await nodeWithJournal();
    const { chain } = node;
    const outline = chain.outline(1);
    if (outline === undefined) throw new Error("no block");
    // `data.txs`: a Cosmos transaction, one of the EVM, a Cosmos one.
    const mixed = { ...outline, transactionCount: 1, cosmosPlaces: [0, 2] };
    jest.spyOn(chain, "outline").mockReturnValue(mixed);
    const places: unknown[] = [];
    for (const index of [0, 1, 2]) {
      jest.spyOn(chain, "locateBySdkHash").mockReturnValue({ height: 1, index });
      places.push(await node.call("causeway_getTransactionStatus", ZERO_HASH));
    }
    expect(places).toEqual(
      ["0x1", "0x0", "0x2"].map((index) => ({ status: "included", height: "0x1", index })),
    );
  });
});
