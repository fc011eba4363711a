/**
 * Messages of transactions and proposals are shown whatever their senders wrote into them: one that could
 * not be shown would take every list that it stands in with it.
 */
import { describe, expect, it } from "@jest/globals";
import { encodeAny, type ProtoMessage } from "../../../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../../../chain/cosmos/message-schemas.js";
import { present } from "../../../../chain/errors.js";
import { decodeMessage, encodeMessage } from "../../../../chain/protobuf/codec.js";
import { JsonWriter } from "../../../../chain/protobuf/json.js";
import { EncodedMessage } from "../../../../chain/protobuf/values.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";

const types = loadDescriptors();
const writer = new JsonWriter(types);
const ANY = types.message("google.protobuf.Any");

function shown(name: string, message: ProtoMessage): unknown {
  const typeUrl = `/cosmos.${name}`;
  const bytes = encodeAny({ typeUrl, schema: present(schemaOf(typeUrl), name), message });
  return JSON.parse(writer.text(ANY, decodeMessage(ANY, bytes)));
}

describe("a message with many others in it", () => {
  it("is written with pauses inside, wherever it stands", async () => {
    const typeUrl = "/cosmos.bank.v1beta1.MsgMultiSend";
    const outputs = Array.from({ length: 400 }, () => ({
      coins: [{ denom: "atoken", amount: 7n }],
    }));
    const value = encodeMessage(types.message(typeUrl.slice(1)), { inputs: [{}], outputs });
    const any = { type_url: typeUrl, value };
    const proposals = types.message("cosmos.gov.v1.QueryProposalsResponse");
    const found = types.message("cosmos.tx.v1beta1.GetTxsEventResponse");
    const tx = encodeMessage(types.message("cosmos.tx.v1beta1.Tx"), { body: { messages: [any] } });
    for (const [type, answer] of [
      [proposals, { proposals: [{ id: 1n, messages: [any] }] }],
      [found, { txs: [new EncodedMessage(tx)] }],
      [types.message("cosmos.tx.v1beta1.GetTxResponse"), { tx: new EncodedMessage(tx) }],
    ] as const) {
      let pauses = 0;
      const pieces = await writer.pieces(type, answer, () => {
        pauses += 1;
        return undefined;
      });
      expect(pieces.join("")).toBe(writer.text(type, answer));
      expect(pauses).toBeGreaterThanOrEqual(400);
      // What is put together at the end is put together at a stretch.
      expect(pieces.length).toBeLessThanOrEqual(2);
    }
  });

  it("is the same text as at a stretch where nothing is in it, or nobody knows it", async () => {
    for (const any of [
      { type_url: "/cosmos.gov.v1.MsgVote", value: new Uint8Array(0) },
      { type_url: "/google.protobuf.Empty", value: new Uint8Array(0) },
      { type_url: "/cosmos.bank.v1beta1.MsgMultiSend", value: new Uint8Array(0) },
      { type_url: "/google.protobuf.Duration", value: Uint8Array.of(8, 7) },
      { type_url: "/cosmos.Foo", value: Uint8Array.of(1, 2) },
      {},
    ]) {
      const pieces = await writer.pieces(ANY, any, () => undefined);
      expect(JSON.parse(pieces.join(""))).toEqual(JSON.parse(writer.text(ANY, any)));
    }
  });
});

describe("a redelegation", () => {
  const type = types.message("cosmos.staking.v1beta1.RedelegationResponse");

  it("has its height and id as numbers, as the SDK's REST interface", () => {
    const entry = {
      redelegation_entry: {
        creation_height: 14n,
        completion_time: { seconds: 1_796_913_631n, nanos: 457_045_278 },
        initial_balance: 500_000_000_000_000_000n,
        shares_dst: 500_000_000_000_000_000_000_000_000_000_000_000n,
        unbonding_id: 2n,
      },
      balance: 495_714_285_714_285_714n,
    };
    // An entry of cosmos/evm (SDK 0.54.3).
    expect(JSON.parse(writer.text(type, { entries: [entry] }))).toMatchObject({
      entries: [
        {
          redelegation_entry: {
            creation_height: 14,
            completion_time: "2026-12-10T14:40:31.457045278Z",
            initial_balance: "500000000000000000",
            shares_dst: "500000000000000000.000000000000000000",
            unbonding_id: 2,
          },
          balance: "495714285714285714",
        },
      ],
    });
  });

  it("has them as numbers, too, where they are zero", () => {
    const entries = [{ redelegation_entry: {} }];
    expect(JSON.parse(writer.text(type, { entries }))).toMatchObject({
      entries: [
        {
          redelegation_entry: {
            creation_height: 0,
            unbonding_id: 0,
            unbonding_on_hold_ref_count: 0,
          },
        },
      ],
    });
  });
});

describe("an odd message", () => {
  it("has texts where its sender wrote texts in place of numbers", () => {
    const amount = [
      { denom: "", amount: "-1" },
      { denom: "atoken", amount: '"<abc>' },
      { denom: "atoken", amount: "" },
    ];
    expect(shown("bank.v1beta1.MsgSend", { from_address: "x", to_address: "", amount })).toEqual({
      "@type": "/cosmos.bank.v1beta1.MsgSend",
      from_address: "x",
      to_address: "",
      amount: [
        { denom: "", amount: "-1" },
        { denom: "atoken", amount: '"<abc>' },
        { denom: "atoken", amount: "0" },
      ],
    });
  });

  it("has decimals as they are where they are none", () => {
    const params = { bond_denom: "atoken", min_commission_rate: "garbage", max_validators: 5 };
    const update = { authority: "x", params };
    expect(shown("staking.v1beta1.MsgUpdateParams", update)).toMatchObject({
      params: { min_commission_rate: "garbage", max_validators: 5 },
    });
  });

  it.each([
    [9_000_000_000_000_000_000n, "9999-12-31T23:59:59Z"],
    [-9_000_000_000_000n, "0001-01-01T00:00:00Z"],
    [1_800_000_000n, "2027-01-15T08:00:00Z"],
  ])("has the nearest time for %i seconds", (seconds, time) => {
    const plan = { name: "n", time: { seconds, nanos: 0 }, height: 5n, info: "" };
    const upgrade = { authority: "x", plan };
    expect(shown("upgrade.v1beta1.MsgSoftwareUpgrade", upgrade)).toMatchObject({ plan: { time } });
  });

  it("is still refused where it is to be understood", () => {
    const coin = types.message("cosmos.base.v1beta1.Coin");
    const bytes = Buffer.from([0x12, 0x03, 0x61, 0x62, 0x63]);
    expect(() => decodeMessage(coin, bytes)).toThrow("field amount is no whole number");
  });
});
