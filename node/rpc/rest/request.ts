/** A REST request as the message that its method takes. */
import type { JsonReader } from "../../../chain/protobuf/json-reader.js";
import type { ProtoMessage, ProtoValue } from "../../../chain/protobuf/values.js";
import { invalidArgument } from "../cosmos/errors.js";
import { hasTooManyValues } from "../json-text.js";
import { urlPieces } from "../url-pieces.js";
import type { MatchedRoute } from "./routes.js";

/**
 * Values of a body: as many fields as requests of gRPC have, more than the largest transaction holds.
 * Each is looked up by its name, and read beside all others in one piece.
 */
const MAX_BODY_VALUES = 70_000;

/** Condition of a filter that a raw `&` cut off: `type.attribute` with what follows. Gives the type. */
const CONDITION = /^\s*([a-zA-Z_][\w-]*)\.[\w.-]+\s*(?:=|<|>|CONTAINS\b|EXISTS\b)/;

/**
 * Path, query and body as one message. Parameters that the message does not have are ignored, as
 * grpc-gateway does; of a search they are conditions that an unescaped `&` cut off (D4), unless they begin
 * with the name of a field: `pagination.page` is another API's parameter, and no event's type.
 * @param query of the URL, behind the question mark
 * @param body its text where the route has one
 * @throws INVALID_ARGUMENT, INVALID_MESSAGE
 */
export function requestOf(
  { served, pathFields, hasBody }: MatchedRoute,
  reader: JsonReader,
  query: string,
  body: string | undefined,
): ProtoMessage {
  const { input } = served;
  const message: Record<string, ProtoValue> = {};
  if (hasBody && body !== undefined && body.trim() !== "") {
    Object.assign(message, reader.message(input, parseJson(body)));
  }
  const [values, strays] = parametersOf(query);
  // What is not a field may be a condition: `a.b='c'` has no field `a`.
  const conditions = [...strays];
  for (const [name, texts] of values) {
    if (
      reader.setText(
        input,
        message,
        name,
        texts.map(({ value }) => value),
      )
    )
      continue;
    conditions.push(...texts.map(({ pair }) => pair));
  }
  if (input.byName("events") !== undefined) {
    const found = conditions.filter((text) => {
      const type = CONDITION.exec(text)?.[1];
      return type !== undefined && input.byName(type) === undefined;
    });
    const events = message["events"];
    const list = Array.isArray(events) ? events : [];
    if (found.length > 0) message["events"] = [...list, ...found];
  }
  for (const [name, text] of pathFields) reader.setText(input, message, name, [text]);
  return message;
}

function parseJson(body: string): unknown {
  if (hasTooManyValues(Buffer.from(body), MAX_BODY_VALUES)) {
    throw invalidArgument("the body has too many values");
  }
  try {
    return JSON.parse(body);
  } catch {
    throw invalidArgument("the body is no JSON");
  }
}

interface Parameter {
  readonly value: string;
  /** Name, equals sign and value as they were written, decoded. */
  readonly pair: string;
}

/** Parameters by name, in order; and pieces without an equals sign. */
function parametersOf(
  query: string,
): readonly [ReadonlyMap<string, readonly Parameter[]>, readonly string[]] {
  const values = new Map<string, Parameter[]>();
  const strays: string[] = [];
  const pairs = urlPieces(query);
  if (pairs === undefined) throw invalidArgument("too many parameters");
  for (const raw of pairs) {
    const pair = decode(raw);
    const at = raw.indexOf("=");
    if (at < 0) {
      strays.push(pair);
      continue;
    }
    const name = decode(raw.slice(0, at));
    const list = values.get(name) ?? [];
    list.push({ value: decode(raw.slice(at + 1)), pair });
    values.set(name, list);
  }
  return [values, strays];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalidArgument("the URL is not encoded as URLs are");
  }
}
