/** Texts of strangers: whatever they are, a database, JSON and a terminal take what is made of them. */
import { describe, expect, it } from "@jest/globals";
import {
  cleanForeignText,
  escapeUnshowable,
  oneLine,
  shorten,
  wholeLine,
} from "../../../chain/evm/foreign-text.js";
import { RpcError } from "../../../rpc-client/errors.js";

describe("cleanForeignText", () => {
  it.each([
    ["plain words", "execution reverted: too poor", "execution reverted: too poor"],
    ["NUL", "a\u0000b", "a\ufffdb"],
    [
      "what moves a terminal's cursor",
      "a\u001b[2Jb\r\nc\u009bd",
      "a\ufffd[2Jb\ufffd\ufffdc\ufffdd",
    ],
    ["what turns the direction", "a\u202eb\u2066c", "a\ufffdb\ufffdc"],
    ["half a surrogate pair", "a\ud83db\ude00c", "a\ufffdb\ufffdc"],
    ["other scripts", "größer, 値, \u{1F600}", "größer, 値, \u{1F600}"],
  ])("of %s", (_name, text, expected) => {
    expect(cleanForeignText(text, 100)).toBe(expected);
  });

  it.each([3, 4, 5])("never cuts a character in two, at %i", (maxCharacters) => {
    const cut = cleanForeignText("\u{1F600}".repeat(9), maxCharacters);
    expect(cut).toBe("\u{1F600}".repeat(maxCharacters));
    expect(shorten(`a${cut}`, maxCharacters)).toBe(`a${"\u{1F600}".repeat(maxCharacters - 1)}`);
  });

  it("is where the words of a node's refusal come in", () => {
    const rpc = { rpcCode: 3, method: "eth_estimateGas" };
    const { nodeMessage, message } = new RpcError(`a\u0000b${"x".repeat(10_000)}`, rpc);
    expect(nodeMessage).toMatch(/^a\ufffdbx+$/);
    expect(nodeMessage).toHaveLength(1_024);
    expect(message).toBe(`eth_estimateGas: ${nodeMessage}`);
  });
});

describe("oneLine", () => {
  it("has a blank where a line ended, and nothing else of it", () => {
    const text = " first \r\n\n second\tword\u2028\u0085third\u0000\u202e  end\n";
    expect(oneLine(text, 100)).toBe("first second word third\ufffd\ufffd  end");
    expect(oneLine("ab\ncd", 4)).toBe("ab c");
  });
});

describe("wholeLine", () => {
  it("is the text on one line where nothing of it is cut off", () => {
    expect(wholeLine(" why\n\u{1F600} ", 7)).toBe("why \u{1F600}");
    expect(wholeLine("\u{1F600}".repeat(3), 3)).toBe("\u{1F600}".repeat(3));
  });

  it("is nothing of a text that says nothing, or of which something would be missing", () => {
    for (const text of ["", " \n\t", "\u{1F600}".repeat(4), "why "]) {
      expect([text, wholeLine(text, 3)]).toEqual([text, undefined]);
    }
  });
});

describe("escapeUnshowable", () => {
  it("shows what a terminal would obey, line feeds where they end lines no more", () => {
    const text = "a\u001b[2K\r\n\tb\u009b8m\u202e\u{1F600}";
    const [before, behind] = ["a\\u001b[2K\\u000d", "b\\u009b8m\\u202e\u{1F600}"];
    expect(escapeUnshowable(text, "one")).toBe(`${before}\\u000a\\u0009${behind}`);
    expect(escapeUnshowable(text, "many")).toBe(`${before}\n\t${behind}`);
  });

  it("leaves a document of JSON the same", () => {
    const value = { reason: "a\u001b\n\u009b\u202e\u2028\\u001b", units: ["1"] };
    const shown = escapeUnshowable(JSON.stringify(value, null, 2), "many");
    expect(shown).not.toMatch(/[\u009b\u202e\u2028]/);
    expect(JSON.parse(shown)).toEqual(value);
  });
});
