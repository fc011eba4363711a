/** Bodies of requests: what is well-formed passes as it is, and a field that is written twice does not. */
import { describe, expect, it } from "@jest/globals";
import { parseJsonBody } from "../../../../runtime/http/http-body.js";

const bytesOf = (text: string) => Buffer.from(text, "utf8");

describe("parseJsonBody", () => {
  it("takes texts that look like fields, wherever they stand", () => {
    const odd = ['a":1,"b":', "\\", '\\"', ":", '"', "é:ü", "\u2028:", "\ud83d\ude00:", ""];
    const values = [
      ...odd,
      odd,
      Object.fromEntries(odd.map((text) => [text, text])),
      odd.map((text) => ({ [text]: { [text]: [text, { [text]: null }] } })),
      [{ a: 1 }, { a: 1 }],
      { 0: "b", 1: ["c"] },
      {},
      [],
      null,
      1,
    ];
    for (const value of values) {
      for (const text of [JSON.stringify(value), JSON.stringify(value, null, "\t")]) {
        expect(parseJsonBody(bytesOf(text))).toEqual(JSON.parse(text));
      }
    }
  });

  it.each([
    ["the same name", '{"a":1,"a":1}'],
    ["another spelling", '{"a":1,"\\u0061":2}'],
    ["inside of others", '[{"b":{"a":1,"c":[],"a":2}}]'],
    ["one that hides fields", '{"a":{"b":1},"a":2}'],
    ["a name of every object", '{"__proto__":1,"__proto__":2}'],
  ])("refuses a field that is written twice: %s", (_, text) => {
    expect(() => parseJsonBody(bytesOf(text))).toThrow("the body has a field twice");
  });
});
