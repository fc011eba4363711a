/** One bound for what is kept for all clients: who is let go, and who is not. */
import { describe, expect, it } from "@jest/globals";
import { HeldBytes } from "../../../../runtime/http/held-bytes.js";
import { TestClock } from "../../p2p/clock.js";

function stage(maxBytes = 1_000) {
  const clock = new TestClock();
  const held = new HeldBytes({ maxBytes, graceMs: 30_000, minBytesPerSecond: 100 }, clock);
  const gone: string[] = [];
  const hold = (name: string, sizeBytes: number) => {
    const holding = held.hold(() => gone.push(name));
    holding.update(sizeBytes);
    return holding;
  };
  return { clock, held, gone, hold };
}

describe("bytes that are held for clients", () => {
  it("are bounded together: who holds most for the longest goes", () => {
    const { clock, held, gone, hold } = stage();
    hold("old and small", 10);
    hold("old and large", 500);
    clock.timeMs += 1_000;
    hold("new and larger", 490);
    expect([gone, held.totalBytes]).toEqual([[], 1_000]);
    hold("newest", 100);
    expect([gone, held.totalBytes]).toEqual([["old and large"], 600]);
    expect(held.letGoCount).toBe(1);
  });

  it("never come to more, however many there are, and nobody who reads goes", () => {
    const { clock, held, gone, hold } = stage();
    const reader = hold("reader", 300);
    for (let count = 0; count < 1_000; count++) {
      hold(`silent ${count}`, 90);
      clock.timeMs += 10;
      reader.update(100);
      reader.update(300);
      expect(held.totalBytes).toBeLessThanOrEqual(1_000);
    }
    expect(gone).not.toContain("reader");
    expect(gone).toHaveLength(1_000 - Math.floor(700 / 90));
  });

  it("that alone are too much go at once, and leave the others alone", () => {
    const { gone, held, hold } = stage();
    hold("other", 10);
    hold("huge", 2_000);
    expect([gone, held.totalBytes]).toEqual([["huge"], 10]);
  });

  it("that are not taken go in time: a while, and longer for more of them", () => {
    const { clock, held, gone, hold } = stage();
    hold("ten bytes", 10);
    hold("half a thousand", 500);
    const slow = hold("slow", 400);
    clock.timeMs += 30_000;
    held.sweep();
    expect(gone).toEqual([]);
    slow.update(399);
    clock.timeMs += 101;
    held.sweep();
    expect(gone).toEqual(["ten bytes"]);
    clock.timeMs += 4_900;
    held.sweep();
    expect(gone).toEqual(["ten bytes", "half a thousand"]);
    slow.release();
    clock.timeMs += 600_000;
    held.sweep();
    expect([gone.length, held.totalBytes]).toEqual([2, 0]);
  });

  it("that are needed stay, and count", () => {
    const { clock, gone, held, hold } = stage();
    const needed = hold("needed", 900);
    needed.pin();
    clock.timeMs += 600_000;
    held.sweep();
    hold("new", 200);
    expect([gone, held.totalBytes]).toEqual([["new"], 900]);
    needed.release();
    hold("newer", 900);
    expect([gone, held.totalBytes]).toEqual([["new"], 900]);
  });
});
