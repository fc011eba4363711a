/** The node's own methods: balance journal by block and by account, fate of a transaction. */
import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import type { BalanceChange } from "../../../chain/balance-change.js";
import { ZERO_HASH } from "../../../chain/hex.js";
import { ALICE, BOB, createTestNode, MINER, signLegacy, transfer } from "./fixture.js";

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
      },
    ]);
    expect(await node.call("causeway_getBlockJournal", ZERO_HASH)).toBeNull();
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
});
