/** An address in whichever of its spellings: read by one rule, and nothing else taken for one. */
import { describe, expect, it } from "@jest/globals";
import { bech32 } from "@scure/base";
import { getAddress, getBytes } from "ethers";
import {
  bech32PrefixOf,
  CONSENSUS_PREFIX,
  parseAnyAddress,
  parsePastedAddress,
  parseStrictAddress,
} from "../../../chain/address.js";

const HEX = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed";
const CHECKSUM = getAddress(HEX);
const spelt = (prefix: string) => bech32.encode(prefix, bech32.toWords(getBytes(HEX)));
const ACCOUNT = spelt("addr");
const OPERATOR = spelt("addrvaloper");

describe("an address in any spelling", () => {
  it("is hex of any case or bech32 of an account, in one case", () => {
    for (const text of [HEX, CHECKSUM, ACCOUNT, ACCOUNT.toUpperCase()]) {
      expect({ text, read: parseAnyAddress(text) }).toEqual({ text, read: HEX });
    }
  });

  it("is none with another prefix, a wrong checksum, of mixed case, or with anything around it", () => {
    const wrong = [OPERATOR, `${ACCOUNT.slice(0, -1)}b`, `addr1${ACCOUNT.slice(5).toUpperCase()}`];
    for (const text of [...wrong, "", "addr1", HEX.slice(2), HEX.slice(0, -1), ` ${HEX}`]) {
      expect(() => parseAnyAddress(text)).toThrow(
        expect.objectContaining({ code: "INVALID_ADDRESS" }),
      );
    }
  });

  it("has the prefixes and the hex that a place takes", () => {
    const consensus = spelt(CONSENSUS_PREFIX);
    expect(parseAnyAddress(consensus, { prefixes: [CONSENSUS_PREFIX] })).toBe(HEX);
    expect(() => parseAnyAddress(ACCOUNT, { prefixes: [CONSENSUS_PREFIX] })).toThrow();
    const strict = { parseHex: parseStrictAddress };
    expect(parseAnyAddress(CHECKSUM, strict)).toBe(HEX);
    expect(parseAnyAddress(ACCOUNT, strict)).toBe(HEX);
    expect(() => parseAnyAddress(`0x5A${HEX.slice(4)}`, strict)).toThrow("checksum");
  });

  it("is told by its prefix", () => {
    const prefixes = ["addr", "addrvaloper"];
    expect(bech32PrefixOf(OPERATOR, prefixes)).toBe("addrvaloper");
    expect(bech32PrefixOf(ACCOUNT.toUpperCase(), prefixes)).toBe("addr");
    for (const text of [HEX, "addr", spelt("addrvalcons"), ""]) {
      expect({ text, prefix: bech32PrefixOf(text, prefixes) }).toEqual({ text, prefix: undefined });
    }
  });
});

describe("an address that was pasted", () => {
  it("is read with blanks around it, without 0x, and of an operator", () => {
    const digits = HEX.slice(2);
    const texts = [HEX, CHECKSUM, digits, digits.toUpperCase(), `0X${digits}`, ` ${HEX}\n`];
    for (const text of [...texts, ACCOUNT, `${OPERATOR} `, OPERATOR.toUpperCase()]) {
      expect({ text, read: parsePastedAddress(text) }).toEqual({ text, read: HEX });
    }
  });

  it("is none where something else was pasted", () => {
    for (const text of ["", "7", digitsOf(64), digitsOf(39), spelt("addrvalcons"), `0x0x${HEX}`]) {
      expect(() => parsePastedAddress(text)).toThrow(
        expect.objectContaining({ code: "INVALID_ADDRESS" }),
      );
    }
  });
});

const digitsOf = (count: number) => "a".repeat(count);
