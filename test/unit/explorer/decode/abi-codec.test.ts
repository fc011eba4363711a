/** The ABI's codec against ethers': every kind of type, both ways, and bytes that do not fit. */
import { describe, expect, it } from "@jest/globals";
import { AbiCoder, id, Interface, ParamType } from "ethers";
import * as fc from "fast-check";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import { type AbiType, selectorOf } from "../../../../chain/evm/abi/abi-types.js";
import { parseHash32, parseHex } from "../../../../chain/hex.js";
import { decodeCall, decodeError, decodeLog } from "../../../../explorer/decode/abi.js";
import {
  type AbiValue,
  decodeParameters,
  encodeTexts,
} from "../../../../explorer/decode/abi-codec.js";
import { readAbi } from "../../../../explorer/decode/abi-items.js";

const coder = AbiCoder.defaultAbiCoder();

/** A type as ethers writes it, and a value of it. */
interface Sample {
  readonly type: string;
  readonly value: unknown;
}

const bits = fc.integer({ min: 1, max: 32 }).map((count) => 8 * count);
const hex = (min: number, max: number) =>
  fc
    .uint8Array({ minLength: min, maxLength: max })
    .map((one) => `0x${Buffer.from(one).toString("hex")}`);

const plain: fc.Arbitrary<Sample> = fc.oneof(
  bits.chain((size) =>
    fc.bigInt({ min: 0n, max: 2n ** BigInt(size) - 1n }).map((value) => ({
      type: `uint${size}`,
      value: String(value),
    })),
  ),
  bits.chain((size) =>
    fc
      .bigInt({ min: -(2n ** BigInt(size - 1)), max: 2n ** BigInt(size - 1) - 1n })
      .map((value) => ({ type: `int${size}`, value: String(value) })),
  ),
  hex(20, 20).map((value) => ({ type: "address", value })),
  fc.boolean().map((value) => ({ type: "bool", value })),
  fc
    .integer({ min: 1, max: 32 })
    .chain((size) => hex(size, size).map((value) => ({ type: `bytes${size}`, value }))),
  hex(0, 70).map((value) => ({ type: "bytes", value })),
  fc.string({ maxLength: 40 }).map((value) => ({ type: "string", value })),
);

/** Lists of one value several times, and structs, in each other. */
const sample: fc.Arbitrary<Sample> = fc.letrec<{ one: Sample }>((tie) => ({
  one: fc.oneof(
    { maxDepth: 3 },
    plain,
    fc.tuple(tie("one"), fc.integer({ min: 0, max: 3 })).map(([{ type, value }, count]) => ({
      type: `${type}[]`,
      value: Array.from({ length: count }, () => value),
    })),
    fc.tuple(tie("one"), fc.integer({ min: 1, max: 3 })).map(([{ type, value }, count]) => ({
      type: `${type}[${count}]`,
      value: Array.from({ length: count }, () => value),
    })),
    fc.array(tie("one"), { minLength: 1, maxLength: 3 }).map((fields) => ({
      type: `tuple(${fields.map(({ type }) => type).join(",")})`,
      value: fields.map(({ value }) => value),
    })),
  ),
})).one;

function parametersOf(types: readonly string[]) {
  const inputs = types.map((type) => JSON.parse(ParamType.from(type).format("json")) as unknown);
  const [item] = readAbi([{ type: "function", name: "f", inputs, outputs: [] }]);
  if (item === undefined) throw new Error(`not read: ${types.join()}`);
  return item;
}

/** A decoded value in the words of the sample. */
function plainOf(value: AbiValue): unknown {
  switch (value.kind) {
    case "address":
      return value.address;
    case "number":
      return String(value.number);
    case "list":
      return value.items.map(plainOf);
    case "fields":
      return value.fields.map(({ value: field }) => plainOf(field));
    default:
      return value.text;
  }
}

/** Truth values are shown as words. */
function shown(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shown);
  return typeof value === "boolean" ? String(value) : value;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

describe("the codec", () => {
  it("reads what ethers writes, and writes what ethers writes", () => {
    fc.assert(
      fc.property(fc.array(sample, { minLength: 1, maxLength: 4 }), (samples) => {
        const types = samples.map(({ type }) => type);
        const values = samples.map(({ value }) => value);
        const item = parametersOf(types);
        const encoded = coder.encode(types, values);
        expect(encodeTexts(item.inputs, values.map(textOf))).toBe(encoded);
        const signature = Interface.from([`function f(${types.join(",")})`]).getFunction("f");
        expect(selectorOf(item.hash)).toBe(signature?.selector);
        const decoded = decodeParameters(item.inputs, Buffer.from(encoded.slice(2), "hex"));
        expect(decoded?.map(({ value }) => plainOf(value))).toEqual(values.map(shown));
      }),
      { numRuns: 60 },
    );
  });

  it("never throws on bytes of strangers, and reads no more than its bounds", () => {
    const types = ["uint8[][]", "tuple(string,bytes[2])", "int16", "bool"];
    const { inputs } = parametersOf(types);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        decodeParameters(inputs, bytes);
      }),
      { numRuns: 100 },
    );
    // Each list names itself as its item: without a bound it would never end.
    const deep = parametersOf([`uint256${"[]".repeat(12)}`]).inputs;
    const self = Buffer.alloc(64 * 40);
    for (let at = 0; at < self.length; at += 64) {
      self.writeUInt32BE(32, at + 28);
      self.writeUInt32BE(38, at + 60);
    }
    expect(decodeParameters(deep, self)).toBeUndefined();
    const long = coder.encode(["uint256[]"], [Array.from({ length: 100 }, () => 1)]);
    const [list] =
      decodeParameters(parametersOf(["uint256[]"]).inputs, Buffer.from(long.slice(2), "hex")) ?? [];
    expect(list?.value).toMatchObject({ kind: "list", left: 68 });
  });

  it("looks at a type once, however many values there are of it", () => {
    let type = "uint256";
    for (let level = 0; level < 8; level += 1) type = `tuple(${type},${type})`;
    let looks = 0;
    const counted = (one: AbiType): AbiType => {
      const inner =
        one.kind === "tuple"
          ? { ...one, fields: one.fields.map((field) => ({ ...field, type: counted(field.type) })) }
          : one.kind === "array"
            ? { ...one, item: counted(one.item) }
            : one;
      return new Proxy(inner, {
        get(target, key) {
          looks += 1;
          return Reflect.get(target, key) as unknown;
        },
      });
    };
    const watched = (text: string) =>
      parametersOf([text]).inputs.map((one) => ({ ...one, type: counted(one.type) }));
    const empty = coder.encode(["uint256[][][]"], [[Array.from({ length: 32 }, () => [])]]);
    const bytes = Buffer.from(empty.slice(2), "hex");
    expect(decodeParameters(watched(`${type}[][][]`), bytes)).toHaveLength(1);
    // Once through the struct's 511 types, and a few looks for each of the lists.
    expect(looks).toBeLessThan(511 * 6);
    looks = 0;
    const zeros = (length: number) => [JSON.stringify(Array.from({ length }, () => 0))];
    const inputs = watched(`${type}[]`);
    expect(() => encodeTexts(inputs, zeros(2_000))).toThrow("does not fit");
    expect(() => encodeTexts(inputs, zeros(20_000))).toThrow("the arguments are too long");
    expect(looks).toBeLessThan(511 * 6 + 22_000 * 2);
  });

  it("refuses texts that are not of their type, naming the parameter", () => {
    const [item] = readAbi([
      {
        type: "function",
        name: "f",
        inputs: [
          { name: "amount", type: "uint8" },
          { name: "who", type: "address" },
          { name: "list", type: "uint256[2]" },
        ],
      },
    ]);
    const who = `0x${"ab".repeat(20)}`;
    for (const texts of [
      ["256", who, "[1,2]"],
      ["-1", who, "[1,2]"],
      ["1.5", who, "[1,2]"],
      ["1", "0x12", "[1,2]"],
      ["1", who, "[1]"],
      ["1", who, "1,2"],
      ["1", who, "[1,9007199254740993]"],
      ["", who, "[1,2]"],
      // Deeper than anybody's list: it is refused, and no fault of the page.
      ["1", who, `[1,${"[".repeat(50_000)}${"]".repeat(50_000)}]`],
    ]) {
      expect(() => encodeTexts(item?.inputs ?? [], texts)).toThrow(/amount|who|list/);
    }
  });

  it("makes no call to an address whose checksum says that it was mistyped", () => {
    const [item] = readAbi([
      { type: "function", name: "pay", inputs: [{ name: "to", type: "address" }] },
    ]);
    const inputs = item?.inputs ?? [];
    const right = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";
    const address = parseAddress(right);
    const encoded = coder.encode(["address"], [right]);
    for (const text of [right, right.slice(2), address, address.slice(2), toBech32(address)]) {
      expect({ text, encoded: encodeTexts(inputs, [text]) }).toEqual({ text, encoded });
    }
    // One digit of each is another one, or two have changed places.
    for (const text of [
      right.replace("fB69", "fB68"),
      right.replace("fB69", "fB96"),
      right.slice(2).replace("c37c5d359", "c37c5d539"),
      toBech32(address).replace(/.$/, "q"),
    ]) {
      expect(() => encodeTexts(inputs, [text])).toThrow(/^to: .*checksum/);
    }
    const list = readAbi([
      { type: "function", name: "payAll", inputs: [{ name: "all", type: "address[]" }] },
    ]);
    const wrong = JSON.stringify([right, right.replace("fB69", "fB68")]);
    expect(() => encodeTexts(list[0]?.inputs ?? [], [wrong])).toThrow(/^all: .*checksum/);
  });

  it("reads calls, logs and errors of an ABI, and nothing that does not fit", () => {
    const face = new Interface([
      "function set(tuple(address who, uint256[] amounts) entry)",
      "event Set(address indexed who, string indexed note, bytes32 key)",
      "error Wrong(uint256 asked, string why)",
    ]);
    const abi = readAbi(JSON.parse(face.formatJson()) as unknown[]);
    const who = `0x${"ab".repeat(20)}`;
    const call = decodeCall(
      parseHex(face.encodeFunctionData("set", [{ who, amounts: [1, 2] }])),
      abi,
    );
    expect(call?.values[0]?.value).toMatchObject({
      kind: "fields",
      fields: [{ name: "who" }, { name: "amounts", value: { kind: "list" } }],
    });
    const log = face.encodeEventLog("Set", [who, "note", `0x${"01".repeat(32)}`]);
    const topics = log.topics.map(parseHash32);
    const event = decodeLog(topics, parseHex(log.data), abi);
    expect(event?.values.map(({ name }) => name)).toEqual(["who", "note", "key"]);
    expect(event?.values[1]?.value).toEqual({ kind: "text", text: log.topics[2] });
    expect(decodeLog(topics.slice(0, 2), parseHex(log.data), abi)).toBeUndefined();
    const error = decodeError(parseHex(face.encodeErrorResult("Wrong", [5, "x"])), abi);
    expect(error?.name).toBe("Wrong");
  });

  it("calls functions that take functions by the selector that the compiler has for them", () => {
    const f = { name: "f", type: "function", internalType: "function (uint256) external" };
    const abi = readAbi([
      { type: "function", name: "fn", inputs: [f], outputs: [f] },
      { type: "event", name: "E", inputs: [{ ...f, indexed: true }], anonymous: false },
    ]);
    // Of solc 0.8.37, methodIdentifiers.
    expect(abi.map(({ signature }) => signature)).toEqual(["fn(function)", "E(function)"]);
    expect(abi.map(({ hash }) => selectorOf(hash))).toEqual([
      "0xb7a4e9a1",
      id("E(function)").slice(0, 10),
    ]);
    const value = `0x${"ab".repeat(20)}12345678`;
    const encoded = coder.encode(["bytes24"], [value]);
    expect(encodeTexts(abi[0]?.inputs ?? [], [value])).toBe(encoded);
    expect(decodeCall(parseHex(`0xb7a4e9a1${encoded.slice(2)}`), abi)?.values).toEqual([
      { name: "f", value: { kind: "text", text: value } },
    ]);
  });
});
