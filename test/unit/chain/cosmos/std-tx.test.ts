/** `StdTx` in amino against answers of a node of cosmos/evm (`test/fixtures/rpc/sdk-amino.json`). */
import { describe, expect, it } from "@jest/globals";
import { readFileSync } from "node:fs";
import { encodeVarint } from "../../../../chain/protobuf/wire.js";
import { decodeStdTx, encodeStdTx } from "../../../../chain/cosmos/std-tx.js";
import { createRandom } from "../../../helpers/random.js";

interface Recorded {
  readonly json: string;
  /** Base64. */
  readonly binary: string;
  /** The JSON of the binary, where it is another text. */
  readonly shown?: string;
}

const { transactions } = JSON.parse(readFileSync("test/fixtures/rpc/sdk-amino.json", "utf8")) as {
  transactions: readonly Recorded[];
};

const named = transactions.map((one) => {
  const { value } = JSON.parse(one.json) as { value: { msg: { type: string }[]; memo: string } };
  return [`${value.msg.map(({ type }) => type).join(" ")} "${value.memo}"`, one] as const;
});

/** A proposal of a proposal, and so on. */
function nested(count: number): string {
  const open = '{"type":"cosmos-sdk/MsgSubmitProposal","value":{"content":';
  const message = `${open.repeat(count)}null${"}}".repeat(count)}`;
  return `{"type":"cosmos-sdk/StdTx","value":{"msg":[${message}]}}`;
}

describe("a transaction in amino", () => {
  it.each(named)("%s is the binary of an SDK node", (_name, { json, binary }) => {
    expect(encodeStdTx(json).toString("base64")).toBe(binary);
  });

  it.each(named)("%s is the JSON of an SDK node", (_name, { json, binary, shown = json }) => {
    expect(decodeStdTx(Buffer.from(binary, "base64"))).toBe(shown);
  });

  it("that is none is refused, whatever its bytes are", () => {
    const random = createRandom(1);
    for (const { binary } of transactions) {
      const bytes = Buffer.from(binary, "base64");
      for (let turn = 0; turn < 40; turn++) {
        const changed = Uint8Array.from(bytes.subarray(0, 1 + random.integer(bytes.length)));
        changed[random.integer(changed.length)] = random.integer(256);
        try {
          const again = encodeStdTx(decodeStdTx(changed));
          expect(decodeStdTx(again)).toBe(decodeStdTx(changed));
        } catch (error) {
          expect(error).toMatchObject({ code: "INVALID_MESSAGE" });
        }
      }
    }
  });

  it("with more messages in it than a transaction has is refused before they are read", () => {
    const message = { type: "cosmos-sdk/MsgMultiSend", value: { inputs: [], outputs: [] } };
    const value = { msg: [message], fee: { amount: [], gas: "0" }, signatures: [], memo: "" };
    const plain = encodeStdTx(JSON.stringify({ type: "cosmos-sdk/StdTx", value }));
    // Field, length and prefix of the message: two bytes behind it are one empty input.
    const [start, prefix, rest] = [plain.subarray(0, 4), plain.subarray(6, 10), plain.subarray(10)];
    const withInputs = (count: number) => {
      const inputs = Buffer.from("0a00".repeat(count), "hex");
      const messages = Buffer.from(encodeVarint(prefix.length + inputs.length));
      return Buffer.concat([start, Buffer.from("0a", "hex"), messages, prefix, inputs]);
    };
    const many = (count: number) => {
      const one = withInputs(1_000).subarray(start.length);
      return Buffer.concat([start, ...Array.from({ length: count }, () => one), rest]);
    };
    expect(decodeStdTx(many(2)).match(/"address":""|"coins":\[\]/g)).toHaveLength(2_000);
    expect(() => decodeStdTx(many(3))).toThrow("messages in each other");
  });

  it("in other JSON is refused with the reason", () => {
    const refused: readonly (readonly [string, RegExp])[] = [
      ["{", /no JSON/],
      ["[]", /a JSON object is expected/],
      ['{"type":"cosmos-sdk/MsgUnjail","value":{"address":"a"}}', /expected cosmos-sdk\/StdTx/],
      ['{"type":"cosmos-sdk/StdTx","value":{"msg":[{"type":"nothing"}]}}', /type name nothing/],
      [nested(9), /nested too deep/],
      // No stack is as deep.
      [nested(50_000), /nested too deep/],
    ];
    for (const [json, words] of refused) expect(() => encodeStdTx(json)).toThrow(words);
  });
});
