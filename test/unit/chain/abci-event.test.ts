/** ABCI events of a block, from a journal written by hand; the table of the specification first. */
import { describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import {
  blockEvents,
  event,
  searchTermSteps,
  transactionEventSteps,
} from "../../../chain/abci-event.js";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import type { BalanceChange, BlockJournal } from "../../../chain/balance-change.js";
import { ZERO_ADDRESS } from "../../../chain/address.js";
import { EMPTY_TRIE_ROOT, parseHash32, parseHexBytes, ZERO_HASH } from "../../../chain/hex.js";
import { EMPTY_BLOOM, type Receipt } from "../../../chain/receipt.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { sdkTransactionHash } from "../../../chain/consensus/sdk-transaction.js";
import { decodeTransaction } from "../../../chain/transaction.js";
import { executedTransaction } from "../../helpers/executed-transaction.js";

const wallet = new Wallet(`0x${"31".repeat(32)}`);
const PAYER = parseAddress(wallet.address);
const SHOP = parseAddress(`0x${"77".repeat(20)}`);
const COLLECTOR = parseAddress(`0x${"0f".repeat(20)}`);
const TREASURY = parseAddress(`0x${"0e".repeat(20)}`);
const [payer, shop, collector, treasury] = [PAYER, SHOP, COLLECTOR, TREASURY].map((one) =>
  toBech32(one),
);

function change(over: Partial<BalanceChange> & Pick<BalanceChange, "reason">): BalanceChange {
  return {
    from: undefined,
    to: undefined,
    amountAtoken: 5n,
    effective: true,
    tracePath: undefined,
    ...over,
  };
}

const raw = await wallet.signTransaction({
  type: 0,
  chainId: 6940,
  nonce: 0,
  gasPrice: 10n,
  gasLimit: 30_000n,
  to: SHOP,
  value: 5n,
});
const tx = decodeTransaction(parseHexBytes(raw));
const FEE = change({ reason: "FEE", from: PAYER, to: COLLECTOR, amountAtoken: 210_000n });
const CALL = change({ reason: "CALL", from: PAYER, to: SHOP, tracePath: "" });

function source(
  changes: readonly BalanceChange[],
  over: Partial<Receipt> = {},
  blockChanges: readonly BalanceChange[] = [],
) {
  const receipt: Receipt = {
    type: 0,
    status: 1,
    gasUsed: 21_000n,
    cumulativeGasUsed: 21_000n,
    effectiveGasPriceAtoken: 10n,
    logs: [],
    logsBloom: EMPTY_BLOOM,
    contractAddress: undefined,
    ...over,
  };
  const journal: BlockJournal = {
    height: 3,
    transactions: [{ transactionHash: tx.hash, changes }],
    blockChanges,
    mintedAtoken: 0n,
    burnedAtoken: 0n,
  };
  const header = {
    parentHash: ZERO_HASH,
    coinbase: ZERO_ADDRESS,
    stateRoot: EMPTY_TRIE_ROOT,
    transactionsRoot: EMPTY_TRIE_ROOT,
    receiptsRoot: EMPTY_TRIE_ROOT,
    logsBloom: EMPTY_BLOOM,
    height: 3,
    gasLimit: 1n,
    gasUsed: 1n,
    timestampSeconds: 1,
    moduleRoot: ZERO_HASH,
    mixHash: ZERO_HASH,
  };
  const transactions = [{ tx, from: PAYER }];
  const block = { header, hash: ZERO_HASH, timeMs: 1_000, transactions, dataHash: ZERO_HASH };
  return { block, receipts: [receipt], journal };
}

const eventsOf = (executed: ReturnType<typeof executedTransaction>) =>
  allAtOnce(transactionEventSteps(executed));
const plain = (list: ReturnType<typeof eventsOf>) =>
  list.map(({ type, attributes }) => [type, attributes.map(({ key, value }) => `${key}=${value}`)]);

describe("events of a transaction", () => {
  it("tell fee, message, movement and result, the specification's attributes first", () => {
    expect(plain(eventsOf(executedTransaction(source([FEE, CALL]), 0)))).toEqual([
      ["coin_spent", [`spender=${payer}`, "amount=210000atoken"]],
      ["coin_received", [`receiver=${collector}`, "amount=210000atoken"]],
      ["transfer", [`sender=${payer}`, `recipient=${collector}`, "amount=210000atoken"]],
      ["message", [`sender=${payer}`]],
      ["tx", ["fee=210000atoken", `fee_payer=${payer}`]],
      [
        "fee_burn",
        [
          "amount=210000atoken",
          "burned=105000atoken",
          "proposer_reward=0atoken",
          "treasury=105000atoken",
        ],
      ],
      ["ethereum_tx", [`ethereumTxHash=${tx.hash}`, "txIndex=0"]],
      [
        "message",
        ["action=/cosmos.evm.vm.v1.MsgEthereumTx", `sender=${payer}`, "module=evm", "msg_index=0"],
      ],
      ["coin_spent", [`spender=${payer}`, "amount=5atoken", "msg_index=0"]],
      ["coin_received", [`receiver=${shop}`, "amount=5atoken", "msg_index=0"]],
      ["transfer", [`sender=${payer}`, `recipient=${shop}`, "amount=5atoken", "msg_index=0"]],
      ["message", [`sender=${payer}`, "msg_index=0"]],
      ["message", ["module=bank", `sender=${payer}`, "msg_index=0"]],
      [
        "ethereum_tx",
        [
          "amount=5",
          `ethereumTxHash=${tx.hash}`,
          "txIndex=0",
          "txGasUsed=21000",
          `txHash=${sdkTransactionHash(tx, PAYER).slice(2).toUpperCase()}`,
          `recipient=0x${"77".repeat(20)}`,
          "msg_index=0",
        ],
      ],
      ["message", ["module=evm", `sender=${wallet.address}`, "txType=0", "msg_index=0"]],
    ]);
  });

  it("tell what of each fee is burned, which adds up to what the block burns", () => {
    const fees = [7n, 4n, 9n, 1n, 0n, 3n];
    const one = source([]);
    const [mined] = one.block.transactions;
    const [receipt] = one.receipts;
    if (mined === undefined || receipt === undefined) throw new Error("nothing was mined");
    const journals = fees.map((amountAtoken) => {
      const changes = amountAtoken === 0n ? [] : [{ ...FEE, amountAtoken }];
      return { transactionHash: tx.hash, changes };
    });
    const block = { ...one.block, transactions: fees.map(() => mined) };
    const journal = { ...one.journal, transactions: journals };
    const all = { block, receipts: fees.map(() => receipt), journal };
    const burned = fees.map((_, index) => {
      const events = eventsOf(executedTransaction(all, index));
      const found = events.find(({ type }) => type === "fee_burn")?.attributes;
      return BigInt(found?.[1]?.value.replace("atoken", "") ?? 0);
    });
    expect(burned).toEqual([4n, 2n, 4n, 1n, 0n, 1n]);
    // 24 atoken in all, of which a block burns the half that is rounded up.
    expect(burned.reduce((sum, each) => sum + each, 0n)).toBe(12n);
    for (const amount of burned) {
      if (amount > 0n) expect(allAtOnce(searchTermSteps(all)).amounts.has(amount)).toBe(true);
    }
  });

  it("do not tell of coins that did not move, and say that execution failed", () => {
    const reverted = { ...CALL, effective: false, error: "out of gas" };
    const events = eventsOf(executedTransaction(source([FEE, reverted], { status: 0 }), 0));
    expect(plain(events).filter(([type]) => type === "transfer")).toHaveLength(1);
    const result = events.findLast(({ type }) => type === "ethereum_tx");
    const failed = result?.attributes.find(({ key }) => key === "ethereumTxFailed");
    expect(failed?.value).toBe("out of gas");
    const empty = eventsOf(executedTransaction(source([FEE, { ...CALL, amountAtoken: 0n }]), 0));
    expect(plain(empty).filter(([type]) => type === "transfer")).toHaveLength(1);
  });

  it("tell of internal movements and of coins that are destroyed", () => {
    const inner = change({ reason: "CALL", from: SHOP, to: PAYER, amountAtoken: 2n });
    const burnt = change({ reason: "DESTRUCT", from: SHOP, amountAtoken: 1n });
    const events = plain(eventsOf(executedTransaction(source([FEE, CALL, inner, burnt]), 0)));
    expect(events).toContainEqual([
      "transfer",
      [`sender=${shop}`, `recipient=${payer}`, "amount=2atoken", "msg_index=0"],
    ]);
    expect(events).toContainEqual(["burn", [`burner=${shop}`, "amount=1atoken", "msg_index=0"]]);
  });

  it("carry logs as JSON that no index holds", () => {
    const topic = parseHash32(`0x${"aa".repeat(32)}`);
    const logs = [{ address: SHOP, topics: [topic], data: Uint8Array.of(1) }];
    const events = eventsOf(executedTransaction(source([FEE], { logs }), 0));
    const [attribute] = events.find(({ type }) => type === "tx_log")?.attributes ?? [];
    expect([attribute?.key, attribute?.index]).toEqual(["txLog", false]);
    expect(JSON.parse(attribute?.value ?? "")).toEqual({
      address: `0x${"77".repeat(20)}`,
      topics: [topic],
      data: "0x01",
    });
  });
});

describe("events of a block", () => {
  const blockChanges = [
    change({ reason: "FEE_BURN", from: COLLECTOR, amountAtoken: 6n }),
    change({ reason: "TREASURY", from: COLLECTOR, to: TREASURY, amountAtoken: 5n }),
    change({ reason: "MINT", to: SHOP, amountAtoken: 9n }),
    change({ reason: "MINT", to: PAYER, amountAtoken: 1n }),
  ];

  it("tell the split of the fees (D3) and the mint", () => {
    const events = plain(blockEvents(source([], {}, blockChanges).journal));
    expect(events).toEqual([
      ["coin_spent", [`spender=${collector}`, "amount=6atoken", "mode=EndBlock"]],
      ["burn", [`burner=${collector}`, "amount=6atoken", "mode=EndBlock"]],
      ["coin_spent", [`spender=${collector}`, "amount=5atoken", "mode=EndBlock"]],
      ["coin_received", [`receiver=${treasury}`, "amount=5atoken", "mode=EndBlock"]],
      [
        "transfer",
        [`sender=${collector}`, `recipient=${treasury}`, "amount=5atoken", "mode=EndBlock"],
      ],
      ["message", [`sender=${collector}`, "mode=EndBlock"]],
      ["coin_received", [`receiver=${shop}`, "amount=9atoken", "mode=EndBlock"]],
      ["coinbase", [`minter=${shop}`, "amount=9atoken", "mode=EndBlock"]],
      ["coin_received", [`receiver=${payer}`, "amount=1atoken", "mode=EndBlock"]],
      ["coinbase", [`minter=${payer}`, "amount=1atoken", "mode=EndBlock"]],
      [
        "fee_burn",
        [
          "amount=11atoken",
          "burned=6atoken",
          "proposer_reward=0atoken",
          "treasury=5atoken",
          "mode=EndBlock",
        ],
      ],
      ["mint", ["amount=10atoken", "mode=EndBlock"]],
    ]);
    expect(blockEvents(source([]).journal)).toEqual([]);
  });

  it("have every type and amount of the events among the search terms, and no other type", () => {
    const logs = [{ address: SHOP, topics: [], data: new Uint8Array(0) }];
    const burnt = change({ reason: "DESTRUCT", from: SHOP, amountAtoken: 3n });
    const full = source([FEE, CALL, burnt], { logs }, blockChanges);
    const moved = source([], {}, blockChanges);
    const moduleEvents = [event("slash", { reason: "double_sign", burned_coins: "7atoken" })];
    const slashed = { ...moved, journal: { ...moved.journal, moduleEvents } };
    expect(allAtOnce(searchTermSteps(slashed)).types.has("slash")).toBe(true);
    expect(allAtOnce(searchTermSteps(slashed)).amounts.has(7n)).toBe(true);
    for (const block of [full, source([FEE, CALL]), moved, slashed]) {
      const { types, amounts } = allAtOnce(searchTermSteps(block));
      const events = [...eventsOf(executedTransaction(block, 0)), ...blockEvents(block.journal)];
      expect([...types].toSorted()).toEqual(
        [...new Set(events.map(({ type }) => type))].toSorted(),
      );
      const told = events
        .flatMap(({ attributes }) => attributes.map(({ value }) => value))
        .flatMap((value) => /^([1-9][0-9]*)atoken$/.exec(value)?.[1] ?? []);
      for (const amount of told)
        expect([amount, amounts.has(BigInt(amount))]).toEqual([amount, true]);
    }
    expect(allAtOnce(searchTermSteps(full)).amounts.has(0n)).toBe(false);
  });
});
