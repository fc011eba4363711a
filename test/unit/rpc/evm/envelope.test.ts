/** JSON-RPC 2.0 itself: ids, notifications, batches, bounds, and texts that clients match on. */
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { keccak256 } from "ethers";
import { AppError } from "../../../../chain/errors.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { RequestContext } from "../../../../node/rpc/evm/request-context.js";
import { ALICE, BOB, createTestNode, signLegacy, type TestAnswer } from "./fixture.js";

const node = createTestNode({ batchEntries: 5, responseBytes: 50_000, batchResponseBytes: 1_500 });
const call = (id: unknown, method = "eth_blockNumber", params?: unknown) => ({
  jsonrpc: "2.0",
  id,
  method,
  params,
});

describe("requests", () => {
  it("repeats the id as it came: 0, text, null, negative", async () => {
    for (const id of [0, 7, -1, "abc", '"', null, 1.5]) {
      expect(await node.post(call(id))).toEqual({ jsonrpc: "2.0", id, result: "0x0" });
    }
  });

  it("takes absent, null and empty params", async () => {
    for (const params of [undefined, null, [], {}]) {
      expect(await node.post(call(1, "eth_chainId", params))).toMatchObject({ result: "0x1b1c" });
    }
  });

  it("does not answer notifications", async () => {
    expect(await node.post({ jsonrpc: "2.0", method: "eth_blockNumber" })).toBeUndefined();
    expect(await node.post({ jsonrpc: "2.0", method: "eth_nothing" })).toBeUndefined();
  });

  it("repeats ids as they were written, also where JavaScript has no such number", async () => {
    const body = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"eth_chainId"}`;
    const answer = (id: string) => `{"jsonrpc":"2.0","id":${id},"result":"0x1b1c"}`;
    const ids = [
      "9007199254740993",
      "18446744073709551615",
      "-9223372036854775807",
      "1.50",
      "1e400",
    ];
    for (const id of ids) expect(await node.text(body(id))).toBe(answer(id));
    expect(await node.text(`[${ids.map(body).join(" , ")}]`)).toBe(
      `[${ids.map(answer).join(",")}]`,
    );
    // Whatever else is called so, and however it is written.
    const nested = (id: string) =>
      `{"params":[],"x":{"id":9007199254740995},"id":5,"y":"\\"id\\":","\\u0069d" : ${id},` +
      '"jsonrpc":"2.0","method":"eth_chainId"}';
    for (const id of ids) expect(await node.text(nested(id))).toBe(answer(id));
  });

  it("answers malformed requests with -32700 and -32600", async () => {
    const texts: [string, number, string][] = [
      ["{", -32700, "parse error"],
      ["", -32700, "parse error"],
      ["1", -32600, "invalid request"],
      ['{"id":1}', -32600, "invalid request"],
      ['{"jsonrpc":"1.0","id":1,"method":"eth_chainId"}', -32600, "invalid request"],
      ['{"jsonrpc":"2.0","id":{},"method":"eth_chainId"}', -32600, "invalid request"],
      ['{"jsonrpc":"2.0","id":1,"method":5}', -32600, "invalid request"],
      ["[]", -32600, "empty batch"],
    ];
    for (const [text, code, message] of texts) {
      expect([text, await node.post(text)]).toMatchObject([text, { error: { code, message } }]);
    }
    const named = await node.post(call(3, "eth_getBalance", { address: BOB.address }));
    expect(named).toEqual({
      jsonrpc: "2.0",
      id: 3,
      error: { code: -32602, message: "non-array args" },
    });
  });

  // go-ethereum 1.16.7: [{"jsonrpc":"2.0","id":7,"error":{...}}]. Over WebSocket its client waits for
  // ever for an answer that has none of the batch's ids.
  it("refuses a batch of too many requests with the id of the first call", async () => {
    const batch = Array.from({ length: 6 }, (_, index) => call(7 + index));
    const refused = (id: number | null) => [
      { jsonrpc: "2.0", id, error: { code: -32600, message: "batch too large" } },
    ];
    expect(await node.post(batch)).toEqual(refused(7));
    // What gets no answer, or is no call, has no id that a client waits for.
    const notification = { jsonrpc: "2.0", method: "eth_chainId" };
    const blank = { jsonrpc: "2.0", id: 3, method: "eth_chainId", params: [" ".repeat(130_000)] };
    for (const first of [5, notification, { id: 3 }, call({}), call(3, "")]) {
      expect(await node.post([first, ...batch])).toEqual(refused(7));
      expect(await node.post([first, ...batch, blank])).toEqual(refused(7));
    }
    expect(await node.post(batch.map(() => notification))).toEqual(refused(null));
    expect(await node.post(Array(6).fill(5))).toEqual(refused(null));
    expect(await node.post([call(3, "eth_chainId", { a: 1 }), ...batch])).toEqual(refused(3));
    const written = `[${'{"jsonrpc":"2.0","id":9007199254740993,"method":"eth_chainId"},'.repeat(5)}1]`;
    expect(await node.text(written)).toBe(
      '[{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32600,"message":"batch too large"}}]',
    );
  });

  it("parses no request of more values than clients have, and all of data or few large ones", async () => {
    const large = createTestNode({ bodyBytes: 5_000_000, batchBodyBytes: 10_000_000 });
    const of = (params: string) =>
      `{"jsonrpc":"2.0","id":1,"method":"web3_sha3","params":[${params}]}`;
    const tooLarge = {
      jsonrpc: "2.0",
      id: null,
      error: { code: -32600, message: "request too large" },
    };
    // A second of JSON.parse in 5 MB, each of them.
    for (const unit of ["{}", "[]", "0", '{"a":0}', "[[[[[[[[0]]]]]]]]"]) {
      const request = of(Array(250_001).fill(unit).join(","));
      expect([unit, await large.post(request)]).toEqual([unit, tooLarge]);
      expect([unit, await large.post(`[${of('"0x"')},${request}]`)]).toEqual([unit, tooLarge]);
    }
    expect(await large.post(of(`"0x${"11".repeat(2_000_000)}"`))).toMatchObject({
      result: expect.stringMatching(/^0x/),
    });
    expect(await large.post(of(Array(240_000).fill("0").join(",")))).toMatchObject({
      error: { code: -32602, message: "too many arguments, want at most 1" },
    });
  });

  it("finds nothing on the prototype of objects", async () => {
    for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty", "eth_nothing"]) {
      expect((await node.ask(name)).error).toEqual({
        code: -32601,
        message: `the method ${name} does not exist/is not available`,
      });
    }
  });

  it("refuses what must not exist: methods that hold keys or change the node", async () => {
    const names = [
      "eth_sendTransaction",
      "eth_sign",
      "eth_signTransaction",
      "eth_signTypedData",
      "personal_unlockAccount",
      "miner_start",
      "debug_setHead",
    ];
    for (const name of names)
      expect([name, (await node.ask(name)).error?.code]).toEqual([name, -32601]);
    expect(await node.call("eth_accounts")).toEqual([]);
  });

  it("says which argument is missing, wrong or too many", async () => {
    const cases: [string, unknown[], string][] = [
      ["eth_getBalance", [], "missing value for required argument 0"],
      ["eth_getBalance", [null], "missing value for required argument 0"],
      ["eth_getBalance", ["123"], "invalid argument 0: hex string without 0x prefix"],
      ["eth_getBalance", [5], "invalid argument 0: non-string"],
      [
        "eth_getBalance",
        ["0x12"],
        "invalid argument 0: hex string has length 2, want 40 for an address",
      ],
      [
        "eth_getBalance",
        [BOB.address, "0x01"],
        "invalid argument 1: hex number with leading zero digits",
      ],
      ["eth_getBalance", [BOB.address, "0x"], 'invalid argument 1: hex string "0x"'],
      ["eth_getBalance", [BOB.address, "soon"], "invalid argument 1: hex string without 0x prefix"],
      ["eth_getBlockByNumber", ["latest", "yes"], "invalid argument 1: expected a boolean"],
      ["eth_blockNumber", [1], "too many arguments, want at most 0"],
      [
        "eth_getTransactionByHash",
        ["0x1"],
        "invalid argument 0: hex string has length 1, want 64 for a hash",
      ],
      ["eth_sendRawTransaction", ["0x123"], "invalid argument 0: hex string of odd length"],
    ];
    for (const [method, params, message] of cases) {
      expect((await node.ask(method, ...params)).error).toEqual({ code: -32602, message });
    }
  });

  it("hides its own faults and does not take the process down", async () => {
    node.calls.failure = new Error("secret detail");
    expect((await node.ask("eth_call", { to: BOB.address })).error).toEqual({
      code: -32603,
      message: "internal error",
    });
    node.calls.failure = undefined;
  });

  it("writes a line about faults of a method once in ten seconds, with their number", async () => {
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const log = createLogger({ component: "test", destination });
    const own = createTestNode({}, undefined, [], log);
    const told = () =>
      lines.map((line) => JSON.parse(line)).map(({ method, times }) => [method, times]);
    const address = BOB.address;
    const faulty = () => own.ask("eth_call", { to: address });
    own.calls.failure = new Error("a fault");
    for (let asked = 0; asked < 3; asked++) expect((await faulty()).error?.code).toBe(-32603);
    // Another method's faults are another matter.
    await own.ask("eth_estimateGas", { to: address });
    expect(told()).toEqual([
      ["eth_call", 1],
      ["eth_estimateGas", 1],
    ]);
    own.time.nowMs += 10_000;
    await faulty();
    expect(told().at(-1)).toEqual(["eth_call", 3]);
  });
});

describe("batches", () => {
  it("answers in order, without notifications, errors beside results", async () => {
    const answers = await node.post([
      call(1),
      call("b", "eth_nothing"),
      { jsonrpc: "2.0", method: "eth_chainId" },
      5,
      call(4, "eth_getBlockByNumber", ["0x0", true]),
    ]);
    expect(answers).toMatchObject([
      { id: 1, result: "0x0" },
      { id: "b", error: { code: -32601 } },
      { id: null, error: { code: -32600 } },
      { id: 4, result: { number: "0x0" } },
    ]);
    expect(await node.post([{ jsonrpc: "2.0", method: "eth_chainId" }])).toBeUndefined();
  });

  it("hands all raw transactions of a batch to the pool in one call", async () => {
    const raws = await Promise.all(
      [0, 1, 2].map((nonce) => signLegacy(ALICE, { nonce, to: BOB.address })),
    );
    node.pool.submitted.length = 0;
    const answers = (await node.post([
      call(0, "eth_sendRawTransaction", [raws[0]]),
      call(1),
      call(2, "eth_sendRawTransaction", [raws[1]]),
      call(3, "eth_sendRawTransaction", [raws[2]]),
    ])) as TestAnswer[];
    expect(node.pool.submitted.map((batch) => batch.length)).toEqual([3]);
    expect(answers.map(({ id }) => id)).toEqual([0, 1, 2, 3]);
    expect(answers.every(({ result }) => typeof result === "string")).toBe(true);
  });

  it("collects single raw transactions that arrive together", async () => {
    const raws = await Promise.all(
      [5, 6].map((nonce) => signLegacy(ALICE, { nonce, to: BOB.address })),
    );
    node.pool.submitted.length = 0;
    await Promise.all(raws.map((raw) => node.call("eth_sendRawTransaction", raw)));
    expect(node.pool.submitted.map((batch) => batch.length)).toEqual([2]);
  });

  it("refuses the rest of a batch when its answer grows too large, but no sent transaction", async () => {
    const raw = await signLegacy(ALICE, { nonce: 9, to: BOB.address });
    const block = call(1, "eth_getBlockByNumber", ["0x0", false]);
    const answers = (await node.post([
      block,
      block,
      block,
      call(2, "eth_sendRawTransaction", [raw]),
      call(3),
    ])) as TestAnswer[];
    expect(answers.map(({ error }) => error)).toEqual([
      undefined,
      undefined,
      { code: -32003, message: "response too large" },
      undefined,
      { code: -32003, message: "response too large" },
    ]);
  });

  it("answers for a transaction that was sent and has waited for its block, however full the batch", async () => {
    const raw = await signLegacy(ALICE, { nonce: 10, to: BOB.address });
    const block = call(1, "eth_getBlockByNumber", ["0x0", false]);
    node.pool.submitted.length = 0;
    const posted = node.post([block, block, block, call(2, "eth_sendRawTransactionSync", [raw])]);
    while (node.pool.submitted.length === 0) await turn();
    node.chain.add([{ raw }]);
    const answers = (await posted) as TestAnswer[];
    expect(answers[2]?.error).toEqual({ code: -32003, message: "response too large" });
    expect(answers[3]?.result).toMatchObject({ transactionHash: keccak256(raw) });
  });
});

describe("errors of the pool and the workers", () => {
  it("keeps the pool's text and -32000, with the drafted number in data", async () => {
    const raw = await signLegacy(ALICE, { nonce: 1, to: BOB.address });
    const cases: [string, string, unknown][] = [
      ["NONCE_TOO_LOW", "nonce too low: next nonce 8, tx nonce 5", 1],
      ["ALREADY_KNOWN", "already known", 1000],
      ["INSUFFICIENT_FUNDS", "insufficient funds for gas * price + value: balance 0", 809],
      ["REPLACEMENT_UNDERPRICED", "replacement transaction underpriced", undefined],
    ];
    for (const [code, message, draft] of cases) {
      node.pool.answer = () => new AppError(code, message);
      const { error } = await node.ask("eth_sendRawTransaction", raw);
      expect(error).toEqual({
        code: -32000,
        message,
        data: draft === undefined ? { reason: code } : { code: draft, reason: code },
      });
    }
    node.pool.answer = () => new Error("disk on fire");
    expect((await node.ask("eth_sendRawTransaction", raw)).error?.code).toBe(-32603);
    const hash = parseHash32(`0x${"ab".repeat(32)}`);
    node.pool.answer = () => hash;
    expect(await node.call("eth_sendRawTransaction", raw)).toBe(hash);
  });

  it("knows what a block took on its way into the pool, and what was mined before has a used nonce", async () => {
    const { chain, pool, ask } = createTestNode();
    const mined = await signLegacy(ALICE, { nonce: 0, to: BOB.address });
    const rival = await signLegacy(ALICE, { nonce: 0, to: ALICE.address });
    const tooLow = new AppError("NONCE_TOO_LOW", "nonce too low: next nonce 1, tx nonce 0");
    pool.answer = () => {
      if (chain.blocks.length === 1) chain.add([{ raw: mined }]);
      return tooLow;
    };
    const answers = await Promise.all(
      [mined, rival].map((raw) => ask("eth_sendRawTransaction", raw)),
    );
    expect(answers.map(({ error }) => error)).toEqual([
      { code: -32000, message: "already known", data: { code: 1000, reason: "ALREADY_KNOWN" } },
      { code: -32000, message: tooLow.message, data: { code: 1, reason: "NONCE_TOO_LOW" } },
    ]);
    expect((await ask("eth_sendRawTransaction", mined)).error?.message).toBe(tooLow.message);
  });

  it("maps codes of the workers and the read model", async () => {
    const cases: [string, string, number, string][] = [
      ["CALL_TIMEOUT", "x", -32002, "request timed out"],
      ["CALL_QUEUE_FULL", "too many calls", -32005, "too many calls"],
      ["HEADER_NOT_FOUND", "x", -32000, "header not found"],
      ["HISTORY_PRUNED", "x", 4444, "pruned history unavailable"],
      [
        "GAS_ALLOWANCE_EXCEEDED",
        "gas required exceeds allowance (5)",
        -32000,
        "gas required exceeds allowance (5)",
      ],
    ];
    for (const [thrown, text, code, message] of cases) {
      node.calls.failure = new AppError(thrown, text);
      expect((await node.ask("eth_call", { to: BOB.address })).error).toEqual({ code, message });
    }
    node.calls.failure = undefined;
  });

  it("ends what still runs when the client goes away", async () => {
    const context = new RequestContext(60_000, undefined);
    const { signal } = context;
    context.cancel();
    expect(signal.aborted).toBe(true);
    expect(String(signal.reason)).toContain("request timed out");
    context.finish();
  });
});

describe("the node about itself", () => {
  it("answers chain, network and version queries", async () => {
    expect(await node.call("eth_chainId")).toBe("0x1b1c");
    expect(await node.call("net_version")).toBe("6940");
    expect(await node.call("net_peerCount")).toBe("0x3");
    expect(await node.call("net_listening")).toBe(true);
    expect(await node.call("web3_clientVersion")).toBe("causeway/v0.1.0");
    expect(await node.call("web3_sha3", "0x")).toBe(
      "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
    );
    expect(await node.call("eth_gasPrice")).toBe("0x17d7840");
    expect(await node.call("eth_maxPriorityFeePerGas")).toBe("0x17d7840");
    expect(await node.call("eth_syncing")).toBe(false);
  });

  it("serves what its operator lets it, and what the kit itself asks", async () => {
    const quiet = createTestNode({}, undefined, ["eth", "net", "personal"]);
    expect(await quiet.call("eth_chainId")).toBe("0x1b1c");
    expect(await quiet.call("causeway_getPoolHashes")).toEqual({ pending: [], queued: [] });
    for (const name of ["debug_traceTransaction", "txpool_status", "web3_sha3"]) {
      const { error } = await quiet.ask(name, "0x");
      expect([error?.code, error?.message]).toEqual([
        -32601,
        `the method ${name} does not exist/is not available`,
      ]);
    }
    const modules = ["causeway", "eth", "net", "rpc"].map((name) => [name, "1.0"]);
    expect(await quiet.call("rpc_modules")).toEqual(Object.fromEntries(modules));
    const all = [...modules, ...["debug", "txpool", "web3"].map((name) => [name, "1.0"])];
    expect(await node.call("rpc_modules")).toEqual(Object.fromEntries(all));
  });

  it("tells how far it is while it catches up, as clients of go-ethereum read it", async () => {
    const behind = createTestNode();
    behind.chain.add([]);
    behind.state.catchingUp = true;
    behind.state.peerHeight = 900;
    const progress = { startingBlock: "0x0", currentBlock: "0x1", highestBlock: "0x384" };
    expect(await behind.call("eth_syncing")).toEqual(progress);
    // Before a peer has said how far it is.
    behind.state.peerHeight = 0;
    expect(await behind.call("eth_syncing")).toEqual({ ...progress, highestBlock: "0x1" });
    behind.state.catchingUp = false;
    expect(await behind.call("eth_syncing")).toBe(false);
  });

  it("counts calls by method, and unknown names under one label", async () => {
    const page = await node.api.metrics.page();
    expect(page).toMatch(
      /causeway_jsonrpc_requests_total\{method="eth_chainId",outcome="ok"\} \d+/,
    );
    expect(page).toContain('method="unknown",outcome="error"');
    expect(page).not.toContain("eth_nothing");
  });
});
