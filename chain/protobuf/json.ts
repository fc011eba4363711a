/**
 * Messages as JSON, by their descriptors, in the form of the SDK's REST interface (gogoproto's
 * jsonpb with `OrigName` and `EmitDefaults`): names as in the .proto file, 64-bit integers as
 * texts, enumerations by name, bytes in base64 and null where there are none, times as RFC 3339,
 * `@type` for what an Any holds, every field that is not a member of a oneof always there.
 */
import { decimalText } from "../encoding/decimal.js";
import { decodeShown } from "./codec.js";
import type { Descriptors } from "./descriptors.js";
import type { FieldType, MessageType } from "./descriptor-file.js";
import { durationText, nearestTime, timeText } from "./json-texts.js";
import {
  absentMessage,
  asMessage,
  EncodedMessage,
  isList,
  MessageReader,
  type ProtoMessage,
  type ProtoValue,
} from "./values.js";

/** Lets others run between two steps of long work; undefined where there is no need. */
export type Pause = () => Promise<void> | undefined;

/** Elements of a list that are written between two pauses. */
const SLICE_ELEMENTS = 8;

/** Characters of a piece that is worth a write. */
const PIECE_CHARACTERS = 32 * 1024;

/** Text that grows: what is written by the million is put together as it comes, not at the end. */
class Pieces {
  readonly #whole: string[] = [];
  #parts: string[] = [];
  #characters = 0;

  add(text: string): void {
    this.#parts.push(text);
    this.#characters += text.length;
    if (this.#characters >= PIECE_CHARACTERS) this.#close();
  }

  /** All of it; nothing is added any more. */
  whole(): string[] {
    if (this.#characters > 0) this.#close();
    return this.#whole;
  }

  #close(): void {
    this.#whole.push(this.#parts.join(""));
    this.#parts = [];
    this.#characters = 0;
  }
}

/**
 * Types that the SDK writes with Go's own JSON instead (x/staking `RedelegationResponse.MarshalJSON`):
 * 64-bit integers are numbers there, and clients are typed accordingly. Where they are zero Go leaves them
 * out; here they are always there, as in every other type.
 */
const PLAIN_NUMBERS: readonly string[] = ["cosmos.staking.v1beta1.RedelegationEntry"];

const ANY = "google.protobuf.Any";

/** Messages to JSON. */
export class JsonWriter {
  constructor(private readonly types: Descriptors) {}

  /** JSON text of a message. Throws INVALID_MESSAGE where what it holds cannot be read. */
  text(type: MessageType, message: ProtoMessage): string {
    switch (type.name) {
      case ANY:
        return this.any(message);
      case "google.protobuf.Timestamp":
        return `"${timeText(...nearestTime(...secondsAndNanos(message)))}"`;
      case "google.protobuf.Duration":
        return `"${durationText(...secondsAndNanos(message))}"`;
      default:
        return `{${this.members(type, message)}}`;
    }
  }

  /**
   * The same in pieces of some 32 KiB, with pauses between the elements of lists, however deep these lie.
   */
  async pieces(type: MessageType, message: ProtoMessage, pause: Pause): Promise<string[]> {
    const pieces = new Pieces();
    await this.addPieces(pieces, type, message, pause);
    return pieces.whole();
  }

  private async addPieces(
    pieces: Pieces,
    type: MessageType,
    message: ProtoMessage,
    pause: Pause,
  ): Promise<void> {
    if (type.name === ANY) {
      await this.addAny(pieces, message, pause);
    } else if (isFlat(type)) {
      pieces.add(this.text(type, message));
    } else {
      pieces.add("{");
      await this.addMembers(pieces, "", type, message, pause);
    }
  }

  private async addAny(pieces: Pieces, message: ProtoMessage, pause: Pause): Promise<void> {
    const { url, type, bytes } = this.heldBy(message);
    if (type === undefined || type.name === ANY || isFlat(type)) {
      pieces.add(this.any(message));
      return;
    }
    pieces.add(`{"@type":${JSON.stringify(url)}`);
    await this.addMembers(pieces, ",", type, decodeShown(type, bytes), pause);
  }

  /** @param before what separates the first member from what is there already */
  private async addMembers(
    pieces: Pieces,
    before: "" | ",",
    type: MessageType,
    message: ProtoMessage,
    pause: Pause,
  ): Promise<void> {
    let separator: string = before;
    for (const field of type.fields) {
      const value = message[field.name];
      if (field.isOptional && value === undefined) continue;
      pieces.add(`${separator}"${field.name}":`);
      separator = ",";
      if (value !== undefined && field.isRepeated) {
        await this.addList(pieces, field, value, pause);
      } else if (value !== undefined && field.message !== undefined) {
        await this.addPieces(pieces, field.message, contentOf(field, field.message, value), pause);
      } else {
        pieces.add(this.value(field, value));
      }
    }
    pieces.add("}");
  }

  private async addList(
    pieces: Pieces,
    field: FieldType,
    value: ProtoValue,
    pause: Pause,
  ): Promise<void> {
    if (!isList(value)) throw new RangeError(`${field.name} is no list`);
    const { message } = field;
    const inner = message === undefined || isFlat(message) ? undefined : message;
    let texts: string[] = [];
    pieces.add("[");
    for (const [index, one] of value.entries()) {
      const isLast = index + 1 === value.length;
      if (inner !== undefined) {
        await this.addPieces(pieces, inner, contentOf(field, inner, one), pause);
      } else {
        texts.push(this.one(field, one));
        if (texts.length < SLICE_ELEMENTS && !isLast) continue;
        pieces.add(texts.join(","));
        texts = [];
      }
      if (!isLast) pieces.add(",");
      await pause();
    }
    pieces.add("]");
  }

  private members(type: MessageType, message: ProtoMessage): string {
    const members: string[] = [];
    const isPlain = PLAIN_NUMBERS.includes(type.name);
    for (const field of type.fields) {
      const value = message[field.name];
      if (isPlain && /^u?int64$/.test(field.kind)) {
        members.push(`"${field.name}":${typeof value === "bigint" ? value : 0}`);
        continue;
      }
      // Of a oneof only the member that is there is shown.
      if (field.isOptional && value === undefined) continue;
      members.push(`"${field.name}":${this.value(field, value)}`);
    }
    return members.join(",");
  }

  private value(field: FieldType, value: ProtoValue | undefined): string {
    if (field.isRepeated) {
      if (value === undefined) return "[]";
      if (!isList(value)) throw new RangeError(`${field.name} is no list`);
      return `[${value.map((one) => this.one(field, one)).join(",")}]`;
    }
    return value === undefined ? this.absent(field) : this.one(field, value);
  }

  private absent(field: FieldType): string {
    const { kind, message, isNullable, form, enumeration } = field;
    if (message !== undefined)
      return isNullable ? "null" : this.text(message, absentMessage(message.name));
    if (form === "int" || form === "dec") return isNullable ? "null" : this.one(field, 0n);
    if (enumeration !== undefined) return this.one(field, 0);
    switch (kind) {
      case "string":
        return '""';
      case "bytes":
        return "null";
      case "bool":
        return "false";
      case "int64":
      case "uint64":
      case "sint64":
      case "fixed64":
      case "sfixed64":
        return '"0"';
      default:
        return "0";
    }
  }

  private one(field: FieldType, value: ProtoValue): string {
    const { form, message, enumeration } = field;
    if (message !== undefined) return this.text(message, contentOf(field, message, value));
    if (form === "dec" && typeof value === "bigint") return `"${decimalText(value)}"`;
    if (typeof value === "bigint") return `"${value}"`;
    if (value instanceof Uint8Array) {
      const bytes = Buffer.from(value.buffer, value.byteOffset, value.length);
      if (form === "hex") return `"0x${bytes.toString("hex")}"`;
      return bytes.length === 0 ? "null" : `"${bytes.toString("base64")}"`;
    }
    if (enumeration !== undefined && typeof value === "number") {
      // What a newer version added has a number and no name here.
      return JSON.stringify(enumeration.names.get(value) ?? value);
    }
    return JSON.stringify(value);
  }

  /** What an Any holds, with its type; of an unknown type the bytes. */
  private any(message: ProtoMessage): string {
    const { url, type, bytes } = this.heldBy(message);
    if (type === undefined) {
      return JSON.stringify({ "@type": url, value: Buffer.from(bytes).toString("base64") });
    }
    const shown = this.text(type, decodeShown(type, bytes));
    if (!shown.startsWith("{")) return `{"@type":${JSON.stringify(url)},"value":${shown}}`;
    const members = shown.slice(1, -1);
    return `{"@type":${JSON.stringify(url)}${members === "" ? "" : `,${members}`}}`;
  }

  /** What an Any holds; without a type where nobody knows it. */
  private heldBy(message: ProtoMessage) {
    const reader = new MessageReader(message);
    const url = reader.text("type_url");
    const type = this.types.findMessage(url.slice(url.lastIndexOf("/") + 1));
    return { url, type, bytes: reader.bytes("value") };
  }
}

/** Types whose JSON is no list of their fields, and short. */
function hasOwnForm({ name }: MessageType): boolean {
  return name.startsWith("google.protobuf.") && name !== ANY;
}

/** Whether in messages of this type there are no others and no lists, for which to pause. */
function isFlat(type: MessageType): boolean {
  if (hasOwnForm(type)) return true;
  const isOne = ({ isRepeated, message }: FieldType) =>
    !isRepeated && (message === undefined || hasOwnForm(message));
  return type.name !== ANY && type.fields.every(isOne);
}

/** What a field of a message's type has in it. */
function contentOf(field: FieldType, type: MessageType, value: ProtoValue): ProtoMessage {
  const content = value instanceof EncodedMessage ? decodeShown(type, value.bytes) : value;
  return asMessage(content, field.name);
}

function secondsAndNanos(message: ProtoMessage): readonly [bigint, number] {
  const reader = new MessageReader(message);
  return [reader.bigint("seconds"), reader.number("nanos")];
}
