/**
 * Schemas of an OpenAPI 3.0 file as compiled checks: the same ajv with the same options as in the
 * validator behind Express, so that both take the same requests and refuse the same replies. What
 * that validator treats in a way of its own (dates in requests, discriminators, parameters other than
 * texts in headers) is refused when the check is made, never ignored.
 */
import { accessSync, existsSync, readFileSync } from "node:fs";
import type { ErrorObject, ValidateFunction } from "ajv";
import AjvDraft04 from "ajv-draft-04";
import { parse } from "yaml";
import { errorMessage } from "../../chain/errors.js";
import { HttpError, type RequestFault } from "./http-errors.js";

/**
 * Whether a parsed body, with the request's headers, is what an operation takes; fills in the body's
 * defaults. Names of headers are in lower case.
 */
export type RequestCheck = (
  body: unknown,
  headers?: Readonly<Record<string, string | string[] | undefined>>,
) => boolean;

/**
 * Passes a reply that is as the API file says.
 * @throws INVALID_RESPONSE (details: `status` 500, `errors`)
 */
export type ResponseCheck = (body: unknown, status?: number) => void;

/** Checks of one API file's operations. */
export interface ApiSchemas {
  /** @throws LISTEN_FAILED when the operation is absent or needs more than a body's schema */
  requestCheck(path: string, method: string): RequestCheck;
  /** @throws LISTEN_FAILED when the operation is absent or a response is not plain JSON */
  responseCheck(path: string, method: string): ResponseCheck;
}

/** Whole numbers are checked exactly when a body is read; the widths are only documentation. */
const FORMATS = { int32: true, int64: true } as const;

/** Times in replies are texts, as RFC 3339 writes them; in requests the validator makes objects of them. */
const REPLY_FORMATS = {
  ...FORMATS,
  "date-time": /^\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i,
} as const;

const JSON_TYPE = "application/json";

type Ajv = InstanceType<typeof AjvDraft04.default>;

/** Checks by path of their file: several servers of a process may have one API. */
const LOADED = new Map<string, ApiSchemas>();

/**
 * Reads an API file; once, as each of its checks is compiled once.
 * @throws LISTEN_FAILED when it cannot be read or is no OpenAPI 3.0
 */
export function loadApiSchemas(apiSpecPath: string): ApiSchemas {
  const loaded = LOADED.get(apiSpecPath) ?? makeApiSchemas(apiSpecPath);
  LOADED.set(apiSpecPath, loaded);
  return loaded;
}

function makeApiSchemas(apiSpecPath: string): ApiSchemas {
  const file = readApiFile(apiSpecPath);
  const requests = createAjv(file, { useDefaults: true, formats: FORMATS });
  const responses = createAjv(file, { useDefaults: false, formats: REPLY_FORMATS });
  const operationAt = (path: string, method: string): Operation => {
    const pathItem = fieldOf(fieldOf(file, "paths"), path);
    const value = fieldOf(pathItem, method.toLowerCase());
    if (value === undefined) throw unusable(apiSpecPath, `${method} ${path} is not in it`);
    const name = `${method.toUpperCase()} ${path}`;
    const parameters = [pathItem, value].flatMap((owner) => listOf(fieldOf(owner, "parameters")));
    return { path, name, apiSpecPath, file, value, parameters };
  };
  return {
    requestCheck: once((path, method) => compileRequest(requests, operationAt(path, method))),
    responseCheck: once((path, method) => compileResponses(responses, operationAt(path, method))),
  };
}

/** Checks of operations, each compiled when it is first asked for. */
function once<Check>(compileFor: (path: string, method: string) => Check) {
  const compiled = new Map<string, Check>();
  return (path: string, method: string): Check => {
    const name = `${method.toUpperCase()} ${path}`;
    const check = compiled.get(name) ?? compileFor(path, method);
    compiled.set(name, check);
    return check;
  };
}

/**
 * A check that is compiled when it is first used: compiling all of an API's is most of the time that a
 * process needs to start, and a process that lives long uses few.
 */
export function onFirstUse<Arguments extends unknown[], Answer>(
  make: () => (...values: Arguments) => Answer,
): (...values: Arguments) => Answer {
  let made: ((...values: Arguments) => Answer) | undefined;
  return (...values) => {
    made ??= make();
    return made(...values);
  };
}

/**
 * The check of one operation's replies, for those who make replies ahead of requests; its first use
 * throws LISTEN_FAILED as `loadApiSchemas` and `responseCheck` do.
 */
export function compileResponseCheck(
  apiSpecPath: string,
  path: string,
  method: string,
): ResponseCheck {
  return onFirstUse(() => loadApiSchemas(apiSpecPath).responseCheck(path, method));
}

/** One operation of the file. */
interface Operation {
  readonly path: string;
  readonly name: string;
  readonly apiSpecPath: string;
  /** The whole file, for what the operation refers to. */
  readonly file: object;
  readonly value: unknown;
  /** Those of its path, too. */
  readonly parameters: readonly unknown[];
}

function compileRequest(ajv: Ajv, operation: Operation): RequestCheck {
  const { value, parameters } = operation;
  const headerChecks = parameters.map((parameter) => compileHeader(ajv, operation, parameter));
  const content = fieldOf(fieldOf(value, "requestBody"), "content");
  const check = compile(ajv, operation, jsonSchemaOf(content, operation));
  return (body, headers = {}) => headerChecks.every((fits) => fits(headers)) && check(body);
}

/** A header that must be there and is a text; anything else is for the validator to judge. */
function compileHeader(
  ajv: Ajv,
  operation: Operation,
  parameter: unknown,
): (headers: Readonly<Record<string, string | string[] | undefined>>) => boolean {
  const header = fieldOf(parameter, "name");
  const schema = fieldOf(parameter, "schema");
  const isText = fieldOf(schema, "type") === "string" && fieldOf(parameter, "required") === true;
  if (fieldOf(parameter, "in") !== "header" || typeof header !== "string" || !isText) {
    const { name, apiSpecPath } = operation;
    throw unusable(apiSpecPath, `${name} has parameters beside its body`);
  }
  const check = compile(ajv, operation, fieldsOf(schema));
  return (headers) => check(headers[header.toLowerCase()]);
}

/** Checks of the listed statuses; one without content allows no body. */
function compileResponses(ajv: Ajv, operation: Operation): ResponseCheck {
  const checks = new Map<string, ValidateFunction | "no body">();
  for (const [status, response] of Object.entries(
    fieldsOf(fieldOf(operation.value, "responses")),
  )) {
    checks.set(status, compileResponse(ajv, operation, referred(operation, response)));
  }
  return (body, status = 200) => {
    const check =
      checks.get(String(status)) ??
      checks.get(`${Math.trunc(status / 100)}XX`) ??
      checks.get("default");
    if (check === undefined) {
      const message = `no schema defined for status code '${status}' in the openapi spec`;
      throw wholeResponse(operation.path, message);
    }
    if (check === "no body") {
      if (body !== undefined) throw wholeResponse("/response", "response should NOT have a body");
    } else if (body === undefined || body === null) {
      throw wholeResponse("/response", "response body required.");
    } else if (!check({ response: body })) {
      throw brokenResponse(ajv, check.errors ?? []);
    }
  };
}

function compileResponse(
  ajv: Ajv,
  operation: Operation,
  response: unknown,
): ValidateFunction | "no body" {
  const content = fieldOf(response, "content");
  if (content === undefined) return "no body";
  const schema = { type: "object", properties: { response: jsonSchemaOf(content, operation) } };
  return compile(ajv, operation, schema);
}

const RESPONSE_REFERENCE = /^#\/components\/responses\/([\w.-]+)$/;

/** A response, or the one of the same file that it refers to. */
function referred({ file, apiSpecPath, name }: Operation, response: unknown): unknown {
  const reference = fieldOf(response, "$ref");
  if (reference === undefined) return response;
  const text = typeof reference === "string" ? reference : "";
  const [, known = ""] = RESPONSE_REFERENCE.exec(text) ?? [];
  const found = fieldOf(fieldOf(fieldOf(file, "components"), "responses"), known);
  if (found === undefined || fieldOf(found, "$ref") !== undefined) {
    throw unusable(apiSpecPath, `${name} has a response by reference to nothing of this file`);
  }
  return found;
}

/** The schema of a body that is JSON and nothing else. */
function jsonSchemaOf(content: unknown, { apiSpecPath, name }: Operation): object {
  const schema = fieldOf(fieldOf(content, JSON_TYPE), "schema");
  if (schema === undefined || Object.keys(fieldsOf(content)).length !== 1) {
    throw unusable(apiSpecPath, `${name} has a body that is not described as ${JSON_TYPE}`);
  }
  return fieldsOf(schema);
}

function compile(ajv: Ajv, operation: Operation, schema: object): ValidateFunction {
  try {
    return ajv.compile(schema);
  } catch (cause) {
    const { apiSpecPath, name } = operation;
    throw unusable(apiSpecPath, `${name} cannot be compiled: ${errorMessage(cause)}`, cause);
  }
}

function createAjv(
  file: object,
  options: {
    readonly useDefaults: boolean;
    readonly formats: Readonly<Record<string, true | RegExp>>;
  },
): Ajv {
  const ajv = new AjvDraft04.default({
    // Unlike the validator behind Express, which would pass over what it does not know.
    strictSchema: true,
    strictNumbers: true,
    strictTypes: false,
    strictRequired: false,
    validateSchema: false,
    ...options,
  });
  ajv.addKeyword("example");
  const schemas = fieldsOf(fieldOf(fieldOf(file, "components"), "schemas"));
  for (const [name, schema] of Object.entries(schemas)) {
    ajv.addSchema(fieldsOf(schema), `#/components/schemas/${name}`);
  }
  return ajv;
}

/**
 * Where an API file is read: what the build has made of it is the same as JSON, which is read in a moment.
 * @throws LISTEN_FAILED when the API file cannot be read
 */
function readableFile(path: string): string {
  const built = path.replace(/\.ya?ml$/, ".json");
  if (existsSync(built)) return built;
  try {
    accessSync(path);
  } catch (cause) {
    throw unusable(path, "it cannot be read", cause);
  }
  return path;
}

/** Files that were read, by path: they are the program's own, and stay as they are while it runs. */
const READ = new Map<string, object>();

/** An API file as it stands, for reading only: it is read once. @throws LISTEN_FAILED */
export function readApiFile(path: string): object {
  const known = READ.get(path) ?? parseApiFile(path);
  READ.set(path, known);
  return known;
}

function parseApiFile(path: string): object {
  const place = readableFile(path);
  let file: unknown;
  try {
    const text = readFileSync(place, "utf8");
    file = place.endsWith(".json") ? JSON.parse(text) : parse(text);
  } catch (cause) {
    throw unusable(path, "it cannot be read", cause);
  }
  const version = fieldOf(file, "openapi");
  if (typeof version !== "string" || !version.startsWith("3.0.")) {
    throw unusable(path, "it is not OpenAPI 3.0");
  }
  return fieldsOf(file);
}

function brokenResponse(ajv: Ajv, found: readonly ErrorObject[]): HttpError {
  const errors = found.map((error) => ({ ...error, message: messageOf(error) }));
  const text = ajv.errorsText(errors, { dataVar: "" });
  return invalidResponse(text, errors.map(faultOf));
}

/** A fault of the reply as a whole, told in the words of the validator behind Express. */
function wholeResponse(path: string, message: string): HttpError {
  return invalidResponse(message, [{ path, message, errorCode: "" }]);
}

function invalidResponse(message: string, errors: readonly RequestFault[]): HttpError {
  return new HttpError("INVALID_RESPONSE", message, { details: { status: 500, errors } });
}

function messageOf({ keyword, message = "", params }: ErrorObject): string {
  const allowed: unknown = fieldOf(params, "allowedValues");
  return keyword === "enum" && Array.isArray(allowed)
    ? `${message}: ${allowed.join(", ")}`
    : message;
}

/** The fault with the path of the field that is missing or too many; none for a field named "". */
function faultOf(error: ErrorObject): RequestFault {
  const { instancePath, params, keyword, message = "" } = error;
  const name = fieldOf(params, "missingProperty") ?? fieldOf(params, "additionalProperty");
  const place = typeof name === "string" ? `${instancePath}/${name}` : instancePath;
  return {
    path: name === "" ? "" : place,
    message,
    errorCode: `${keyword}.openapi.validation`,
  };
}

function unusable(apiSpecPath: string, reason: string, cause?: unknown): HttpError {
  return new HttpError("LISTEN_FAILED", `API file ${apiSpecPath}: ${reason}`, { cause });
}

function fieldOf(value: unknown, key: string): unknown {
  return Object.hasOwn(fieldsOf(value), key) ? Reflect.get(fieldsOf(value), key) : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function fieldsOf(value: unknown): object {
  return typeof value === "object" && value !== null ? value : {};
}

/** The regular expression for a path of an API file: "{id}" matches one segment. */
export function pathPattern(path: string): RegExp {
  const escaped = path.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{[^}]+\}/g, "[^/]+");
  return new RegExp(`^${escaped}$`);
}

/** The same path as Express writes it. */
export function expressPath(path: string): string {
  return path.replace(/\{([^}]+)\}/g, ":$1");
}
