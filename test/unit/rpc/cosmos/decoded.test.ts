/**
 * What anybody may have decoded is no more than a transaction can be: what an Any holds is written at a
 * stretch, and what is two bytes there can be a message, which takes a thousand times as long.
 */
import { describe, expect, it } from "@jest/globals";
import { ProtoWriter } from "../../../../chain/protobuf/wire.js";
import { MAX_TRANSACTION_BYTES } from "../../../../chain/transaction-rules.js";
import { JsonWriter } from "../../../../chain/protobuf/json.js";
import { type EncodedMessage, MessageReader } from "../../../../chain/protobuf/values.js";
import { txQueries } from "../../../../node/rpc/cosmos/modules/tx.js";
import type { QuerySources } from "../../../../node/rpc/cosmos/sources.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";

const types = loadDescriptors();
const writer = new JsonWriter(types);
const DECODED = types.message("cosmos.tx.v1beta1.TxDecodeResponse");
const handlers = txQueries({ types } as unknown as QuerySources);

/** The JSON that a client gets for a transaction. */
async function decoded(tx: Uint8Array): Promise<string> {
  const context = {
    height: 1,
    signal: new AbortController().signal,
    client: "",
    tellHeight: () => undefined,
  };
  const run = handlers["/cosmos.tx.v1beta1.Service/TxDecode"];
  const answer = await run?.(new MessageReader({ tx_bytes: tx }), context);
  const { tx: shown } = answer as { tx: EncodedMessage };
  return (await writer.pieces(DECODED, { tx: shown }, () => undefined)).join("");
}

const any = (name: string, value: Uint8Array) =>
  new ProtoWriter().bytes(1, `/${name}`).bytes(2, value).finish();
/** A transaction with one message. */
const withMessage = (message: Uint8Array) =>
  new ProtoWriter().message(1, new ProtoWriter().message(1, message)).finish();
/** Messages without anything in them, as a list of that number. */
const empties = (number: number, count: number) =>
  Buffer.alloc(2 * count).map((_, index) => (index % 2 === 0 ? 8 * number + 2 : 0));

describe("a transaction that somebody has decoded", () => {
  it("is shown with as many messages in it as the largest has", async () => {
    const coin = new ProtoWriter().message(2, new ProtoWriter().bytes(2, "7")).finish();
    const outputs = new ProtoWriter();
    for (let at = 0; at < 1_170; at++) outputs.message(2, coin);
    const message = Buffer.concat([empties(1, 1), outputs.finish()]);
    const text = await decoded(withMessage(any("cosmos.bank.v1beta1.MsgMultiSend", message)));
    expect(text.match(/"amount":"7"/g)).toHaveLength(1_170);
  });

  it("is refused with more, with more bytes than any has, and with Anys in each other", async () => {
    const many = any("cosmos.bank.v1beta1.MsgMultiSend", empties(1, 60_000));
    await expect(decoded(withMessage(many))).rejects.toThrow("too many messages in each other");
    let deep: Uint8Array = new Uint8Array(0);
    for (let at = 0; at < 4_000; at++) deep = any("google.protobuf.Any", deep);
    await expect(decoded(withMessage(deep))).rejects.toThrow("lie too deep in each other");
    const long = any("cosmos.gov.v1.MsgVote", Buffer.alloc(MAX_TRANSACTION_BYTES, 1));
    await expect(decoded(withMessage(long))).rejects.toThrow("no transaction has so many bytes");
  });
});
