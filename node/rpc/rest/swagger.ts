/** `/swagger`: every route of this node, and a page to try them; nothing comes from elsewhere. */
import { readFileSync } from "node:fs";
import type { FieldType, MessageType } from "../../../chain/protobuf/descriptor-file.js";
import { KIT_VERSION } from "../../../chain/version.js";
import type { QueryRegistry, ServedMethod } from "../cosmos/registry.js";
import { type Exchanged, sendPieces } from "../http-listener.js";

interface Asset {
  readonly type: string;
  /** Bytes, so that all who are sent them share them. */
  readonly body: Buffer;
}

/** Only what this server sends is run or asked. */
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'";

/** The page and what belongs to it, made once. */
export class SwaggerPage {
  private readonly assets: ReadonlyMap<string, Asset>;

  constructor(queries: QueryRegistry) {
    const page = { type: "text/html; charset=utf-8", body: asset("index.html") };
    const script = { type: "text/javascript; charset=utf-8", body: asset("page.mjs") };
    const style = { type: "text/css; charset=utf-8", body: asset("page.css") };
    const api = { type: "application/json", body: Buffer.from(JSON.stringify(openApi(queries))) };
    this.assets = new Map([
      ["/swagger", page],
      ["/swagger/", page],
      ["/swagger/page.mjs", script],
      ["/swagger/page.css", style],
      ["/swagger/openapi.json", api],
    ]);
  }

  /** Answers where the path is one of the page's. */
  send(exchanged: Exchanged, path: string): boolean {
    const found = this.assets.get(path);
    if (found === undefined) return false;
    sendPieces(exchanged, 200, [found.body], {
      "Content-Type": found.type,
      "Content-Security-Policy": POLICY,
      "X-Content-Type-Options": "nosniff",
    });
    return true;
  }
}

function asset(name: string): Buffer {
  return readFileSync(new URL(`./page/${name}`, import.meta.url));
}

type Schema = Readonly<Record<string, unknown>>;

/** OpenAPI 3 of all routes, from the descriptors. */
function openApi(queries: QueryRegistry): Schema {
  const paths: Record<string, Record<string, Schema>> = {};
  const schemas: Record<string, Schema> = {};
  for (const served of queries.all()) {
    for (const { verb, template, body } of served.method.routes) {
      const path = template.replaceAll("=**", "");
      const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1] ?? "");
      (paths[path] ??= {})[verb.toLowerCase()] = {
        operationId: served.method.path.slice(1).replace("/", "."),
        tags: [served.service],
        parameters: parametersOf(served, inPath, body === "*"),
        ...(body === "*" && {
          requestBody: {
            content: { "application/json": { schema: refOf(served.input, schemas) } },
          },
        }),
        responses: {
          200: {
            description: "the answer",
            content: { "application/json": { schema: refOf(served.output, schemas) } },
          },
          default: {
            description: "a refusal",
            content: { "application/json": { schema: REFUSAL } },
          },
        },
      };
    }
  }
  return {
    openapi: "3.0.3",
    info: { title: "Causeway REST", version: KIT_VERSION },
    paths,
    components: { schemas },
  };
}

const REFUSAL: Schema = {
  type: "object",
  properties: {
    code: { type: "integer" },
    message: { type: "string" },
    details: { type: "array", items: {} },
  },
};

const HEIGHT: Schema = {
  name: "x-cosmos-block-height",
  in: "header",
  description: "height to answer for; the newest without it",
  schema: { type: "string" },
};

function parametersOf({ input }: ServedMethod, inPath: readonly string[], hasBody: boolean) {
  const path = inPath.map((name) => {
    return { name, in: "path", required: true, schema: { type: "string" } };
  });
  const query = hasBody ? [] : queryFields(input, "").filter(({ name }) => !inPath.includes(name));
  return [...path, ...query, HEIGHT];
}

/** Fields of a request as URLs name them; messages inside by a dot. */
function queryFields(type: MessageType, prefix: string): { readonly name: string }[] {
  return type.fields.flatMap((field) => {
    const name = `${prefix}${field.name}`;
    if (field.message !== undefined) {
      return field.isRepeated || prefix !== "" ? [] : queryFields(field.message, `${name}.`);
    }
    return [{ name, in: "query", schema: schemaOf(field, {}) }];
  });
}

/** A reference to a message's schema, which is added where it is missing. */
function refOf(type: MessageType, schemas: Record<string, Schema>): Schema {
  if (type.name === "google.protobuf.Any") {
    return { type: "object", properties: { "@type": { type: "string" } } };
  }
  if (type.name.startsWith("google.protobuf.")) return { type: "string" };
  if (schemas[type.name] === undefined) {
    const properties: Record<string, Schema> = {};
    schemas[type.name] = { type: "object", properties };
    for (const field of type.fields) properties[field.name] = schemaOf(field, schemas);
  }
  return { $ref: `#/components/schemas/${type.name}` };
}

function schemaOf(field: FieldType, schemas: Record<string, Schema>): Schema {
  const one = field.message === undefined ? scalarSchema(field) : refOf(field.message, schemas);
  return field.isRepeated ? { type: "array", items: one } : one;
}

function scalarSchema({ kind, enumeration, form }: FieldType): Schema {
  if (enumeration !== undefined) return { type: "string", enum: [...enumeration.numbers.keys()] };
  switch (kind) {
    case "bool":
      return { type: "boolean" };
    case "double":
    case "float":
      return { type: "number" };
    case "bytes":
      return form === undefined ? { type: "string", format: "byte" } : { type: "string" };
    case "int32":
    case "uint32":
    case "sint32":
    case "fixed32":
    case "sfixed32":
      return { type: "integer" };
    default:
      return { type: "string" };
  }
}
