/** Asks a node one method over `abci_query` on its consensus RPC, as the SDK's command line does. */
import { z } from "zod";
import { decodeMessage, encodeMessage } from "../../chain/protobuf/codec.js";
import { SDK_CODE } from "../../chain/cosmos/sdk-fault.js";
import { JsonWriter } from "../../chain/protobuf/json.js";
import type { Descriptors } from "../../chain/protobuf/descriptors.js";
import { JsonReader } from "../../chain/protobuf/json-reader.js";
import { MessageReader, type ProtoMessage, type ProtoValue } from "../../chain/protobuf/values.js";
import { withoutAccess } from "../../runtime/config/config-toml.js";
import { ownForm } from "./sdk-words.js";
import { CliError, SILENT_NODE_REMEDY, systemCode } from "../errors.js";
import { httpRequest } from "../probe/http-request.js";

/** Longest time for an answer: a block of ten thousand transactions takes a second. */
const ANSWER_TIMEOUT_MS = 30_000;

/** Longest answer: a full block twice, in base64. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** Where and as of when to ask. */
export interface QueryTarget {
  /** http(s) URL of the consensus RPC. */
  readonly url: string;
  /** 0: the newest. */
  readonly height: number;
  readonly signal: AbortSignal;
}

const refusalSchema = z.object({ message: z.string(), data: z.string().optional() });
const answerSchema = z.object({ result: z.unknown().optional(), error: refusalSchema.optional() });
const querySchema = z.object({
  response: z.object({ code: z.number(), log: z.string(), value: z.string().nullable() }),
});

/**
 * The answer as parsed JSON in the form of the REST interface.
 * @param fields texts by the request's field names, those of messages inside by a dot
 * @throws CLIENT_FAILED when the node refuses or does not answer; INVALID_MESSAGE for a field that
 *   is not of its kind
 */
export async function queryNode(
  types: Descriptors,
  path: string,
  fields: Readonly<Record<string, string | readonly string[]>>,
  target: QueryTarget,
): Promise<unknown> {
  const { input, output } = methodTypes(types, path);
  const message: Record<string, ProtoValue> = {};
  const reader = new JsonReader(types);
  for (const [field, value] of Object.entries(fields)) {
    const given = typeof value === "string" ? [value] : value;
    const texts = given.map((text) => ownForm(input.byName(field), text));
    if (!reader.setText(input, message, field, texts)) {
      throw new RangeError(`${input.name} has no field ${field}`);
    }
  }
  const bytes = await ask(path, encodeMessage(input, message), target);
  return JSON.parse(new JsonWriter(types).text(output, decodeMessage(output, bytes)));
}

/**
 * The answer as a message.
 * @throws QueryRefusal when the node refuses; CLIENT_FAILED when it does not answer
 */
export async function askNode(
  types: Descriptors,
  path: string,
  request: ProtoMessage,
  target: QueryTarget,
): Promise<MessageReader> {
  const { input, output } = methodTypes(types, path);
  const bytes = await ask(path, encodeMessage(input, request), target);
  return new MessageReader(decodeMessage(output, bytes));
}

function methodTypes(types: Descriptors, path: string) {
  const [, service = "", name = ""] = path.split("/");
  const method = types.service(service)?.methods.get(name);
  if (method === undefined) throw new RangeError(`the descriptors have no method ${path}`);
  return { input: types.message(method.input), output: types.message(method.output) };
}

async function ask(path: string, data: Uint8Array, target: QueryTarget): Promise<Uint8Array> {
  const { height } = target;
  const params = {
    path,
    data: Buffer.from(data).toString("hex"),
    height: `${height}`,
    prove: false,
  };
  const { code, log, value } = (await callComet("abci_query", params, querySchema, target))
    .response;
  if (code === SDK_CODE.invalidHeight && height === 0) {
    // The newest was asked for, and that one is "in the future" only where there is none.
    const text =
      "The node has no block yet, and so no state to be asked for; `causeway status` tells when it has.";
    throw new CliError("CLIENT_FAILED", text, { retriable: true });
  }
  if (code !== 0) throw new QueryRefusal("CLIENT_FAILED", `The node refused ${path}: ${log}`);
  return Buffer.from(value ?? "", "base64");
}

/** A query that the node answered with a refusal: it was asked, and what was asked for is not there. */
export class QueryRefusal extends CliError {}

/**
 * Calls a method of the consensus RPC.
 * @throws CLIENT_FAILED when the node refuses (with its `reason`) or does not answer in the method's
 *   form
 */
export async function callComet<Result>(
  method: string,
  params: Readonly<Record<string, unknown>>,
  schema: z.ZodType<Result>,
  { url, signal }: Pick<QueryTarget, "url" | "signal">,
): Promise<Result> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "Content-Type": "application/json" };
  const answer = await httpRequest(
    new URL(url),
    { method: "POST", headers, body, maxAnswerBytes: MAX_ANSWER_BYTES },
    { signal, timeoutMs: ANSWER_TIMEOUT_MS },
  ).catch((error: unknown) => Promise.reject(withRemedy(error)));
  const parsed = answerSchema.safeParse(parseJson(answer.body));
  const error = parsed.data?.error;
  if (error !== undefined) {
    const reason = error.data ?? error.message;
    const text = `The node refused ${method}: ${reason}`;
    throw new CliError("CLIENT_FAILED", text, { details: { reason } });
  }
  const result = schema.safeParse(parsed.data?.result);
  if (result.success) return result.data;
  const text = `${withoutAccess(url)} does not answer ${method} as a node's consensus RPC does.`;
  throw new CliError("CLIENT_FAILED", text);
}

/** The fault of a request; where nobody listens, with what to do. */
function withRemedy(error: unknown): unknown {
  if (!(error instanceof CliError) || systemCode(error.cause) !== "ECONNREFUSED") return error;
  const text = `${error.message} ${SILENT_NODE_REMEDY}`;
  return new CliError("CLIENT_FAILED", text, { cause: error.cause, retriable: true });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // Refused by the caller with everything else that is no answer of a node.
  }
}
