/** What is executed without a worker, and that it is answered as by one. */
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { IN_PLACE_NS } from "../../../../node/execution/calls/call-pool.js";
import type { CallError } from "../../../../node/execution/calls/call-error.js";
import type { CallOptions, CallRequest } from "../../../../node/execution/calls/call-port.js";
import { CallBench, endless, PRICE, receiver, request, sender, signal } from "./call-bench.js";

describe("call pool", () => {
  let bench: CallBench;

  beforeAll(async () => {
    bench = await CallBench.open();
  });
  afterAll(() => bench.close());

  it("executes small calls of the head on the spot, and leaves all others to the workers", async () => {
    const nobody = bench.open({
      inPlaceNs: IN_PLACE_NS,
      workerUrl: pathToFileURL("/no/worker.js"),
    });
    await expect(nobody.call(request(), 3, { signal })).resolves.toMatchObject({
      outcome: "success",
    });
    const balances = new Map([[sender, { balanceAtoken: 1n }]]);
    // All at once: each try to start the worker is a while behind the last one.
    const others: readonly (readonly [CallRequest, number, Partial<CallOptions>])[] = [
      [endless(), 3, {}],
      [request({ data: new Uint8Array(5_000) }), 3, {}],
      [request(), 2, {}],
      [request(), 3, { overrides: balances }],
      [request(), 3, { blockOverrides: { height: 9 } }],
    ];
    const answers = others.map(([asked, height, options]) =>
      nobody.call(asked, height, { signal, ...options }),
    );
    for (const refused of await Promise.allSettled(answers)) {
      expect(refused).toMatchObject({ reason: { code: "CALL_WORKER_FAILED" } });
    }
  });

  it("gives the same answer on the spot as from a worker", async () => {
    const [here, there] = [bench.open({ inPlaceNs: IN_PLACE_NS }), bench.open()];
    const poor = parseAddress(`0x${"99".repeat(20)}`);
    const code = (hex: string) => ({ to: undefined, data: Buffer.from(hex, "hex") });
    const asked: readonly Partial<CallRequest>[] = [
      {},
      { from: poor, valueAtoken: 1n },
      { from: poor, gasPriceAtoken: PRICE },
      { gasPriceAtoken: PRICE },
      { gasLimit: 20_000n },
      { gasLimit: 21_100n },
      { to: poor, valueAtoken: 5n },
      code("60016000fd"),
      code("fe"),
      code("4360005260206000f3"),
      code("60024340600052602060 00f3".replace(" ", "")),
      code("4760005247602052303160405260606000f3"),
      { to: parseAddress(`0x${"00".repeat(19)}04`), data: Uint8Array.of(1, 2, 3) },
      { to: parseAddress(`0x${"00".repeat(19)}01`), data: new Uint8Array(128) },
    ];
    for (const [index, changes] of asked.entries()) {
      const outcomes = [here, there].map((pool) =>
        pool.call(request(changes), 3, { signal }).catch((error: CallError) => ({
          code: error.code,
          message: error.message,
          details: error.details,
        })),
      );
      const [fast, slow] = await Promise.all(outcomes);
      expect({ index, ...fast }).toEqual({ index, ...slow });
    }
  });

  it("estimates payments to accounts without code on the spot, and leaves all else to the workers", async () => {
    const code = jest.fn<() => Uint8Array>();
    const nobody = bench.open({
      inPlaceNs: IN_PLACE_NS,
      workerUrl: pathToFileURL("/no/worker.js"),
      stateReaderAt: (height) => ({ ...bench.chain.stores.state.readerAt(height), code }),
    });
    const to = parseAddress(receiver(1));
    const transfer = request({ to, valueAtoken: 1n, gasPriceAtoken: PRICE });
    expect(await nobody.estimateGas(transfer, 3, { signal })).toEqual({
      outcome: "success",
      gas: 21_000n,
    });
    const identity = parseAddress(`0x${"00".repeat(19)}04`);
    const balances = new Map([[sender, { balanceAtoken: 1n }]]);
    const others: readonly (readonly [CallRequest, number, Partial<CallOptions>])[] = [
      [request(), 3, {}],
      [request({ to: undefined }), 3, {}],
      [request({ to: identity }), 3, {}],
      [request({ to, data: Uint8Array.of(1) }), 3, {}],
      [request({ to, accessList: [{ address: to, storageKeys: [] }] }), 3, {}],
      [transfer, 2, {}],
      [transfer, 3, { overrides: balances }],
      [transfer, 3, { blockOverrides: { height: 9 } }],
    ];
    const answers = others.map(([asked, height, options]) =>
      nobody.estimateGas(asked, height, { signal, ...options }),
    );
    for (const [index, refused] of (await Promise.allSettled(answers)).entries()) {
      expect({ index, ...refused }).toMatchObject({ reason: { code: "CALL_WORKER_FAILED" } });
    }
    expect(code).not.toHaveBeenCalled();
  });

  it("gives the same estimate on the spot as from a worker", async () => {
    const [here, there] = [bench.open({ inPlaceNs: IN_PLACE_NS }), bench.open()];
    const poor = parseAddress(`0x${"99".repeat(20)}`);
    const to = parseAddress(receiver(2));
    const payments: readonly Partial<CallRequest>[] = [
      {},
      { valueAtoken: 1n },
      { to: sender, valueAtoken: 1n },
      { valueAtoken: 1n, gasPriceAtoken: PRICE },
      { gasPriceAtoken: PRICE, gasLimit: 20_999n },
      { gasPriceAtoken: PRICE, gasLimit: 21_000n },
      { gasLimit: 1n },
      { from: poor },
      { from: poor, valueAtoken: 1n },
      { from: poor, gasPriceAtoken: PRICE },
      { from: poor, valueAtoken: 1n, gasPriceAtoken: PRICE },
      { valueAtoken: 2n ** 255n },
      { valueAtoken: 2n ** 255n, gasPriceAtoken: PRICE },
      { gasPriceAtoken: 2n ** 200n },
    ].map((changes) => ({ to, ...changes }));
    for (const [index, changes] of payments.entries()) {
      const outcomes = [here, there].map((pool) =>
        pool.estimateGas(request(changes), 3, { signal }).catch((error: CallError) => ({
          code: error.code,
          message: error.message,
          details: error.details,
        })),
      );
      const [fast, slow] = await Promise.all(outcomes);
      expect({ index, ...fast }).toEqual({ index, ...slow });
    }
  });
});
