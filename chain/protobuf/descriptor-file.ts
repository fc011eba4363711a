/**
 * One file of a descriptor set: `google.protobuf.FileDescriptorProto` with the options that decide
 * how a message is written: gogoproto's `nullable` and `customtype`, and `google.api.http`.
 * Numbers of fields: google/protobuf/descriptor.proto, gogoproto/gogo.proto, google/api/http.proto.
 */
import { malformed, type WireField, WireReader } from "./wire-reader.js";

/** Kinds of fields by their number in `FieldDescriptorProto.Type`. */
const KINDS = {
  1: "double",
  2: "float",
  3: "int64",
  4: "uint64",
  5: "int32",
  6: "fixed64",
  7: "fixed32",
  8: "bool",
  9: "string",
  11: "message",
  12: "bytes",
  13: "uint32",
  14: "enum",
  15: "sfixed32",
  16: "sfixed64",
  17: "sint32",
  18: "sint64",
} as const;

/** Kind of a field's values. */
export type FieldKind = (typeof KINDS)[keyof typeof KINDS];

/**
 * Texts and bytes that mean something else: `int` is a whole number as digits, `dec` one with 18
 * decimals, on the wire multiplied by 10^18 (the SDK's `math.Int` and `math.LegacyDec`); `hex` are
 * bytes that JSON has as 0x hex (cosmos/evm's transactions).
 */
export type CustomForm = "int" | "dec" | "hex";

const CUSTOM_FORMS: Readonly<Record<string, CustomForm>> = {
  "cosmossdk.io/math.Int": "int",
  "cosmossdk.io/math.LegacyDec": "dec",
  EthereumTx: "hex",
};

/** A field of a message. */
export interface FieldType {
  readonly name: string;
  /** `name` in lower camel case: what JSON may call it, too. */
  readonly jsonName: string;
  readonly number: number;
  readonly kind: FieldKind;
  readonly isRepeated: boolean;
  /** Whether absence differs from the default: members of a oneof, and `optional`. */
  readonly isOptional: boolean;
  /** False: the field is always there (gogoproto). */
  readonly isNullable: boolean;
  /** Set where a text or bytes mean something else. */
  readonly form: CustomForm | undefined;
  /** Of kind "message". */
  readonly message: MessageType | undefined;
  /** Of kind "enum". */
  readonly enumeration: EnumType | undefined;
}

/** Where types of other files are found. */
export interface TypeSource {
  message(name: string): MessageType;
  enumeration(name: string): EnumType;
}

/** A message's fields. */
export class MessageType {
  /** In the order of their numbers. */
  fields: readonly FieldType[] = [];
  private readonly numbers = new Map<number, FieldType>();
  private readonly names = new Map<string, FieldType>();

  constructor(
    readonly name: string,
    private readonly unlinked: readonly UnlinkedField[],
  ) {}

  /** The field with a number. */
  byNumber(number: number): FieldType | undefined {
    return this.numbers.get(number);
  }

  /** The field that is called so, in the file or in JSON. */
  byName(name: string): FieldType | undefined {
    return this.names.get(name);
  }

  /** Finds the types of the fields; called once, when all files are read. */
  link(types: TypeSource): void {
    this.fields = this.unlinked
      .map(({ typeName: named, ...field }) => ({
        ...field,
        message: field.kind === "message" ? types.message(named) : undefined,
        enumeration: field.kind === "enum" ? types.enumeration(named) : undefined,
      }))
      .toSorted((a, b) => a.number - b.number);
    for (const field of this.fields) {
      this.numbers.set(field.number, field);
      this.names.set(field.jsonName, field);
    }
    for (const field of this.fields) this.names.set(field.name, field);
  }
}

type UnlinkedField = Omit<FieldType, "message" | "enumeration"> & { readonly typeName: string };

/** An enumeration. */
export interface EnumType {
  readonly name: string;
  readonly numbers: ReadonlyMap<string, number>;
  readonly names: ReadonlyMap<number, string>;
}

/** How a method is reached over HTTP (`google.api.http`). */
export interface HttpRoute {
  readonly verb: "GET" | "POST" | "PUT" | "DELETE" | "PATCH";
  /** A path with `{field}` and `{field=**}`. */
  readonly template: string;
  /** "*" where the body is the whole request, else "". */
  readonly body: string;
}

/** A method of a service. */
export interface MethodType {
  readonly name: string;
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Full names of the messages. */
  readonly input: string;
  readonly output: string;
  readonly isStreaming: boolean;
  readonly routes: readonly HttpRoute[];
}

/** A service. */
export interface ServiceType {
  readonly name: string;
  readonly file: string;
  readonly methods: ReadonlyMap<string, MethodType>;
}

/** A field that a file adds to a message of another one. */
export interface ExtensionType {
  readonly extendee: string;
  readonly number: number;
}

/** What a file defines, nested types included. */
export interface FileContents {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly imports: readonly string[];
  readonly messages: readonly MessageType[];
  readonly enumerations: readonly EnumType[];
  readonly services: readonly ServiceType[];
  readonly extensions: readonly ExtensionType[];
}

/** Reads descriptor sets. */
export const readFile = {
  /** Every file of a `FileDescriptorSet`. Throws INVALID_MESSAGE. */
  all: (set: Uint8Array): FileContents[] => of(set, 1).map(({ bytes }) => fileContents(bytes)),
};

const EXTENSION = { nullable: 65_001, customType: 65_003, http: 72_295_728 } as const;
const REPEATED = 3;

/** Fields of a message with a number, in their order. */
function of(bytes: Uint8Array, number: number): WireField[] {
  const found: WireField[] = [];
  const reader = new WireReader(bytes);
  for (let field = reader.next(); field !== undefined; field = reader.next()) {
    if (field.number === number) found.push(field);
  }
  return found;
}

function bytesOf(bytes: Uint8Array, number: number): Uint8Array {
  return of(bytes, number).at(-1)?.bytes ?? new Uint8Array(0);
}

function textOf(bytes: Uint8Array, number: number): string {
  return text(bytesOf(bytes, number));
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}

function numberOf(bytes: Uint8Array, number: number): number | undefined {
  const integer = of(bytes, number).at(-1)?.integer;
  return integer === undefined ? undefined : Number(integer);
}

function fileContents(bytes: Uint8Array): FileContents {
  const name = textOf(bytes, 1);
  const scope = textOf(bytes, 2);
  const messages: MessageType[] = [];
  const enumerations = of(bytes, 5).map((one) => enumType(scope, one.bytes));
  const extensions = of(bytes, 7).map((one) => extensionType(one.bytes));
  const nested = (outer: string, message: Uint8Array) => {
    const own = `${outer}.${textOf(message, 1)}`;
    messages.push(
      new MessageType(
        own,
        of(message, 2).map((one) => fieldType(one.bytes)),
      ),
    );
    for (const one of of(message, 3)) nested(own, one.bytes);
    for (const one of of(message, 4)) enumerations.push(enumType(own, one.bytes));
    for (const one of of(message, 6)) extensions.push(extensionType(one.bytes));
  };
  for (const one of of(bytes, 4)) nested(scope, one.bytes);
  return {
    name,
    bytes,
    imports: of(bytes, 3).map((one) => text(one.bytes)),
    messages,
    enumerations,
    services: of(bytes, 6).map((one) => serviceType(scope, name, one.bytes)),
    extensions,
  };
}

/** A type's name without the dot that says it is a full one. */
function typeName(bytes: Uint8Array, number: number): string {
  return textOf(bytes, number).replace(/^\./, "");
}

function extensionType(bytes: Uint8Array): ExtensionType {
  return { extendee: typeName(bytes, 2), number: numberOf(bytes, 3) ?? 0 };
}

function fieldType(bytes: Uint8Array): UnlinkedField {
  const name = textOf(bytes, 1);
  const kind = KINDS[(numberOf(bytes, 5) ?? 0) as keyof typeof KINDS];
  if (kind === undefined) throw malformed(`field ${name} is of a kind that is not read`);
  const options = bytesOf(bytes, 8);
  const camel = name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const jsonName = textOf(bytes, 10);
  return {
    name,
    jsonName: jsonName === "" ? camel : jsonName,
    number: numberOf(bytes, 3) ?? 0,
    kind,
    isRepeated: numberOf(bytes, 4) === REPEATED,
    isOptional: numberOf(bytes, 9) !== undefined,
    isNullable: numberOf(options, EXTENSION.nullable) !== 0,
    form: CUSTOM_FORMS[textOf(options, EXTENSION.customType)],
    typeName: typeName(bytes, 6),
  };
}

function enumType(scope: string, bytes: Uint8Array): EnumType {
  const values = of(bytes, 2).map((one): readonly [string, number] => [
    textOf(one.bytes, 1),
    Number(BigInt.asIntN(32, of(one.bytes, 2).at(-1)?.integer ?? 0n)),
  ]);
  const names = new Map<number, string>();
  // Of several names of a number the first is shown.
  for (const [name, number] of values.toReversed()) names.set(number, name);
  return { name: `${scope}.${textOf(bytes, 1)}`, numbers: new Map(values), names };
}

function serviceType(scope: string, file: string, bytes: Uint8Array): ServiceType {
  const name = `${scope}.${textOf(bytes, 1)}`;
  const methods = of(bytes, 2).map((one) => methodType(name, one.bytes));
  return { name, file, methods: new Map(methods.map((method) => [method.name, method])) };
}

function methodType(service: string, bytes: Uint8Array): MethodType {
  const name = textOf(bytes, 1);
  const rules = of(bytesOf(bytes, 4), EXTENSION.http).flatMap((one) => [
    one.bytes,
    ...of(one.bytes, 11).map((further) => further.bytes),
  ]);
  return {
    name,
    path: `/${service}/${name}`,
    input: typeName(bytes, 2),
    output: typeName(bytes, 3),
    isStreaming: numberOf(bytes, 5) === 1 || numberOf(bytes, 6) === 1,
    routes: rules.flatMap(httpRoute),
  };
}

const VERBS = [
  [2, "GET"],
  [3, "PUT"],
  [4, "POST"],
  [5, "DELETE"],
  [6, "PATCH"],
] as const;

function httpRoute(rule: Uint8Array): HttpRoute[] {
  return VERBS.flatMap(([number, verb]) => {
    const template = textOf(rule, number);
    return template === "" ? [] : [{ verb, template, body: textOf(rule, 7) }];
  });
}
