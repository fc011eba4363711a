/** Values of protobuf messages in memory, and how those that came from outside are read. */
import { malformed } from "./wire-reader.js";

/**
 * 64-bit integers and numbers that travel as text are bigint (those with 18 decimals multiplied by
 * 10^18), 32-bit integers and enumerations numbers, bytes Uint8Array.
 */
export type ProtoValue =
  | string
  | number
  | bigint
  | boolean
  | Uint8Array
  | EncodedMessage
  | ProtoMessage
  | readonly ProtoValue[];

/** A message: values by the names that the .proto file gives the fields; absent ones undefined. */
export interface ProtoMessage {
  readonly [field: string]: ProtoValue | undefined;
}

/**
 * What stands for a message that has to be there and was not given: an empty one, of times the zero
 * of Go, which SDK chains tell from the first second of 1970.
 */
export function absentMessage(typeName: string): ProtoMessage {
  return typeName === "google.protobuf.Timestamp" ? { seconds: GO_ZERO_SECONDS } : {};
}

/** 0001-01-01T00:00:00Z. */
const GO_ZERO_SECONDS = -62_135_596_800n;

/** A message that is encoded already. */
export class EncodedMessage {
  constructor(readonly bytes: Uint8Array) {}
}

/** Fields of a decoded message by name; defaults where they are absent. */
export class MessageReader {
  /** @param value as it was decoded */
  constructor(readonly value: ProtoMessage) {}

  /** Whether the field is there. */
  has(name: string): boolean {
    return this.value[name] !== undefined;
  }

  /** A text; "" where absent. */
  text(name: string): string {
    const value = this.value[name] ?? "";
    if (typeof value !== "string") throw wrongKind(name);
    return value;
  }

  /** Bytes; none where absent. */
  bytes(name: string): Uint8Array {
    const value = this.value[name] ?? new Uint8Array(0);
    if (!(value instanceof Uint8Array)) throw wrongKind(name);
    return value;
  }

  /** A 64-bit integer or a number that travels as text; 0 where absent. */
  bigint(name: string): bigint {
    const value = this.value[name] ?? 0n;
    if (typeof value !== "bigint") throw wrongKind(name);
    return value;
  }

  /** A 32-bit integer or an enumeration's number; 0 where absent. */
  number(name: string): number {
    const value = this.value[name] ?? 0;
    if (typeof value !== "number") throw wrongKind(name);
    return value;
  }

  /** False where absent. */
  boolean(name: string): boolean {
    return this.value[name] === true;
  }

  /** A message; an empty one where absent. */
  submessage(name: string): MessageReader {
    return new MessageReader(asMessage(this.value[name] ?? {}, name));
  }

  /** Texts of a repeated field. */
  texts(name: string): readonly string[] {
    return this.list(name).map((value) => {
      if (typeof value !== "string") throw wrongKind(name);
      return value;
    });
  }

  /** Messages of a repeated field. */
  messages(name: string): readonly MessageReader[] {
    return this.list(name).map((value) => new MessageReader(asMessage(value, name)));
  }

  private list(name: string): readonly ProtoValue[] {
    const value = this.value[name] ?? [];
    if (!isList(value)) throw wrongKind(name);
    return value;
  }
}

/** Whether a value is that of a repeated field. */
export function isList(value: ProtoValue): value is readonly ProtoValue[] {
  return Array.isArray(value);
}

/** A value as a message. Throws INVALID_MESSAGE. */
export function asMessage(value: ProtoValue, name: string): ProtoMessage {
  const isMessage =
    typeof value === "object" &&
    !isList(value) &&
    !(value instanceof Uint8Array) &&
    !(value instanceof EncodedMessage);
  if (!isMessage) throw wrongKind(name);
  return value;
}

function wrongKind(name: string) {
  return malformed(`field ${name} is of another kind`);
}
