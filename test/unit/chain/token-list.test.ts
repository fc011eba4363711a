import { describe, expect, it } from "@jest/globals";
import { getAddress } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import {
  encodeTokenList,
  MAX_TOKENS,
  parseTokenList,
  TokenListError,
} from "../../../chain/token-list.js";

const GOLD = getAddress("0x6b175474e89094c44da98b954eedeac495271d0f");
const entry = (fields: Record<string, unknown> = {}) => ({
  contractAddress: GOLD,
  symbol: "GOLD",
  decimals: 6,
  ...fields,
});

/** All faults of a list, as "key: allowed". */
function faultsOf(text: string): string[] {
  try {
    parseTokenList(text);
  } catch (error) {
    if (error instanceof TokenListError) return error.faults.map((fault) => fault.key);
    throw error;
  }
  return [];
}

describe("the token list", () => {
  it("is read in its order, addresses in either case", () => {
    const other = `0x${"ab".repeat(20)}`;
    const text = JSON.stringify([entry(), entry({ contractAddress: other, decimals: 255 })]);
    expect(parseTokenList(text)).toEqual([
      { contractAddress: GOLD.toLowerCase(), symbol: "GOLD", decimals: 6 },
      { contractAddress: other, symbol: "GOLD", decimals: 255 },
    ]);
    expect(parseTokenList("[]")).toEqual([]);
  });

  it("may pin the code that a contract runs, and writes it back", () => {
    const codeHash = `0x${"c0".repeat(32)}`;
    const [pinned] = parseTokenList(JSON.stringify([entry({ codeHash })]));
    expect(pinned).toMatchObject({ codeHash });
    expect(parseTokenList(encodeTokenList(pinned === undefined ? [] : [pinned]))).toEqual([pinned]);
    expect(faultsOf(JSON.stringify([entry({ codeHash: "0x12" })]))).toEqual(["[0].codeHash"]);
  });

  it("is written one token a line, checksummed, and reads back", () => {
    const entries = [
      { contractAddress: parseAddress(GOLD), symbol: 'G"LD', decimals: 0 },
      { contractAddress: parseAddress(`0x${"ab".repeat(20)}`), symbol: "$", decimals: 18 },
    ];
    const text = encodeTokenList(entries);
    expect(text.split("\n")).toHaveLength(5);
    expect(text).toContain(`"contractAddress":"${GOLD}"`);
    expect(parseTokenList(text)).toEqual(entries);
    expect(encodeTokenList([])).toBe("[]\n");
  });

  it.each<[string, Record<string, unknown>, string]>([
    ["a wrong checksum", { contractAddress: GOLD.replace("d0F", "D0F") }, "[0].contractAddress"],
    ["upper case", { contractAddress: GOLD.toUpperCase() }, "[0].contractAddress"],
    ["no contract", { contractAddress: undefined }, "[0].contractAddress"],
    ["the native token's name", { symbol: "TOKEN" }, "[0].symbol"],
    ["no symbol", { symbol: "" }, "[0].symbol"],
    ["a space in the symbol", { symbol: "GO LD" }, "[0].symbol"],
    ["a control character", { symbol: "GO\u001bLD" }, "[0].symbol"],
    ["a letter that looks like another", { symbol: "G\u041eLD" }, "[0].symbol"],
    ["a long symbol", { symbol: "G".repeat(33) }, "[0].symbol"],
    ["negative decimals", { decimals: -1 }, "[0].decimals"],
    ["256 decimals", { decimals: 256 }, "[0].decimals"],
    ["half a decimal", { decimals: 1.5 }, "[0].decimals"],
    ["decimals as text", { decimals: "6" }, "[0].decimals"],
    ["a field that is not known", { name: "Gold" }, "[0].name"],
  ])("refuses %s", (_name, fields, key) => {
    expect(faultsOf(JSON.stringify([entry(fields)]))).toEqual([key]);
  });

  it("refuses what is no list of tokens", () => {
    for (const text of ["", "{", "{}", "null", '"GOLD"']) {
      expect({ text, faults: faultsOf(text) }).toEqual({ text, faults: ["(whole file)"] });
    }
    expect(faultsOf("[null, 1, []]")).toEqual(["[0]", "[1]", "[2]"]);
    const many = Array.from({ length: MAX_TOKENS + 1 }, () => entry());
    expect(faultsOf(JSON.stringify(many))).toEqual(["(whole file)"]);
  });

  it("names every fault at once, and each contract may come once in whatever case", () => {
    const text = JSON.stringify([
      entry({ symbol: "", decimals: 999 }),
      entry({ contractAddress: GOLD.toLowerCase(), symbol: "OTHER" }),
    ]);
    expect(faultsOf(text)).toEqual(["[0].symbol", "[0].decimals", "[1].contractAddress"]);
  });

  it("names a contract that comes twice by its place in the file, behind entries that cannot be read", () => {
    const text = JSON.stringify([entry({ contractAddress: "0x12" }), entry(), entry()]);
    expect(faultsOf(text)).toEqual(["[0].contractAddress", "[2].contractAddress"]);
  });
});
