/** /call over a scripted node: parameters, what the node is asked, results and failures. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { bech32 } from "@scure/base";
import { getAddress, getBytes } from "ethers";
import { ALICE, BOB, hashOf, startFakeChain } from "../../../helpers/chains/journal-chain.js";
import { type FakeNode, RpcFault } from "../../../helpers/chains/fake-node.js";
import { GOLD, REGISTRY, SILVER } from "../../../helpers/chains/known-tokens.js";
import { routeServer, type RouteServer } from "../route-server.js";
import { call, offlineServer } from "../servers.js";

const TX = hashOf("plain");
const receipt = { transactionHash: TX, status: "0x1", gasUsed: "0x5208", logs: [] };

/** Parameters of `block_transactions` for one block. */
const wanting = (positions: number[], block: object = { index: 1, hash: hashOf("block 1") }) => ({
  blocks: [{ block_identifier: block, positions }],
});

describe("/call", () => {
  let node: FakeNode;
  let online: RouteServer;
  const ask = async (method: string, parameters: unknown) => {
    const { status, text } = await call(online.server, "/call", { method, parameters });
    return { status, body: JSON.parse(text) as Record<string, unknown> };
  };
  const sent = (method: string) =>
    node.calls.filter((made) => made.method === method).map(({ params }) => params);
  const failing = (method: string, fault: RpcFault) =>
    node.methods.set(method, () => {
      throw fault;
    });

  beforeAll(async () => {
    node = await startFakeChain({
      eth_call: () => "0xc0ffee",
      eth_getTransactionReceipt: ([hash]) => (hash === TX ? receipt : null),
      eth_getProof: ([address]) => ({ address, accountProof: [], nonce: "0x0", storageProof: [] }),
      debug_traceTransaction: () => ({ type: "CALL", calls: [] }),
    });
    online = routeServer(node.url, {
      registry: REGISTRY,
      quarantines: {
        quarantineOf: (contract) =>
          contract === SILVER.metadata.contractAddress.toLowerCase()
            ? { height: 5, reason: "its logs do not add up" }
            : undefined,
        judgedTo: () => Promise.resolve(9),
      },
      placeOf: (hash) => (hash === hashOf("block 1") ? { height: 1, position: 0 } : undefined),
    });
  });
  afterEach(() => node.reset());
  afterAll(async () => {
    online.close();
    await node.close();
  });

  it("lists its methods in the options of both servers", async () => {
    const expected = [
      "eth_call",
      "eth_getTransactionReceipt",
      "eth_getProof",
      "debug_traceTransaction",
      "address_convert",
      "token_status",
      "block_accounts",
      "block_transactions",
    ];
    for (const server of [online.server, offlineServer()]) {
      const { body } = await call(server, "/network/options");
      expect(body.allow.call_methods).toEqual(expected);
    }
    const offline = await call(offlineServer(), "/call", { method: "eth_call", parameters: {} });
    expect(offline.body.code).toBe(3);
  });

  it("refuses a method that is not listed", async () => {
    for (const method of ["eth_sendRawTransaction", "constructor", "__proto__", "eth_Call"]) {
      const { status, body } = await ask(method, {});
      expect([status, body["code"], body["details"]]).toEqual([500, 211, { method }]);
    }
    expect(node.calls).toEqual([]);
  });

  it("passes a message on exactly, numbers or decimal strings alike", async () => {
    const message = { from: BOB, to: getAddress(ALICE), gas: 90_000, gas_price: "1", data: "0xAB" };
    const value = (2n ** 255n).toString();
    expect(await ask("eth_call", { ...message, value, index: 1 })).toEqual({
      status: 200,
      body: { result: { data: "0xc0ffee" }, idempotent: true },
    });
    expect(sent("eth_call")).toEqual([
      [
        {
          from: BOB,
          to: ALICE,
          gas: "0x15f90",
          gasPrice: "0x1",
          value: `0x8${"0".repeat(63)}`,
          data: "0xab",
        },
        { blockHash: hashOf("block 1") },
      ],
    ]);
  });

  it("calls idempotent only what is at a block that was named", async () => {
    const cases: [string, Record<string, unknown>, boolean, number][] = [
      ["eth_call", { to: BOB }, false, 2],
      ["eth_call", { to: BOB, index: 0 }, true, 0],
      ["eth_call", { data: "0x00", hash: hashOf("block 1") }, true, 1],
      ["eth_call", { to: BOB, block_identifier: { index: 1 } }, true, 1],
      ["eth_call", { to: BOB, block_identifier: {} }, false, 2],
      ["eth_getProof", { address: BOB }, false, 2],
      ["eth_getProof", { address: BOB, hash: hashOf("block 2") }, true, 2],
    ];
    for (const [method, parameters, idempotent, at] of cases) {
      node.calls.length = 0;
      const { body } = await ask(method, parameters);
      expect({ parameters, idempotent: body["idempotent"] }).toEqual({ parameters, idempotent });
      expect(sent(method).map((params) => params.at(-1))).toEqual([
        { blockHash: hashOf(`block ${at}`) },
      ]);
    }
    expect((await ask("eth_call", { to: BOB, index: 99 })).body["code"]).toBe(201);
  });

  it("gives a mined receipt, proof and trace as the node has them", async () => {
    expect(
      await ask("eth_getTransactionReceipt", { tx_hash: TX.toUpperCase().replace("X", "x") }),
    ).toEqual({ status: 200, body: { result: receipt, idempotent: true } });
    const slot = hashOf("slot");
    const proof = await ask("eth_getProof", { address: BOB, storage_keys: [slot], index: 1 });
    expect(proof.body["result"]).toMatchObject({ address: BOB, nonce: "0x0" });
    expect(sent("eth_getProof")).toEqual([[BOB, [slot], { blockHash: hashOf("block 1") }]]);
    expect((await ask("debug_traceTransaction", { tx_hash: TX })).body).toEqual({
      result: { type: "CALL", calls: [] },
      idempotent: true,
    });
    await ask("debug_traceTransaction", { tx_hash: TX, tracer: "prestateTracer", diff_mode: true });
    await ask("debug_traceTransaction", {
      tx_hash: TX,
      tracer: "structLogger",
      disable_stack: true,
    });
    expect(sent("debug_traceTransaction")).toEqual([
      [TX, { tracer: "callTracer", tracerConfig: { onlyTopCall: false, withLog: false } }],
      [TX, { tracer: "prestateTracer", tracerConfig: { diffMode: true } }],
      [
        TX,
        {
          tracer: "structLogger",
          enableMemory: false,
          disableStack: true,
          disableStorage: false,
          enableReturnData: false,
        },
      ],
    ]);
    // Of a pending one nothing is known yet, and nobody can tell it from one that nobody sent.
    const unknown = { tx_hash: hashOf("unknown") };
    for (const method of ["eth_getTransactionReceipt", "debug_traceTransaction"]) {
      const { body } = await ask(method, unknown);
      expect([body["code"], body["retriable"], body["details"]]).toEqual([
        216,
        true,
        { hash: unknown.tx_hash },
      ]);
    }
    expect(sent("debug_traceTransaction")).toHaveLength(3);
  });

  it("does not ask to come again for what is mined and has no receipt", async () => {
    const methods = ["eth_getTransactionReceipt", "debug_traceTransaction"];
    const codes = async () => {
      const found: unknown[] = [];
      for (const method of methods) {
        const { body } = await ask(method, { tx_hash: hashOf("block 1") });
        found.push([body["code"], body["retriable"]]);
      }
      return found;
    };
    expect(await codes()).toEqual([
      [213, false],
      [213, false],
    ]);
    // One that has the block not yet may have the receipt later.
    const known = node.methods.get("eth_getBlockByNumber");
    let asked = 0;
    // The first question is the index's own, which has it.
    node.methods.set("eth_getBlockByNumber", (params) =>
      asked++ % 3 === 0 ? known?.(params) : null,
    );
    await expect(codes()).resolves.toEqual([
      [103, true],
      [103, true],
    ]);
    // As a node answers that has deleted the block.
    failing("eth_getBlockByNumber", new RpcFault(4_444, "pruned history unavailable"));
    expect(await codes()).toEqual([
      [204, false],
      [204, false],
    ]);
  });

  it.each<[string, Record<string, unknown>, string]>([
    ["eth_call", {}, "to"],
    ["eth_call", { to: BOB, block: 1 }, "block"],
    ["eth_call", { to: BOB.toUpperCase() }, "to"],
    ["eth_call", { to: getAddress(BOB).replace("f", "F") }, "to"],
    ["eth_call", { to: BOB, data: "0xa" }, "data"],
    ["eth_call", { to: BOB, data: null }, "data"],
    ["eth_call", { to: BOB, gas: "0x5" }, "gas"],
    ["eth_call", { to: BOB, gas: 1.5 }, "gas"],
    ["eth_call", { to: BOB, gas: (2n ** 64n).toString() }, "gas"],
    ["eth_call", { to: BOB, value: "-1" }, "value"],
    ["eth_call", { to: BOB, value: (2n ** 256n).toString() }, "value"],
    ["eth_call", { to: BOB, gas_price: "" }, "gas_price"],
    ["eth_call", { to: BOB, index: "1" }, "index"],
    ["eth_call", { to: BOB, hash: "0x12" }, "hash"],
    ["eth_call", { to: BOB, block_identifier: { index: -1 } }, "block_identifier.index"],
    ["eth_call", { to: BOB, block_identifier: { index: 1 }, index: 1 }, "block_identifier"],
    ["eth_getTransactionReceipt", {}, "tx_hash"],
    ["eth_getTransactionReceipt", { tx_hash: TX, index: 1 }, "index"],
    ["eth_getProof", { storage_keys: [] }, "address"],
    ["eth_getProof", { address: BOB, storage_keys: [TX, "0x0"] }, "storage_keys[1]"],
    ["eth_getProof", { address: BOB, storage_keys: Array(1_025).fill(TX) }, "storage_keys"],
    ["debug_traceTransaction", { tx_hash: TX, tracer: "{js}" }, "tracer"],
    ["debug_traceTransaction", { tx_hash: TX, diff_mode: true }, "diff_mode"],
    ["debug_traceTransaction", { tx_hash: TX, with_log: "yes" }, "with_log"],
    ["address_convert", { address: "" }, "address"],
    ["address_convert", { address: "cosmos1qqqq" }, "address"],
    ["token_status", { contract_address: "GOLD" }, "contract_address"],
    ["block_accounts", { from_index: 1 }, "to_index"],
    ["block_accounts", { from_index: 2, to_index: 1 }, "to_index"],
    ["block_accounts", { from_index: 0, to_index: 64 }, "to_index"],
    ["block_accounts", { from_index: 0, to_index: 1, index: 1 }, "index"],
    ["block_transactions", {}, "blocks"],
    ["block_transactions", { blocks: [{ positions: [] }] }, "blocks[0].block_identifier"],
    ["block_transactions", wanting([0], { index: 1 }), "blocks[0].block_identifier.hash"],
    ["block_transactions", wanting([0, -1]), "blocks[0].positions[1]"],
    ["block_transactions", wanting(Array(4_097).fill(0)), "blocks"],
    ["block_transactions", { blocks: Array(65).fill(wanting([]).blocks[0]) }, "blocks"],
  ])("refuses %s %j by the field %s, without asking the node", async (method, given, field) => {
    const { status, body } = await ask(method, given);
    expect([status, body["code"]]).toEqual([500, 212]);
    expect(body["details"]).toMatchObject({ field: `parameters.${field}` });
    expect(node.calls).toEqual([]);
  });

  it("tells why a call failed, with the returned bytes", async () => {
    const to = { to: BOB, index: 1 };
    failing("eth_call", new RpcFault(3, "execution reverted: no coins", "0x08c379a0"));
    expect((await ask("eth_call", to)).body).toEqual({
      code: 213,
      message: "call failed",
      description: expect.any(String),
      retriable: false,
      details: { reason: "execution reverted: no coins", data: "0x08c379a0" },
    });
    failing("eth_call", new RpcFault(3, "x".repeat(9_000), `0x${"ab".repeat(20_000)}`));
    expect((await ask("eth_call", to)).body["details"]).toEqual({
      reason: "x".repeat(1_024),
      data_size_bytes: 20_000,
    });
    failing("eth_call", new RpcFault(-32000, "out of gas"));
    expect((await ask("eth_call", to)).body).toMatchObject({
      code: 213,
      details: { reason: "out of gas" },
    });
    failing(
      "eth_call",
      new RpcFault(-32000, "err: insufficient funds for gas * price + value: address A"),
    );
    expect((await ask("eth_call", to)).body["code"]).toBe(213);
  });

  it("believes no contract that its node lacks the block", async () => {
    // Who is told 103 asks again for ever: the call fails in the same way each time.
    for (const reason of ["header not found", "header for hash not found"]) {
      failing("eth_call", new RpcFault(3, `execution reverted: ${reason}`, "0x08c379a0"));
      const { body } = await ask("eth_call", { to: BOB, index: 1 });
      const { code, retriable } = body;
      expect({ reason, code, retriable }).toEqual({ reason, code: 213, retriable: false });
    }
  });

  it("keeps the node's own faults apart from failed calls", async () => {
    const cases: [RpcFault, number][] = [
      [new RpcFault(-32000, "header not found"), 103],
      [new RpcFault(-32000, "missing trie node"), 107],
      [new RpcFault(4444, "pruned history unavailable"), 204],
      [new RpcFault(-32005, "too many calls"), 104],
      [new RpcFault(-32602, "invalid argument 0"), 212],
    ];
    for (const [fault, code] of cases) {
      failing("eth_getProof", fault);
      const { body } = await ask("eth_getProof", { address: BOB, index: 1 });
      expect([fault.message, body["code"]]).toEqual([fault.message, code]);
    }
    node.methods.set("eth_getProof", () => ({ address: ALICE }));
    expect((await ask("eth_getProof", { address: BOB })).body["code"]).toBe(106);
    node.methods.set("eth_getTransactionReceipt", () => ({ ...receipt, transactionHash: BOB }));
    expect((await ask("eth_getTransactionReceipt", { tx_hash: TX })).body["code"]).toBe(106);
  });

  it("refuses an answer that is too large, wherever that is found", async () => {
    const details = { reason: "the answer is too large", max_bytes: 8_388_608 };
    failing("debug_traceTransaction", new RpcFault(-32003, "response too large"));
    const ours = await ask("debug_traceTransaction", { tx_hash: TX });
    expect(ours.body).toMatchObject({ code: 213, retriable: false, details });
    node.methods.set("debug_traceTransaction", () => ({ output: "x".repeat(8_388_608) }));
    const theirs = await ask("debug_traceTransaction", { tx_hash: TX });
    expect(theirs.body).toMatchObject({ code: 213, details });
    node.methods.set("debug_traceTransaction", () => ({ output: "x".repeat(8_000_000) }));
    expect((await ask("debug_traceTransaction", { tx_hash: TX })).status).toBe(200);
  });

  it("writes an address in all its forms, from any of them", async () => {
    const words = bech32.toWords(getBytes(ALICE));
    const forms = {
      address: getAddress(ALICE),
      bech32: bech32.encode("addr", words),
      bech32_validator: bech32.encode("addrvaloper", words),
    };
    const upper = [forms.bech32, forms.bech32_validator].map((text) => text.toUpperCase());
    for (const address of [ALICE, ...Object.values(forms), ...upper]) {
      expect((await ask("address_convert", { address })).body).toEqual({
        result: forms,
        idempotent: true,
      });
    }
    const broken = forms.bech32.slice(0, -1) + (forms.bech32.endsWith("q") ? "p" : "q");
    const mixed = `A${forms.bech32.slice(1)}`;
    for (const address of [
      broken,
      mixed,
      bech32.encode("addr", bech32.toWords(new Uint8Array(19))),
    ]) {
      expect((await ask("address_convert", { address })).body["code"]).toBe(212);
    }
    expect(node.calls).toEqual([]);
  });

  it("tells a token's registry entry and its quarantine", async () => {
    const status = (contract_address: string) => ask("token_status", { contract_address });
    expect((await status(GOLD.metadata.contractAddress)).body).toEqual({
      result: {
        currency: GOLD,
        registry_version: REGISTRY.version,
        quarantined: false,
        judged_to_index: 9,
      },
      idempotent: false,
    });
    expect((await status(SILVER.metadata.contractAddress.toLowerCase())).body).toMatchObject({
      result: {
        currency: SILVER,
        quarantined: true,
        quarantined_from_index: 5,
        reason: "its logs do not add up",
      },
      idempotent: false,
    });
    expect((await status(BOB)).body["code"]).toBe(208);
  });
});
