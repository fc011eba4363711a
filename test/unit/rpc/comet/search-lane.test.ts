/** Searches take turns: two at once, in order, and a full line says so. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { faultOf } from "../../../../node/rpc/cosmos/errors.js";
import { Arguments } from "../../../../node/rpc/comet/arguments.js";
import type { CometFault } from "../../../../node/rpc/comet/errors.js";
import type { CometChain } from "../../../../node/rpc/comet/ports.js";
import { transactionRoutes } from "../../../../node/rpc/comet/routes/transaction-routes.js";
import { createSdkTransactions } from "../../../../node/rpc/comet/sdk-transactions.js";
import { SearchLane } from "../../../../node/rpc/comet/search/search-lane.js";
import { withLimit } from "../../../../runtime/process/task.js";
import { createGate, type Gate } from "../../../helpers/gate.js";
import { until } from "../../../helpers/until.js";
import { inVirtualTime } from "../../../helpers/virtual-time.js";

/** A chain without results, whose index of events answers when the test says so. */
function slowChain({ opened }: Gate): CometChain {
  return {
    view: {
      head: () => ({ height: 9 }),
      oldest: () => ({ block: 1, journal: 1, state: 1, proof: 1 }),
      locateBySdkHash: () => undefined,
      locate: () => undefined,
    },
    consensus: { height: () => 9 },
    events: {
      async *heightsOfType() {
        await opened;
        yield* [];
      },
    },
  } as unknown as CometChain;
}

describe("searches", () => {
  it("run two at a time, in the order of their coming, also after one failed", async () => {
    const lane = new SearchLane();
    const { signal } = new AbortController();
    const log: string[] = [];
    const ends: (() => void)[] = [];
    const search = (name: string) =>
      lane.run({ signal, client: "" }, async () => {
        log.push(`start ${name}`);
        await new Promise<void>((resolve) => {
          ends.push(resolve);
        });
        log.push(`end ${name}`);
        if (name === "b") throw new Error("failed");
        return name;
      });
    const results = Promise.allSettled(["a", "b", "c", "d"].map(search));
    await Promise.resolve();
    expect(log).toEqual(["start a", "start b"]);
    const endNext = async () => {
      ends.shift()?.();
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    };
    await endNext();
    await endNext();
    expect(log).toEqual(["start a", "start b", "end a", "start c", "end b", "start d"]);
    await endNext();
    await endNext();
    expect((await results).map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "fulfilled",
    ]);
    expect(await lane.run({ signal, client: "" }, async () => "free again")).toBe("free again");
  });

  it("are refused when a hundred wait, and dropped when their client is gone", async () => {
    const lane = new SearchLane();
    const gone = new AbortController();
    const ends: (() => void)[] = [];
    const hold = () =>
      lane.run({ signal: new AbortController().signal, client: "" }, () => {
        return new Promise<void>((resolve) => {
          ends.push(resolve);
        });
      });
    const running = [hold(), hold()];
    let ran = 0;
    const waiting = Array.from({ length: 100 }, () =>
      lane.run({ signal: gone.signal, client: "" }, async () => {
        ran += 1;
      }),
    );
    const settled = Promise.allSettled(waiting);
    const refusal: unknown = await hold().catch((error: unknown) => error);
    // Over REST and gRPC, too, nobody is told that the search itself is wrong.
    expect(faultOf(refusal)).toMatchObject({
      code: "UNAVAILABLE",
      message: "too many searches at once, try again",
    });
    gone.abort();
    for (const end of ends) end();
    await Promise.all(running);
    expect((await settled).every(({ status }) => status === "rejected")).toBe(true);
    expect(ran).toBe(0);
  });

  it("leave the line when their client goes, and not when their turn comes", async () => {
    const lane = new SearchLane();
    const { opened, open } = createGate();
    const gone = new AbortController();
    const stay = { signal: new AbortController().signal, client: "" };
    const going = { signal: gone.signal, client: "" };
    const running = [1, 2].map(() => lane.run(stay, () => opened));
    let leftCount = 0;
    for (let waiting = 0; waiting < 100; waiting++) {
      lane.run(going, () => opened).catch(() => (leftCount += 1));
    }
    gone.abort();
    await nextTurn();
    expect(leftCount).toBe(100);
    const next = lane.run(stay, async () => "has a place");
    open();
    expect(await next).toBe("has a place");
    await Promise.all(running);
  });

  it("are of clients in turn, one at a time of each that is on another machine", async () => {
    const lane = new SearchLane();
    const { signal } = new AbortController();
    const { opened, open } = createGate();
    const log: string[] = [];
    const search = (client: string, end: Promise<void> = opened) =>
      lane.run({ signal, client }, async () => {
        log.push(client);
        await end;
      });
    const many = Array.from({ length: 101 }, () => search("10.0.0.1"));
    const all = Promise.allSettled(many);
    const { opened: ended, open: end } = createGate();
    const others = [search("10.0.0.2", ended)];
    // Both places are taken, and the line is full.
    await nextTurn();
    expect(log).toEqual(["10.0.0.1", "10.0.0.2"]);
    others.push(search("10.0.0.3"));
    await expect(many.at(-1)).rejects.toMatchObject({ retriable: true });
    end();
    await others[0];
    await nextTurn();
    expect(log.slice(2)).toEqual(["10.0.0.3"]);
    open();
    await Promise.all([...others, all]);
    expect(log).toHaveLength(102);
  });

  it("are refused when they take too long, those of queries at the query's end", () =>
    inVirtualTime(async () => {
      const lane = new SearchLane();
      const { signal } = new AbortController();
      const endless = (limited: AbortSignal) =>
        new Promise<void>((_resolve, reject) => {
          limited.addEventListener("abort", () => reject(limited.reason));
        });
      const asker = { signal, client: "10.0.0.1" };
      const long = lane.run(asker, endless).catch((error: unknown) => error);
      const next = lane.run(asker, async () => "has its turn");
      const query = withLimit([signal], 10_000, (limited) =>
        lane.run({ signal: limited, client: "10.0.0.2" }, endless),
      ).catch((error: unknown) => error);
      expect(await query).toMatchObject({ name: "TimeoutError" });
      expect(await long).toMatchObject({
        code: "INTERNAL",
        message: expect.stringContaining("the search takes too long"),
      });
      expect(await next).toBe("has its turn");
    }));

  it("for one hash, and those that cannot be read, wait for no others", async () => {
    const gate = createGate();
    const chain = slowChain(gate);
    const { signal } = new AbortController();
    const context = { signal, clientAddress: "", client: undefined };
    const asker = { signal, client: "" };
    const routes = new Map(transactionRoutes(chain, undefined as never, "1"));
    const search = async (query: string) => {
      const values = new Arguments({ form: "json", values: new Map([["query", query]]) });
      return String(await routes.get("tx_search")?.run(values, context));
    };
    const sdk = createSdkTransactions(chain);
    const long = "message.module='bank'";
    const slow: Promise<unknown>[][] = Array.from({ length: 4 }, () => [
      search(long),
      sdk.search(long, asker),
    ]);
    const answers: unknown[] = [];
    const ask = (asked: Promise<unknown>) => asked.then((answer) => answers.push(answer));
    for (const tag of ["tx.hash", "ethereum_tx.ethereumTxHash", "ethereum_tx.txHash"]) {
      const query = `tx.height>1 AND ${tag}='${"ab".repeat(32)}'`;
      slow.push([search(query), sdk.search(query, asker)].map(ask));
    }
    slow.push([ask(search("tx.hash=").catch(({ code }: CometFault) => code))]);
    await until(() => answers.length === 7, {
      timeoutMs: 10_000,
      what: "those that need not wait",
    });
    const nothing = '{"txs":[],"total_count":"0"}';
    expect(new Set(answers.map(String))).toEqual(new Set(["", "INTERNAL", nothing]));
    expect(answers).toHaveLength(7);
    gate.open();
    await Promise.all(slow.flat());
  });
});
