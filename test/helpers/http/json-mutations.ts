/** Requests that go wrong in one place: values made from a schema, and what is done to them. */
import type { Random } from "../random.js";

/** The part of OpenAPI's schemas that the API files use. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly example?: unknown;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
}

/** An API file as far as the tests read it. */
export interface Api {
  readonly paths: Readonly<Record<string, { readonly post: Operation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** One operation; all of Rosetta's are POST. */
export interface Operation {
  readonly requestBody: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

/** A described body. */
export interface Content {
  readonly content: { readonly "application/json": { readonly schema: Schema } };
}

/** Schema of a body. */
export function schemaOf(content: Content | undefined): Schema {
  return content?.content["application/json"].schema ?? {};
}

/** A value that fits the schema; optional fields come and go. */
export function sampleOf(schema: Schema, api: Api, random: Random): unknown {
  if (schema.$ref !== undefined) {
    return sampleOf(api.components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}, api, random);
  }
  if (schema.enum !== undefined) return random.pick(schema.enum);
  switch (schema.type) {
    case "object":
      return sampleObject(schema, api, random);
    case "array":
      return Array.from({ length: random.integer(3) }, () =>
        sampleOf(schema.items ?? {}, api, random),
      );
    case "integer":
    case "number": {
      const minimum = schema.minimum ?? 0;
      return (
        minimum + random.integer(Math.min(schema.maximum ?? 1_000, minimum + 1_000) - minimum + 1)
      );
    }
    case "boolean":
      return random.integer(2) === 0;
    case "string":
      return sampleText(schema, random);
    default:
      return random.pick([null, 7, "any", { any: [] }]);
  }
}

function sampleObject(schema: Schema, api: Api, random: Random): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const isWanted = schema.required?.includes(name) === true || random.integer(2) === 0;
    if (isWanted) made[name] = sampleOf(property, api, random);
  }
  return schema.properties === undefined && random.integer(2) === 0 ? { free: "field" } : made;
}

function sampleText({ example, pattern, minLength }: Schema, random: Random): string {
  if (typeof example === "string" && random.integer(2) === 0) return example;
  const digits = (length: number) =>
    Buffer.from(random.bytes(Math.ceil(length / 2)))
      .toString("hex")
      .slice(0, length);
  const texts = [digits(64), `0x${digits(40)}`, `0x${digits(64)}`, "123", "testnet", "token", "x"];
  const fitting = texts.filter((text) => pattern === undefined || new RegExp(pattern).test(text));
  return fitting.length === 0 ? "x".repeat(minLength ?? 1) : random.pick(fitting);
}

/** Values that parsers and databases are known to trip over. */
const WILD: readonly unknown[] = [
  "",
  " ",
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e21,
  2 ** 31,
  2 ** 53 - 1,
  2 ** 53,
  -(2 ** 53),
  "0",
  "-0",
  "00",
  "1e5",
  "-1",
  "0x",
  "0X00",
  "9".repeat(78),
  "9".repeat(5_000),
  "\u0000",
  "a\u0000b",
  "\ud800",
  "💥",
  "ａddress",
  "\u202e\u200b",
  "../../etc/passwd",
  "__proto__",
  "constructor",
  "'; DROP TABLE x; --",
  "x".repeat(70_000),
  [],
  {},
  [[]],
  [null],
  { index: {} },
];

/** Names of fields that objects should not have. */
const WILD_KEYS: readonly string[] = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "toJSON",
  "then",
  "length",
  "",
  "x",
  "\u0000",
  "network_identifier",
  "metadata",
  "💥",
];

interface Place {
  readonly parent: Record<string, unknown> | unknown[];
  readonly key: string | number;
  /** Part of the network's identifier, or the whole request. */
  readonly isNetwork: boolean;
}

/**
 * A copy of the value with one place changed, now and then up to three. The network is mostly left
 * alone: a wrong one is refused before anything else is looked at.
 */
export function mutate(value: unknown, random: Random): unknown {
  const root = { value: structuredClone(value) };
  const count = random.integer(4) === 0 ? 1 + random.integer(3) : 1;
  for (let done = 0; done < count; done += 1) {
    const places = placesOf(root);
    const inner = places.filter(({ isNetwork }) => !isNetwork);
    const place = random.pick(inner.length === 0 || random.integer(10) === 0 ? places : inner);
    change(place, random, () => read(random.pick(places)));
  }
  return root.value;
}

function change(place: Place, random: Random, another: () => unknown): void {
  const { parent, key } = place;
  const present = read(place);
  switch (random.integer(8)) {
    case 0:
      if (Array.isArray(parent)) parent.splice(Number(key), 1);
      else if (key !== "value" || Object.keys(parent).length > 1)
        Reflect.deleteProperty(parent, key);
      break;
    case 1:
      write(place, structuredClone(another()));
      break;
    case 2:
      if (Array.isArray(present)) present.push(structuredClone(present[0] ?? {}));
      else if (isFields(present))
        write({ ...place, parent: present, key: random.pick(WILD_KEYS) }, wild(random));
      else write(place, [present]);
      break;
    case 3:
      write(place, nested(present, random));
      break;
    case 4:
    case 5:
      write(place, changedText(present, random));
      break;
    default:
      write(place, wild(random));
  }
}

/** A copy: a later change of the same run must not reach into the list. */
function wild(random: Random): unknown {
  return structuredClone(random.pick(WILD));
}

/** The value inside many lists or objects. */
function nested(value: unknown, random: Random): unknown {
  let made = value;
  const isList = random.integer(2) === 0;
  for (let depth = random.pick([1, 5, 62, 63, 64, 65, 500]); depth > 0; depth -= 1) {
    made = isList ? [made] : { a: made };
  }
  return made;
}

/** A text with a character changed, added or missing; a number off by one. */
function changedText(value: unknown, random: Random): unknown {
  if (typeof value === "number") return value + random.pick([-1, 1, 0.5, 1e15]);
  if (typeof value !== "string" || value === "") return wild(random);
  if (value.startsWith("{")) return insideJson(value, random);
  const at = random.integer(value.length);
  const [before, after] = [value.slice(0, at), value.slice(at + 1)];
  return random.pick([
    before,
    before + after,
    `${before}${random.pick(["0", "1", "7", "a", "f"])}${after}`,
    `${before}${random.pick(["0", "3", "8", "b", "e"])}${after}`,
    `${before}${random.pick(["g", "-", " ", "é"])}${after}`,
    value + value,
    ` ${value}`,
    value.toUpperCase(),
    value.toLowerCase(),
    value.replace(/^0x/, ""),
    `0x${value}`,
    `-${value}`,
  ]);
}

/** A text that is JSON itself, with a place of that changed. */
function insideJson(text: string, random: Random): string {
  try {
    return JSON.stringify(mutate(JSON.parse(text), random)) ?? "";
  } catch {
    return text.slice(1);
  }
}

/** Every place below the root; the first one is the whole value. */
function placesOf(root: { readonly value: unknown }): Place[] {
  const whole: Place = { parent: root, key: "value", isNetwork: true };
  const found = [whole];
  const visit = (parent: unknown, inNetwork: boolean) => {
    if (!isFields(parent) && !Array.isArray(parent)) return;
    for (const name of Object.keys(parent)) {
      const key = Array.isArray(parent) ? Number(name) : name;
      const isNetwork = inNetwork || name === "network_identifier";
      const place: Place = { parent, key, isNetwork };
      found.push(place);
      visit(read(place), isNetwork);
    }
  };
  visit(root.value, false);
  return found;
}

function read({ parent, key }: Place): unknown {
  return Reflect.get(parent, key);
}

/** Defined, not assigned: "__proto__" has to become a field like any other. */
function write({ parent, key }: Place, value: unknown): void {
  Object.defineProperty(parent, key, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Bytes that are not the JSON of the value, or not quite. */
export function brokenBytes(value: unknown, random: Random): Buffer {
  const text = JSON.stringify(value) ?? "";
  const at = random.integer(Math.max(1, text.length));
  const insert = (bytes: Buffer) =>
    Buffer.concat([Buffer.from(text.slice(0, at)), bytes, Buffer.from(text.slice(at))]);
  switch (random.integer(12)) {
    case 0:
      return Buffer.from(text.slice(0, at));
    case 1:
      return insert(Buffer.from(random.bytes(1 + random.integer(4))));
    case 2:
      return insert(Buffer.from([0xff]));
    case 3:
      return Buffer.from(text.replace("{", '{"network_identifier":null,'));
    case 4:
      return Buffer.from(text.replace("{", '{"__proto__":{"admin":true},'));
    case 5:
      return Buffer.from(text.replace(/:(\d+)/, `:${random.pick(BAD_NUMBERS)}`));
    case 6:
      return Buffer.from(text.replace(/"[^"]*"/, random.pick(BAD_STRINGS)));
    case 7:
      return Buffer.from(`\ufeff${text}`);
    case 8:
      return Buffer.from(random.pick(["", " ", "null", "[]", '"x"', "1", "{}", "{} {}", "nan"]));
    case 9:
      return Buffer.from(`${text}${random.pick([",", "}", "//", "\u0000", text])}`);
    case 10:
      return Buffer.from("[".repeat(1 + random.integer(100_000)));
    default:
      return Buffer.from(text, "utf16le");
  }
}

const BAD_NUMBERS = ["9007199254740993", "1e999", "-0", "01", "1.", ".5", "0x10", "1e400", "- 1"];

const BAD_STRINGS = ['"\\u0000"', '"\\ud800"', '"\\x"', "'x'", '"\n"', '"\\"', '"\\uDC00\\uD800"'];
