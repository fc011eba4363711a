/** Forms as browsers send them: bounded, one value for each name. */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { HttpError } from "../../runtime/http/http-errors.js";
import { readBody } from "../../runtime/http/http-body.js";
import { badRequest } from "../../web/errors.js";
import { ConsoleError } from "../errors.js";

/** Longest form: a reason, a signature and what every form carries, with room. */
const MAX_FORM_BYTES = 16_384;

/** Fields of one form. */
const MAX_FIELDS = 32;

const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(;|$)/i;

/** Fields of a form by name. */
export type FormFields = ReadonlyMap<string, string>;

/**
 * Reads a whole form.
 * @throws NO_FORM for another type of body, TOO_LARGE, BAD_REQUEST
 */
export async function readForm(request: IncomingMessage): Promise<FormFields> {
  if (!FORM_TYPE.test(request.headers["content-type"] ?? "")) {
    throw new ConsoleError("NO_FORM", "the body is no form");
  }
  let body: Buffer;
  try {
    body = await readBody(request, MAX_FORM_BYTES);
  } catch (error) {
    if (error instanceof HttpError && error.status === 413) {
      throw new ConsoleError("TOO_LARGE", "the form is too long", { cause: error });
    }
    throw badRequest("the form broke off");
  }
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(body.toString("utf8"))) {
    if (fields.has(name)) throw badRequest(`the form has ${name} twice`);
    // Browsers send line ends as CR LF.
    fields.set(name, value.replace(/\r\n?/g, "\n"));
    if (fields.size > MAX_FIELDS) throw badRequest("the form has too many fields");
  }
  return fields;
}

/** Digest of a form: where it was sent, and its fields in the order in which they came. */
export function contentOf(path: string, form: FormFields): string {
  return createHash("sha256")
    .update(JSON.stringify([path, ...form]))
    .digest("hex");
}
