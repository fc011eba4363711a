/** The interfaces of the chain's own contracts and their encoding, held against solc and ethers. */
import fs from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { AbiCoder, Interface, type ParamType } from "ethers";
import { parseAbiContract } from "../../../../chain/evm/abi/abi-contract.js";
import {
  AbiError,
  type AbiValue,
  decodeAbi,
  encodeAbi,
} from "../../../../chain/evm/abi/abi-values.js";
import { NATIVE_CONTRACTS } from "../../../../chain/evm/precompiles.js";
import { bytesToHex, hexToBytes } from "../../../../chain/hex.js";
import { PUBLISHED } from "../../../helpers/chains/native-chain.js";
import { createRandom } from "../../../helpers/random.js";

const coder = AbiCoder.defaultAbiCoder();
const names = Object.keys(PUBLISHED).filter((name) => (PUBLISHED[name]?.abi.length ?? 0) > 0);
const artifactOf = (name: string) =>
  JSON.parse(fs.readFileSync(`contracts/artifacts/${name}.json`, "utf8"));

const random = createRandom(7);

/** A value of a type as ethers takes it, and as ours has it. */
function valueOf(type: ParamType): { theirs: unknown; ours: AbiValue } {
  if (type.baseType === "array" && type.arrayChildren !== null) {
    const child = type.arrayChildren;
    const items = Array.from({ length: random.integer(4) }, () => valueOf(child));
    return { theirs: items.map(({ theirs }) => theirs), ours: items.map(({ ours }) => ours) };
  }
  if (type.baseType === "tuple") {
    const members = (type.components ?? []).map(
      (member) => [member.name, valueOf(member)] as const,
    );
    return {
      theirs: members.map(([, { theirs }]) => theirs),
      ours: Object.fromEntries(members.map(([name, { ours }]) => [name, ours])),
    };
  }
  if (type.type === "address") {
    const digits = Array.from({ length: 40 }, () => random.integer(16).toString(16)).join("");
    return { theirs: `0x${digits}`, ours: `0x${digits}` };
  }
  if (type.type === "bool") {
    const flag = random.integer(2) === 1;
    return { theirs: flag, ours: flag };
  }
  if (type.type === "string") {
    const text = ["", "atoken", "grüße ☂", "x".repeat(random.integer(90))][random.integer(4)] ?? "";
    return { theirs: text, ours: text };
  }
  if (type.type === "bytes") {
    const bytes = Uint8Array.from({ length: random.integer(70) }, () => random.integer(256));
    return { theirs: bytes, ours: bytes };
  }
  const [, sign = "", bits = "256"] = /^(u?)int([0-9]+)$/.exec(type.type) ?? [];
  const top = 1n << BigInt(Number(bits) - (sign === "u" ? 0 : 1));
  const number = [0n, 1n, top - 1n, top / 3n, sign === "u" ? 2n : -top, sign === "u" ? 3n : -1n][
    random.integer(6)
  ];
  return { theirs: number, ours: number ?? 0n };
}

describe("the published interfaces", () => {
  it.each(names)("are what the compiled artifacts say: %s", (name) => {
    const artifact = artifactOf(name);
    expect(artifact.abi).toEqual(PUBLISHED[name]?.abi);
    expect([...NATIVE_CONTRACTS.values()]).toContain(artifact.address.toLowerCase());
  });

  it("have the selectors and topics that ethers works out", () => {
    for (const name of names) {
      const own = parseAbiContract(artifactOf(name));
      const theirs = new Interface(artifactOf(name).abi);
      expect(own.functions.map(({ name: each, selector }) => [each, selector])).toEqual(
        theirs.fragments.flatMap((fragment) =>
          fragment.type === "function"
            ? [
                [
                  (fragment as { name: string } & typeof fragment).name,
                  theirs.getFunction((fragment as { name: string } & typeof fragment).name)
                    ?.selector,
                ],
              ]
            : [],
        ),
      );
      for (const { name: each, topic } of own.events) {
        expect([each, topic]).toEqual([each, theirs.getEvent(each)?.topicHash]);
      }
    }
  });
});

describe("values of calls", () => {
  it("are encoded and read as ethers does it, whatever the function", () => {
    let count = 0;
    for (const name of names) {
      const own = parseAbiContract(artifactOf(name));
      const theirs = new Interface(artifactOf(name).abi);
      for (const { name: each, inputs, outputs } of own.functions) {
        const fragment = theirs.getFunction(each);
        for (let round = 0; round < 8; round++) {
          for (const [types, parameters] of [
            [fragment?.inputs ?? [], inputs],
            [fragment?.outputs ?? [], outputs],
          ] as const) {
            const values = types.map(valueOf);
            const bytes = coder.encode(
              types,
              values.map(({ theirs: value }) => value),
            );
            const encoded = encodeAbi(
              parameters,
              values.map(({ ours }) => ours),
            );
            expect([each, bytesToHex(encoded)]).toEqual([each, bytes]);
            const byName = Object.fromEntries(
              types.map((type, index) => [type.name, values[index]?.ours]),
            );
            expect(decodeAbi(parameters, hexToBytes(bytes))).toEqual(byName);
            count++;
          }
        }
      }
    }
    expect(count).toBeGreaterThan(400);
  });

  it("are refused where bytes are missing, dirty, overlapping or no text", () => {
    const { functions } = parseAbiContract(artifactOf("IDistribution"));
    const inputsOf = (name: string) => functions.find((one) => one.name === name)?.inputs ?? [];
    const claim = inputsOf("claimRewards");
    const word = (value: bigint) => value.toString(16).padStart(64, "0");
    const read =
      (inputs: typeof claim, ...words: bigint[]) =>
      () =>
        decodeAbi(inputs, hexToBytes(`0x${words.map(word).join("")}`));
    expect(read(claim, 5n)).toThrow(AbiError);
    expect(read(claim, 1n << 160n, 1n)).toThrow("an address is too long");
    expect(read(claim, 1n, 1n << 32n)).toThrow("out of its type's range");
    const text = inputsOf("validatorCommission");
    expect(read(text, 0x20n, 33n, 0n)).toThrow("cut short");
    expect(read(text, 1n << 200n)).toThrow("cut short");
    expect(read(text, 0x20n, 1n, 0xffn << 248n)).toThrow("not UTF-8");
    // A thousand coins that all are the same bytes.
    const fund = inputsOf("fundCommunityPool");
    const many = Array.from({ length: 1_000 }, () => 32_000n);
    const coin = [0x40n, 7n, 6n, 0x61746f6b656en << 208n];
    expect(read(fund, 1n, 0x40n, 1_000n, ...many, ...coin)).toThrow("overlap");
    const page = inputsOf("validatorSlashes");
    expect(() => decodeAbi(page, new Uint8Array(0))).toThrow(AbiError);
  });
});
