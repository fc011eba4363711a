import { describe, expect, it } from "@jest/globals";
import { HeadTicker } from "../../../../sidecar/index/head-ticker.js";

const rpc = { signal: new AbortController().signal };

/** A node whose answers are given by hand. */
function manualNode() {
  const requests: { resolve(height: number): void; reject(error: Error): void }[] = [];
  const blockNumber = () =>
    new Promise<number>((resolve, reject) => requests.push({ resolve, reject }));
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
});
