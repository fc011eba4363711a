/** /mempool and /mempool/transaction over a scripted node; identities from ethers. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { getAddress, getCreateAddress, Interface } from "ethers";
import { assertOperations } from "../asserter.js";
import {
  ALICE,
  BOB,
  CONTRACT,
  hashOf,
  startFakeChain,
} from "../../../helpers/chains/journal-chain.js";
import { type FakeNode, RpcFault } from "../../../helpers/chains/fake-node.js";
import { CURRENCY, GOLD, REGISTRY } from "../../../helpers/chains/known-tokens.js";
import type { ReplyOperation } from "../replies.js";
import { routeServer, type RouteServer } from "../route-server.js";
import { call } from "../servers.js";

const HASH = hashOf("waiting");
const erc20 = new Interface(["function transfer(address,uint256)"]);
const goldContract = GOLD.metadata.contractAddress;
const transferOf = (amount: bigint) => erc20.encodeFunctionData("transfer", [BOB, amount]);

/** A transaction of the pool as the node writes it. */
const waiting = (fields: Record<string, unknown> = {}) => ({
  blockHash: null,
  blockNumber: null,
  transactionIndex: null,
  type: "0x0",
  hash: HASH,
  from: ALICE,
  to: BOB,
  nonce: "0x7",
  gas: "0x5208",
  gasPrice: "0x17d7840",
  value: "0x9",
  input: "0x",
  ...fields,
});

describe("the pool's endpoints", () => {
  let node: FakeNode;
  let online: RouteServer;
  const serve = (fields: Record<string, unknown>, status: unknown = { status: "pending" }) => {
    node.methods.set("eth_getTransactionByHash", () => waiting(fields));
    node.methods.set("causeway_getTransactionStatus", () => status);
  };
  const ask = (hash: string = HASH) =>
    call(online.server, "/mempool/transaction", { transaction_identifier: { hash } });
  const sides = (operations: readonly ReplyOperation[]) =>
    operations.map(({ type, account, amount, related_operations: related }) => [
      type,
      account.address,
      amount?.value,
      amount?.currency,
      related?.map(({ index }) => index),
    ]);

  beforeAll(async () => {
    node = await startFakeChain();
    online = routeServer(node.url, { registry: REGISTRY });
  });
  afterEach(() => {
    node.methods.delete("eth_getTransactionByHash");
    node.reset();
  });
  afterAll(async () => {
    online.close();
    await node.close();
  });

  it("lists every hash of the pool, the executable ones first", async () => {
    const [a, b, c] = [hashOf("a"), hashOf("b"), hashOf("c")];
    node.methods.set("causeway_getPoolHashes", () => ({ pending: [a, b], queued: [c] }));
    const { status, body } = await call(online.server, "/mempool");
    expect([status, body]).toEqual([
      200,
      { transaction_identifiers: [{ hash: a }, { hash: b }, { hash: c }] },
    ]);
    node.methods.set("causeway_getPoolHashes", () => ({ pending: [], queued: ["0x1"] }));
    expect((await call(online.server, "/mempool")).body.code).toBe(106);
    node.methods.set("causeway_getPoolHashes", () => ({ pending: [] }));
    expect((await call(online.server, "/mempool")).body.code).toBe(106);
  });

  it("shows a transfer as the pair it intends, with a status that Mesh's asserter takes", async () => {
    serve({ input: `0x${Buffer.from("hello").toString("hex")}` });
    const { status, body } = await ask();
    expect(status).toBe(200);
    const { allow } = (await call(online.server, "/network/options")).body;
    assertOperations(body.transaction.operations, { allow, construction: false });
    expect(body.transaction.transaction_identifier).toEqual({ hash: HASH });
    expect(sides(body.transaction.operations)).toEqual([
      ["CALL", getAddress(ALICE), "-9", CURRENCY, undefined],
      ["CALL", getAddress(BOB), "9", CURRENCY, [0]],
    ]);
    expect(body.transaction.metadata).toEqual({
      pool_status: "pending",
      nonce: "7",
      gas_price: "25000000",
      gas_limit: "21000",
      max_fee: "525000000000",
      memo: "hello",
    });
  });

  it("shows a queued one with the nonce that it waits for", async () => {
    serve({}, { status: "queued", missingNonce: "0x5" });
    expect((await ask()).body.transaction.metadata).toMatchObject({
      pool_status: "queued",
      missing_nonce: "5",
      nonce: "7",
    });
  });

  it("names no nonce as missing where the sender's next one waits for something else", async () => {
    const reason = "insufficient funds for gas * price + value";
    serve({}, { status: "queued", missingNonce: "0x7", reason });
    const { metadata } = (await ask()).body.transaction;
    expect(metadata).toMatchObject({ pool_status: "queued", wait_reason: reason, nonce: "7" });
    expect(metadata).not.toHaveProperty("missing_nonce");
  });

  it("shows the contract that a creation would make", async () => {
    serve({ to: null, input: "0x6001", value: "0x0" });
    const { transaction } = (await ask()).body;
    const created = getCreateAddress({ from: ALICE, nonce: 7 });
    expect(sides(transaction.operations)).toEqual([
      ["CREATE", getAddress(ALICE), "0", CURRENCY, undefined],
      ["CREATE", created, "0", CURRENCY, [0]],
    ]);
    expect(transaction.metadata).not.toHaveProperty("memo");
  });

  it("adds the token's pair for transfer(address,uint256) of a registered token only", async () => {
    const input = transferOf(5_000_000n);
    serve({ to: goldContract.toLowerCase(), value: "0x0", input });
    expect(sides((await ask()).body.transaction.operations)).toEqual([
      ["CALL", getAddress(ALICE), "0", CURRENCY, undefined],
      ["CALL", goldContract, "0", CURRENCY, [0]],
      ["ERC20_TRANSFER", getAddress(ALICE), "-5000000", GOLD, undefined],
      ["ERC20_TRANSFER", getAddress(BOB), "5000000", GOLD, [2]],
    ]);
    for (const other of [
      { to: CONTRACT, input },
      { to: goldContract.toLowerCase(), input: `${input}00` },
      { to: goldContract.toLowerCase(), input: input.replace("a9059cbb", "095ea7b3") },
      {
        to: goldContract.toLowerCase(),
        input: input.replace("0".repeat(24), `1${"0".repeat(23)}`),
      },
    ]) {
      serve({ value: "0x0", ...other });
      const { operations } = (await ask()).body.transaction;
      expect({ other, types: operations.map(({ type }) => type) }).toEqual({
        other,
        types: ["CALL", "CALL"],
      });
    }
  });

  it("adds the token's pair of one to the sender itself, as its block will", async () => {
    const input = transferOf(5n).replace(BOB.slice(2), ALICE.slice(2));
    serve({ to: goldContract.toLowerCase(), value: "0x0", input });
    expect(sides((await ask()).body.transaction.operations).slice(2)).toEqual([
      ["ERC20_TRANSFER", getAddress(ALICE), "-5", GOLD, undefined],
      ["ERC20_TRANSFER", getAddress(ALICE), "5", GOLD, [2]],
    ]);
  });

  it.each([
    ["never seen", null, { status: "unknown" }],
    ["mined", waiting({ blockHash: HASH, blockNumber: "0x1" }), statusOf("included")],
    ["replaced", null, { status: "replaced", by: HASH }],
    ["dropped", null, { status: "dropped", reason: "expired" }],
    ["gone between the two answers", null, { status: "pending" }],
  ])("answers NOT_IN_MEMPOOL for one that is %s", async (_name, found, status) => {
    node.methods.set("eth_getTransactionByHash", () => found);
    node.methods.set("causeway_getTransactionStatus", () => status);
    const answer = await ask();
    expect([answer.status, answer.body]).toEqual([
      500,
      expect.objectContaining({ code: 210, retriable: false, details: { hash: HASH } }),
    ]);
  });

  it("refuses a malformed hash, and does not believe an answer about another one", async () => {
    expect((await ask("0x12")).body.code).toBe(1);
    serve({ hash: hashOf("other") });
    expect((await ask()).body.code).toBe(106);
    serve({ nonce: 7 });
    expect((await ask()).body.code).toBe(106);
    node.methods.set("eth_getTransactionByHash", () => {
      throw new RpcFault(-32005, "busy");
    });
    expect((await ask()).body.code).toBe(104);
  });
});

function statusOf(status: "included") {
  return { status, height: "0x1", index: "0x0" };
}
