/** Traces of calls, transactions and blocks, and the options of their tracers. */
import { describe, expect, it, jest } from "@jest/globals";
import { parseAddress } from "../../../../../chain/address.js";
import { keccak256Hex } from "../../../../../chain/hashes.js";
import { ZERO_HASH } from "../../../../../chain/hex.js";
import { RequestContext } from "../../../../../node/rpc/evm/request-context.js";
import { ALICE, BOB, createTestNode, signLegacy } from "../fixture.js";

const node = createTestNode();
const bob = parseAddress(BOB.address);

describe("traces", () => {
  it("passes tracer options on and finds the transaction's place", async () => {
    const raw = await signLegacy(ALICE, { nonce: 0, to: BOB.address });
    const { block } = node.chain.add([{ raw }]);
    const hash = block.transactions[0]?.tx.hash;
    const calls = { tracer: "callTracer", tracerConfig: { onlyTopCall: true, withLog: true } };
    expect(await node.call("debug_traceTransaction", hash, calls)).toEqual({
      height: 1,
      index: 0,
      kind: { tracer: "callTracer", onlyTopCall: true, withLog: true },
    });
    const struct = { disableStack: true, enableMemory: true };
    expect(await node.call("debug_traceBlockByNumber", "0x1", struct)).toEqual([
      {
        txHash: ZERO_HASH,
        result: {
          height: 1,
          kind: {
            tracer: "structLogger",
            limit: 0,
            enableMemory: true,
            disableStack: true,
            disableStorage: false,
            enableReturnData: false,
          },
        },
      },
    ]);
    expect(
      await node.call("debug_traceCall", { to: BOB.address }, "latest", {
        tracer: "prestateTracer",
      }),
    ).toEqual({
      to: bob,
      kind: {
        tracer: "prestateTracer",
        diffMode: false,
        disableCode: false,
        disableStorage: false,
        includeEmpty: false,
      },
    });
  });

  it("reads options as go-ethereum's client writes them", async () => {
    // Sent by gethclient 1.17.10: its TraceConfig names no members for JSON, and its node takes any case.
    const frames = { EnableMemory: false, Limit: 0, Tracer: "callTracer", Timeout: null };
    const calls = { ...frames, TracerConfig: { onlyTopCall: true, withLog: false } };
    expect(await node.call("debug_traceBlockByNumber", "0x1", calls)).toMatchObject([
      { result: { kind: { tracer: "callTracer", onlyTopCall: true, withLog: false } } },
    ]);
    const memory = { EnableMemory: true, DisableStack: false, DisableStorage: true, Limit: 3 };
    const struct = { ...memory, EnableReturnData: true, Tracer: null, TracerConfig: null };
    expect(await node.call("debug_traceCall", {}, "latest", struct)).toMatchObject({
      kind: {
        tracer: "structLogger",
        limit: 3,
        enableMemory: true,
        disableStack: false,
        disableStorage: true,
        enableReturnData: true,
      },
    });
    const diff = { Tracer: "prestateTracer", TracerConfig: { DiffMode: true } };
    const mux = { tracer: "muxTracer", tracerConfig: { prestateTracer: { DiffMode: true } } };
    const kind = { tracer: "prestateTracer", diffMode: true };
    expect(await node.call("debug_traceCall", {}, "latest", diff)).toMatchObject({ kind });
    expect(await node.call("debug_traceCall", {}, "latest", mux)).toMatchObject({
      kind: { tracers: [["prestateTracer", kind]] },
    });
    for (const [options, text] of [
      [{ TxIndex: "0x1" }, "txIndex is not supported"],
      [{ StateOverrides: { "0x": {} } }, "stateOverrides: "],
      [{ BlockOverrides: { number: "1" } }, "blockOverrides: "],
    ] as const) {
      const { error } = await node.ask("debug_traceCall", {}, "latest", options);
      expect(error?.message).toContain(text);
    }
  });

  it("knows whose a trace is", async () => {
    const traced = jest.spyOn(node.calls, "traceBlock");
    const raw = await node.call<string>("debug_getRawBlock", "0x1");
    type Block = { readonly hash: string; readonly transactions: readonly string[] };
    const { hash, transactions } = await node.call<Block>("eth_getBlockByNumber", "0x1", false);
    const asked = [
      ["debug_traceTransaction", transactions[0]],
      ["debug_traceBlockByNumber", "0x1"],
      ["debug_traceBlockByHash", hash],
      ["debug_traceBlock", raw],
    ];
    for (const [method, param] of asked) {
      const context = new RequestContext(5_000, undefined, { remoteAddress: "192.0.2.1" });
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [param] });
      await node.api.dispatcher.handle(Buffer.from(body), context);
      context.finish();
    }
    // Of the fixture's kind, which takes no options.
    const options = traced.mock.calls.map((values: readonly unknown[]) => values[3]);
    expect(options).toEqual(asked.map(() => expect.objectContaining({ client: "192.0.2.1" })));
    traced.mockRestore();
  });

  it("traces a block that is given as its bytes", async () => {
    const raw = await node.call<string>("debug_getRawBlock", "0x1");
    const calls = { tracer: "callTracer" };
    expect(await node.call("debug_traceBlock", raw, calls)).toEqual(
      await node.call("debug_traceBlockByNumber", "0x1", calls),
    );
    const genesis = await node.call<string>("debug_getRawBlock", "0x0");
    expect((await node.ask("debug_traceBlock", genesis)).error?.message).toBe(
      "genesis is not traceable",
    );
    // A list of an empty header, no transactions and no uncles.
    const hash = keccak256Hex(Uint8Array.of(0xc0));
    expect((await node.ask("debug_traceBlock", "0xc3c0c0c0")).error).toEqual({
      code: -32000,
      message: `block ${hash} not found`,
    });
    for (const bytes of ["0x", "0x01", "0xc1c0", `${raw}00`, raw.slice(0, -2)]) {
      const { error } = await node.ask("debug_traceBlock", bytes);
      expect(error?.code).toBe(-32000);
      expect(error?.message).toMatch(/^could not decode block: /);
    }
    expect((await node.ask("debug_traceBlock", "0x1")).error?.code).toBe(-32602);
  });

  it("refuses unknown transactions, unknown tracers and genesis", async () => {
    expect((await node.ask("debug_traceTransaction", ZERO_HASH)).error?.message).toBe(
      "transaction not found",
    );
    // As execution-apis' trace-block-not-found.io has it, and go-ethereum by number.
    expect((await node.ask("debug_traceBlockByHash", ZERO_HASH)).error?.message).toBe(
      `block ${ZERO_HASH} not found`,
    );
    expect((await node.ask("debug_traceBlockByNumber", "0xffff")).error?.message).toBe(
      "block #65535 not found",
    );
    expect((await node.ask("debug_traceBlockByNumber", "0x0")).error?.message).toBe(
      "genesis is not traceable",
    );
    expect(
      (await node.ask("debug_traceBlockByNumber", "0x1", { tracer: "none" })).error?.message,
    ).toBe("tracer not found");
    const script = { tracer: "{step: function() {}, fault: function() {}, result: function() {}}" };
    const refused = (await node.ask("debug_traceBlockByNumber", "0x1", script)).error;
    expect(refused?.message).toContain("JavaScript tracers are not served");
    expect(refused).not.toHaveProperty("data");
    const both = { tracer: "prestateTracer", tracerConfig: { diffMode: true, includeEmpty: true } };
    expect((await node.ask("debug_traceBlockByNumber", "0x1", both)).error?.message).toBe(
      "cannot use diffMode with includeEmpty",
    );
  });

  it("reads the options of several tracers at once", async () => {
    const mux = {
      tracer: "muxTracer",
      tracerConfig: { callTracer: { withLog: true }, "4byteTracer": null },
    };
    expect(await node.call("debug_traceBlockByNumber", "0x1", mux)).toMatchObject([
      {
        result: {
          kind: {
            tracer: "muxTracer",
            tracers: [
              ["callTracer", { tracer: "callTracer", onlyTopCall: false, withLog: true }],
              ["4byteTracer", { tracer: "4byteTracer" }],
            ],
          },
        },
      },
    ]);
  });
});
