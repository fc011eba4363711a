/**
 * Messages to bytes and back, by their descriptors. Writing is deterministic: fields in the order
 * of their numbers, defaults left out, fields that are not nullable always there, as Go writes them.
 */
import { encodeVarint, ProtoWriter } from "./wire.js";
import type { FieldKind, FieldType, MessageType } from "./descriptor-file.js";
import {
  absentMessage,
  asMessage,
  EncodedMessage,
  isList,
  type ProtoMessage,
  type ProtoValue,
} from "./values.js";
import { malformed, UINT64_MAX, WIRE, type WireField, WireReader } from "./wire-reader.js";

/** Messages inside messages, at most: a bound for bytes from outside. */
const MAX_DEPTH = 64;

/**
 * Fields and packed numbers of a request, in all: more than the 128 KiB of the largest transaction
 * hold, of two bytes each. Reading them takes a quarter of a second at a stretch, millions of them
 * several.
 */
const MAX_REQUEST_FIELDS = 70_000;

const WHOLE_NUMBER = /^-?[0-9]{1,100}$/;

/** Bytes of a message. Throws RangeError where a value is not of its field's kind: a fault of ours. */
export function encodeMessage(type: MessageType, message: ProtoMessage): Buffer {
  return writerOf(type, message).finish();
}

function writerOf(type: MessageType, message: ProtoMessage): ProtoWriter {
  for (const name of Object.keys(message)) {
    if (type.byName(name)?.name !== name) throw new RangeError(`${type.name} has no field ${name}`);
  }
  const writer = new ProtoWriter();
  for (const field of type.fields) writeField(writer, field, message[field.name]);
  return writer;
}

function writeField(writer: ProtoWriter, field: FieldType, value: ProtoValue | undefined): void {
  const { number, isRepeated, isNullable, message } = field;
  if (value === undefined) {
    if (isNullable || isRepeated) return;
    if (message !== undefined)
      writer.message(number, writerOf(message, absentMessage(message.name)));
    else if (isNumberText(field)) writer.message(number, Buffer.from("0"));
    return;
  }
  if (!isRepeated) {
    if (field.isOptional || !isDefault(field, value)) writeOne(writer, field, value);
    return;
  }
  if (!isList(value)) throw wrongValue(field);
  if (isPackable(field.kind)) {
    if (value.length === 0) return;
    const packed = value.map((one) => numberBytes(field, one));
    writer.message(number, Buffer.concat(packed));
  } else {
    for (const one of value) writeOne(writer, field, one);
  }
}

/** Whether a text or bytes are the digits of a number. */
function isNumberText({ form }: FieldType): boolean {
  return form === "int" || form === "dec";
}

function isDefault(field: FieldType, value: ProtoValue): boolean {
  if (field.kind === "message" || isNumberText(field)) return false;
  if (value instanceof Uint8Array) return value.length === 0;
  return value === "" || value === 0 || value === 0n || value === false;
}

function writeOne(writer: ProtoWriter, field: FieldType, value: ProtoValue): void {
  const { number, kind, message } = field;
  if (message !== undefined) {
    if (value instanceof EncodedMessage) writer.message(number, value.bytes);
    else writer.message(number, writerOf(message, asMessage(value, field.name)));
  } else if (isNumberText(field)) {
    if (typeof value !== "bigint") throw wrongValue(field);
    writer.message(number, Buffer.from(value.toString()));
  } else if (kind === "string") {
    if (typeof value !== "string") throw wrongValue(field);
    writer.message(number, Buffer.from(value, "utf8"));
  } else if (kind === "bytes") {
    if (!(value instanceof Uint8Array)) throw wrongValue(field);
    writer.message(number, value);
  } else {
    const tag = encodeVarint(number * 8 + wireOf(kind));
    writer.encoded(Buffer.concat([tag, numberBytes(field, value)]));
  }
}

function isPackable(kind: FieldKind): boolean {
  return kind !== "message" && kind !== "string" && kind !== "bytes";
}

function wireOf(kind: FieldKind): number {
  switch (kind) {
    case "double":
    case "fixed64":
    case "sfixed64":
      return WIRE.fixed64;
    case "float":
    case "fixed32":
    case "sfixed32":
      return WIRE.fixed32;
    case "string":
    case "bytes":
    case "message":
      return WIRE.bytes;
    default:
      return WIRE.varint;
  }
}

/** A number as it stands on the wire, without its tag. */
function numberBytes(field: FieldType, value: ProtoValue): Buffer {
  const { kind } = field;
  if (kind === "double" || kind === "float") {
    if (typeof value !== "number") throw wrongValue(field);
    const bytes = Buffer.alloc(kind === "double" ? 8 : 4);
    if (kind === "double") bytes.writeDoubleLE(value);
    else bytes.writeFloatLE(value);
    return bytes;
  }
  const integer = integerOf(field, value);
  if (kind === "sint32" || kind === "sint64") {
    return encodeVarint(integer < 0n ? -2n * integer - 1n : 2n * integer);
  }
  const wire = wireOf(kind);
  if (wire === WIRE.varint) return encodeVarint(integer & UINT64_MAX);
  const bytes = Buffer.alloc(wire === WIRE.fixed64 ? 8 : 4);
  if (wire === WIRE.fixed64) bytes.writeBigUInt64LE(integer & UINT64_MAX);
  else bytes.writeUInt32LE(Number(BigInt.asUintN(32, integer)));
  return bytes;
}

function integerOf(field: FieldType, value: ProtoValue): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  // Enumerations may be given by name.
  const number = typeof value === "string" ? field.enumeration?.numbers.get(value) : undefined;
  if (number === undefined) throw wrongValue(field);
  return BigInt(number);
}

function wrongValue(field: FieldType): RangeError {
  return new RangeError(`the value of ${field.name} is no ${field.kind}`);
}

/**
 * Untrusted bytes to a message; fields that the type does not have are skipped, as everywhere.
 * @throws INVALID_MESSAGE
 */
export function decodeMessage(type: MessageType, bytes: Uint8Array): ProtoMessage {
  return decode(type, bytes, { depth: 0, isShown: false });
}

/**
 * The same for what anybody may send, and nobody has paid for: fields are few bytes and much work.
 * @throws INVALID_MESSAGE for more than `MAX_REQUEST_FIELDS` of them as well
 */
export function decodeRequest(type: MessageType, bytes: Uint8Array): ProtoMessage {
  return decode(type, bytes, { depth: 0, isShown: false, room: { fields: MAX_REQUEST_FIELDS } });
}

/**
 * The same for bytes that are only shown: a text in the place of a number stays that text, so that what
 * somebody wrote into a transaction does not keep others from being shown. It is never encoded again.
 * @throws INVALID_MESSAGE for everything else that is malformed
 */
export function decodeShown(type: MessageType, bytes: Uint8Array): ProtoMessage {
  return decode(type, bytes, { depth: 0, isShown: true });
}

interface Decoding {
  readonly depth: number;
  readonly isShown: boolean;
  /** Fields that may still come, in this message and in all others of its request. */
  readonly room?: { fields: number };
}

function takeRoom({ room }: Decoding, count: number): void {
  if (room === undefined) return;
  room.fields -= count;
  if (room.fields < 0) throw malformed(`more than ${MAX_REQUEST_FIELDS} fields`);
}

function decode(type: MessageType, bytes: Uint8Array, decoding: Decoding): ProtoMessage {
  const { depth } = decoding;
  if (depth > MAX_DEPTH) throw malformed("messages lie too deep in each other");
  const message: Record<string, ProtoValue> = {};
  const reader = new WireReader(bytes);
  for (let wire = reader.next(); wire !== undefined; wire = reader.next()) {
    takeRoom(decoding, 1);
    const field = type.byNumber(wire.number);
    if (field === undefined) continue;
    const { name } = field;
    if (!field.isRepeated) {
      message[name] = valueOf(field, wire, decoding);
      continue;
    }
    const list = (message[name] ??= []) as ProtoValue[];
    if (isPackable(field.kind) && wire.wire === WIRE.bytes) {
      for (const integer of WireReader.packed(wire.bytes, wireOf(field.kind))) {
        takeRoom(decoding, 1);
        list.push(numberOf(field, integer));
      }
    } else {
      list.push(valueOf(field, wire, decoding));
    }
  }
  return message;
}

function valueOf(field: FieldType, wire: WireField, decoding: Decoding): ProtoValue {
  const { depth, isShown } = decoding;
  const { kind, message, name } = field;
  if (wire.wire !== wireOf(kind)) throw malformed(`field ${name} has another wire type`);
  if (message !== undefined) return decode(message, wire.bytes, { ...decoding, depth: depth + 1 });
  if (isNumberText(field)) return numberOfText(textOf(wire.bytes, name), name, isShown);
  if (kind === "string") return textOf(wire.bytes, name);
  return kind === "bytes" ? wire.bytes : numberOf(field, wire.integer);
}

/** Digits on the wire to a number; nothing at all is 0. */
function numberOfText(text: string, name: string, isShown: boolean): bigint | string {
  if (text === "") return 0n;
  if (WHOLE_NUMBER.test(text)) return BigInt(text);
  if (isShown) return text;
  throw malformed(`field ${name} is no whole number`);
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOf(bytes: Uint8Array, name: string): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw malformed(`field ${name} is no UTF-8`);
  }
}

function numberOf({ kind }: FieldType, wire: bigint): ProtoValue {
  switch (kind) {
    case "bool":
      return wire !== 0n;
    case "int64":
    case "sfixed64":
      return BigInt.asIntN(64, wire);
    case "uint64":
    case "fixed64":
      return wire;
    case "sint64":
      return zigZag(wire);
    case "sint32":
      return Number(BigInt.asIntN(32, zigZag(wire)));
    case "uint32":
    case "fixed32":
      return Number(BigInt.asUintN(32, wire));
    case "double":
    case "float":
      return floatOf(kind, wire);
    default:
      return Number(BigInt.asIntN(32, wire));
  }
}

function zigZag(wire: bigint): bigint {
  return (wire & 1n) === 0n ? wire >> 1n : -((wire + 1n) >> 1n);
}

function floatOf(kind: "double" | "float", wire: bigint): number {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(wire);
  return kind === "double" ? bytes.readDoubleLE() : bytes.readFloatLE();
}
