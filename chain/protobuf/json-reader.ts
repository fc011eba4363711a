/** JSON and URL parameters to messages, by their descriptors: the counterpart of `json.ts`. */
import { parseDecimal } from "../encoding/decimal.js";
import { isOfCalendar } from "../encoding/calendar.js";
import { encodeMessage } from "./codec.js";
import type { Descriptors } from "./descriptors.js";
import type { FieldType, MessageType } from "./descriptor-file.js";
import { parseDuration, parseTime } from "./json-texts.js";
import type { ProtoMessage, ProtoValue } from "./values.js";
import { malformed } from "./wire-reader.js";

const MAX_DEPTH = 64;
/** Length of `YYYY-MM-DDThh:mm:ss`. */
const LOCAL_TIME_LENGTH = 19;
const INTEGER = /^-?[0-9]{1,20}$/;

/** Bounds of integers by kind. */
const RANGES: Readonly<Record<string, readonly [bigint, bigint]>> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  sint32: [-(2n ** 31n), 2n ** 31n - 1n],
  sfixed32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  fixed32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  sint64: [-(2n ** 63n), 2n ** 63n - 1n],
  sfixed64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
  fixed64: [0n, 2n ** 64n - 1n],
};

/** Untrusted JSON to messages. Everything throws INVALID_MESSAGE and names the field. */
export class JsonReader {
  constructor(private readonly types: Descriptors) {}

  /** A parsed JSON value as a message; names as in the .proto file or in lower camel case. */
  message(type: MessageType, json: unknown, depth = 0): ProtoMessage {
    if (depth > MAX_DEPTH) throw malformed("messages lie too deep in each other");
    switch (type.name) {
      case "google.protobuf.Any":
        return this.any(json, depth);
      case "google.protobuf.Timestamp":
        return secondsAndNanos(typeof json === "string" ? timeOf(json) : undefined, "time");
      case "google.protobuf.Duration":
        return secondsAndNanos(
          typeof json === "string" ? parseDuration(json) : undefined,
          "duration",
        );
      default:
        return this.members(type, objectOf(json, type.name), depth);
    }
  }

  /**
   * Sets one field by a path of names (`pagination.limit`) and texts, as URLs have them.
   * @returns false where the message has no such field: such parameters are ignored
   */
  setText(
    type: MessageType,
    message: Record<string, ProtoValue>,
    path: string,
    texts: readonly string[],
  ): boolean {
    const [name = "", ...rest] = path.split(".");
    const field = type.byName(name);
    if (field === undefined) return false;
    if (rest.length > 0) {
      if (field.message === undefined || field.isRepeated) return false;
      const inner = (message[field.name] ??= {}) as Record<string, ProtoValue>;
      return this.setText(field.message, inner, rest.join("."), texts);
    }
    if (field.isRepeated) {
      message[field.name] = texts.map((text) => this.ofText(field, text));
      return true;
    }
    const [text = "", ...more] = texts;
    if (more.length > 0) throw malformed(`too many values for field ${field.name}`);
    message[field.name] = this.ofText(field, text);
    return true;
  }

  private ofText(field: FieldType, text: string): ProtoValue {
    if (field.kind === "bool") {
      if (/^(true|1|t)$/i.test(text)) return true;
      if (/^(false|0|f)$/i.test(text)) return false;
      throw malformed(`field ${field.name} is neither true nor false`);
    }
    // An enumeration's number comes as a text here.
    if (field.kind === "enum" && INTEGER.test(text)) return this.one(field, Number(text), 0);
    return this.one(field, text, 0);
  }

  private members(
    type: MessageType,
    object: Readonly<Record<string, unknown>>,
    depth: number,
  ): ProtoMessage {
    const message: Record<string, ProtoValue> = {};
    for (const [name, value] of Object.entries(object)) {
      const field = type.byName(name);
      if (field === undefined) throw malformed(`unknown field "${name}" in ${type.name}`);
      if (value === null) continue;
      // Once in each of its two names: whoever looked at the text may have read the other one.
      if (Object.hasOwn(message, field.name)) throw malformed(`field ${field.name} is there twice`);
      if (!field.isRepeated) {
        message[field.name] = this.one(field, value, depth);
      } else if (Array.isArray(value)) {
        message[field.name] = value.map((one: unknown) => this.one(field, one, depth));
      } else {
        throw malformed(`field ${field.name} is no list`);
      }
    }
    return message;
  }

  private one(field: FieldType, value: unknown, depth: number): ProtoValue {
    const { kind, message, enumeration, form, name } = field;
    if (message !== undefined) return this.message(message, value, depth + 1);
    if (form === "int" || form === "dec") return numberOf(field, value);
    if (enumeration !== undefined) {
      const number = typeof value === "string" ? enumeration.numbers.get(value) : value;
      if (typeof number === "number" && Number.isInteger(number) && Math.abs(number) < 2 ** 31) {
        return number;
      }
      throw malformed(`field ${name} has no value of that name`);
    }
    switch (kind) {
      case "string":
        if (typeof value === "string") return value;
        throw malformed(`field ${name} is no text`);
      case "bytes":
        return bytesOf(field, value);
      case "bool":
        if (typeof value === "boolean") return value;
        throw malformed(`field ${name} is neither true nor false`);
      case "double":
      case "float": {
        const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
        if (typeof number === "number" && !Number.isNaN(number)) return number;
        throw malformed(`field ${name} is no number`);
      }
      default:
        return integerOf(field, value);
    }
  }

  private any(json: unknown, depth: number): ProtoMessage {
    const { "@type": url, ...members } = objectOf(json, "google.protobuf.Any");
    if (typeof url !== "string") throw malformed('an Any needs "@type"');
    const type = this.types.findMessage(url.slice(url.lastIndexOf("/") + 1));
    if (type === undefined) throw malformed(`unable to resolve type URL ${url}`);
    const content = type.name.startsWith("google.protobuf.") ? members["value"] : members;
    const value = encodeMessage(type, this.message(type, content, depth + 1));
    return { type_url: url, value };
  }
}

function objectOf(json: unknown, name: string): Readonly<Record<string, unknown>> {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw malformed(`${name} is no JSON object`);
  }
  return json as Readonly<Record<string, unknown>>;
}

/** `parseTime` alone takes the 30th of February for a day in March, as texts in blocks have always been. */
function timeOf(text: string): readonly [bigint, number] | undefined {
  return isOfCalendar(text.slice(0, LOCAL_TIME_LENGTH)) ? parseTime(text) : undefined;
}

function secondsAndNanos(parts: readonly [bigint, number] | undefined, what: string): ProtoMessage {
  if (parts === undefined) throw malformed(`a ${what} cannot be read`);
  return { seconds: parts[0], nanos: parts[1] };
}

function integerOf({ kind, name }: FieldType, value: unknown): bigint | number {
  // A larger one may be another than was written.
  const text = Number.isSafeInteger(value) ? String(value) : value;
  const [min = 0n, max = 0n] = RANGES[kind] ?? [];
  if (typeof text === "string" && INTEGER.test(text)) {
    const integer = BigInt(text);
    if (integer >= min && integer <= max) return kind.endsWith("64") ? integer : Number(integer);
  }
  throw malformed(`field ${name} is no ${kind}`);
}

function numberOf({ form, name }: FieldType, value: unknown): bigint {
  const text = typeof value === "string" ? value : "";
  if (form === "int" && /^-?[0-9]{1,78}$/.test(text)) return BigInt(text);
  const decimal = form === "dec" ? parseDecimal(text) : undefined;
  if (decimal === undefined) throw malformed(`field ${name} is no number`);
  return decimal;
}

/** Base64 in either alphabet, with or without padding; 0x hex where the field is written so. */
function bytesOf({ form, name }: FieldType, value: unknown): Uint8Array {
  const text = typeof value === "string" ? value : "-";
  if (form === "hex" && /^0x(?:[0-9a-fA-F]{2})*$/.test(text)) {
    return Buffer.from(text.slice(2), "hex");
  }
  // A plus sign in a URL is a space.
  const standard = text.replaceAll("-", "+").replaceAll("_", "/").replaceAll(" ", "+");
  const digits = standard.replace(/={1,2}$/, "");
  if (typeof value !== "string" || !/^[A-Za-z0-9+/]*$/.test(digits) || digits.length % 4 === 1) {
    throw malformed(`field ${name} is no base64`);
  }
  return Buffer.from(digits, "base64");
}
