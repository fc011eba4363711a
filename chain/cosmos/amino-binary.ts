/**
 * Amino's binary form of messages, as transactions of SDK chains had it before protobuf
 * (go-amino 0.16 `binary-encode.go`): protobuf's fields, with four bytes of a type's name in front of
 * whatever stands for an interface, durations as nanoseconds, and keys as their bytes alone.
 */
import { delimited, encodeVarint, invalidMessage } from "../protobuf/wire.js";
import { sha256 } from "../hashes.js";
import {
  type AnyMessage,
  decodeMessage,
  durationNs,
  encodeMessage,
  type FieldSchema,
  isAny,
  isKey,
  type MessageRoom,
  type MessageSchema,
  nestedSchema,
  type ProtoMessage,
  type ProtoValue,
} from "./field-schema.js";

/** Bytes of a type's prefix, and of those that would tell two types of one prefix apart. */
const PREFIX_BYTES = 4;
const DISAMBIGUATION_BYTES = 3;

/** Deepest nesting: a proposal in a transaction, its content, and what is in it. */
const MAX_DEPTH = 8;

const NS_PER_SECOND = 1_000_000_000n;

/** How deep a message lies, and the room for those in it. */
interface Place {
  readonly depth: number;
  readonly room: MessageRoom;
}

/** Types by their prefixes. */
export class AminoTypes {
  private readonly byPrefix: ReadonlyMap<string, MessageSchema>;

  /** @param schemas those without an amino name are left out */
  constructor(schemas: readonly MessageSchema[]) {
    const entries = schemas.flatMap((schema) =>
      schema.amino === undefined ? [] : [[prefixOf(schema.amino).toString("hex"), schema] as const],
    );
    this.byPrefix = new Map(entries);
  }

  /**
   * Untrusted bytes with a prefix in front.
   * @param room for all messages that lie in each other
   * @throws INVALID_MESSAGE
   */
  decode(bytes: Uint8Array, room: MessageRoom, depth = 0): AnyMessage {
    if (depth > MAX_DEPTH) throw invalidMessage("messages are nested too deep");
    const prefix = Buffer.from(bytes.subarray(0, PREFIX_BYTES)).toString("hex");
    const schema = this.byPrefix.get(prefix);
    if (schema === undefined) throw invalidMessage(`unrecognized prefix bytes ${prefix}`);
    const content = bytes.subarray(PREFIX_BYTES);
    const typeUrl = `/${schema.name}`;
    if (isKey(schema)) return { typeUrl, schema, message: { key: keyOf(content) } };
    const read = decodeMessage(aminoSchema(schema), content, () => undefined, { depth, room });
    return { typeUrl, schema, message: this.fromAmino(schema, read, { depth, room }) };
  }

  private fromAmino(schema: MessageSchema, read: ProtoMessage, place: Place): ProtoMessage {
    const message: Record<string, ProtoValue> = {};
    for (const field of schema.fields) {
      const value = read[field.name];
      message[field.name] = Array.isArray(value)
        ? value.map((item) => this.valueOf(field, item, place))
        : this.valueOf(field, value, place);
    }
    return message;
  }

  private valueOf(field: FieldSchema, value: ProtoValue, place: Place): ProtoValue {
    if (field.kind === "any" && value instanceof Uint8Array) {
      return value.length === 0 ? undefined : this.decode(value, place.room, place.depth + 1);
    }
    if (field.kind === "duration" && typeof value === "bigint") return durationOf(field, value);
    if (field.kind !== "message") return value;
    // A struct whose members are all empty is left out, and is there all the same.
    const isLeftOut = value === undefined && field.keep === true;
    if (!isLeftOut && (typeof value !== "object" || value instanceof Uint8Array)) return value;
    const schema = nestedSchema(field);
    const read = isLeftOut
      ? decodeMessage(aminoSchema(schema), new Uint8Array(0), () => undefined)
      : value;
    return this.fromAmino(schema, read as ProtoMessage, place);
  }
}

/** Amino's bytes of a message, its prefix in front. @throws INVALID_MESSAGE for one without a name */
export function encodeAmino({ schema, message, typeUrl }: AnyMessage): Buffer {
  if (schema.amino === undefined) throw invalidMessage(`${typeUrl} has no amino name`);
  const { key } = message;
  const content =
    isKey(schema) && key instanceof Uint8Array ? delimited(key) : encodeStruct(schema, message);
  return Buffer.concat([prefixOf(schema.amino), content]);
}

function encodeStruct(schema: MessageSchema, message: ProtoMessage): Buffer {
  const converted: Record<string, ProtoValue> = {};
  for (const field of schema.fields) {
    const value = message[field.name];
    converted[field.name] = Array.isArray(value)
      ? value.map((item) => aminoValue(field, item))
      : nonEmpty(field, aminoValue(field, value));
  }
  return encodeMessage(aminoSchema(schema), converted);
}

function aminoValue(field: FieldSchema, value: ProtoValue): ProtoValue {
  if (isAny(value)) return encodeAmino(value);
  if (field.kind === "duration" && value !== undefined) return durationNs(value as ProtoMessage);
  if (field.kind !== "message" || value === undefined) return value;
  return encodeStruct(nestedSchema(field), value as ProtoMessage);
}

/** A struct that comes to no bytes is left out. */
function nonEmpty({ kind }: FieldSchema, value: ProtoValue): ProtoValue {
  const isEmpty = kind === "message" && value instanceof Uint8Array && value.length === 0;
  return isEmpty ? undefined : value;
}

const known = new Map<MessageSchema, MessageSchema>();

/** The schema that reads and writes a message's fields on amino's wire: what is nested as bytes. */
function aminoSchema(schema: MessageSchema): MessageSchema {
  const found = known.get(schema);
  if (found !== undefined) return found;
  const fields = schema.fields.map((field): FieldSchema => {
    if (field.kind === "duration") return { ...field, kind: "int64" };
    if (field.kind === "any") return { ...field, kind: "bytes" };
    if (field.kind !== "message") return field;
    return { ...field, schema: aminoSchema(nestedSchema(field)) };
  });
  const made = { ...schema, fields };
  known.set(schema, made);
  return made;
}

/** `nameToDisfix` of go-amino. */
function prefixOf(name: string): Buffer {
  const hash = Buffer.from(sha256(Buffer.from(name, "utf8")));
  const first = hash.subarray(hash.findIndex((byte) => byte !== 0));
  const rest = first.subarray(DISAMBIGUATION_BYTES);
  const start = rest.findIndex((byte) => byte !== 0);
  return rest.subarray(start, start + PREFIX_BYTES);
}

function keyOf(content: Uint8Array): Uint8Array {
  const key = content.subarray(1);
  // Keys are shorter than 128 bytes, so that their length is one byte.
  if (!encodeVarint(key.length).equals(content.subarray(0, 1))) {
    throw invalidMessage("a key has another length than it says");
  }
  return Uint8Array.from(key);
}

function durationOf({ keep }: FieldSchema, ns: bigint): ProtoMessage | undefined {
  if (ns === 0n && keep !== true) return undefined;
  return { seconds: ns / NS_PER_SECOND, nanos: Number(ns % NS_PER_SECOND) };
}
