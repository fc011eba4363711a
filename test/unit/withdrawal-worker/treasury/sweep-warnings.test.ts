/** What the treasury's log says of coins that wait on addresses: when it begins, and not at each look. */
import { beforeEach, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import {
  SweepWarnings,
  type WaitingSweep,
} from "../../../../withdrawal-worker/treasury/sweep-warnings.js";

const MINUTE_MS = 60_000;
const DEAR = {
  asset: "TOKEN",
  reason: "the fee is too high",
  delayMs: 10 * MINUTE_MS,
  tellAfterMs: 0,
};
const BEHIND = {
  asset: "TOKEN",
  reason: "the node is behind",
  delayMs: MINUTE_MS,
  tellAfterMs: 10 * MINUTE_MS,
};

const at = (wait: Omit<WaitingSweep, "address">, index = 1): WaitingSweep => ({
  ...wait,
  address: parseAddress(`0x${index.toString(16).padStart(40, "0")}`),
});

let lines: string[];
let warnings: SweepWarnings;

beforeEach(() => {
  lines = [];
  const destination = { write: (line: string) => lines.push(line) };
  warnings = new SweepWarnings(createLogger({ component: "test", destination }));
});

describe("coins that wait to be swept", () => {
  it("are told by asset and reason when it begins, with how many they are", () => {
    const many = Array.from({ length: 7 }, (_, index) => at(DEAR, index + 1));
    warnings.tellWaiting([...many, at({ ...DEAR, asset: "PLAIN" })], 0);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: "warn", asset: "TOKEN", reason: DEAR.reason, count: 7 },
      { level: "warn", asset: "PLAIN", reason: DEAR.reason, count: 1 },
    ]);
    expect(JSON.parse(lines[0] ?? "").addresses).toHaveLength(5);
  });

  it("are not told again at later looks, and anew once it has been over", () => {
    for (let look = 0; look < 4; look += 1) {
      warnings.tellWaiting([at(DEAR)], look * DEAR.delayMs);
      warnings.tellWaiting([], look * DEAR.delayMs + 1_000);
    }
    expect(lines).toHaveLength(1);
    // A look that comes late is of the same wait; one that finds nothing at its time ended it.
    warnings.tellWaiting([at(DEAR)], 6 * DEAR.delayMs);
    expect(lines).toHaveLength(2);
  });

  it("of a node are told once it lasts, and those in order never", () => {
    for (let minute = 0; minute < 10; minute += 1) {
      warnings.tellWaiting([at(BEHIND)], minute * MINUTE_MS);
    }
    expect(lines).toEqual([]);
    warnings.tellWaiting([at(BEHIND)], 10 * MINUTE_MS);
    warnings.tellWaiting([at(BEHIND)], 11 * MINUTE_MS);
    expect(lines).toHaveLength(1);
    const dust = { asset: "PLAIN", reason: "less than the minimum", delayMs: 1 };
    warnings.tellWaiting([at({ ...dust, tellAfterMs: undefined })], 11 * MINUTE_MS);
    expect(lines).toHaveLength(1);
  });

  it("of a node are told of one that lasts, however rarely it is looked at, and not of many that pass", () => {
    for (let minute = 0; minute < 30; minute += 1) {
      warnings.tellWaiting([at(BEHIND, minute + 10)], minute * MINUTE_MS);
    }
    expect(lines).toEqual([]);
    for (const minute of [30, 35, 40]) warnings.tellWaiting([at(BEHIND, 1)], minute * MINUTE_MS);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ count: 1 }]);
  });
});
