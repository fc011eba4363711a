/**
 * The query language held against CometBFT 0.38.17's own parser and matcher (libs/pubsub/query), over
 * queries with random faults and events with random values.
 */
import { describe, expect, it } from "@jest/globals";
import { parseQuery } from "../../../../node/rpc/comet/search/query.js";
import { matchesQuery } from "../../../../node/rpc/comet/search/query-match.js";
import { readScenarios } from "../../consensus/cometbft-scenarios.js";

const { parsed, matched } = readScenarios();

/** The one spelling of a query; null where it is refused. */
function canonicalOf(text: string): string | null {
  try {
    return parseQuery(text).canonical;
  } catch (error) {
    expect(error).toMatchObject({
      message: expect.stringMatching(/^failed to parse query: offset/),
    });
    return null;
  }
}

describe("queries", () => {
  it("are read, refused and spelled as by CometBFT", () => {
    for (const { text, canonical } of parsed) {
      // CometBFT drops whatever follows a quote that is never closed; here the query is refused.
      const isOpen = text.split("'").length % 2 === 0;
      expect([text, canonicalOf(text)]).toEqual([text, isOpen ? null : canonical]);
    }
    expect(parsed.filter(({ canonical }) => canonical === null).length).toBeGreaterThan(100);
    expect(parsed.filter(({ canonical }) => canonical !== null).length).toBeGreaterThan(100);
  });

  it("match events as in CometBFT", () => {
    for (const { text, events, matches } of matched) {
      const values = new Map(Object.entries(events));
      expect([text, events, matchesQuery(parseQuery(text), values)]).toEqual([
        text,
        events,
        matches,
      ]);
    }
    expect(matched.filter(({ matches }) => matches).length).toBeGreaterThan(100);
  });
});

describe("words", () => {
  it.each([
    "'incomplete string",
    "-23",
    "DATE xyz-pdq",
    "DATE xyzp-dq-zv",
    "DATE 0000-00-00",
    "DATE 0000-00-000",
    "DATE 2021-01-99",
    "TIME 2021-01-01T34:56:78Z",
    "TIME 2021-01-99T14:56:08Z",
    "TIME 2021-01-99T34:56:08",
    "TIME 2021-01-99T34:56:11+3",
  ])("that are none are refused: %s (TestScannerErrors)", (word) => {
    expect(() => parseQuery(`a.b = ${word}`)).toThrow(/failed to parse query: offset/);
  });

  it.each([
    ["a.b=0 AND c.d=123", "a.b = 0 AND c.d = 123"],
    ["a.b=0.32 AND c.d=3.14", "a.b = 0.32 AND c.d = 3.14"],
    ["foo-foo.bar EXISTS", "foo-foo.bar EXISTS"],
    ["foo._bar_bar EXISTS", "foo._bar_bar EXISTS"],
    ["a.b = '' AND c.d='x y'", "a.b = '' AND c.d = 'x y'"],
    ["\t\n a.b<=1\tAND\nc.d>=2 ", "a.b <= 1 AND c.d >= 2"],
    ["x.y CONTAINS 'z'", "x.y CONTAINS 'z'"],
    ["and = 1 AND AND.b = 2", "and = 1 AND AND.b = 2"],
    ["a.b = TIME 2021-11-23T15:16:17Z", "a.b = TIME 2021-11-23T15:16:17Z"],
    ["a.b = DATE 2021-11-23", "a.b = DATE 2021-11-23"],
    ["DATE = 1 AND TIME EXISTS", null],
  ])("are told apart: %j (TestScanner)", (text, canonical) => {
    expect(canonicalOf(text)).toBe(canonical);
  });

  it("that nobody wrote are no query", () => {
    for (const text of ["", "  ", "\t\n "]) expect(canonicalOf(text)).toBeNull();
  });
});
