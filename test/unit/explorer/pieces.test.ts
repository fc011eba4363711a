/** Pieces of the explorer that take hostile input or guard it: identifiers, ABI, elements, limits. */
import { setMaxListeners } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { bech32 } from "@scure/base";
import { AbiCoder, getBytes, Interface } from "ethers";
import { parseHash32, parseHex } from "../../../chain/hex.js";
import { decodeCall, decodeLog, decodeText } from "../../../explorer/decode/abi.js";
import { readIdentifier } from "../../../explorer/decode/identifiers.js";
import { nodeUrl } from "../../../explorer/html/node-url.js";
import { textBlock } from "../../../explorer/html/text-block.js";
import { clientOf, isLoopback } from "../../../runtime/turns/client-address.js";
import { candleChart, lineChart } from "../../../web/html/chart.js";
import { el, renderDocument } from "../../../web/html/element.js";
import { foreignName, unitsAmount } from "../../../web/html/format.js";
import { isKnown } from "../../../web/server/finished-answer.js";
import { addressOf } from "../../../web/server/page-request.js";
import { createPageTurns, PageRate } from "../../../web/server/page-limits.js";
import { parseHtml, textOf } from "../../helpers/pages/html.js";

const account = `0x${"ab".repeat(20)}`;
const hash = `0x${"cd".repeat(32)}`;

describe("identifiers", () => {
  it("are known in every form, and nothing else is one", () => {
    const cases: readonly (readonly [string, string | undefined])[] = [
      ["17", "height"],
      [" #1234 ", "height"],
      ["1,234,567", "height"],
      [hash, "hash"],
      [hash.slice(2).toUpperCase(), "hash"],
      [account, "address"],
      [account.slice(2).toUpperCase(), "address"],
      ["proposal 7", "proposal"],
      ["Prop #12", "proposal"],
      ["proposal 0", undefined],
      [bech32.encode("addrvalcons", bech32.toWords(getBytes(account))), "validator"],
      [bech32.encode("addrvaloper", bech32.toWords(getBytes(account))), "address"],
      [bech32.encode("cosmos", bech32.toWords(getBytes(account))), undefined],
      ["1,23", undefined],
      ["-1", undefined],
      ["0x", undefined],
      ["1e3", undefined],
      [`${hash}0`, undefined],
      ["addr1qqqq", undefined],
      ["99999999999999999999", undefined],
    ];
    for (const [text, kind] of cases) {
      expect({ text, kind: readIdentifier(text)?.kind }).toEqual({ text, kind });
    }
  });
});

describe("the ABI", () => {
  it("reads what ethers encodes", () => {
    const abi = new Interface([
      "function swapExactTokensForTokens(uint256,uint256,address[],address,uint256)",
      "event Swap(address indexed,uint256,uint256,uint256,uint256,address indexed)",
    ]);
    const path = [account, `0x${"01".repeat(20)}`];
    const call = abi.encodeFunctionData("swapExactTokensForTokens", [5, 4, path, account, 9]);
    const decoded = decodeCall(parseHex(call));
    expect(decoded?.name).toBe("swapExactTokensForTokens");
    expect(decoded?.values.map(({ name }) => name)).toEqual([
      "amountIn",
      "minOut",
      "path",
      "to",
      "deadline",
    ]);
    expect(decoded?.values[2]?.value).toEqual({
      kind: "list",
      items: path.map((address) => ({ kind: "address", address })),
    });
    const log = abi.encodeEventLog("Swap", [account, 1, 2, 3, 4, account]);
    const swap = decodeLog(log.topics.map(parseHash32), parseHex(log.data));
    expect(swap?.values.map(({ name }) => name)).toEqual([
      "sender",
      "amount0In",
      "amount1In",
      "amount0Out",
      "amount1Out",
      "to",
    ]);
    const word = AbiCoder.defaultAbiCoder().encode(["string"], ["ok é"]);
    expect(decodeText(parseHex(word))).toBe("ok é");
  });

  it("takes nothing that does not fit", () => {
    for (const data of [
      "0x",
      "0xa9",
      "0xa9059cbb",
      `0xa9059cbb${"ff".repeat(64)}`,
      `0x38ed1739${"ff".repeat(160)}`,
    ]) {
      expect({ data, decoded: decodeCall(parseHex(data)) }).toEqual({ data, decoded: undefined });
    }
    const lengths = [`${"00".repeat(31)}20${"ff".repeat(32)}`, "ff".repeat(64), "00"];
    for (const text of lengths) expect(decodeText(parseHex(`0x${text}`))).toBeUndefined();
  });
});

describe("elements", () => {
  it("escape texts and attributes", () => {
    const text = renderDocument(el("p", { title: '"><script>' }, "<script>&\"'"));
    expect(text).not.toContain("<script>");
    expect(text).toContain('title="&quot;>&lt;script>"');
  });

  it("refuse programs, styles and ways out", () => {
    expect(() => el("p", { onclick: "x" })).toThrow(TypeError);
    expect(() => el("p", { dangerouslySetInnerHTML: "x" })).toThrow(TypeError);
    expect(() => el("p", { style: "x" })).toThrow(TypeError);
    for (const href of [
      "javascript:alert(1)",
      "//evil.example",
      "https://evil.example",
      "/\\evil",
      // Browsers leave tabs and line ends out: these are //evil.example to them.
      "/\t/evil.example",
      "/\n\\evil.example",
      "/\r/evil.example",
      " /x",
    ]) {
      expect(() => el("a", { href })).toThrow(TypeError);
    }
  });
});

describe("amounts and names", () => {
  it("are exact, whatever decimals a contract claims", () => {
    expect(unitsAmount(2_500_000n, 6)).toBe("2.5");
    expect(unitsAmount(1n, 18)).toBe("0.000000000000000001");
    expect(unitsAmount(7n, 255)).toBe("7");
    expect(unitsAmount(7n, undefined)).toBe("7");
    expect(unitsAmount(-1_500n, 3)).toBe("−1.5");
  });

  it("lose what hides, and their length", () => {
    expect(foreignName("US\u200bD\u202eT")).toBe("USDT");
    expect(foreignName("x".repeat(1_000_000)).length).toBe(40);
    expect(foreignName(`e${"\u0301".repeat(50)}f`)).toBe("e\u0301\u0301f");
  });
});

describe("texts of strangers with their lines", () => {
  it("show by its number whatever nobody sees or what turns letters", () => {
    const shown = (text: string) =>
      textOf(parseHtml(renderDocument(el("p", {}, textBlock(text, "t")))));
    // Fillers, joiners, selectors (of which whole texts can be made), directions, halves of characters.
    for (const hidden of [
      0x00ad, 0x034f, 0x115f, 0x17b4, 0x180b, 0x200b, 0x202e, 0x3164, 0xfe00, 0xfe0f, 0xfeff,
      0xffa0, 0xe0041, 0xe0100, 0xe01ef, 0x07, 0xd800,
    ]) {
      const text = shown(`role(unicode"ADMIN${String.fromCodePoint(hidden)}")`);
      expect(text).toBe(`role(unicode"ADMIN\\u{${hidden.toString(16)}}")`);
    }
    expect(shown("one\r\n\ttwo ü 漢 🙂")).toBe("one\n\ttwo ü 漢 🙂");
  });
});

describe("charts", () => {
  it("draw flat lines and huge sums, and nothing of one point", () => {
    const text = { title: "t", from: "a", to: "b", format: String };
    const points = [0n, 2n ** 255n, 1n].map((value, x) => ({ x, value }));
    expect(renderDocument(el("p", {}, lineChart(points, text)))).not.toContain("NaN");
    const flat = points.map(({ x }) => ({ x, value: 5n }));
    expect(renderDocument(el("p", {}, lineChart(flat, text)))).not.toContain("NaN");
    expect(lineChart(points.slice(1, 2), text)).toBeUndefined();
    const candle = { x: 1, open: 2, high: 2, low: 2, close: 2 };
    expect(renderDocument(el("p", {}, candleChart([candle], text)))).not.toContain("NaN");
  });
});

describe("limits", () => {
  it("give each client its share and fill it up again", () => {
    let nowMs = 0;
    const limit = new PageRate(60, { nowMs: () => nowMs, monotonicMs: () => nowMs });
    for (let page = 0; page < 12; page++) limit.take("a", 5);
    expect(() => limit.take("a", 5)).toThrow("too many pages");
    limit.take("b", 5);
    nowMs += 5_000;
    limit.take("a", 5);
    expect(() => limit.take("a", 1)).toThrow("too many pages");
  });

  it("tell clients apart by their networks", () => {
    expect(clientOf("::ffff:10.0.0.1")).toBe("10.0.0.1");
    expect(
      ["127.0.0.1", "::1", "::ffff:127.0.0.9"].map((one) => isLoopback(clientOf(one))),
    ).toEqual([true, true, true]);
    expect(["::2", "10.0.0.1"].map((one) => isLoopback(clientOf(one)))).toEqual([false, false]);
    expect(clientOf("2001:db8:1:2:3:4:5:6")).toBe(clientOf("2001:db8:1:2::9"));
    expect(clientOf("2001:db8:1:2::9")).not.toBe(clientOf("2001:db8:1:3::9"));
  });

  it("let so many work at once, in order, and let go of who waits no longer", async () => {
    const turns = createPageTurns(1);
    const { signal } = new AbortController();
    setMaxListeners(0, signal);
    const order: string[] = [];
    let finish: () => void = () => undefined;
    const first = turns.run(signal, () => new Promise<void>((resolve) => (finish = resolve)));
    const leaving = new AbortController();
    const left = turns.run(leaving.signal, async () => void order.push("left"));
    const third = turns.run(signal, async () => void order.push("third"));
    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    finish();
    await Promise.all([first, third]);
    expect(order).toEqual(["third"]);
    const waiting = createPageTurns(1);
    void waiting.run(signal, () => new Promise<void>((resolve) => (finish = resolve)));
    const many = Array.from({ length: 257 }, () => waiting.run(signal, async () => undefined));
    await expect(many.at(-1)).rejects.toThrow("too many pages are made at once");
    finish();
    await Promise.allSettled(many);
  });

  it("compare what a client has weakly", () => {
    expect(isKnown('W/"a", "b"', '"a"')).toBe(true);
    expect(isKnown("*", '"a"')).toBe(true);
    expect(isKnown('"c"', '"a"')).toBe(false);
  });
});

describe("the address of what was asked for", () => {
  it.each(["/search/what?", "/tokens/a#b", "/names/100%", "/names/a b/ü"])(
    "leads to %s again",
    (path) => {
      const query = new URLSearchParams({ q: "a?b&c" });
      const { pathname, searchParams } = new URL(addressOf({ path, query }), "http://explorer");
      expect(decodeURIComponent(pathname)).toBe(path);
      expect([...searchParams]).toEqual([["q", "a?b&c"]]);
    },
  );
});

describe("the node in commands that readers are shown", () => {
  it("is the explorer's own where both are on this machine, and nobody else's", () => {
    for (const [url, publicUrl, shown] of [
      ["http://127.0.0.1:9545", "", "http://127.0.0.1:9545"],
      ["http://localhost:9545/", "", "http://localhost:9545"],
      ["http://me:secret@127.0.0.1:9545", "", "http://127.0.0.1:9545"],
      ["http://[::1]:9545", "", "http://[::1]:9545"],
      ["http://127.0.0.1:9545", "https://pages.example", "elsewhere"],
      ["http://127.0.0.1:9545/a-key", "", "elsewhere"],
      ["http://10.0.0.7:8545", "", "elsewhere"],
      ["https://127.0.0.1.example", "", "elsewhere"],
    ] as const) {
      const found = nodeUrl(url, publicUrl, "elsewhere");
      expect({ url, publicUrl, found }).toEqual({ url, publicUrl, found: shown });
    }
  });
});
