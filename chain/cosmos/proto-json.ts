/**
 * Proto JSON to messages of this chain, as files of proposals have it: names of the proto file, `@type`
 * in every Any, 64-bit numbers as texts, bytes in base64. What is unknown is refused.
 */
import { parseUnsigned } from "../encoding/decimal.js";
import { invalidMessage } from "../protobuf/wire.js";
import { parseDuration, parseTime } from "../protobuf/json-texts.js";
import {
  type AnyMessage,
  decodeAny,
  encodeAny,
  type FieldSchema,
  type MessageSchema,
  type ProtoMessage,
  type ProtoValue,
  type SchemaLookup,
} from "./field-schema.js";

/** Deepest nesting, as in the encoding. */
const MAX_DEPTH = 8;

/**
 * A message in an Any.
 * @param value what JSON.parse gave
 * @throws INVALID_MESSAGE
 */
export function anyOfProtoJson(value: unknown, lookup: SchemaLookup): AnyMessage {
  const read = readAny(value, lookup, 0);
  // One rule for what a message may be: that of its bytes.
  return decodeAny(encodeAny(read), lookup);
}

function readAny(value: unknown, lookup: SchemaLookup, depth: number): AnyMessage {
  const { "@type": typeUrl, ...fields } = objectOf(value);
  if (typeof typeUrl !== "string") throw invalidMessage("a message has no @type");
  const schema = lookup(typeUrl);
  if (schema === undefined) throw invalidMessage(`unknown type ${typeUrl.slice(0, 100)}`);
  return { typeUrl, schema, message: readMessage(schema, fields, lookup, depth + 1) };
}

function readMessage(
  schema: MessageSchema,
  value: unknown,
  lookup: SchemaLookup,
  depth: number,
): ProtoMessage {
  if (depth > MAX_DEPTH) throw invalidMessage("messages are nested too deep");
  const fields = objectOf(value);
  const known = new Set(schema.fields.map(({ name }) => name));
  const stranger = Object.keys(fields).find((name) => !known.has(name));
  if (stranger !== undefined) {
    throw invalidMessage(`${schema.name} has no field ${stranger.slice(0, 100)}`);
  }
  const message: Record<string, ProtoValue> = {};
  for (const field of schema.fields) {
    const given = Object.hasOwn(fields, field.name) ? fields[field.name] : undefined;
    message[field.name] = readField(field, given ?? undefined, lookup, depth);
  }
  return message;
}

function readField(
  field: FieldSchema,
  value: unknown,
  lookup: SchemaLookup,
  depth: number,
): ProtoValue {
  if (field.most === undefined) return readValue(field, value, lookup, depth);
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw wrong(field, "a list");
  if (value.length > field.most) throw wrong(field, `at most ${field.most} items`);
  return value.map((item: unknown) => readValue(field, item, lookup, depth));
}

function readValue(
  field: FieldSchema,
  value: unknown,
  lookup: SchemaLookup,
  depth: number,
): ProtoValue {
  switch (field.kind) {
    case "string":
      return readText(field, value);
    case "decimal":
      return readDecimal(field, value);
    case "bool":
      if (value === undefined || typeof value === "boolean") return value === true;
      throw wrong(field, "true or false");
    case "bytes":
      return readBytes(field, value);
    case "int64":
    case "uint64":
      return readInteger(field, value);
    case "int32":
    case "uint32":
      return Number(readInteger(field, value));
    case "enum":
      return readEnum(field, value);
    case "any":
      return value === undefined ? undefined : readAny(value, lookup, depth);
    case "message":
      if (value === undefined) return undefined;
      if (field.schema === undefined) throw wrong(field, "a known message");
      return readMessage(field.schema, value, lookup, depth + 1);
    default:
      return readSpan(field, value);
  }
}

function readText(field: FieldSchema, value: unknown): string {
  if (value === undefined) return "";
  if (typeof value !== "string") throw wrong(field, "a text");
  return value;
}

/** "0.5" -> "500000000000000000". */
function readDecimal(field: FieldSchema, value: unknown): string {
  const text = readText(field, value);
  if (text === "") return "";
  const units = parseUnsigned(text);
  if (units === undefined) throw wrong(field, "a decimal with at most 18 digits behind the point");
  return units.toString();
}

function readBytes(field: FieldSchema, value: unknown): Uint8Array {
  const text = readText(field, value);
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") !== text) throw wrong(field, "base64");
  return new Uint8Array(bytes);
}

function readInteger(field: FieldSchema, value: unknown): bigint {
  if (value === undefined) return 0n;
  const isNumber = typeof value === "number" && Number.isSafeInteger(value);
  const isText = typeof value === "string" && /^-?(0|[1-9][0-9]{0,19})$/.test(value);
  if (!isNumber && !isText) throw wrong(field, "a whole number");
  const integer = BigInt(value);
  const [isSigned, bits] = RANGES[field.kind] ?? [true, 64n];
  const top = 1n << (isSigned ? bits - 1n : bits);
  if (integer >= top || integer < (isSigned ? -top : 0n)) throw wrong(field, "in its range");
  return integer;
}

const RANGES: Readonly<Record<string, readonly [boolean, bigint] | undefined>> = {
  int64: [true, 64n],
  uint64: [false, 64n],
  // Negative ones do not occur in any message.
  int32: [false, 31n],
  uint32: [false, 31n],
  enum: [false, 31n],
};

/** Times are RFC 3339, durations seconds with an "s". */
function readSpan(field: FieldSchema, value: unknown): ProtoValue {
  if (value === undefined) return undefined;
  const text = readText(field, value);
  const isTime = field.kind === "timestamp";
  const parsed = isTime ? parseTime(text) : parseDuration(text);
  if (parsed === undefined) throw wrong(field, isTime ? "an RFC 3339 time" : 'seconds as "5s"');
  const [seconds, nanos] = parsed;
  return { seconds, nanos };
}

function readEnum(field: FieldSchema, value: unknown): number {
  const place = typeof value === "string" ? (field.names?.indexOf(value) ?? -1) : -1;
  return place >= 0 ? place : Number(readInteger(field, value));
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject) throw invalidMessage("a JSON object is expected");
  return value as Readonly<Record<string, unknown>>;
}

function wrong({ name }: FieldSchema, what: string) {
  return invalidMessage(`${name} must be ${what}`);
}
