/** The consensus RPC by hand: encodings of each transport, errors, searches, what it refuses. */
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import { connect } from "node:net";
import { Wallet } from "ethers";
import { WebSocket } from "ws";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { orderVotes } from "../../../chain/consensus/evidence.js";
import { VOTE_TYPE, voteSignBytes } from "../../../chain/consensus/vote.js";
import { blockEvents } from "../../../chain/abci-event.js";
import { hexToBytes, parseHash32, parseHexBytes } from "../../../chain/hex.js";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { decodeTransaction, recoverSender } from "../../../chain/transaction.js";
import {
  searchBlocks,
  searchTransactions,
  transactionValueSteps,
} from "../../../node/rpc/comet/search/event-search.js";
import { ResultTexts } from "../../../node/rpc/comet/json/result-texts.js";
import { parseQuery } from "../../../node/rpc/comet/search/query.js";
import { eventValues, matchesQuery } from "../../../node/rpc/comet/search/query-match.js";
import { executedTransaction } from "../../helpers/executed-transaction.js";
import { CometTestChain, VALIDATOR_KEYS } from "../../helpers/chains/comet-chain.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { until } from "../../helpers/until.js";
import { allAtOnce } from "../../../chain/steps/steps.js";

const faucet = new Wallet(`0x${"31".repeat(32)}`);
const poor = new Wallet(`0x${"33".repeat(32)}`);
const shop = parseAddress(`0x${"77".repeat(20)}`);
const cafe = parseAddress(`0x${"78".repeat(20)}`);
/** Code that writes a log: LOG0 of nothing. */
const LOGGER = "0x60006000a000";

let chain: CometTestChain;

interface Reply {
  readonly status: number;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: string };
}

function send(nonce: number, fields: object = {}, wallet = faucet): Promise<string> {
  return wallet.signTransaction({
    type: 0,
    chainId: 6940,
    nonce,
    gasPrice: 25_000_000n,
    gasLimit: 100_000n,
    to: shop,
    value: 5n,
    ...fields,
  });
}

function wrap(raw: string, from?: Wallet): string {
  const tx = decodeTransaction(parseHexBytes(raw));
  const sender = from === undefined ? recoverSender(tx) : parseAddress(from.address);
  return Buffer.from(encodeSdkTransaction(tx, sender)).toString("base64");
}

async function get(path: string, headers: Record<string, string> = {}): Promise<Reply> {
  const response = await fetch(`${chain.url}/${path}`, { headers });
  return { status: response.status, ...((await response.json()) as object) };
}

async function post(body: unknown): Promise<Reply> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(chain.url, { method: "POST", body: text });
  return { status: response.status, ...((await response.json()) as object) };
}

function call(method: string, params: unknown): Promise<Reply> {
  return post({ jsonrpc: "2.0", id: 1, method, params });
}

/** Two precommits of one validator for different blocks of height 1. */
function doubleVote() {
  const set = chain.consensus.validators(1);
  const validator = set?.at(1);
  const isKey = (key: Uint8Array) => Buffer.compare(key, validator?.publicKey ?? key) === 0;
  const key = VALIDATOR_KEYS.find(({ publicKey }) => isKey(publicKey));
  if (set === undefined || validator === undefined || key === undefined) throw new Error("no key");
  const votes = ["11", "22"].map((byte) => {
    const hash = parseHash32(`0x${byte.repeat(32)}`);
    const content = {
      type: VOTE_TYPE.precommit,
      height: 1,
      round: 0,
      blockId: { hash, parts: { total: 1, hash } },
      timeNs: 1_750_000_002_000_000_123n,
    };
    const signature = key.sign(voteSignBytes("chain_6940-1", content));
    return { ...content, validatorAddress: validator.address, validatorIndex: 1, signature };
  });
  const [first, second] = votes;
  if (first === undefined || second === undefined) throw new Error("no votes");
  const [voteA, voteB] = orderVotes(first, second);
  const timeNs = 1_750_000_002_000_000_000n;
  const { totalPower } = set;
  const evidence = { voteA, voteB, totalPower, validatorPower: validator.power, timeNs };
  return { evidence, publicKey: validator.publicKey };
}

beforeAll(async () => {
  chain = await CometTestChain.open(faucet.address);
  await chain.mine([await send(0), await send(1, { to: cafe, value: 7n })]);
  await chain.mine();
  const { evidence, publicKey } = doubleVote();
  const deploy = await send(2, { to: null, value: 0n, data: LOGGER });
  const updates = [{ publicKey, power: 0n }];
  await chain.mine([deploy, await send(3, { value: 9n })], { evidence: [evidence], updates });
  await chain.mine([await send(4, { to: null, value: 3n, data: "0xfe" })]);
  for (let nonce = 5; nonce < 8; nonce++) await chain.mine([await send(nonce)]);
});

afterAll(() => chain.close());

describe("encodings", () => {
  it("take hashes as hex, base64 and 0x, each where CometBFT does", async () => {
    const hash = chain.consensus.load(3)?.commit.blockId?.hash ?? "0x";
    const bytes = Buffer.from(hexToBytes(hash));
    const upper = bytes.toString("hex").toUpperCase();
    const header = (await get("header?height=3")).result;
    expect(header).toMatchObject({ header: { height: "3" } });
    expect((await call("header_by_hash", { hash: upper })).result).toEqual(header);
    expect((await get(`header_by_hash?hash=0x${upper}`)).result).toEqual(header);
    const block = (await get("block?height=3")).result;
    expect((await call("block_by_hash", { hash: bytes.toString("base64") })).result).toEqual(block);
    expect((await get(`block_by_hash?hash=0x${upper}`)).result).toEqual(block);
    expect((await get(`header_by_hash?hash=0x${"00".repeat(32)}`)).result).toEqual({
      header: null,
    });
    expect((await get("block_by_hash?hash=0x00")).result).toEqual({
      block_id: { hash: "", parts: { total: 0, hash: "" } },
      block: null,
    });
  });

  it("show failed transactions with a code, evidence, and validators that leave", async () => {
    expect((await get("block_results?height=4")).result).toMatchObject({
      txs_results: [{ code: 4, log: "invalid opcode", gas_wanted: "100000" }],
    });
    expect((await get("block_results?height=3")).result).toMatchObject({
      validator_updates: [{ pub_key: { Sum: { type: "tendermint.crypto.PublicKey_Ed25519" } } }],
    });
    expect((await get("validators?height=5")).result).toMatchObject({ total: "3" });
    expect((await get("block?height=3")).result).toMatchObject({
      block: { evidence: { evidence: [{ type: "tendermint/DuplicateVoteEvidence" }] } },
    });
  });

  it("do the work of a request as its client's, over HTTP and over WebSockets", async () => {
    const of = jest.spyOn(ResultTexts.prototype, "of");
    await get("block_results?height=3");
    const socket = new WebSocket(`${chain.url.replace("http", "ws")}/websocket`);
    await once(socket, "open");
    socket.send('{"jsonrpc":"2.0","id":1,"method":"block_results","params":{"height":"3"}}');
    await once(socket, "message");
    socket.terminate();
    const owners = of.mock.calls.map(([, owner]) => owner);
    of.mockRestore();
    expect(owners).toEqual([{ client: "127.0.0.1" }, { client: "127.0.0.1" }]);
  });

  it("serve the genesis whole and in chunks", async () => {
    const { genesis } = (await get("genesis")).result as { genesis: { app_hash: string } };
    const chunk = (await get("genesis_chunked?chunk=0")).result as { data: string };
    expect(JSON.parse(Buffer.from(chunk.data, "base64").toString())).toEqual(genesis);
    const first = (await get("header?height=1")).result as { header: { app_hash: string } };
    expect(genesis.app_hash).toBe(first.header.app_hash);
    expect((await get("genesis_chunked?chunk=1")).error?.data).toContain("1 is invalid");
  });

  it("show the height in progress and the peers", async () => {
    const turn = chain.consensus.validators(chain.consensus.height() + 1)?.proposer.address ?? "";
    expect((await get("consensus_state")).result).toMatchObject({
      round_state: {
        "height/round/step": "8/0/4",
        height_vote_set: [{ prevotes_bit_array: "BA{3:xxx} 34/34 = 1.00" }],
        proposer: { address: turn.slice(2).toUpperCase() },
      },
    });
    expect((await get("dump_consensus_state")).result).toMatchObject({
      round_state: { height: "8", step: 4, locked_round: -1, valid_block: null, commit_round: -1 },
      peers: [
        {
          node_address: `${"cd".repeat(20)}@127.0.0.1:26756`,
          peer_state: { round_state: { round: -1 }, stats: { votes: "0", block_parts: "0" } },
        },
      ],
    });
    expect((await get("net_info")).result).toMatchObject({
      n_peers: "1",
      listening: true,
      peers: [
        {
          node_info: {
            listen_addr: "tcp://127.0.0.1:26756",
            version: "0.38.17",
            other: { tx_index: "on", rpc_address: "tcp://127.0.0.1:26757" },
          },
          connection_status: {
            Duration: "5000000000",
            SendMonitor: { Active: true, Bytes: "0" },
            RecvMonitor: { Active: true, TimeRem: "0" },
            Channels: [{ ID: 32, SendQueueSize: "0" }],
          },
        },
      ],
    });
  });
});

describe("errors", () => {
  it("have CometBFT's numbers and texts, and HTTP status 500 on GET only", async () => {
    const future = "height 99 must be less than or equal to the current blockchain height 7";
    for (const path of ["block", "header", "commit", "block_results"]) {
      const reply = await get(`${path}?height=99`);
      const expected = { code: -32603, message: "Internal error", data: future };
      expect([path, reply.status, reply.error]).toEqual([path, 500, expected]);
    }
    const reply = await call("block", { height: "0" });
    expect([reply.status, reply.error?.data]).toEqual([
      200,
      "height must be greater than 0, but got 0",
    ]);
    expect((await get("block?height=x")).error?.code).toBe(-32602);
    expect((await get("blockchain?minHeight=6&maxHeight=3")).error?.data).toBe(
      "min height 6 can't be greater than max height 3",
    );
    const unknown = `tx (${"AB".repeat(32)}) not found`;
    expect((await get(`tx?hash=0x${"ab".repeat(32)}`)).error?.data).toBe(unknown);
    expect((await get("tx")).error?.data).toBe("transaction hash cannot be empty");
    expect((await get('tx_search?query="a.b=1"&order_by="up"')).error?.data).toContain("order_by");
    expect((await get('tx_search?query="a.b=="')).error?.data).toContain("offset");
  });

  it("tell malformed requests, unknown methods and routes apart", async () => {
    // CometBFT's http_json_handler.go: what is no request at all is a 500.
    const oddMethod = '{"jsonrpc":"2.0","id":1,"method":5}';
    const oddId = '{"id":{},"method":"health"}';
    for (const body of ["{", "5", '"x"', "null", "[1]", oddId, oddMethod]) {
      const reply = await post(body);
      expect([body, reply.status, reply.error?.code]).toEqual([body, 500, -32700]);
    }
    const inside = await post([{ jsonrpc: "2.0", id: 1, method: "health" }, 7]);
    expect([inside.status, inside.error?.code]).toEqual([500, -32700]);
    expect((await post({ jsonrpc: "2.0", id: 1 })).error).toMatchObject({ code: -32601 });
    expect((await call("no_such", {})).error).toEqual({
      code: -32601,
      message: "Method not found",
    });
    expect((await call("subscribe", { query: "a.b=1" })).error?.code).toBe(-32601);
    expect((await get("subscribe?query=x")).status).toBe(404);
    const plain = await fetch(`${chain.url}/websocket`);
    expect([plain.status, await plain.text()]).toEqual([400, "Bad Request\n"]);
    expect((await call("block", ["1", "2"])).error?.code).toBe(-32602);
    expect((await call("block", ["1"])).result).toMatchObject({
      block: { header: { height: "1" } },
    });
    const listed = await fetch(chain.url);
    expect(await listed.text()).toContain("/tx_search?query=_&prove=_");
  });

  it("answer clients that would rather have HTTP/2, as Java's would", async () => {
    const { hostname, port } = new URL(chain.url);
    const socket = connect(Number(port), hostname);
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    const head =
      "HTTP/1.1\r\nHost: here\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" +
      "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n";
    const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "health" });
    socket.write(`POST / ${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    let isEnded = false;
    socket.once("end", () => (isEnded = true));
    await until(() => text.includes("}") || isEnded, { timeoutMs: 10_000 });
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*"id":7,"result":\{\}\}$/);
    text = "";
    socket.write(`GET /status ${head}\r\n`);
    await until(() => text.includes("}") || isEnded, { timeoutMs: 10_000 });
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*"sync_info"/);
    socket.destroy();
  });

  it("take a target with scheme and host for what it means", async () => {
    const { hostname, port } = new URL(chain.url);
    const socket = connect(Number(port), hostname);
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    socket.write("GET http://node.example/block?height=2 HTTP/1.1\r\nHost: node.example\r\n\r\n");
    await until(() => /\r\n\r\n./.test(text), { timeoutMs: 10_000 });
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*"height":"2"/);
    socket.destroy();
  });

  it("take the arguments of a form, before those of the URL", async () => {
    const type = "application/x-www-form-urlencoded";
    const heightOf = async (path: string, body: string, contentType = type) => {
      const headers = { "Content-Type": contentType };
      const response = await fetch(`${chain.url}/${path}`, { method: "POST", headers, body });
      const { result } = (await response.json()) as { result: { block: { header: object } } };
      expect(response.status).toBe(200);
      return Number((result.block.header as { height: string }).height);
    };
    expect(await heightOf("block", "height=2")).toBe(2);
    expect(await heightOf("block", "height=%222%22", `${type}; charset=utf-8`)).toBe(2);
    expect(await heightOf("block?height=3", "height=2")).toBe(2);
    expect(await heightOf("block?height=3", "")).toBe(3);
    expect(await heightOf("block?height=3", "height=2", "text/plain")).toBe(3);
    const search = `query="transfer.recipient='${toBech32(cafe)}'&transfer.amount=7"&page=1`;
    const headers = { "Content-Type": type };
    const found = await fetch(`${chain.url}/tx_search`, { method: "POST", headers, body: search });
    expect(await found.json()).toMatchObject({ result: { txs: [{ height: "1", index: 1 }] } });
    const body = `height=${" ".repeat(1_000_001)}`;
    const large = await fetch(`${chain.url}/block`, { method: "POST", headers, body });
    expect(large.status).toBe(413);
  });

  it("refuse a proof that they do not have, instead of an answer without one", async () => {
    const path = "/cosmos.bank.v1beta1.Query/TotalSupply";
    const response = async (prove: boolean) => {
      const { result } = await call("abci_query", { path, data: "", prove });
      return (result as { response: Record<string, unknown> }).response;
    };
    expect(await response(false)).toMatchObject({ code: 0, proofOps: null });
    expect(await response(true)).toMatchObject({
      code: 18,
      codespace: "sdk",
      value: null,
      log: expect.stringContaining("eth_getProof"),
    });
  });

  it("answer batches in order, leave notifications out, and bound them", async () => {
    const request = (id: unknown, method: string) => ({ jsonrpc: "2.0", id, method });
    const batch = [request(1, "health"), { jsonrpc: "2.0", method: "health" }, request("b", "x")];
    const response = await fetch(chain.url, { method: "POST", body: JSON.stringify(batch) });
    const answers = (await response.json()) as readonly { id: unknown }[];
    expect(answers.map(({ id }) => id)).toEqual([1, "b"]);
    const many = Array.from({ length: 1_001 }, (_, id) => request(id, "health"));
    expect((await post(many)).error?.data).toBe("batch of more than 1000 requests");
    const large = await fetch(chain.url, { method: "POST", body: " ".repeat(1_000_001) });
    expect(large.status).toBe(413);
  });

  it("let listed web pages read, and no others", async () => {
    const ask = (origin: string) => fetch(`${chain.url}/health`, { headers: { Origin: origin } });
    const allowed = await ask("https://wallet.example");
    const header = "access-control-allow-origin";
    expect(allowed.headers.get(header)).toBe("https://wallet.example");
    expect((await ask("https://other.example")).headers.get(header)).toBeNull();
  });
});

describe("searches", () => {
  const QUERIES = [
    `transfer.recipient='${toBech32(shop)}'`,
    `transfer.recipient='${toBech32(cafe)}' AND transfer.amount='7atoken'`,
    `message.sender='${faucet.address}'`,
    "transfer.amount='5atoken'",
    "transfer.amount=9",
    "transfer.amount>6 AND tx.height>1",
    "tx.fee EXISTS AND tx.height<=3",
    "tx_log EXISTS",
    "message.module='bank'",
    "message.action CONTAINS 'EthereumTx' & tx.height>=4",
    "ethereum_tx.ethereumTxFailed EXISTS",
    "tm.event='Tx'",
    "tx.height=3",
    "tx.height>3 AND tx.height<3",
    "fee_burn EXISTS",
    "burn.amount EXISTS",
    "nothing.at.all='x'",
    "transfer.sender='addr1nonsense'",
    `tx.hash='${"AB".repeat(32)}'`,
    "transfer.amount='0atoken'",
    "transfer.amount='05atoken'",
  ];

  /** What a search without any index finds. */
  function byHand(text: string): string[] {
    const query = parseQuery(text);
    const found: string[] = [];
    for (let height = 1; height <= chain.consensus.height(); height++) {
      const committed = chain.chain.view.block(height);
      for (const index of committed?.block.transactions.keys() ?? []) {
        if (committed === undefined) continue;
        const executed = executedTransaction(committed, index);
        if (matchesQuery(query, allAtOnce(transactionValueSteps(height, executed)))) {
          found.push(`${height}/${index}`);
        }
      }
    }
    return found;
  }

  it("find through the index exactly what is there", async () => {
    let hits = 0;
    for (const text of QUERIES) {
      const { result } = await call("tx_search", { query: text, per_page: "100" });
      const { txs } = result as { txs: { height: string; index: number }[] };
      const found = txs.map(({ height, index }) => `${height}/${index}`);
      expect([text, found]).toEqual([text, byHand(text)]);
      hits += found.length;
    }
    expect(hits).toBeGreaterThan(40);
  });

  it("hold all conditions on one type of event against one event", async () => {
    const found = async (text: string) => {
      const { result } = await call("tx_search", { query: text });
      return Number((result as { total_count: string }).total_count);
    };
    const to = `transfer.recipient='${toBech32(cafe)}'`;
    const from = `message.sender='${toBech32(parseAddress(faucet.address))}'`;
    const fee = `coin_spent.spender='${toBech32(parseAddress(faucet.address))}' AND coin_spent.amount`;
    expect(await found(`${to} AND transfer.amount='7atoken' AND tm.event='Tx'`)).toBeGreaterThan(0);
    // The fee of the same transaction goes to another.
    expect(await found(`${fee}='525000000000atoken' AND ${to}`)).toBeGreaterThan(0);
    expect(await found(`transfer.amount='525000000000atoken' AND ${to}`)).toBe(0);
    expect(await found(`${fee}='5atoken' AND coin_spent.amount>5`)).toBe(0);
    // Each of these is one event of the SDK's.
    expect(await found(`message.action CONTAINS 'MsgEthereumTx' AND ${from}`)).toBeGreaterThan(0);
    for (const module of ["evm", "bank"]) {
      expect(await found(`message.module='${module}' AND ${from}`)).toBeGreaterThan(0);
    }
  });

  it("find blocks by what happened at their ends", async () => {
    for (const text of [
      "fee_burn EXISTS",
      "mint EXISTS AND block.height>2 AND block.height<=4",
      "block.height=5",
      "coinbase.amount>0",
      "tm.event='NewBlock'",
      "transfer.amount='5atoken'",
    ]) {
      const query = parseQuery(text);
      const heights = Array.from({ length: chain.consensus.height() }, (_, index) => index + 1);
      const expected = heights.filter((height) => {
        const committed = chain.chain.view.block(height);
        if (committed === undefined) return false;
        const added = { "block.height": `${height}`, "tm.event": "NewBlock" };
        return matchesQuery(query, eventValues(blockEvents(committed.journal), added));
      });
      const { result } = await call("block_search", { query: text, order_by: "asc" });
      const { blocks } = result as { blocks: { block: { header: { height: string } } }[] };
      const found = blocks.map(({ block }) => Number(block.header.height));
      expect([text, found]).toEqual([text, expected]);
    }
  });

  it("find one transaction by either of its hashes", async () => {
    const raw = await send(3, { value: 9n });
    const { hash } = decodeTransaction(parseHexBytes(raw));
    const byEvm = await get(`tx_search?query="ethereum_tx.ethereumTxHash='${hash}'"&prove=true`);
    expect(byEvm.result).toMatchObject({ total_count: "1", txs: [{ height: "3", index: 1 }] });
    const { txs } = byEvm.result as { txs: { hash: string; proof: object }[] };
    const bySdk = await get(`tx?hash=0x${txs[0]?.hash ?? ""}&prove=true`);
    expect(bySdk.result).toEqual(txs[0]);
    // In either case of its digits, as CometBFT, which reads them as bytes.
    for (const digits of [txs[0]?.hash ?? "", txs[0]?.hash.toLowerCase() ?? ""]) {
      const found = await get(`tx_search?query="tx.hash='${digits}'"&prove=true`);
      expect([digits, found.result]).toEqual([digits, { txs, total_count: "1" }]);
    }
    const wrong = await get(
      `tx_search?query="tx.hash='${txs[0]?.hash ?? ""}'%20AND%20tx.height=4"`,
    );
    expect(wrong.result).toEqual({ txs: [], total_count: "0" });
  });

  it("put a query together again that a raw & split", async () => {
    const path = `tx_search?query="transfer.recipient='${toBech32(shop)}'&transfer.amount=9"&page=1`;
    expect((await get(path)).result).toMatchObject({ total_count: "1" });
  });

  it("are complete or an error", async () => {
    const { signal } = new AbortController();
    const all = parseQuery("tm.event='Tx'");
    const limits = { results: 100, blocks: 100, transactions: 100 };
    expect(await searchTransactions(chain.ports, all, signal, limits)).toHaveLength(8);
    for (const [limit, text] of [
      [{ results: 7 }, "more than 7 results"],
      [{ blocks: 5 }, "more than 5 blocks"],
      [{ transactions: 7 }, "or 7 transactions: narrow it by tx.height"],
    ] as const) {
      const search = searchTransactions(chain.ports, all, signal, { ...limits, ...limit });
      await expect(search).rejects.toThrow(text);
    }
    const every = parseQuery("block.height>0");
    await expect(
      searchBlocks(chain.ports, every, signal, { ...limits, blocks: 6 }),
    ).rejects.toThrow("narrow it by block.height");
  });
});

/** What CosmJS signs without a message: a body that is left out, as it has nothing in it. */
function nothingAsked(): string {
  const phrase = "test test test test test test test test test test test junk";
  const [signed] = signWithCosmJs(phrase, [{ messages: [], chainId: "chain_6940-1" }]);
  return signed?.raw.toString("base64") ?? "";
}

describe("transactions on their way in", () => {
  it("are checked without being admitted", async () => {
    const cases: readonly (readonly [string, number, string])[] = [
      [wrap(await send(8)), 0, ""],
      [wrap(await send(0)), 3, "nonce too low: next nonce 8, tx nonce 0"],
      [wrap(await send(0, {}, poor)), 5, "insufficient funds for gas * price + value"],
      [wrap(await send(8, { chainId: 6941 })), 28, "invalid chain id for signer"],
      [wrap(await send(8, { gasLimit: 20_000n })), 11, "intrinsic gas too low"],
      [wrap(await send(8, { gasPrice: 0n })), 13, "gas price below minimum"],
      [wrap(await send(8), poor), 4, "the sender is not the signer"],
      [Buffer.from("nothing").toString("base64"), 2, "tx parse error"],
      [nothingAsked(), 18, "must contain at least one message"],
    ];
    for (const [tx, code, text] of cases) {
      const { result } = await call("check_tx", { tx });
      const { log } = result as { log: string };
      expect([text, (result as { code: number }).code, log]).toEqual([
        text,
        code,
        expect.stringContaining(text),
      ]);
    }
    expect(chain.pool.counts()).toEqual({ pending: 0, queued: 0 });
  });

  it("are refused with a code when they are broadcast in another's name", async () => {
    const { result } = await call("broadcast_tx_sync", { tx: wrap(await send(8), poor) });
    expect(result).toMatchObject({ code: 4, codespace: "sdk" });
    expect(chain.pool.counts().pending).toBe(0);
  });

  it("take evidence, and say what consensus thinks of it", async () => {
    const block = (await get("block?height=3")).result as {
      block: { evidence: { evidence: object[] } };
    };
    const [evidence] = block.block.evidence.evidence;
    expect((await call("broadcast_evidence", { evidence })).result).toHaveProperty("hash");
    expect(chain.received).toEqual([doubleVote().evidence]);
    chain.reception = "invalid";
    expect((await call("broadcast_evidence", { evidence })).error?.data).toBe(
      "failed to add evidence: it is invalid",
    );
    for (const bad of [undefined, {}, { ...evidence, type: "x" }, { ...evidence, value: {} }]) {
      expect((await call("broadcast_evidence", { evidence: bad })).error?.code).toBe(-32602);
    }
  });
});
