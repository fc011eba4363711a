/**
 * Protobuf messages by description: one table per message gives its decoder, which refuses what it
 * does not know, its one encoding, its amino JSON (what SIGN_MODE_LEGACY_AMINO_JSON signs) and its
 * proto JSON (what REST shows). Sources: protobuf encoding (proto3), ADR-027, the SDK's
 * `x/tx/signing/aminojson`.
 */
import { withPoint } from "../encoding/decimal.js";
import { ChainError } from "../errors.js";
import { eachField, invalidMessage, ProtoReader, ProtoWriter } from "../protobuf/wire.js";
import { nearestTime, timeText } from "../protobuf/json-texts.js";
import { absentModuleText } from "./absent-modules.js";

/** A decoded value: uint64 and int64 are bigint, int32, uint32 and enums number. */
export type ProtoValue =
  | string
  | bigint
  | number
  | boolean
  | Uint8Array
  | ProtoMessage
  | AnyMessage
  | readonly ProtoValue[]
  | undefined;

/** A decoded message: fields by their protobuf names, every scalar present, absent messages undefined. */
export interface ProtoMessage {
  readonly [field: string]: ProtoValue;
}

/** `google.protobuf.Any` with a message that this chain knows. */
export interface AnyMessage {
  readonly typeUrl: string;
  readonly schema: MessageSchema;
  readonly message: ProtoMessage;
}

/** Kinds of single values. `decimal` is the SDK's LegacyDec: an integer text of 10^-18. */
export type ScalarKind =
  | "string"
  | "decimal"
  | "bytes"
  | "int64"
  | "uint64"
  | "int32"
  | "uint32"
  | "bool";

/** One field of a message. */
export interface FieldSchema {
  readonly number: number;
  readonly name: string;
  readonly kind: ScalarKind | "message" | "enum" | "any" | "timestamp" | "duration";
  /** Most elements of a repeated field; absent for a single value. Scalars cannot be repeated. */
  readonly most?: number;
  /** Of kind "message". */
  readonly schema?: MessageSchema;
  /** Of kind "enum": names by number. */
  readonly names?: readonly string[];
  /** Whether amino JSON shows the field where it is empty. */
  readonly keep?: boolean;
  /** Whether amino JSON shows the field as null where it is empty, as Go does a list without one. */
  readonly nullIfEmpty?: boolean;
  /** Name in amino JSON, where it is another. */
  readonly aminoName?: string;
}

/** One message type. */
export interface MessageSchema {
  /** Full protobuf name. */
  readonly name: string;
  /** Name in amino JSON, of messages that transactions carry. */
  readonly amino?: string;
  /** Field with the account that has to sign, of messages that transactions carry. */
  readonly signer?: string;
  readonly fields: readonly FieldSchema[];
}

/** Finds the schema of a type URL; undefined for types that this chain does not know. */
export type SchemaLookup = (typeUrl: string) => MessageSchema | undefined;

/** Deepest nesting of messages: an Any may hold another one. */
const MAX_DEPTH = 8;

/**
 * Messages of one transaction, all that lie in others included. Two bytes on the wire are one, which takes
 * a hundred times as long to read, and ten times that to be signed over JSON; nobody has paid for it yet.
 */
export class MessageRoom {
  private count = 0;

  /** @param most may be Infinity: then they are only counted */
  constructor(private readonly most: number) {}

  /** How many there were. */
  get taken(): number {
    return this.count;
  }

  /** Throws INVALID_MESSAGE for one too many. */
  take(): void {
    this.count += 1;
    if (this.isExceeded) throw invalidMessage(`more than ${this.most} messages in each other`);
  }

  /** Whether there was one too many. */
  get isExceeded(): boolean {
    return this.count > this.most;
  }
}

/** How deep a message lies in others, and the room for it and those in it, where it is bounded. */
export interface Nesting {
  readonly depth: number;
  readonly room?: MessageRoom | undefined;
}

const OUTERMOST: Nesting = { depth: 0 };

function deeper({ depth, room }: Nesting): Nesting {
  return { depth: depth + 1, room };
}

/**
 * Untrusted bytes to a message.
 * @throws INVALID_MESSAGE for unknown or repeated fields, unknown types and malformed bytes
 */
export function decodeMessage(
  schema: MessageSchema,
  bytes: Uint8Array,
  lookup: SchemaLookup,
  nesting = OUTERMOST,
): ProtoMessage {
  if (nesting.depth > MAX_DEPTH) throw invalidMessage("messages are nested too deep");
  nesting.room?.take();
  const single = schema.fields.filter(({ most }) => most === undefined).map((one) => one.number);
  const repeated: Record<number, number> = {};
  for (const { number, most } of schema.fields) if (most !== undefined) repeated[number] = most;
  const reader = new ProtoReader(bytes, single, repeated);
  const message: Record<string, ProtoValue> = {};
  for (const field of schema.fields) {
    const { number, name, most } = field;
    message[name] =
      most === undefined
        ? decodeSingle(field, reader, lookup, nesting)
        : reader.repeated(number).map((item) => decodeItem(field, item, lookup, nesting));
  }
  return message;
}

function decodeSingle(
  field: FieldSchema,
  reader: ProtoReader,
  lookup: SchemaLookup,
  nesting: Nesting,
): ProtoValue {
  const { number, kind } = field;
  switch (kind) {
    case "int64":
      return reader.int64(number);
    case "uint64":
      return BigInt.asUintN(64, reader.int64(number));
    case "int32":
    case "uint32":
    case "enum": {
      const value = reader.count(number);
      if (value > 0x7fff_ffff) throw invalidMessage(`field ${number} is out of range`);
      return value;
    }
    case "bool": {
      const value = reader.int64(number);
      if (value > 1n || value < 0n) throw invalidMessage(`field ${number} is no boolean`);
      return value === 1n;
    }
    default: {
      const bytes = reader.bytes(number);
      const isNested = kind !== "string" && kind !== "decimal" && kind !== "bytes";
      if (isNested && !reader.has(number)) return undefined;
      return decodeItem(field, bytes, lookup, nesting);
    }
  }
}

function decodeItem(
  { kind, schema, number }: FieldSchema,
  bytes: Uint8Array,
  lookup: SchemaLookup,
  nesting: Nesting,
): ProtoValue {
  switch (kind) {
    case "string":
    case "decimal":
      return textOf(bytes, number);
    case "bytes":
      return Uint8Array.from(bytes);
    case "any":
      return decodeAny(bytes, lookup, deeper(nesting));
    case "timestamp":
      return decodeMessage(TIMESTAMP, bytes, lookup, deeper(nesting));
    case "duration":
      return decodeMessage(DURATION, bytes, lookup, deeper(nesting));
    case "message":
      if (schema === undefined) throw new RangeError("a message field without a schema");
      return decodeMessage(schema, bytes, lookup, deeper(nesting));
    default:
      throw new RangeError(`a list of ${kind} is not described`);
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOf(bytes: Uint8Array, number: number): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidMessage(`field ${number} is not UTF-8`);
  }
}

/**
 * Untrusted bytes of an Any.
 * @throws INVALID_MESSAGE in the SDK's words for a type that this chain does not know
 */
export function decodeAny(
  bytes: Uint8Array,
  lookup: SchemaLookup,
  nesting = OUTERMOST,
): AnyMessage {
  const reader = new ProtoReader(bytes, [1, 2]);
  const typeUrl = textOf(reader.bytes(1), 1);
  const schema = lookup(typeUrl);
  if (schema === undefined) {
    const text = `unable to resolve type URL ${JSON.stringify(typeUrl.slice(0, 200))}`;
    const absent = absentModuleText(typeUrl);
    throw invalidMessage(absent === undefined ? text : `${text}: ${absent}`);
  }
  const message = decodeMessage(schema, reader.bytes(2), lookup, deeper(nesting));
  return { typeUrl, schema, message };
}

/**
 * Takes room for what `decodeAny` would read, in a fifth of the time: nothing is made of it. What cannot be
 * read takes none, and what lies beside it does all the same: that is read by the order of the schema, so
 * that a fault may come last of all.
 */
export function takeRoomOfAny(bytes: Uint8Array, lookup: SchemaLookup, nesting: Nesting): void {
  if (nesting.room?.isExceeded === true) return;
  try {
    const reader = new ProtoReader(bytes, [1, 2]);
    const schema = lookup(reader.text(1));
    if (schema !== undefined) takeRoom(schema, reader.bytes(2), lookup, deeper(nesting));
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
  }
}

function takeRoom(
  schema: MessageSchema,
  bytes: Uint8Array,
  lookup: SchemaLookup,
  nesting: Nesting,
): void {
  const { room, depth } = nesting;
  if (depth > MAX_DEPTH || room?.isExceeded === true) return;
  try {
    room?.take();
    eachField(bytes, (number, content) => {
      const field = schema.fields.find((one) => one.number === number);
      if (field === undefined || content === undefined) return;
      const { kind } = field;
      if (kind === "any") takeRoomOfAny(content, lookup, deeper(nesting));
      else if (kind === "message" || kind === "timestamp" || kind === "duration") {
        takeRoom(nestedSchema(field), content, lookup, deeper(nesting));
      }
      // Looked at no further; whoever called sees it.
      if (room?.isExceeded === true) throw invalidMessage("too many messages in each other");
    });
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
  }
}

/** The one encoding of a message. */
export function encodeMessage(schema: MessageSchema, message: ProtoMessage): Buffer {
  const writer = new ProtoWriter();
  const ordered = schema.fields.toSorted((left, right) => left.number - right.number);
  for (const field of ordered) {
    const value = message[field.name];
    if (Array.isArray(value)) {
      for (const item of value) writer.message(field.number, encodeItem(field, item));
    } else if (value !== undefined) encodeSingle(writer, field, value);
  }
  return writer.finish();
}

function encodeSingle(writer: ProtoWriter, field: FieldSchema, value: ProtoValue): void {
  const { number, kind } = field;
  if (typeof value === "bigint" || typeof value === "number") writer.integer(number, value);
  else if (typeof value === "boolean") writer.integer(number, value ? 1 : 0);
  else if (kind === "string" || kind === "decimal" || kind === "bytes") {
    writer.bytes(number, encodeItem(field, value));
  } else writer.message(number, encodeItem(field, value));
}

function encodeItem(field: FieldSchema, value: ProtoValue): Uint8Array {
  if (typeof value === "string") return Buffer.from(value, "utf8");
  if (value instanceof Uint8Array) return value;
  if (isAny(value)) return encodeAny(value);
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new RangeError(`field ${field.name} has a value of another kind`);
  }
  return encodeMessage(nestedSchema(field), value as ProtoMessage);
}

/** The schema of a field that holds a message. */
export function nestedSchema({ kind, schema, name }: FieldSchema): MessageSchema {
  const nested = kind === "timestamp" ? TIMESTAMP : kind === "duration" ? DURATION : schema;
  if (nested === undefined) throw new RangeError(`field ${name} has no schema`);
  return nested;
}

/** Bytes of an Any. */
export function encodeAny({ typeUrl, schema, message }: AnyMessage): Buffer {
  const content = encodeMessage(schema, message);
  return new ProtoWriter().bytes(1, typeUrl).bytes(2, content).finish();
}

/** True for the value of an Any. */
export function isAny(value: ProtoValue): value is AnyMessage {
  return typeof value === "object" && value !== null && "typeUrl" in value && "schema" in value;
}

const TIMESTAMP: MessageSchema = {
  name: "google.protobuf.Timestamp",
  fields: [
    { number: 1, name: "seconds", kind: "int64" },
    { number: 2, name: "nanos", kind: "int32" },
  ],
};

const DURATION: MessageSchema = { ...TIMESTAMP, name: "google.protobuf.Duration" };

/** JSON value. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** Amino JSON of an Any: `{type, value}`; keys are not sorted yet. */
export function aminoOfAny({ schema, message, typeUrl }: AnyMessage): JsonValue {
  if (schema.amino === undefined) throw invalidMessage(`${typeUrl} has no amino name`);
  return {
    type: schema.amino,
    value: isKey(schema) ? base64(message["key"]) : aminoOfMessage(schema, message),
  };
}

/** Whether a message is a public key, which amino has as its bytes alone. */
export function isKey({ fields }: MessageSchema): boolean {
  return fields.length === 1 && fields[0]?.name === "key";
}

function aminoOfMessage(schema: MessageSchema, message: ProtoMessage): JsonValue {
  const json: Record<string, JsonValue> = {};
  for (const field of schema.fields) {
    const value = message[field.name];
    if (field.keep !== true && isEmpty(value)) continue;
    json[field.aminoName ?? field.name] = aminoOfField(field, value);
  }
  return json;
}

function aminoOfField(field: FieldSchema, value: ProtoValue): JsonValue {
  if (field.nullIfEmpty === true && isEmpty(value)) return null;
  if (!Array.isArray(value)) return aminoOfValue(field, value);
  return value.map((item) => aminoOfValue(field, item));
}

function isEmpty(value: ProtoValue): boolean {
  if (value === undefined || value === "" || value === 0 || value === 0n || value === false) {
    return true;
  }
  return (Array.isArray(value) || value instanceof Uint8Array) && value.length === 0;
}

function aminoOfValue(field: FieldSchema, value: ProtoValue): JsonValue {
  if (value === undefined) return null;
  if (field.kind === "decimal") return exactDecimal(typeof value === "string" ? value : "");
  if (field.kind === "timestamp") return exactTime(value as ProtoMessage);
  if (field.kind === "duration") return exactDuration(value as ProtoMessage);
  if (isAny(value)) return aminoOfAny(value);
  if (value instanceof Uint8Array) return base64(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "object") return aminoOfMessage(nestedSchema(field), value as ProtoMessage);
  return value;
}

/** Proto JSON as the SDK's REST interface writes it: names of the proto file, defaults shown. */
function protoJsonOf(schema: MessageSchema, message: ProtoMessage): JsonValue {
  const json: Record<string, JsonValue> = {};
  for (const field of schema.fields) {
    const value = message[field.name];
    json[field.name] = Array.isArray(value)
      ? value.map((item) => protoJsonOfValue(field, item))
      : protoJsonOfValue(field, value);
  }
  return json;
}

/** Proto JSON of an Any: its fields behind `@type`. */
export function protoJsonOfAny({ typeUrl, schema, message }: AnyMessage): JsonValue {
  return { "@type": typeUrl, ...(protoJsonOf(schema, message) as Record<string, JsonValue>) };
}

function protoJsonOfValue(field: FieldSchema, value: ProtoValue): JsonValue {
  if (value === undefined) return null;
  if (field.kind === "enum") return field.names?.[Number(value)] ?? Number(value);
  if (field.kind === "decimal") return shownDecimal(typeof value === "string" ? value : "");
  if (field.kind === "timestamp") return timestampText(value as ProtoMessage);
  if (field.kind === "duration") return durationText(value as ProtoMessage);
  if (isAny(value)) return protoJsonOfAny(value);
  if (value instanceof Uint8Array) return base64(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "object") return protoJsonOf(nestedSchema(field), value as ProtoMessage);
  return value;
}

function base64(value: ProtoValue): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : "";
}

/** "500000000000000000" -> "0.500000000000000000"; what is no integer stays as it is. */
function shownDecimal(units: string): string {
  return /^-?[0-9]{1,100}$/.test(units) ? withPoint(units) : units;
}

const NS_PER_SECOND = 1_000_000_000n;

/** Nanoseconds of a `google.protobuf.Duration`: its amino JSON. */
export function durationNs({ seconds, nanos }: ProtoMessage): bigint {
  const whole = typeof seconds === "bigint" ? seconds : 0n;
  return whole * NS_PER_SECOND + BigInt(typeof nanos === "number" ? nanos : 0);
}

/** Proto JSON of a duration: seconds with as many digits as there are, in groups of three. */
function durationText(value: ProtoMessage): string {
  const ns = durationNs(value);
  const [sign, size] = ns < 0n ? ["-", -ns] : ["", ns];
  return `${sign}${size / NS_PER_SECOND}${nanosText(Number(size % NS_PER_SECOND))}s`;
}

/** `.5` as `.500`; nothing for none. */
function nanosText(nanos: number): string {
  if (nanos === 0) return "";
  return `.${nanos
    .toString()
    .padStart(9, "0")
    .replace(/(000)+$/, "")}`;
}

/**
 * A decimal has one spelling: what JSON shows for "0500000000000000000" and for "0.500000000000000000",
 * which is no decimal of a message, is what it shows for half of one.
 */
function exactDecimal(units: string): string {
  if (units === "" || /^(0|-?[1-9][0-9]{0,99})$/.test(units)) return shownDecimal(units);
  throw invalidMessage("a decimal is no whole number of 10^-18");
}

/** A duration has one spelling, too: no whole second is in its nanoseconds. */
function exactDuration(value: ProtoMessage): string {
  const { seconds, nanos } = value;
  const [whole, rest] = [Number(seconds ?? 0n), Number(nanos ?? 0)];
  const isOne = Math.abs(rest) < Number(NS_PER_SECOND) && whole * rest >= 0;
  if (!isOne) throw invalidMessage("a duration is out of range");
  return durationNs(value).toString();
}

/** What is signed is what is meant: no other time in place of one that JSON cannot say. */
function exactTime(value: ProtoMessage): string {
  const start = new Date(Number(value["seconds"] ?? 0n) * 1_000);
  if (Number.isNaN(start.getTime())) throw invalidMessage("a time is out of range");
  return `${start.toISOString().slice(0, 19)}${nanosText(Number(value["nanos"] ?? 0))}Z`;
}

/**
 * RFC 3339 with as many digits of the second as there are, in groups of three; the nearest time for one
 * that it cannot say, so that nobody's odd message keeps others from being shown.
 */
function timestampText({ seconds, nanos }: ProtoMessage): string {
  return timeText(...nearestTime(typeof seconds === "bigint" ? seconds : 0n, Number(nanos ?? 0)));
}
