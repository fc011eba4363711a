import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { getAddress } from "ethers";
import request from "supertest";
import {
  ALICE,
  balanceAt,
  BOB,
  change,
  COLLECTOR,
  CONTRACT,
  hashOf,
  journals,
  startFakeChain,
  TOKEN,
} from "../../../helpers/chains/journal-chain.js";
import { type FakeNode, RpcFault } from "../../../helpers/chains/fake-node.js";
import { call, NETWORK, type Online, onlineServer } from "../servers.js";

const ALICE_CHECKSUM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

interface Opened {
  readonly node: FakeNode;
  readonly online: Online;
}

/** One chain and server for tests that change nothing, as building a server takes a while. */
let shared: Opened;
const opened: Opened[] = [];

async function open(...options: Parameters<typeof startFakeChain>): Promise<Opened> {
  const node = await startFakeChain(...options);
  const made = { node, online: onlineServer(node.url) };
  opened.push(made);
  return made;
}

beforeAll(async () => {
  shared = await open();
  await shared.online.indexed(2);
});

beforeEach(() => shared.node.reset());

afterAll(async () => {
  for (const { node, online } of opened) {
    await online.rpc.close();
    await node.close();
  }
});

const post = (path: string, fields: Record<string, unknown> = {}, at = shared) =>
  call(at.online.server, path, fields);

const block = (identifier: Record<string, unknown>, at = shared) =>
  post("/block", { block_identifier: identifier }, at);

const askTransaction = (index: number, hash: string) =>
  post("/block/transaction", {
    block_identifier: { index, hash: hashOf(`block ${index}`) },
    transaction_identifier: { hash },
  });

const askBalance = (fields: Record<string, unknown>) =>
  post("/account/balance", { account_identifier: { address: ALICE }, ...fields });

describe("/block", () => {
  it("tells a transfer as FEE and CALL pairs with the block-level movements last", async () => {
    const { status, body } = await block({ index: 1 });
    expect(status).toBe(200);
    const { transactions, ...head } = body.block;
    expect(head).toEqual({
      block_identifier: { index: 1, hash: hashOf("block 1") },
      parent_block_identifier: { index: 0, hash: hashOf("block 0") },
      timestamp: 1_790_000_002_123,
      metadata: {
        consensus_block_hash: hashOf("consensus header 1"),
        minted: "1000",
        burned: "525000000000",
        operations_sum: "-524999999000",
        accounts_changed: 4,
      },
    });
    expect(transactions).toHaveLength(3);
    const currency = { symbol: "TOKEN", decimals: 18 };
    expect(transactions[0]?.operations).toEqual([
      {
        operation_identifier: { index: 0 },
        type: "FEE",
        status: "SUCCESS",
        account: { address: ALICE_CHECKSUM },
        amount: { value: "-525000000000", currency },
      },
      {
        operation_identifier: { index: 1 },
        related_operations: [{ index: 0 }],
        type: "FEE",
        status: "SUCCESS",
        account: { address: getAddress(COLLECTOR) },
        amount: { value: "525000000000", currency },
      },
      {
        operation_identifier: { index: 2 },
        type: "CALL",
        status: "SUCCESS",
        account: { address: ALICE_CHECKSUM },
        amount: { value: (-TOKEN).toString(), currency },
      },
      {
        operation_identifier: { index: 3 },
        related_operations: [{ index: 2 }],
        type: "CALL",
        status: "SUCCESS",
        account: { address: "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359" },
        amount: { value: TOKEN.toString(), currency },
      },
    ]);
    expect(transactions[0]?.metadata).toEqual({
      status: "SUCCESS",
      nonce: "0",
      gas_used: "21000",
      gas_price: "25000000",
    });
    expect(transactions[1]?.metadata.memo).toBe("invoice 7 – danke");
    expect(transactions[2]?.transaction_identifier.hash).toBe(hashOf("block 1"));
    expect(transactions[2]?.operations.map((operation) => operation.type)).toEqual([
      "FEE_BURN",
      "TREASURY",
      "TREASURY",
      "MINT",
    ]);
  });

  it("shows inner calls with their path, failures with their error, input bounded", async () => {
    const { body } = await block({ index: 2 });
    const [forward, failed, create] = body.block.transactions;
    expect(forward?.operations[4]?.metadata).toEqual({ trace_path: "0_1" });
    expect(forward?.operations[2]?.metadata).toBeUndefined();
    expect(forward?.metadata.input).toHaveLength(2 + 2 * 1_024);
    expect(forward?.metadata.input_size_bytes).toBe(2_004);
    expect(forward?.metadata.memo).toBeUndefined();
    expect(failed?.metadata.status).toBe("FAILURE");
    // The beginning of a text is no memo.
    expect(failed?.metadata).toMatchObject({ input_size_bytes: 1_500 });
    expect(failed?.metadata.memo).toBeUndefined();
    expect(failed?.operations.map((operation) => operation.status)).toEqual([
      "SUCCESS",
      "SUCCESS",
      "FAILURE",
      "FAILURE",
    ]);
    expect(failed?.operations[2]?.metadata).toEqual({ error: "execution reverted" });
    expect(create?.metadata["contract_address"]?.toLowerCase()).toBe(CONTRACT);
    expect(create?.operations[2]).toMatchObject({ type: "CREATE", amount: { value: "0" } });
  });

  it("makes genesis its own parent and books every genesis balance", async () => {
    const { body } = await block({ index: 0 });
    const genesis = { index: 0, hash: hashOf("block 0") };
    expect(body.block.block_identifier).toEqual(genesis);
    expect(body.block.parent_block_identifier).toEqual(genesis);
    expect(body.block.transactions).toHaveLength(1);
  });

  it("gives the same bytes by index, hash, both and tip, the first time and every later one", async () => {
    const first = await block({ index: 2 });
    const references = [
      { index: 2 },
      { hash: hashOf("block 2") },
      { hash: hashOf("block 2").toUpperCase().replace("0X", "0x") },
      { index: 2, hash: hashOf("block 2") },
      {},
    ];
    for (const reference of [...references, ...references]) {
      const { status, text } = await block(reference);
      expect({ reference, status, same: text === first.text }).toEqual({
        reference,
        status: 200,
        same: true,
      });
    }
  });

  it("reads a block from the node once, also for requests at the same time", async () => {
    const fresh = await open();
    await Promise.all([1, 2, 3, 4].map(() => block({ index: 1 }, fresh)));
    await block({ index: 1 }, fresh);
    await fresh.online.indexed(2);
    const reads = fresh.node.calls.filter((made) => made.method === "causeway_getBlockJournal");
    expect(reads).toHaveLength(3);
  });

  it("answers a repeated body from memory, and never another network's", async () => {
    const fresh = await open();
    const asked = [1, 2, 3].map(() => block({ index: 1 }, fresh));
    await Promise.all(asked);
    await block({ index: 1 }, fresh);
    const before = fresh.node.calls.length;
    await fresh.node.close();
    expect((await block({ index: 1 }, fresh)).status).toBe(200);
    expect(fresh.node.calls).toHaveLength(before);
    const other = { blockchain: "token", network: "mainnet" };
    const fields = { block_identifier: { index: 1 } };
    const { body } = await call(fresh.online.server, "/block", fields, other);
    expect(body.code).toBe(2);
  });

  it("follows the tip", async () => {
    const blocks = journals();
    const third = blocks.pop();
    const growing = await open({}, blocks);
    const tip = async () => (await block({}, growing)).body.block.block_identifier.index;
    expect([await tip(), await tip()]).toEqual([1, 1]);
    blocks.push(third ?? {});
    expect(await tip()).toBe(2);
  });

  it.each([
    ["an index above the tip", { index: 3 }, 202, true],
    ["a hash above the tip", { index: 3, hash: `0x${"ab".repeat(32)}` }, 202, true],
    ["an unknown hash at a height", { index: 2, hash: `0x${"ab".repeat(32)}` }, 201, false],
    ["an unknown hash", { hash: `0x${"ab".repeat(32)}` }, 201, false],
    ["index and hash that disagree", { index: 1, hash: hashOf("block 2") }, 203, false],
    ["a known hash above the tip", { index: 3, hash: hashOf("block 2") }, 203, false],
    ["an empty hash", { hash: "" }, 1, false],
    ["a short hash", { hash: "0xab" }, 1, false],
    ["a negative index", { index: -1 }, 1, false],
    ["an index beyond 2^53", { index: 2 ** 53 }, 1, false],
    ["an unknown field", { index: 1, height: 1 }, 1, false],
  ])("refuses %s", async (_name, identifier, code, retriable) => {
    const { status, body } = await block(identifier);
    expect({ status, code: body.code, retriable: body.retriable }).toEqual({
      status: 500,
      code,
      retriable,
    });
  });

  it("refuses to serve a block whose operations do not add up", async () => {
    const blocks = journals();
    const last = blocks[2];
    if (last === undefined) throw new Error("no block");
    (last["blockChanges"] as unknown[]).push(change({ reason: "MINT", to: BOB, amount: 1n }));
    const broken = await open({}, blocks);
    const { status, body } = await block({ index: 2 }, broken);
    expect([status, body.code]).toEqual([500, 209]);
    expect((await block({ index: 1 }, broken)).status).toBe(200);
  });

  it("says what is wrong with the node, and never accepts that a block changes", async () => {
    const fresh = await open();
    const { node } = fresh;
    node.methods.set("causeway_getBlockJournal", () => ({ nonsense: true }));
    expect((await block({ index: 1 }, fresh)).body.code).toBe(106);
    node.methods.set("causeway_getBlockJournal", () => {
      throw new RpcFault(4444, "pruned history unavailable");
    });
    expect((await block({ index: 1 }, fresh)).body.code).toBe(204);
    node.methods.set("eth_getBlockByNumber", () => ({
      number: "0x1",
      hash: hashOf("another"),
      parentHash: hashOf("block 0"),
      timestamp: "0x6ab13b80",
    }));
    expect((await block({}, fresh)).body.code).toBe(106);
    await node.close();
    const { body } = await block({ index: 1 }, fresh);
    expect([body.code, body.retriable]).toEqual([101, true]);
  });
});

describe("/block/transaction", () => {
  it("gives exactly the transaction of /block, checked or kept", async () => {
    const early = await askTransaction(1, hashOf("memo"));
    const whole = await block({ index: 1 });
    const late = await askTransaction(1, hashOf("memo"));
    expect(early.body.transaction).toEqual(whole.body.block.transactions[1]);
    expect(late.text).toBe(early.text);
    const last = await askTransaction(1, hashOf("block 1"));
    expect(last.body.transaction).toEqual(whole.body.block.transactions[2]);
  });

  it("refuses a transaction of another block", async () => {
    const { status, body } = await askTransaction(2, hashOf("memo"));
    expect([status, body.code]).toEqual([500, 205]);
  });
});

describe("/account/balance", () => {
  it.each([
    ["an index", { index: 1 }, 1],
    ["a hash", { hash: hashOf("block 0") }, 0],
    ["both", { index: 2, hash: hashOf("block 2") }, 2],
    ["neither", {}, 2],
  ])("belongs to the block it names: %s", async (_name, reference, height) => {
    const { status, body } = await askBalance({ block_identifier: reference });
    expect(status).toBe(200);
    expect(body).toEqual({
      block_identifier: { index: height, hash: hashOf(`block ${height}`) },
      balances: [
        { value: balanceAt(height).toString(), currency: { symbol: "TOKEN", decimals: 18 } },
      ],
      metadata: { nonce: String(height) },
    });
  });

  it("takes the tip when no block is named and lists the one currency asked for", async () => {
    const { body } = await askBalance({ currencies: [{ symbol: "TOKEN", decimals: 18 }] });
    expect(body.block_identifier.index).toBe(2);
    expect(body.balances).toHaveLength(1);
  });

  it.each([
    ["another currency", { currencies: [{ symbol: "GOLD", decimals: 18 }] }, 208],
    ["other decimals", { currencies: [{ symbol: "TOKEN", decimals: 6 }] }, 208],
    [
      "the same currency twice",
      { currencies: [1, 2].map(() => ({ symbol: "TOKEN", decimals: 18 })) },
      1,
    ],
    [
      "a wrong checksum",
      { account_identifier: { address: ALICE_CHECKSUM.replace("5aA", "5Aa") } },
      206,
    ],
    ["bech32", { account_identifier: { address: "addr1xyz" } }, 206],
    ["an empty address", { account_identifier: { address: "" } }, 1],
    [
      "a sub-account",
      { account_identifier: { address: ALICE, sub_account: { address: "x" } } },
      207,
    ],
    ["metadata", { account_identifier: { address: ALICE, metadata: { a: 1 } } }, 206],
    ["a block above the tip", { block_identifier: { index: 9 } }, 202],
  ])("refuses %s", async (_name, fields, code) => {
    const { status, body } = await askBalance(fields);
    expect([status, body.code]).toEqual([500, code]);
  });
});

describe("/network", () => {
  it("tells tip, genesis and that it follows", async () => {
    const { status, body } = await post("/network/status");
    expect(status).toBe(200);
    expect(body).toEqual({
      current_block_identifier: { index: 2, hash: hashOf("block 2") },
      current_block_timestamp: 1_790_000_004_123,
      genesis_block_identifier: { index: 0, hash: hashOf("block 0") },
      oldest_block_identifier: { index: 0, hash: hashOf("block 0") },
      sync_status: { current_index: 2, target_index: 2, stage: "following", synced: true },
      peers: [],
    });
  });

  it("names the oldest block that is whole behind a node that prunes", async () => {
    const { node } = shared;
    const identifier = (index: number) => ({ index, hash: hashOf(`block ${index}`) });
    const reaches = (state: string, blocks: string) =>
      node.methods.set("eth_capabilities", () => ({
        head: { number: "0x2", hash: hashOf("block 2") },
        state: { disabled: false, oldestBlock: state },
        blocks: { disabled: false, oldestBlock: blocks },
      }));
    for (const [state, blocks, oldest] of [
      ["0x1", "0x0", 1],
      ["0x0", "0x1", 1],
      // Never above the tip, which is what there is.
      ["0x9", "0x0", 2],
    ] as const) {
      reaches(state, blocks);
      const { body } = await post("/network/status");
      expect(body).toMatchObject({
        genesis_block_identifier: identifier(0),
        oldest_block_identifier: identifier(oldest),
      });
    }
  });

  it("refuses other networks, shards, empty names and none", async () => {
    for (const [network, code] of [
      [{ blockchain: "token", network: "mainnet" }, 2],
      [{ blockchain: "ethereum", network: "testnet" }, 2],
      [{ ...NETWORK, sub_network_identifier: { network: "shard" } }, 2],
      [{ blockchain: "token", network: "" }, 1],
      [null, 1],
    ] as const) {
      const { status, body } = await call(shared.online.server, "/network/options", {}, network);
      expect({ network, status, code: body.code }).toEqual({ network, status: 500, code });
    }
  });
});

describe("the edge", () => {
  it("judges a request around a body that it has answered before like any other", async () => {
    const { app } = shared.online.server;
    const body = JSON.stringify({ network_identifier: NETWORK, block_identifier: { index: 1 } });
    const send = (path: string, type: string) =>
      request(app).post(path).set("content-type", type).send(body);
    expect((await send("/block", "application/json")).status).toBe(200);
    for (const [path, type] of [
      ["/block", "text/plain"],
      ["/block", "application/xml"],
      ["/block?x=1", "application/json"],
    ] as const) {
      const { status, body: refusal } = await send(path, type);
      expect({ path, type, status, code: refusal.code }).toEqual({
        path,
        type,
        status: 500,
        code: 1,
      });
    }
  });

  it("answers 500 with a listed error to whatever it cannot serve", async () => {
    const { app } = shared.online.server;
    const listed = await post("/network/options");
    const codes = new Map(listed.body.allow.errors.map((error) => [error.code, error.message]));
    const replies = await Promise.all([
      request(app).post("/nowhere").send({}),
      request(app).get("/block"),
      request(app).post("/block").set("content-type", "text/plain").send("x"),
      request(app).post("/block").set("content-type", "application/json").send("{"),
      request(app)
        .post("/block")
        .set("content-type", "application/json")
        .send(
          `{"network_identifier":${JSON.stringify(NETWORK)},"block_identifier":{"index":9007199254740993}}`,
        ),
      request(app)
        .post("/block")
        .send({ padding: "x".repeat(1_100_000) }),
      request(app).post("/call").send({ network_identifier: NETWORK, method: "x", parameters: {} }),
      request(app)
        .post("/account/coins")
        .send({
          network_identifier: NETWORK,
          account_identifier: { address: ALICE },
          include_mempool: false,
        }),
    ]);
    expect(replies.map((reply) => [reply.status, reply.body.code])).toEqual([
      [500, 6],
      [500, 6],
      [500, 1],
      [500, 1],
      [500, 1],
      [500, 7],
      [500, 211],
      [500, 5],
    ]);
    for (const { body } of replies) expect(codes.get(body.code)).toBe(body.message);
  });

  it("is ready with the right node only", async () => {
    const { node, online } = shared;
    const { app } = online.server;
    const ready = async () => (await request(app).get("/ready")).status;
    expect((await request(app).get("/health")).status).toBe(200);
    expect(await ready()).toBe(200);
    node.methods.set("eth_chainId", () => "0x1");
    expect(await ready()).toBe(503);
    node.reset();
    node.methods.set("eth_syncing", () => ({ currentBlock: "0x1", highestBlock: "0x9" }));
    expect(await ready()).toBe(503);
    node.reset();
    const late = onlineServer(node.url, { nowMs: 1_790_000_005_000 + 600_000 });
    const { body } = await request(late.server.app).get("/ready");
    expect(body).toEqual({ ready: false, reason: "the newest block (2) is 601 s old" });
    await late.rpc.close();
  });
});
