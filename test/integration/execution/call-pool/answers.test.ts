/** What calls, estimates, simulations and traces of workers say, and of which state. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { bytesToBigint, bytesToHex, hexToBytes, ZERO_HASH } from "../../../../chain/hex.js";
import type { CallPoolOptions } from "../../../../node/execution/calls/call-pool.js";
import { StoreError } from "../../../../node/store/database.js";
import { CallBench, CALLS, counter, PRICE, request, sign, signal, wallet } from "./call-bench.js";

describe("call pool", () => {
  let bench: CallBench;

  beforeAll(async () => {
    bench = await CallBench.open();
  });
  afterAll(() => bench.close());

  it("calls at the head and at an older height", async () => {
    const pool = bench.open();
    const countAt = async (height: number) => {
      const result = await pool.call(request(), height, { signal });
      return result.outcome === "success" && bytesToBigint(result.returnData);
    };
    expect([await countAt(3), await countAt(2), await countAt(1)]).toEqual([4n, 3n, 1n]);
    await expect(pool.call(request(), 4, { signal })).rejects.toMatchObject({
      code: "HEADER_NOT_FOUND",
    });
  });

  it("simulates blocks on a state of the past, each on the one before", async () => {
    const pool = bench.open();
    const json = await pool.simulate(
      {
        blocks: [
          { blockOverrides: {}, overrides: new Map(), calls: [request(), request()] },
          { blockOverrides: {}, overrides: new Map(), calls: [request()] },
        ],
        traceTransfers: false,
        validation: true,
        returnFullTransactions: true,
      },
      2,
      { signal },
    );
    // Written by the worker as well: tens of thousands of logs would take as long.
    const simulated = JSON.parse(Buffer.from(json).toString("utf8"));
    const counts = simulated.map(({ calls }: { calls: { returnData: string }[] }) =>
      calls.map(({ returnData }) => Number(returnData)),
    );
    expect(counts).toEqual([[3, 4], [5]]);
    const [first, second] = simulated;
    expect(first).toMatchObject({
      number: "0x3",
      parentHash: bench.chain.view.block(2)?.block.hash,
    });
    expect(second).toMatchObject({ number: "0x4", parentHash: first.hash });
    expect(first.transactions).toMatchObject([{ nonce: "0x3" }, { nonce: "0x4" }]);
  });

  it("estimates enough for the next transaction", async () => {
    const estimate = await bench.open().estimateGas(request(), 3, { signal });
    if (estimate.outcome !== "success") throw new Error(estimate.outcome);
    const fields = { type: 0, chainId: 6940, nonce: 4, gasPrice: PRICE, to: counter };
    const raw = await wallet.signTransaction({ ...fields, gasLimit: estimate.gas });
    const { executed } = await bench.chain.execute([raw]);
    expect(executed.committed.receipts[0]?.status).toBe(1);
  });

  it("traces mined blocks with the gas of their receipts", async () => {
    const pool = bench.open();
    const traces = await pool.traceBlock(2, undefined, CALLS, { signal });
    const mined = bench.chain.view.block(2);
    // Their texts are written by the worker: the main thread would take a fifth of a second for one.
    const read = traces.map(({ transactionHash, json }) => {
      return { transactionHash, result: JSON.parse(Buffer.from(json).toString("utf8")) };
    });
    expect(read).toMatchObject(
      (mined?.receipts ?? []).map(({ gasUsed }, index) => ({
        transactionHash: mined?.block.transactions[index]?.tx.hash,
        result: { gasUsed: `0x${gasUsed.toString(16)}`, output: `0x${"0".repeat(63)}${index + 1}` },
      })),
    );
    expect(await pool.traceBlock(2, 1, CALLS, { signal })).toEqual([traces[1]]);
    const one = await pool.traceCall(request(), 3, CALLS, { signal });
    expect(JSON.parse(Buffer.from(one).toString("utf8"))).toMatchObject({ type: "CALL" });
    expect(await pool.traceBlock(0, undefined, CALLS, { signal })).toEqual([]);
  });

  it("rejects the job whose state cannot be read, and goes on", async () => {
    let isBroken = true;
    const pool = bench.open({
      stateReaderAt: (height) => {
        const reader = bench.chain.stores.state.readerAt(height);
        const account = () => Promise.reject(new Error("disk on fire"));
        return isBroken ? { ...reader, account } : reader;
      },
    });
    await expect(pool.call(request(), 3, { signal })).rejects.toThrow("disk on fire");
    isBroken = false;
    expect(await pool.call(request(), 3, { signal })).toMatchObject({ outcome: "success" });
  });

  it("shows no hash where a client's number reaches back to blocks that are gone", async () => {
    const { view } = bench.chain;
    const head = 1_000;
    // What is stored is the third block; of hashes there are those that its own code would see.
    const pruned: CallPoolOptions["view"] = {
      head: () => view.head(),
      outline: () => view.outline(3),
      pages: (height) => view.pages(height),
      cosmosTransaction: (height, index) => view.cosmosTransaction(height, index),
      blockHash: (height) => {
        if (height < keptFrom) throw new StoreError("HISTORY_PRUNED", "pruned");
        return view.blockHash(3);
      },
      supply: () => view.supply(3),
    };
    let keptFrom = head - 256;
    const workers = bench.scarceWorkers();
    const pool = bench.open({
      view: pruned,
      stateReaderAt: () => bench.chain.stores.state.readerAt(3),
      workerUrl: workers.url,
    });
    /** Creation code that returns the hash of the block before: PUSH1 1, NUMBER, SUB, BLOCKHASH. */
    const asked = request({ to: undefined, data: hexToBytes("0x60014303405f5260205ff3") });
    const hashBefore = async (height: number) => {
      const result = await pool.call(asked, head, { signal, blockOverrides: { height } });
      return result.outcome === "success" ? bytesToHex(result.returnData) : result;
    };
    const { hash } = view.outline(3) ?? {};
    expect(await hashBefore(keptFrom + 1)).toBe(hash);
    const startCount = workers.lookCount;
    expect(await hashBefore(keptFrom)).toBe(ZERO_HASH);
    const options = { signal, blockOverrides: { height: 2 } };
    const trace = JSON.parse(
      Buffer.from(await pool.traceCall(asked, head, CALLS, options)).toString("utf8"),
    );
    expect(trace).toMatchObject({ output: ZERO_HASH });
    expect(await pool.estimateGas(asked, head, options)).toMatchObject({ outcome: "success" });
    expect(workers.lookCount).toBe(startCount);

    // The block itself went while its call was on its way: a zero would be no answer of its code.
    keptFrom = head;
    await expect(hashBefore(head)).rejects.toMatchObject({ code: "HISTORY_PRUNED" });
  });

  it("reads the state of its height while the chain moves on", async () => {
    const pool = bench.open({ gasCap: 10n ** 12n });
    const head = bench.chain.view.head().height;
    const calls = Array.from({ length: 20 }, () => pool.call(request(), head, { signal }));
    await bench.chain.mine([await sign(4, counter)]);
    const counts = (await Promise.all(calls)).map((result) =>
      result.outcome === "success" ? bytesToBigint(result.returnData) : 0n,
    );
    expect(new Set(counts)).toEqual(new Set([4n]));
    expect(bench.chain.view.head().height).toBe(head + 1);
  });
});
