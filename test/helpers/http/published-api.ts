/** Rosetta's published description and ours, with validators that are not the product's own. */
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { Ajv, type ValidateFunction } from "ajv";
import { parse } from "yaml";
import { type Api, schemaOf } from "./json-mutations.js";

const path = (relative: string) => fileURLToPath(new URL(`../../../${relative}`, import.meta.url));

/** The published file beside the checkout. */
export const PUBLISHED_FILE = path("../shared/reference/mesh/api.json");

/** The published description; undefined where the file is absent, which is told once. */
export function publishedApi(): Api | undefined {
  if (fs.existsSync(PUBLISHED_FILE)) return JSON.parse(fs.readFileSync(PUBLISHED_FILE, "utf8"));
  process.stdout.write(`no ${PUBLISHED_FILE}: Rosetta's own description is left out\n`);
  return undefined;
}

/** The project's two files as one. */
export function ownApi(): Api {
  const [data, construction] = ["data", "construction"].map((name): Api => {
    return parse(fs.readFileSync(path(`openapi/${name}.yaml`), "utf8"));
  });
  return {
    paths: { ...data?.paths, ...construction?.paths },
    components: {
      schemas: { ...data?.components.schemas, ...construction?.components.schemas },
    },
  };
}

/** Faults of a request or of a reply by an API's description; empty when it fits. */
export interface ApiValidator {
  request(at: string, body: unknown): readonly string[];
  response(at: string, status: number, body: unknown): readonly string[];
}

/** Compiles every operation of an API. */
export function createApiValidator(api: Api): ApiValidator {
  const ajv = new Ajv({ strict: false, allErrors: true, formats: { int32: true, int64: true } });
  ajv.addSchema({ $id: "api", components: api.components });
  const compiled = new Map<string, ValidateFunction>();
  const check = (key: string, content: Parameters<typeof schemaOf>[0], body: unknown) => {
    let validate = compiled.get(key);
    if (validate === undefined) {
      const { $ref } = schemaOf(content);
      if ($ref === undefined) return [`${key} is not described`];
      validate = ajv.compile({ $ref: `api${$ref}` });
      compiled.set(key, validate);
    }
    return validate(body) ? [] : [ajv.errorsText(validate.errors)];
  };
  return {
    request: (at, body) => check(at, api.paths[at]?.post.requestBody, body),
    response: (at, status, body) =>
      check(`${at} ${status}`, api.paths[at]?.post.responses[String(status)], body),
  };
}

/** A request made of the examples that the description gives for its fields. */
export function exampleRequest(api: Api, at: string): unknown {
  return exampleOf(schemaOf(api.paths[at]?.post.requestBody), api);
}

function exampleOf(schema: ReturnType<typeof schemaOf>, api: Api): unknown {
  if (schema.$ref !== undefined) {
    return exampleOf(api.components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}, api);
  }
  if (schema.example !== undefined) return schema.example;
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.type === "array") return [exampleOf(schema.items ?? {}, api)];
  if (schema.type === "object") {
    const fields = Object.entries(schema.properties ?? {});
    return Object.fromEntries(fields.map(([name, field]) => [name, exampleOf(field, api)]));
  }
  return { string: "example", integer: 1, number: 1, boolean: true }[schema.type ?? ""] ?? {};
}
