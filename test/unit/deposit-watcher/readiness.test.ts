import { describe, expect, it } from "@jest/globals";
import { isCatchingUp } from "../../../deposit-watcher/readiness.js";
import type { WatcherStatus } from "../../../deposit-watcher/watcher.js";
import type { Incident } from "../../../ledger/incidents.js";

const MAX_LAG_BLOCKS = 20;
const incident: Incident = {
  id: 1,
  kind: "BALANCE_MISMATCH",
  height: 7,
  message: "a balance differs",
  details: {},
  remedy: "look",
  openedAt: "2026-11-26T00:00:00Z",
};
const atHead: WatcherStatus = {
  headHeight: 100,
  cursorHeight: 80,
  incident: undefined,
  problem: undefined,
  pastProblem: undefined,
  progressedAtMs: undefined,
  waitsFor: undefined,
};

describe("catching up", () => {
  it.each<[string, Partial<WatcherStatus>, boolean]>([
    ["as far behind as /ready allows", {}, false],
    ["one block further behind", { cursorHeight: 79 }, true],
    ["before the node was asked", { headHeight: undefined, problem: "not asked yet" }, true],
    ["stopped by an incident", { cursorHeight: 0, incident }, false],
  ])("%s", (_case, change, expected) => {
    expect(isCatchingUp({ ...atHead, ...change }, MAX_LAG_BLOCKS)).toBe(expected);
  });
});
