/** Answers on their way out, as bytes; long lists in slices, others running in between. */
import { encodeMessage } from "../../../chain/protobuf/codec.js";
import type { MessageType } from "../../../chain/protobuf/descriptor-file.js";
import {
  asMessage,
  EncodedMessage,
  isList,
  type ProtoMessage,
  type ProtoValue,
} from "../../../chain/protobuf/values.js";
import { breathe } from "../../../runtime/process/main-thread.js";

/** Lists up to this length are encoded at a stretch. */
const MAX_SHORT_LIST = 16;

/** Bytes of an answer. Throws the signal's reason. */
export async function answerBytes(
  type: MessageType,
  answer: ProtoMessage,
  signal: AbortSignal,
): Promise<Buffer> {
  return encodeMessage(type, await withEncodedLists(type, answer, signal));
}

/** The same message, elements of its long lists encoded already. */
async function withEncodedLists(
  type: MessageType,
  message: ProtoMessage,
  signal: AbortSignal,
): Promise<ProtoMessage> {
  let copy: Record<string, ProtoValue | undefined> | undefined;
  for (const field of type.fields) {
    const value = message[field.name];
    const inner = field.message;
    if (inner === undefined || value === undefined || value instanceof EncodedMessage) continue;
    if (!isList(value)) {
      if (field.isRepeated) continue;
      const own = asMessage(value, field.name);
      const encoded = await withEncodedLists(inner, own, signal);
      if (encoded !== own) (copy ??= { ...message })[field.name] = encoded;
    } else if (value.length > MAX_SHORT_LIST) {
      const elements: ProtoValue[] = [];
      for (const one of value) {
        const isDone = one instanceof EncodedMessage;
        const bytes = isDone ? one.bytes : encodeMessage(inner, asMessage(one, field.name));
        elements.push(new EncodedMessage(bytes));
        await breathe(signal);
      }
      (copy ??= { ...message })[field.name] = elements;
    }
  }
  return copy ?? message;
}
