/** The strict codec of the chain's contracts, whatever the type, and which types those may have. */
import { describe, expect, it } from "@jest/globals";
import { AbiCoder } from "ethers";
import { abiParameter } from "../../../../chain/evm/abi/abi-contract.js";
import { readParameters } from "../../../../chain/evm/abi/abi-types.js";
import {
  AbiError,
  type AbiValue,
  decodeAbi,
  encodeAbi,
} from "../../../../chain/evm/abi/abi-values.js";
import { bytesToHex, hexToBytes, parseHex } from "../../../../chain/hex.js";

const coder = AbiCoder.defaultAbiCoder();
const address = `0x${"ab".repeat(20)}`;
const key = Uint8Array.from({ length: 4 }, (_, index) => index + 1);

function parametersOf(...types: readonly string[]) {
  const parameters = readParameters(types.map((type, index) => ({ name: `v${index}`, type })));
  if (parameters === undefined) throw new Error(`not read: ${types.join()}`);
  return parameters;
}

describe("the strict codec", () => {
  it("writes and reads as ethers does also what no contract of the chain has", () => {
    const cases: readonly (readonly [type: string, value: AbiValue])[] = [
      ["bytes4", key],
      ["bytes4[2]", [key, key]],
      ["uint8[2][]", [[1n, 255n]]],
      ["string[2]", ["a", "b".repeat(40)]],
      ["bytes[][2]", [[key], []]],
      ["int16[1][2]", [[-32_768n], [32_767n]]],
      ["address[1]", [address]],
    ];
    const types = cases.map(([type]) => type);
    const values = cases.map(([, value]) => value);
    const parameters = parametersOf(...types);
    const bytes = coder.encode(types, values);
    expect(bytesToHex(encodeAbi(parameters, values))).toBe(bytes);
    expect(Object.values(decodeAbi(parameters, hexToBytes(parseHex(bytes))))).toEqual(values);
  });

  it("refuses bytes behind those of their type, and lists that are not as long as theirs", () => {
    const dirty = hexToBytes(`0x${"01".repeat(5)}${"00".repeat(27)}`);
    expect(() => decodeAbi(parametersOf("bytes4"), dirty)).toThrow(AbiError);
    expect(() => decodeAbi(parametersOf("uint8[3]"), new Uint8Array(64))).toThrow("cut short");
    expect(() => encodeAbi(parametersOf("bytes5"), [key])).toThrow(TypeError);
    expect(() => encodeAbi(parametersOf("uint8[3]"), [[1n]])).toThrow(TypeError);
    expect(() => encodeAbi(parametersOf("bool"), [1n])).toThrow(TypeError);
  });
});

describe("the chain's own contracts", () => {
  it.each(["bytes32", "uint8[2]", "bytes4[]", "function", "uint7", "mapping"])(
    "have no type that none of them uses: %s",
    (type) => {
      expect(() => abiParameter({ name: "one", type })).toThrow(RangeError);
      const components = [{ name: "field", type }];
      expect(() => abiParameter({ name: "one", type: "tuple[]", components })).toThrow(RangeError);
    },
  );

  it("have structs and lists of all others", () => {
    const components = ["address", "int256[]", "string", "bytes[][]"].map((type, index) => ({
      name: `field${index}`,
      type,
    }));
    expect(abiParameter({ name: "one", type: "tuple[]", components }).type.kind).toBe("array");
  });
});
