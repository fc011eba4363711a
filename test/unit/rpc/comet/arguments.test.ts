/** Arguments of the consensus RPC: what URLs and JSON may say, and what is refused. */
import { describe, expect, it } from "@jest/globals";
import { jsonArguments, urlArguments } from "../../../../node/rpc/comet/arguments.js";

const SEARCH = ["query", "prove", "page", "per_page", "order_by"];
const INVALID = { code: "INVALID_PARAMS" };

describe("arguments of a URL", () => {
  it("are quoted strings, plain or quoted numbers, 0x bytes", () => {
    const values = urlArguments(
      "?height=5&page=%227%22&path=%22/a%20b%22&hash=0xABcd&tx=%22a=b%22&prove=true&data=beef",
      ["height", "page", "path", "hash", "tx", "prove", "data"],
    );
    expect([values.integer("height"), values.integer("page")]).toEqual([5, 7]);
    expect([values.text("path"), values.boolean("prove")]).toEqual(["/a b", true]);
    expect(Buffer.from(values.bytes("hash")).toString("hex")).toBe("abcd");
    // A quoted text stands for its own bytes, as in CometBFT; hex needs no prefix.
    expect(Buffer.from(values.bytes("tx")).toString()).toBe("a=b");
    expect(Buffer.from(values.hexBytes("data")).toString("hex")).toBe("beef");
  });

  it("are absent when they are not there or empty", () => {
    const values = urlArguments("?height=&other=1", ["height"]);
    expect([values.integer("height"), values.boolean("prove"), values.text("query")]).toEqual([
      undefined,
      false,
      "",
    ]);
    expect(values.bytes("tx")).toHaveLength(0);
  });

  it("keep a query together that a raw & has split (D4)", () => {
    const condition = "transfer.sender='a'";
    for (const [search, query] of [
      [`query="${condition}&transfer.amount>5"&page=2`, `${condition}&transfer.amount>5`],
      [`query="${condition}"&transfer.amount=5&page=2`, `${condition}&transfer.amount=5`],
      [`query="${condition}"&page=2&transfer.amount=5`, `${condition}&transfer.amount=5`],
      [`query=${condition}&message.module='bank'&tx.height>=3`, undefined],
      [`query=%22${condition}%20AND%20a.b=1%22`, `${condition} AND a.b=1`],
      [`query="${condition}"&x=1`, condition],
    ] as const) {
      const expected = query ?? `${condition}&message.module='bank'&tx.height>=3`;
      expect([search, urlArguments(search, SEARCH).text("query")]).toEqual([search, expected]);
    }
    const paged = urlArguments(`query="${condition}&transfer.amount>5"&page=2`, SEARCH);
    expect(paged.integer("page")).toBe(2);
  });

  it("are two hundred at most, the conditions of a query among them", () => {
    const search = (count: number) =>
      `?query="a.b=1"${Array.from({ length: count - 1 }, (_, at) => `&c.d=${at}`).join("")}`;
    expect(urlArguments(search(200), SEARCH).text("query")).toContain("&c.d=198");
    expect(() => urlArguments(search(201), SEARCH)).toThrow(expect.objectContaining(INVALID));
    expect(urlArguments(`?page=2${"&".repeat(500)}`, SEARCH).integer("page")).toBe(2);
  });

  it("are refused when they are of another type", () => {
    const values = urlArguments("?height=five&hash=0xabc&prove=maybe&big=99999999999999999999", []);
    expect(() => values.integer("height")).toThrow(expect.objectContaining(INVALID));
    expect(() => values.integer("big")).toThrow(expect.objectContaining(INVALID));
    expect(() => values.bytes("hash")).toThrow(expect.objectContaining(INVALID));
    expect(() => values.boolean("prove")).toThrow(expect.objectContaining(INVALID));
    expect(urlArguments("?a=%zz", []).text("a")).toBe("%zz");
  });
});

describe("arguments in JSON", () => {
  it("take 64-bit numbers as strings and as numbers, base64 and hex by route", () => {
    const values = jsonArguments(
      { height: "5", page: 7, tx: "AQI=", hash: "ABcd", prove: null },
      [],
    );
    expect([values.integer("height"), values.integer("page")]).toEqual([5, 7]);
    expect([...values.bytes("tx")]).toEqual([1, 2]);
    expect(Buffer.from(values.hexBytes("hash")).toString("hex")).toBe("abcd");
    expect(values.boolean("prove")).toBe(false);
  });

  it("take every int64: clients ask for the highest height when they mean all", () => {
    for (const [text, number] of [
      ["9007199254740991", Number.MAX_SAFE_INTEGER],
      ["9223372036854775807", Number.MAX_SAFE_INTEGER],
      ["-9223372036854775808", Number.MIN_SAFE_INTEGER],
    ] as const) {
      expect(jsonArguments({ maxHeight: text }, []).integer("maxHeight")).toBe(number);
      expect(urlArguments(`maxHeight="${text}"`, []).integer("maxHeight")).toBe(number);
    }
  });

  it("come by position too, all of them or none", () => {
    const values = jsonArguments(["a.b=1", true, "2", null, "asc"], SEARCH);
    expect([values.text("query"), values.integer("page"), values.text("order_by")]).toEqual([
      "a.b=1",
      2,
      "asc",
    ]);
    expect(jsonArguments([], SEARCH).text("query")).toBe("");
    expect(() => jsonArguments(["x"], SEARCH)).toThrow(expect.objectContaining(INVALID));
    expect(() => jsonArguments(5, SEARCH)).toThrow(expect.objectContaining(INVALID));
  });

  it("are refused when they are of another type", () => {
    for (const [name, value] of [
      ["height", 1.5],
      ["height", "0x5"],
      ["height", {}],
      ["height", "9223372036854775808"],
      ["height", "-9223372036854775809"],
      ["height", 2 ** 53],
    ] as const) {
      const values = jsonArguments({ [name]: value }, []);
      expect(() => values.integer(name)).toThrow(expect.objectContaining(INVALID));
    }
    const bytes = jsonArguments({ tx: "not base64!", short: "abc", hash: "xyz", text: 5 }, []);
    for (const read of [
      () => bytes.bytes("tx"),
      () => bytes.bytes("short"),
      () => bytes.hexBytes("hash"),
      () => bytes.text("text"),
    ]) {
      expect(read).toThrow(expect.objectContaining(INVALID));
    }
  });
});
