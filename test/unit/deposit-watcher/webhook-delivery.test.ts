/** When a delivery is tried again, and when it is given up, where its receiver says when to come back. */
import { describe, expect, it } from "@jest/globals";
import { judgeAnswer } from "../../../deposit-watcher/webhooks/delivery.js";

const NOW_MS = Date.parse("2026-11-27T12:00:00Z");
const HOUR_MS = 3_600_000;

function judge(retryAfter: string | undefined, tries: number) {
  return judgeAnswer({ status: 503, retryAfter, excerpt: "" }, tries, NOW_MS);
}

/** Pauses until a delivery is given up whose receiver always says the same. */
function pausesOf(retryAfter: string | undefined): number[] {
  const pauses: number[] = [];
  for (let tries = 1; ; tries += 1) {
    const outcome = judge(retryAfter, tries);
    if (outcome.kind !== "retry") return pauses;
    pauses.push(outcome.delayMs);
  }
}

describe("a delivery whose receiver says when to come back", () => {
  it("follows it at first, and outlives an outage of hours all the same", () => {
    const pauses = pausesOf("1");
    expect(pauses.slice(0, 5)).toEqual([1_000, 1_000, 1_000, 10_000, 30_000]);
    expect(pauses).toHaveLength(pausesOf(undefined).length);
    expect(pauses.reduce((sum, pauseMs) => sum + pauseMs, 0)).toBeGreaterThan(6 * HOUR_MS);
  });

  it("follows a longer pause than its own at every try, up to four hours", () => {
    expect(Math.min(...pausesOf("7200"))).toBe(2 * HOUR_MS);
    expect(judge("999999999", 1)).toMatchObject({ kind: "retry", delayMs: 4 * HOUR_MS });
  });

  it("reads seconds and a date, and takes nothing else for either", () => {
    expect(judge("60", 1)).toMatchObject({ delayMs: 60_000 });
    expect(judge("Fri, 27 Nov 2026 12:02:00 GMT", 1)).toMatchObject({ delayMs: 120_000 });
    expect(judge("Fri, 27 Nov 2026 11:00:00 GMT", 1)).toMatchObject({ delayMs: 1_000 });
    for (const odd of ["-5", "1.5", "0.5", "2027-01-01", "soon", ""]) {
      expect([odd, judge(odd, 2)]).toMatchObject([odd, { delayMs: 30_000 }]);
    }
  });
});
