import { describe, expect, it } from "@jest/globals";
import { NodeFault } from "../../../../rpc-client/errors.js";
import type { RpcOptions } from "../../../../rpc-client/json-rpc.js";
import { HeadTicker, LIGHT_READ_TIMEOUT_MS } from "../../../../sidecar/index/head-ticker.js";

const rpc = { signal: new AbortController().signal };

/** A node whose answers are given by hand. */
function manualNode() {
  const requests: {
    readonly options: RpcOptions;
    resolve(height: number): void;
    reject(error: Error): void;
  }[] = [];
  const blockNumber = (options: RpcOptions) =>
    new Promise<number>((resolve, reject) => requests.push({ options, resolve, reject }));
  return { requests, ticker: new HeadTicker({ blockNumber }, rpc) };
}

describe("the node's newest height", () => {
  it("is asked once for all who come during a request, and after they came", async () => {
    const { requests, ticker } = manualNode();
    const first = ticker.get();
    const late = [ticker.get(), ticker.get(), ticker.get()];
    expect(requests).toHaveLength(1);
    requests[0]?.resolve(7);
    expect(await first).toBe(7);
    // The late ones may have seen block 8 while the first answer was on its way.
    requests[1]?.resolve(8);
    expect(await Promise.all(late)).toEqual([8, 8, 8]);
    expect(requests).toHaveLength(2);
    const next = ticker.get();
    requests[2]?.resolve(9);
    expect(await next).toBe(9);
  });

  it("is asked again for those who wait when a request fails", async () => {
    const { requests, ticker } = manualNode();
    const first = ticker.get();
    const late = ticker.get();
    requests[0]?.reject(new Error("down"));
    await expect(first).rejects.toThrow("down");
    requests[1]?.resolve(8);
    expect(await late).toBe(8);
  });

  it("tells all who wait for a node that hangs, instead of asking it once more for them", async () => {
    const { requests, ticker } = manualNode();
    const waiting = [ticker.get(), ticker.get(), ticker.get()];
    requests[0]?.reject(new NodeFault("NODE_TIMEOUT", "no answer in time", { retriable: true }));
    const outcomes = await Promise.allSettled(waiting);
    expect(outcomes).toEqual(
      waiting.map(() => ({
        status: "rejected",
        reason: expect.objectContaining({ code: "NODE_TIMEOUT", retriable: true }),
      })),
    );
    expect(requests).toHaveLength(1);
    const later = [ticker.get(), ticker.get()];
    requests[1]?.resolve(9);
    expect(await later[0]).toBe(9);
    requests[2]?.resolve(9);
    expect(await later[1]).toBe(9);
  });

  it("is waited for less long than clients wait, who have 10 seconds or less", async () => {
    const { requests, ticker } = manualNode();
    const asked = ticker.get();
    expect(requests[0]?.options).toEqual({ ...rpc, timeoutMs: LIGHT_READ_TIMEOUT_MS });
    expect(LIGHT_READ_TIMEOUT_MS).toBeLessThanOrEqual(5_000);
    requests[0]?.resolve(7);
    expect(await asked).toBe(7);
  });
});
