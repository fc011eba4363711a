/** Searches take turns: two at once, in order, and a full line says so. */
import { describe, expect, it } from "@jest/globals";
import { faultOf } from "../../../../node/rpc/cosmos/errors.js";
import { SearchLane } from "../../../../node/rpc/comet/search/search-lane.js";

describe("searches", () => {
  it("run two at a time, in the order of their coming, also after one failed", async () => {
    const lane = new SearchLane();
    const { signal } = new AbortController();
    const log: string[] = [];
    const ends: (() => void)[] = [];
    const search = (name: string) =>
      lane.run(signal, async () => {
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
    expect(await lane.run(signal, async () => "free again")).toBe("free again");
  });

  it("are refused when a hundred wait, and dropped when their client is gone", async () => {
    const lane = new SearchLane();
    const gone = new AbortController();
    const ends: (() => void)[] = [];
    const hold = () =>
      lane.run(new AbortController().signal, () => {
        return new Promise<void>((resolve) => {
          ends.push(resolve);
        });
      });
    const running = [hold(), hold()];
    let ran = 0;
    const waiting = Array.from({ length: 100 }, () =>
      lane.run(gone.signal, async () => {
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
});
