import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { USUAL_ACCOUNTS } from "../../../chain/chain-accounts.js";
import { ERC20_TOPICS } from "../../../chain/evm/erc20.js";
import { parseHash32 } from "../../../chain/hex.js";
import { KnownAccounts } from "../../../rpc-client/chain-accounts.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { NodeFault, RpcError } from "../../../rpc-client/errors.js";
import type { JsonRpcClient, RpcCall } from "../../../rpc-client/json-rpc.js";
import { submitRefusalOf } from "../../../rpc-client/submit-refusal.js";

const signal = new AbortController().signal;
const ADDRESS = parseAddress(`0x${"a1".repeat(20)}`);
const HASH = parseHash32(`0x${"cd".repeat(32)}`);

/** A client whose node answers by method, and the calls it got. */
function clientWith(answers: Record<string, unknown>) {
  const calls: RpcCall[] = [];
  const answer = (call: RpcCall) => {
    calls.push(call);
    return answers[call.method];
  };
  const rpc: JsonRpcClient = {
    request: (method, params) => Promise.resolve(answer({ method, params })),
    batch: (batch) =>
      Promise.resolve(
        batch.map((call) => {
          const result = answer(call);
          return result instanceof RpcError ? { ok: false, error: result } : { ok: true, result };
        }),
      ),
    close: () => undefined,
  };
  return { client: createEvmClient(rpc), calls };
}

const receipt = {
  transactionHash: HASH,
  blockHash: HASH,
  blockNumber: "0x10",
  transactionIndex: "0x2",
  from: ADDRESS,
  to: null,
  contractAddress: ADDRESS.toUpperCase().replace("0X", "0x"),
  status: "0x1",
  gasUsed: "0x5208",
  effectiveGasPrice: "0x17d7840",
  logs: [],
};

const journal = {
  blockHash: HASH,
  blockNumber: "0x3",
  parentHash: HASH,
  timestampMs: 1_790_000_000_123,
  transactions: [
    {
      hash: HASH,
      index: 0,
      status: "0x0",
      from: ADDRESS,
      to: null,
      contractAddress: null,
      gasUsed: "0x5208",
      gasPrice: "0x17d7840",
      nonce: "0xffffffffffffffff",
      input: "0x6001",
      changes: [
        {
          reason: "CALL",
          from: ADDRESS,
          to: null,
          amount: `0x${"f".repeat(64)}`,
          effective: false,
          tracePath: "0_1",
          error: "out of gas",
        },
      ],
      logs: [{ address: ADDRESS, topics: [HASH], data: "0xC0FFEE" }],
    },
  ],
  blockChanges: [],
  minted: "0x3e8",
  burned: "0x0",
};

describe("typed calls", () => {
  it("read amounts exactly and pass heights as quantities", async () => {
    const { client, calls } = clientWith({ eth_getBalance: `0x${"f".repeat(64)}` });
    expect(await client.getBalance(ADDRESS, 17, { signal })).toBe(2n ** 256n - 1n);
    expect(await client.getBalances([{ address: ADDRESS, at: "latest" }], { signal })).toEqual([
      2n ** 256n - 1n,
    ]);
    expect(calls.map((call) => call.params)).toEqual([
      [ADDRESS, "0x11"],
      [ADDRESS, "latest"],
    ]);
  });

  it("read which nonces of a sender the pool keeps back, and undefined where it does not tell", async () => {
    const queued = { "9": { nonce: "0x9" }, "12": { nonce: "0xc" }, "10": { nonce: "0xa" } };
    const pending = { "7": { nonce: "0x7" } };
    const { client, calls } = clientWith({ txpool_contentFrom: { pending, queued } });
    expect(await client.queuedNonces(ADDRESS, { signal })).toEqual([9n, 10n, 12n]);
    expect(calls).toEqual([{ method: "txpool_contentFrom", params: [ADDRESS] }]);
    const noMethod = new RpcError("no such method", {
      rpcCode: -32601,
      method: "txpool_contentFrom",
    });
    const silent = createEvmClient({
      request: () => Promise.reject(noMethod),
      batch: () => Promise.resolve([]),
      close: () => undefined,
    });
    expect(await silent.queuedNonces(ADDRESS, { signal })).toBeUndefined();
  });

  it("read a receipt, and undefined where there is none", async () => {
    const { client } = clientWith({ eth_getTransactionReceipt: receipt });
    expect(await client.getTransactionReceipt(HASH, { signal })).toEqual({
      transactionHash: HASH,
      blockHash: HASH,
      height: 16,
      transactionIndex: 2,
      from: ADDRESS,
      to: undefined,
      contractAddress: ADDRESS,
      status: 1,
      gasUsed: 21_000n,
      effectiveGasPriceAtoken: 25_000_000n,
      transfers: [],
    });
    const word = (tail: string) => `0x${tail.padStart(64, "0")}`;
    const [signature, payer, payee] = [ERC20_TOPICS.transfer, word("a1"), word("b2")];
    const log = { address: ADDRESS, topics: [signature, payer, payee], data: word("7") };
    const nft = { ...log, topics: [...log.topics, word("9")], data: "0x" };
    const logged = clientWith({ eth_getTransactionReceipt: { ...receipt, logs: [nft, log] } });
    expect(await logged.client.getTransactionReceipt(HASH, { signal })).toMatchObject({
      transfers: [
        {
          contract: ADDRESS,
          from: `0x${"a1".padStart(40, "0")}`,
          to: `0x${"b2".padStart(40, "0")}`,
          units: 7n,
        },
      ],
    });
    const other = parseHash32(`0x${"ef".repeat(32)}`);
    await expect(client.getTransactionReceipt(other, { signal })).rejects.toBeInstanceOf(NodeFault);
    const none = clientWith({ eth_getTransactionReceipt: null });
    expect(await none.client.getTransactionReceipts([HASH], { signal })).toEqual([undefined]);
  });

  it("read receipts up to a block, and refuse a node that has not come to it", async () => {
    const ask = (block: unknown) =>
      clientWith({ eth_getBlockByNumber: block, eth_getTransactionReceipt: null });
    const late = ask(null).client.getReceiptsUpTo(16, [HASH], { signal });
    await expect(late).rejects.toMatchObject({ code: "BAD_ANSWER" });
    const { client, calls } = ask({ hash: HASH });
    expect(await client.getReceiptsUpTo(16, [HASH], { signal })).toEqual([undefined]);
    expect(calls.map(({ params }) => params)).toEqual([["0x10", false], [HASH]]);
  });

  it("read a journal with failed changes, and refuse one of another block or out of order", async () => {
    const { client } = clientWith({ causeway_getBlockJournal: journal });
    const block = await client.blockJournal(HASH, { signal });
    expect(block).toMatchObject({
      height: 3,
      timestampMs: 1_790_000_000_123,
      mintedAtoken: 1_000n,
    });
    expect(block?.transactions[0]).toMatchObject({
      status: 0,
      nonce: 2n ** 64n - 1n,
      to: undefined,
    });
    expect(block?.transactions[0]?.changes).toEqual([
      {
        reason: "CALL",
        from: ADDRESS,
        to: undefined,
        amountAtoken: 2n ** 256n - 1n,
        effective: false,
        tracePath: "0_1",
        error: "out of gas",
      },
    ]);
    expect(block?.transactions[0]?.logs).toEqual([
      { address: ADDRESS, topics: [HASH], data: "0xc0ffee" },
    ]);
    const other = parseHash32(`0x${"ef".repeat(32)}`);
    await expect(client.blockJournal(other, { signal })).rejects.toBeInstanceOf(NodeFault);
    const [transaction] = journal.transactions;
    for (const wrong of [
      { ...journal, transactions: [{ ...transaction, index: 1 }] },
      { ...journal, minted: "1000" },
      { ...journal, timestampMs: "0x1" },
      { ...journal, blockChanges: [{ reason: "GIFT" }] },
      { ...journal, transactions: [{ ...transaction, status: "0x2" }] },
      { ...journal, transactions: [{ ...transaction, logs: undefined }] },
      ...[
        { address: ADDRESS, topics: Array.from({ length: 5 }, () => HASH), data: "0x" },
        { address: ADDRESS, topics: ["0x01"], data: "0x" },
        { address: ADDRESS, topics: [], data: "0x0" },
        { address: "0x01", topics: [], data: "0x" },
        { address: ADDRESS, topics: [] },
        null,
      ].map((log) => ({ ...journal, transactions: [{ ...transaction, logs: [log] }] })),
    ]) {
      const broken = clientWith({ causeway_getBlockJournal: wrong });
      await expect(broken.client.blockJournal(HASH, { signal })).rejects.toMatchObject({
        code: "BAD_ANSWER",
      });
    }
    const none = clientWith({ causeway_getBlockJournal: null });
    expect(await none.client.blockJournal(HASH, { signal })).toBeUndefined();
  });

  it("read an account's journal page by page", async () => {
    const entry = {
      blockNumber: "0x3",
      blockHash: HASH,
      transactionHash: null,
      transactionIndex: 1,
      operationIndex: 2,
      delta: "-5",
      change: {
        reason: "FEE_BURN",
        from: ADDRESS,
        to: null,
        amount: "0x5",
        effective: true,
        tracePath: null,
        error: null,
      },
    };
    const range = { from: 1, to: 20 };
    const { client, calls } = clientWith({
      eth_getBlockByNumber: { hash: HASH },
      causeway_getAccountJournal: { entries: [entry], next: 9 },
    });
    const page = await client.accountJournal(ADDRESS, range, { signal });
    expect(page.next).toBe(9);
    expect(page.entries[0]).toMatchObject({
      height: 3,
      transactionHash: undefined,
      deltaAtoken: -5n,
    });
    expect(calls.at(-1)?.params).toEqual([ADDRESS, "0x1", "0x14"]);
    // One that is behind gives what it has; others give what would be booked twice, or for ever.
    for (const [block, entries, next] of [
      [null, [entry], null],
      [{}, [entry], 1],
      [{}, [entry], 3],
      [{}, [], 1],
      [{}, [], 21],
      [{}, [{ ...entry, blockNumber: "0x0" }], null],
      [{}, [{ ...entry, blockNumber: "0x15" }], null],
      [{}, [{ ...entry, blockNumber: "0x4" }, entry], null],
    ] as const) {
      const { client: other } = clientWith({
        eth_getBlockByNumber: block,
        causeway_getAccountJournal: { entries, next },
      });
      await expect(other.accountJournal(ADDRESS, range, { signal })).rejects.toMatchObject({
        code: "BAD_ANSWER",
      });
    }
  });

  it("read heights of an account, and refuse any that could make a reader skip a block", async () => {
    const range = { from: 3, to: 9 };
    const ask = (answer: unknown, block: unknown = { hash: HASH }) => {
      const { client, calls } = clientWith({
        eth_getBlockByNumber: block,
        causeway_getAccountHeights: answer,
      });
      return { calls, page: client.accountHeights(ADDRESS, range, { signal }) };
    };
    const good = ask({ heights: [3, 5, 8], next: 9 });
    expect(await good.page).toEqual({ heights: [3, 5, 8], next: 9 });
    expect(good.calls.map(({ params }) => params)).toEqual([
      ["0x9", false],
      [ADDRESS, "0x3", "0x9"],
    ]);
    // A node that does not have the last block knows nothing of what is in it.
    await expect(ask({ heights: [3], next: null }, null).page).rejects.toMatchObject({
      code: "BAD_ANSWER",
    });
    expect(await ask({ heights: [], next: null }).page).toEqual({ heights: [], next: undefined });
    for (const answer of [
      null,
      [],
      { heights: [2], next: null },
      { heights: [10], next: null },
      { heights: [5, 5], next: null },
      { heights: [6, 5], next: null },
      { heights: [5, 8], next: 8 },
      { heights: [5], next: 10 },
      { heights: ["0x5"], next: null },
      { heights: [5.5], next: null },
      { next: null },
    ]) {
      await expect(ask(answer).page).rejects.toMatchObject({ code: "BAD_ANSWER" });
    }
  });

  it("read every transaction status", async () => {
    const cases = [
      [{ status: "pending" }, { status: "pending" }],
      [{ status: "unknown" }, { status: "unknown" }],
      [
        { status: "queued", missingNonce: "0x5" },
        { status: "queued", missingNonce: 5n },
      ],
      [
        { status: "queued", missingNonce: "0x5", reason: "insufficient\u001b funds" },
        { status: "queued", missingNonce: 5n, reason: "insufficient\ufffd funds" },
      ],
      [
        { status: "included", height: "0x5", index: "0x1" },
        { status: "included", height: 5, index: 1 },
      ],
      [
        { status: "replaced", by: HASH },
        { status: "replaced", by: HASH },
      ],
      [
        { status: "dropped", reason: "expired" },
        { status: "dropped", reason: "expired" },
      ],
    ];
    for (const [answer, expected] of cases) {
      const { client } = clientWith({ causeway_getTransactionStatus: answer });
      expect(await client.transactionStatus(HASH, { signal })).toEqual(expected);
    }
    const { client } = clientWith({ causeway_getTransactionStatus: { status: "lost" } });
    await expect(client.transactionStatus(HASH, { signal })).rejects.toBeInstanceOf(NodeFault);
  });

  it("keep the outcome of each transaction of a batch", async () => {
    const refusal = new RpcError("nonce too low", {
      rpcCode: -32000,
      method: "eth_sendRawTransaction",
    });
    const accepted = clientWith({ eth_sendRawTransaction: HASH });
    expect(await accepted.client.sendRawTransactions(["0x01", "0x02"], { signal })).toEqual([
      { outcome: "accepted", hash: HASH },
      { outcome: "accepted", hash: HASH },
    ]);
    const refused = clientWith({ eth_sendRawTransaction: refusal });
    expect(await refused.client.sendRawTransactions(["0x01"], { signal })).toEqual([
      { outcome: "refused", error: refusal },
    ]);
  });

  it("read where a node's blocks and states begin", async () => {
    const oldestOf = (answer: unknown) =>
      clientWith({ eth_capabilities: answer }).client.oldestHeight({ signal });
    const from = (oldestBlock: string) => ({ disabled: false, oldestBlock });
    expect(await oldestOf({ state: from("0x10"), blocks: from("0x7") })).toBe(16);
    expect(await oldestOf({ state: from("0x0"), blocks: from("0x7") })).toBe(7);
    expect(await oldestOf({ transactionGas: "0x1c9c380" })).toBe(0);
    await expect(oldestOf("0x10")).rejects.toBeInstanceOf(NodeFault);
  });

  it("read the accounts that the chain's genesis names, and keep what was told", async () => {
    const burnAddress = `0x${"b0".repeat(20)}`;
    const { client, calls } = clientWith({
      eth_capabilities: { chainAccounts: { ...USUAL_ACCOUNTS, burnAddress } },
    });
    const accounts = new KnownAccounts(client);
    expect(accounts.current).toEqual(USUAL_ACCOUNTS);
    await accounts.ask({ signal });
    await accounts.ask({ signal });
    expect(accounts.current).toEqual({ ...USUAL_ACCOUNTS, burnAddress });
    expect(calls).toHaveLength(1);
  });

  it("takes the usual ones of a node that names none", async () => {
    const unknown = new RpcError("the method does not exist", {
      rpcCode: -32601,
      method: "eth_capabilities",
    });
    for (const eth_capabilities of [{ transactionGas: "0x1c9c380" }, unknown]) {
      const accounts = new KnownAccounts(clientWith({ eth_capabilities }).client);
      await accounts.ask({ signal });
      expect(accounts.current).toEqual(USUAL_ACCOUNTS);
    }
    const lie = clientWith({ eth_capabilities: { chainAccounts: { burnAddress: "0x1" } } });
    await expect(new KnownAccounts(lie.client).ask({ signal })).rejects.toBeInstanceOf(NodeFault);
  });

  it("read syncing as false or an object, and headers", async () => {
    expect(await clientWith({ eth_syncing: false }).client.isSyncing({ signal })).toBe(false);
    expect(await clientWith({ eth_syncing: {} }).client.isSyncing({ signal })).toBe(true);
    const header = { number: "0x0", hash: HASH, parentHash: HASH, timestamp: "0x10" };
    const { client, calls } = clientWith({ eth_getBlockByNumber: header });
    expect(await client.genesisHash({ signal })).toBe(HASH);
    expect(calls[0]?.params).toEqual(["0x0", false]);
    const empty = clientWith({ eth_getBlockByNumber: null });
    expect(await empty.client.getBlockHeaders([7], { signal })).toEqual([undefined]);
    await expect(empty.client.genesisHash({ signal })).rejects.toBeInstanceOf(NodeFault);
  });
});

describe("refusals of a raw transaction", () => {
  it.each([
    ["POOL_FULL", "POOL_FULL"],
    ["UNDERPRICED", "POOL_FULL"],
    ["NODE_HALTED", "NODE_HALTED"],
    ["GAS_PRICE_BELOW_MINIMUM", "GAS_PRICE_TOO_LOW"],
    ["UNPROTECTED", "WRONG_CHAIN_ID"],
    ["constructor", "OTHER"],
  ])("are read from the node's own code first: %s", (reason, meaning) => {
    const rpc = { rpcCode: -32000, method: "m", data: { reason } };
    expect(submitRefusalOf(new RpcError("some text", rpc))).toBe(meaning);
  });

  it.each([
    ["already known", "ALREADY_KNOWN"],
    ["nonce too low: next nonce 8, tx nonce 5", "NONCE_TOO_LOW"],
    ["replacement transaction underpriced", "REPLACEMENT_UNDERPRICED"],
    ["transaction underpriced", "GAS_PRICE_TOO_LOW"],
    ["transaction gas price below minimum: gas tip cap 1, minimum needed 2", "GAS_PRICE_TOO_LOW"],
    ["intrinsic gas too low: gas 20000, minimum needed 21000", "INTRINSIC_GAS_TOO_LOW"],
    ["exceeds block gas limit", "GAS_LIMIT_EXCEEDED"],
    [
      "insufficient funds for gas * price + value: balance 1, tx cost 2, overshot 1",
      "INSUFFICIENT_FUNDS",
    ],
    ["txpool is full", "POOL_FULL"],
    ["account limit exceeded", "ACCOUNT_LIMIT"],
    ["invalid sender: invalid chain id for signer: have 1 want 6940", "WRONG_CHAIN_ID"],
    ["only replay-protected (EIP-155) transactions allowed over RPC", "WRONG_CHAIN_ID"],
    ["transaction type not supported", "TYPE_NOT_SUPPORTED"],
    ["the node is halted: disk full", "NODE_HALTED"],
    ["who knows", "OTHER"],
  ])("are read from geth's text: %s", (text, meaning) => {
    const refusal = submitRefusalOf(new RpcError(text, { rpcCode: -32000, method: "m" }));
    expect(refusal).toBe(meaning);
  });
});
