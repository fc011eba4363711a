/** How much lies in a message that anybody may send, and that nobody has paid for. */
import { decodeShown } from "./codec.js";
import type { MessageType } from "./descriptor-file.js";
import type { Descriptors } from "./descriptors.js";
import { asMessage, isList, MessageReader, type ProtoMessage } from "./values.js";
import { malformed } from "./wire-reader.js";

/** An Any in an Any in an Any, at most: more than in any message of the chain. */
const MAX_ANYS = 16;

/** What is looked through, and what is left of what may be in it. */
interface Count {
  readonly types: Descriptors;
  left: number;
}

/**
 * Holds untrusted bytes to so many messages in each other. What an Any holds is read only when it is
 * shown, at a stretch: each two bytes of it can be a message, and each message another Any.
 * @throws INVALID_MESSAGE for more, and for what cannot be read
 */
export function assertFewMessages(
  types: Descriptors,
  type: MessageType,
  bytes: Uint8Array,
  most: number,
): void {
  countIn({ types, left: most }, type, decodeShown(type, bytes), 0);
}

function countIn(count: Count, type: MessageType, message: ProtoMessage, anys: number): void {
  if (type.name === "google.protobuf.Any") {
    countInAny(count, new MessageReader(message), anys + 1);
    return;
  }
  count.left -= 1;
  if (count.left < 0) throw malformed("too many messages in each other");
  for (const field of type.fields) {
    const value = message[field.name];
    if (field.message === undefined || value === undefined) continue;
    for (const one of isList(value) ? value : [value]) {
      countIn(count, field.message, asMessage(one, field.name), anys);
    }
  }
}

function countInAny(count: Count, any: MessageReader, anys: number): void {
  if (anys > MAX_ANYS) throw malformed("messages lie too deep in each other");
  const url = any.text("type_url");
  const type = count.types.findMessage(url.slice(url.lastIndexOf("/") + 1));
  // Of an unknown type the bytes are shown.
  if (type !== undefined) countIn(count, type, decodeShown(type, any.bytes("value")), anys);
}
