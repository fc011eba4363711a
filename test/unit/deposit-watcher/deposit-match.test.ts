import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import type { BalanceChange } from "../../../chain/balance-change.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { operationsOf } from "../../../chain/operations.js";
import { confirmationsOf } from "../../../chain/confirmations.js";
import { type MatchBlock, matchBlocks } from "../../../deposit-watcher/deposit-match.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { change, FEE_COLLECTOR, testAddress } from "../../helpers/chains/fake-chain.js";

const stranger = testAddress(1);
const hot = testAddress(2);
const alice = testAddress(3);
const bob = testAddress(4);
const contract = testAddress(5);
const customers = new Map<Address, string>([
  [alice, "alice"],
  [bob, "bob"],
]);
const watched = {
  assetOf: () => undefined,
  walletFrom: (address: Address) => (address === hot ? 0 : undefined),
  customerOf(address: Address) {
    const id = customers.get(address);
    return id === undefined ? undefined : parseCustomerId(id);
  },
};

function block(height: number, ...transactions: readonly (readonly BalanceChange[])[]): MatchBlock {
  const hash = keccak256Hex(Buffer.from(`block ${height}`));
  return {
    height,
    hash,
    transactions: transactions.map((changes, index) => ({
      hash: keccak256Hex(Buffer.from(`${height} ${index}`)),
      index,
      operations: operationsOf(changes).map((operation) => ({
        ...operation,
        isNative: true,
        relatedIndexes: operation.relatedIndex === undefined ? [] : [operation.relatedIndex],
      })),
    })),
  };
}

function depositsOf(...blocks: readonly MatchBlock[]) {
  return matchBlocks(blocks, watched).deposits.map((deposit) => [
    `${deposit.height}-${deposit.txIndex}-${deposit.opIndex}`,
    deposit.customerId,
    deposit.amountUnits,
    deposit.creditable,
  ]);
}

const fee = (from: Address, amountAtoken = 21n) =>
  change({ reason: "FEE", from, to: FEE_COLLECTOR, amountAtoken });

describe("matching", () => {
  it("finds top-level, internal, repeated and self-destruct payments, each under its own key", () => {
    const calls = [
      fee(stranger),
      change({ from: stranger, to: contract, amountAtoken: 0n }),
      change({ from: contract, to: alice, amountAtoken: 5n, tracePath: "0" }),
      change({ from: contract, to: bob, amountAtoken: 6n, tracePath: "1" }),
      change({ from: contract, to: alice, amountAtoken: 7n, tracePath: "2_0" }),
      change({ reason: "SELFDESTRUCT", from: contract, to: bob, amountAtoken: 8n, tracePath: "3" }),
    ];
    const plain = [fee(stranger), change({ from: stranger, to: alice, amountAtoken: 1n })];
    expect(depositsOf(block(7, plain, calls))).toEqual([
      ["7-0-3", "alice", 1n, true],
      ["7-1-5", "alice", 5n, true],
      ["7-1-7", "bob", 6n, true],
      ["7-1-9", "alice", 7n, true],
      ["7-1-11", "bob", 8n, true],
    ]);
  });

  it("ignores failed frames, zero values and strangers", () => {
    const failed = change({ from: stranger, to: alice, amountAtoken: 5n, effective: false });
    const zero = change({ from: stranger, to: alice, amountAtoken: 0n });
    const elsewhere = change({ from: stranger, to: contract, amountAtoken: 3n });
    const result = matchBlocks([block(2, [failed, zero, elsewhere])], watched);
    expect(result).toEqual({
      deposits: [],
      walletInflows: [],
      outflows: [],
      touches: [],
      tokenSides: [],
    });
  });

  it("credits nothing of another currency, and has the chain asked whether coins came", () => {
    const paid = block(1, [
      fee(stranger),
      change({ from: stranger, to: alice, amountAtoken: 9n }),
      change({ from: hot, to: stranger, amountAtoken: 4n }),
    ]);
    const tokens: MatchBlock = {
      ...paid,
      transactions: paid.transactions.map((transaction) => ({
        ...transaction,
        operations: transaction.operations.map((each) => ({ ...each, isNative: false })),
      })),
    };
    expect(matchBlocks([tokens], watched)).toEqual({
      deposits: [],
      walletInflows: [],
      outflows: [],
      touches: [
        { address: alice, height: 1, deltaAtoken: 0n },
        { address: hot, height: 1, deltaAtoken: 0n },
      ],
      tokenSides: [],
    });
  });

  it("does not take tokens that an address sends itself for the other side of a payment", () => {
    const paid = block(1, [change({ from: stranger, to: alice, amountAtoken: 9n })]);
    const [transaction] = paid.transactions;
    const [, received] = transaction?.operations ?? [];
    if (transaction === undefined || received === undefined) throw new Error("no operation");
    const token = { ...received, index: 2, isNative: false, amountAtoken: -9n };
    const operations = [...transaction.operations, { ...token, relatedIndexes: [1] }];
    const mixed = { ...paid, transactions: [{ ...transaction, operations }] };
    expect(depositsOf(mixed)).toEqual([["1-0-1", "alice", 9n, true]]);
  });

  it("keeps coins of a type that it does not know in suspense", () => {
    const paid = block(1, [change({ from: stranger, to: alice, amountAtoken: 9n })]);
    const renamed: MatchBlock = {
      ...paid,
      transactions: paid.transactions.map((transaction) => ({
        ...transaction,
        operations: transaction.operations.map((each) => ({ ...each, type: "REWARD" })),
      })),
    };
    expect(depositsOf(renamed)).toEqual([["1-0-1", "alice", 9n, false]]);
    const touches = [{ address: alice, height: 1, deltaAtoken: 9n }];
    expect(matchBlocks([renamed], watched).touches).toEqual(touches);
  });

  it("makes no deposit of a payment to itself, but watches its fee", () => {
    const result = matchBlocks(
      [block(3, [fee(alice), change({ from: alice, to: alice, amountAtoken: 50n })])],
      watched,
    );
    expect(result.deposits).toEqual([]);
    expect(result.outflows).toMatchObject([{ wallet: alice, amountUnits: 0n, feeAtoken: 21n }]);
    expect(result.touches).toEqual([{ address: alice, height: 3, deltaAtoken: -21n }]);
  });

  it("credits a payment from one watched address to another, and reports the payer's outflow", () => {
    const result = matchBlocks(
      [block(4, [fee(alice), change({ from: alice, to: bob, amountAtoken: 50n })])],
      watched,
    );
    expect(result.deposits).toMatchObject([{ customerId: "bob", amountUnits: 50n, opIndex: 3 }]);
    expect(result.outflows).toMatchObject([
      { wallet: alice, role: "deposit-address", amountUnits: 50n, feeAtoken: 21n },
    ]);
  });

  it("sends coins that nobody paid to suspense: minted ones, and everything in genesis", () => {
    const minted = change({ reason: "MINT", to: alice, amountAtoken: 5n });
    const allotted = change({ reason: "GENESIS", to: bob, amountAtoken: 6n });
    const paid = change({ from: stranger, to: bob, amountAtoken: 7n });
    expect(depositsOf(block(0, [allotted, paid]), block(1, [minted]))).toEqual([
      ["0-0-0", "bob", 6n, false],
      ["0-0-2", "bob", 7n, false],
      ["1-0-0", "alice", 5n, false],
    ]);
  });

  it("separates the hot wallet's inflows and outflows, a failed transaction costing its fee", () => {
    const paid = [fee(hot), change({ from: hot, to: stranger, amountAtoken: 100n })];
    const failed = [
      fee(hot, 30n),
      change({ from: hot, to: contract, amountAtoken: 100n, effective: false }),
    ];
    const refilled = [fee(stranger), change({ from: stranger, to: hot, amountAtoken: 40n })];
    const result = matchBlocks([block(5, paid, failed, refilled)], watched);
    expect(result.outflows).toMatchObject([
      { role: "hot-wallet", amountUnits: 100n, feeAtoken: 21n },
      { role: "hot-wallet", amountUnits: 0n, feeAtoken: 30n },
    ]);
    expect(result.walletInflows).toMatchObject([{ amountUnits: 40n, txIndex: 2, opIndex: 3 }]);
    expect(result.touches).toEqual([{ address: hot, height: 5, deltaAtoken: 40n - 151n }]);
  });
});

describe("a transaction that pays one address thousands of times", () => {
  /** The same block, which counts how often somebody asks what an operation is related to. */
  function counted(paid: MatchBlock): { readonly block: MatchBlock; readonly asked: () => number } {
    let count = 0;
    const transactions = paid.transactions.map((transaction) => ({
      ...transaction,
      operations: transaction.operations.map(({ relatedIndexes, ...operation }) => ({
        ...operation,
        get relatedIndexes() {
          count += 1;
          return relatedIndexes;
        },
      })),
    }));
    return { block: { ...paid, transactions }, asked: () => count };
  }

  it.each([alice, hot])("has each operation looked at a few times, whoever is paid", (to) => {
    const payments = Array.from({ length: 2_000 }, () => {
      return change({ from: contract, to, amountAtoken: 1n });
    });
    const { block: paid, asked } = counted(block(6, [fee(stranger), ...payments]));
    const { deposits, walletInflows } = matchBlocks([paid], watched);
    expect([...deposits, ...walletInflows]).toHaveLength(payments.length);
    expect(walletInflows.every(({ sender }) => sender === contract)).toBe(true);
    expect(asked()).toBeLessThan(10 * payments.length);
  });
});

describe("confirmations", () => {
  it("count the block itself", () => {
    expect(confirmationsOf({ headHeight: 10, receiptHeight: 10 })).toBe(1);
    expect(confirmationsOf({ headHeight: 11, receiptHeight: 10 })).toBe(2);
    expect(() => confirmationsOf({ headHeight: 9, receiptHeight: 10 })).toThrow(
      expect.objectContaining({ code: "HEIGHT_BEFORE_RECEIPT" }),
    );
  });
});
