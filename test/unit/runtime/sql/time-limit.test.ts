/** Statements that share one time: what the server is told of it, and when nothing more is begun. */
import { expect, it } from "@jest/globals";
import { STATEMENT_TIMEOUT, timeLimit } from "../../../../runtime/sql/time-limit.js";

it("have what is left of it, which is said anew where it is much less than was given", () => {
  let nowMs = 1_000;
  const next = timeLimit(500, { monotonicMs: () => nowMs });
  const said = [0, 50, 1, 49.5, 399].map((passedMs) => {
    nowMs += passedMs;
    return next();
  });
  const leaving = (leftMs: number) => `SET LOCAL statement_timeout = ${leftMs}`;
  expect(said).toEqual([undefined, undefined, leaving(449), undefined, leaving(1)]);
  nowMs += 1;
  const fault = { code: "DATABASE_UNAVAILABLE", details: { sqlState: STATEMENT_TIMEOUT } };
  expect(next).toThrow(expect.objectContaining(fault));
});
