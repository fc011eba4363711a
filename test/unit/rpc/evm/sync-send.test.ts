/** eth_sendRawTransactionSync: the receipt of what was sent, as soon as a block has it. */
import { setImmediate as turn } from "node:timers/promises";
import { beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { AppError } from "../../../../chain/errors.js";
import { decodeTransaction } from "../../../../chain/transaction.js";
import { parseHexBytes } from "../../../../chain/hex.js";
import { MAX_WAITING_SENDS } from "../../../../node/rpc/evm/receipt-waits.js";
import { RequestContext } from "../../../../node/rpc/evm/request-context.js";
import {
  ALICE,
  BOB,
  createTestNode,
  signLegacy,
  type TestAnswer,
  type TestTransaction,
} from "./fixture.js";

const SEND = "eth_sendRawTransactionSync";

let node: ReturnType<typeof createTestNode>;
beforeEach(() => {
  node = createTestNode();
});

const signed = (nonce: number) => signLegacy(ALICE, { nonce, to: BOB.address });

/** Sends, and waits until the pool has it. */
async function sendAndWait(raw: string, ...more: readonly unknown[]) {
  const state: { answer: TestAnswer | undefined } = { answer: undefined };
  const answered = node.ask(SEND, raw, ...more).then((answer) => (state.answer = answer));
  while (node.pool.submitted.length === 0 && state.answer === undefined) await turn();
  await turn();
  return { state, answered };
}

/** Sends in a request that has so much time. */
async function askFor(timeoutMs: number, ...params: readonly unknown[]): Promise<TestAnswer> {
  const context = new RequestContext(timeoutMs, undefined);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: SEND, params });
  const reply = await node.api.dispatcher.handle(Buffer.from(body), context);
  context.finish();
  return JSON.parse(reply?.map(String).join("") ?? "") as TestAnswer;
}

it("answers with the receipt once the transaction is in a block, and not before", async () => {
  const raw = await signed(0);
  const { state, answered } = await sendAndWait(raw);
  expect(node.pool.submitted.flat()).toEqual([parseHexBytes(raw)]);
  node.chain.add([]);
  node.chain.add([{ raw: await signed(7) }]);
  await turn();
  expect(state.answer).toBeUndefined();
  node.chain.add([{ raw: await signed(8) }, { raw, status: 0 }]);
  const { result } = await answered;
  expect(result).toMatchObject({
    transactionHash: keccak256(raw),
    blockNumber: "0x3",
    transactionIndex: "0x1",
    status: "0x0",
  });
  expect(result).toEqual(await node.call("eth_getTransactionReceipt", keccak256(raw)));
});

it("finds a block that came before the pool's answer did", async () => {
  const raw = await signed(0);
  node.pool.answer = (bytes) => {
    node.chain.add([{ raw }]);
    return decodeTransaction(bytes).hash;
  };
  expect(await node.call(SEND, raw, 20_000)).toMatchObject({ blockNumber: "0x1" });
});

it("names the transaction where its time is over, as go-ethereum does", async () => {
  const raw = await signed(0);
  const text = "The transaction was added to the transaction pool but wasn't processed in";
  const error = { code: 4, message: `${text} 2ms`, data: keccak256(raw) };
  // viem and newer versions of go-ethereum write a number, go-ethereum 1.16.7 a quantity.
  for (const waitMs of [2, "0x2"]) expect((await node.ask(SEND, raw, waitMs)).error).toEqual(error);
  // So it is, too, where the request's time is over first.
  expect((await askFor(1, raw, null)).error).toMatchObject({ code: 4, data: keccak256(raw) });
});

it("says how long it has waited where the request's time is over first", async () => {
  const raw = await signed(0);
  node.pool.answer = (bytes) => {
    node.time.nowMs += 1_250;
    return decodeTransaction(bytes).hash;
  };
  const { error } = await askFor(1, raw);
  expect(error?.message).toMatch(/wasn't processed in 1\.25s$/);
});

it("sends all of a batch at once, and answers with their receipts once a block has them", async () => {
  const raws = await Promise.all(Array.from({ length: 40 }, (_, nonce) => signed(nonce)));
  const posted = node.post(
    raws.map((raw, id) => ({ jsonrpc: "2.0", id, method: SEND, params: [raw] })),
  );
  for (let count = 0; count < 20; count++) await turn();
  expect(node.pool.submitted.map((list) => list.length)).toEqual([raws.length]);
  node.chain.add(raws.map((raw) => ({ raw })));
  const answers = (await posted) as { readonly result: unknown }[];
  expect(answers).toMatchObject(
    raws.map((raw) => ({ result: { transactionHash: keccak256(raw) } })),
  );
});

/** Signed with gas for many logs, which make a receipt that is large. */
async function largeReceipt(nonce: number): Promise<TestTransaction> {
  const raw = await ALICE.signTransaction({
    type: 0,
    chainId: 6940,
    nonce,
    gasPrice: 25_000_000n,
    gasLimit: 4_000_000n,
    to: BOB.address,
  });
  const log = { address: parseAddress(BOB.address), topics: [], data: new Uint8Array(700_000) };
  return { raw, logs: [log] };
}

it("makes large receipts of a batch up one after the other, whichever was sent first", async () => {
  const sent = await Promise.all([0, 1, 2, 3].map(largeReceipt));
  const entry = (method: string, ...params: unknown[]) => ({
    jsonrpc: "2.0",
    id: method,
    method,
    params,
  });
  // A poll waits for what comes before it, and large receipts behind it are made meanwhile.
  const [first, ...rest] = sent.map(({ raw }) => entry(SEND, raw));
  const posted = node.post([first, entry("eth_getFilterChanges", "0x1"), ...rest]);
  for (let count = 0; count < 5; count++) await turn();
  node.chain.add(sent);
  const [one, , ...others] = (await posted) as { readonly result: unknown }[];
  expect([one, ...others]).toMatchObject(
    sent.map(({ raw }) => ({ result: { transactionHash: keccak256(raw) } })),
  );
});

it("names the transaction, too, where there is no time for its receipt", async () => {
  const sent = await largeReceipt(0);
  const { hash } = decodeTransaction(parseHexBytes(sent.raw));
  node.chain.add([sent]);
  // Two that were made and not handed over have all places of large answers.
  const others = [0, 1].map(() => new RequestContext(60_000, undefined));
  const read = { jsonrpc: "2.0", id: 1, method: "eth_getTransactionReceipt", params: [hash] };
  for (const context of others) {
    await node.api.dispatcher.handle(Buffer.from(JSON.stringify(read)), context);
  }
  const { error } = await askFor(50, sent.raw);
  expect(error).toEqual({
    code: 4,
    message: "The transaction is in a block, but its receipt could not be made in time",
    data: hash,
  });
  for (const context of others) context.finish();
});

it("refuses what eth_sendRawTransaction refuses, without waiting", async () => {
  const raw = await signed(0);
  node.pool.answer = () => new AppError("NONCE_TOO_LOW", "nonce too low: next nonce 8, tx nonce 0");
  const refused = await node.ask(SEND, raw);
  expect(refused.error).toMatchObject({
    code: -32000,
    message: expect.stringMatching(/^nonce too/),
  });
  expect(refused.error).toEqual((await node.ask("eth_sendRawTransaction", raw)).error);
  expect((await node.ask(SEND, "0x0a00")).error).toMatchObject({
    message: "transaction type not supported",
  });
  node.pool.submitted.length = 0;
  for (const waitMs of ["soon", -1, 1.5, true, {}]) {
    expect((await node.ask(SEND, raw, waitMs)).error?.code).toBe(-32602);
  }
  expect(node.pool.submitted).toEqual([]);
});

it("keeps no more waiting than its bound, and nobody who is gone", async () => {
  const raws = await Promise.all(Array.from({ length: 3 }, (_, nonce) => signed(nonce)));
  const contexts: RequestContext[] = [];
  const send = async (raw: string | undefined): Promise<TestAnswer> => {
    const context = new RequestContext(300_000, undefined);
    contexts.push(context);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: SEND, params: [raw] });
    const reply = await node.api.dispatcher.handle(Buffer.from(body), context);
    context.finish();
    return JSON.parse(reply?.map(String).join("") ?? "") as TestAnswer;
  };
  const waiting = Array.from({ length: MAX_WAITING_SENDS }, () => send(raws[0]));
  expect((await send(raws[1])).error).toEqual({
    code: -32005,
    message: "too many transactions are waited for",
  });
  const gone = contexts[0];
  gone?.cancel();
  await waiting[0];
  const next = send(raws[2]);
  await turn();
  node.chain.add([{ raw: raws[0] ?? "" }, { raw: raws[2] ?? "" }]);
  expect((await next).result).toMatchObject({ transactionIndex: "0x1" });
  const rest = await Promise.all(waiting.slice(1));
  expect(rest.every(({ result }) => result !== undefined)).toBe(true);
});
