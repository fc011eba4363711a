/**
 * `StdTx`: transactions as SDK chains wrote them before protobuf, in amino's binary and JSON
 * (x/auth `migrations/legacytx`). Nothing is broadcast in this form; tools of old convert it.
 */
import { invalidMessage } from "../protobuf/wire.js";
import { AminoTypes, encodeAmino } from "./amino-binary.js";
import { MAX_SHOWN_MESSAGES } from "./cosmos-transaction.js";
import {
  aminoOfAny,
  type AnyMessage,
  type FieldSchema,
  isKey,
  MessageRoom,
  type MessageSchema,
  nestedSchema,
} from "./field-schema.js";
import { allSchemas } from "./message-schemas.js";
import { anyOfProtoJson } from "./proto-json.js";
import { coins, field } from "./schema-parts.js";
import { goJsonText } from "./sign-doc.js";

const MAX_MESSAGES = 1_000;
const MAX_SIGNATURES = 7;
/** Deepest nesting of messages, as in the encoding. */
const MAX_DEPTH = 8;

const keep = { keep: true };
const shown = { keep: true, nullIfEmpty: true };

const FEE: MessageSchema = {
  name: "causeway.legacy.StdFee",
  fields: [
    coins(1, "amount"),
    field(2, "gas", "uint64", keep),
    field(3, "payer"),
    field(4, "granter"),
  ],
};

const SIGNATURE: MessageSchema = {
  name: "causeway.legacy.StdSignature",
  fields: [field(1, "pub_key", "any", keep), field(2, "signature", "bytes", shown)],
};

const STD_TX: MessageSchema = {
  name: "causeway.legacy.StdTx",
  amino: "cosmos-sdk/StdTx",
  fields: [
    field(1, "msg", "any", { most: MAX_MESSAGES, ...shown }),
    field(2, "fee", "message", { schema: FEE, keep: true }),
    field(3, "signatures", "message", {
      schema: SIGNATURE,
      most: MAX_SIGNATURES,
      ...shown,
    }),
    field(4, "memo", "string", keep),
    field(5, "timeout_height", "uint64", keep),
  ],
};

/** Keys of accounts by their amino names. */
const ACCOUNT_KEYS: readonly MessageSchema[] = [
  ["cosmos.evm.crypto.v1.ethsecp256k1.PubKey", "os/PubKeyEthSecp256k1"],
  ["cosmos.crypto.secp256k1.PubKey", "tendermint/PubKeySecp256k1"],
].map(([name = "", amino = ""]) => ({ name, amino, fields: [field(1, "key", "bytes")] }));

const SCHEMAS: readonly MessageSchema[] = [STD_TX, ...ACCOUNT_KEYS, ...allSchemas()];
const TYPES = new AminoTypes(SCHEMAS);
const BY_AMINO = new Map(SCHEMAS.map((schema) => [schema.amino, schema]));
const BY_TYPE_URL = new Map(SCHEMAS.map((schema) => [`/${schema.name}`, schema]));

/**
 * Amino JSON of a `StdTx` to its binary form.
 * @throws INVALID_MESSAGE
 */
export function encodeStdTx(aminoJson: string): Buffer {
  const read = anyOfProtoJson(protoJsonOfAny(parse(aminoJson)), (url) => BY_TYPE_URL.get(url));
  return encodeAmino(needStdTx(read));
}

/**
 * The binary form of a `StdTx` to its amino JSON, as Go writes it.
 * @throws INVALID_MESSAGE
 */
export function decodeStdTx(bytes: Uint8Array): string {
  return goJsonText(
    aminoOfAny(needStdTx(TYPES.decode(bytes, new MessageRoom(MAX_SHOWN_MESSAGES)))),
  );
}

function needStdTx(any: AnyMessage): AnyMessage {
  if (any.schema === STD_TX) return any;
  throw invalidMessage(`expected cosmos-sdk/StdTx, got ${any.schema.amino ?? any.typeUrl}`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidMessage("no JSON");
  }
}

/** Amino's `{type, value}` as proto JSON's `@type`. */
function protoJsonOfAny(value: unknown, depth = 0): unknown {
  if (value === null || value === undefined) return undefined;
  if (depth > MAX_DEPTH) throw invalidMessage("messages are nested too deep");
  const { type, value: content } = objectOf(value);
  const schema = typeof type === "string" ? BY_AMINO.get(type) : undefined;
  if (schema === undefined) {
    throw invalidMessage(`unrecognized concrete type name ${String(type).slice(0, 100)}`);
  }
  const fields = isKey(schema) ? { key: content } : protoJsonOf(schema, content, depth);
  return { "@type": `/${schema.name}`, ...fields };
}

function protoJsonOf(
  schema: MessageSchema,
  value: unknown,
  depth: number,
): Record<string, unknown> {
  const given = objectOf(value);
  return Object.fromEntries(
    schema.fields.map((one) => {
      const item = given[one.aminoName ?? one.name];
      const isList = one.most !== undefined && Array.isArray(item);
      const converted = isList
        ? item.map((each: unknown) => protoJsonOfValue(one, each, depth))
        : protoJsonOfValue(one, item, depth);
      return [one.name, converted];
    }),
  );
}

function protoJsonOfValue(one: FieldSchema, value: unknown, depth: number): unknown {
  if (value === null || value === undefined) return undefined;
  if (one.kind === "any") return protoJsonOfAny(value, depth + 1);
  if (one.kind === "message") return protoJsonOf(nestedSchema(one), value, depth);
  return one.kind === "duration" ? secondsText(value) : value;
}

const NS_DIGITS = 9;

/** Nanoseconds as proto JSON's seconds. */
function secondsText(value: unknown): string {
  if (typeof value !== "string" || !/^[0-9]{1,19}$/.test(value)) {
    throw invalidMessage("a duration is nanoseconds in a text");
  }
  const digits = value.padStart(NS_DIGITS + 1, "0");
  return `${digits.slice(0, -NS_DIGITS)}.${digits.slice(-NS_DIGITS)}s`;
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  throw invalidMessage("a JSON object is expected");
}
