/** Asks a node one method over `abci_query` on its consensus RPC, as the SDK's command line does. */
import { z } from "zod";
import { decodeMessage, encodeMessage } from "../../chain/protobuf/codec.js";
import { JsonWriter } from "../../chain/protobuf/json.js";
import type { Descriptors } from "../../chain/protobuf/descriptors.js";
import { JsonReader } from "../../chain/protobuf/json-reader.js";
import type { ProtoValue } from "../../chain/protobuf/values.js";
import { CliError } from "../errors.js";
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

const answerSchema = z.object({
  result: z
    .object({
      response: z.object({
        code: z.number(),
        log: z.string(),
        value: z.string().nullable(),
      }),
    })
    .optional(),
  error: z.object({ message: z.string(), data: z.string().optional() }).optional(),
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
  const [, service = "", name = ""] = path.split("/");
  const method = types.service(service)?.methods.get(name);
  if (method === undefined) throw new RangeError(`the descriptors have no method ${path}`);
  const input = types.message(method.input);
  const output = types.message(method.output);
  const message: Record<string, ProtoValue> = {};
  const reader = new JsonReader(types);
  for (const [field, value] of Object.entries(fields)) {
    const texts = typeof value === "string" ? [value] : value;
    if (!reader.setText(input, message, field, texts)) {
      throw new RangeError(`${input.name} has no field ${field}`);
    }
  }
  const bytes = await ask(path, encodeMessage(input, message), target);
  return JSON.parse(new JsonWriter(types).text(output, decodeMessage(output, bytes)));
}

async function ask(path: string, data: Uint8Array, target: QueryTarget): Promise<Uint8Array> {
  const { url, height, signal } = target;
  const params = {
    path,
    data: Buffer.from(data).toString("hex"),
    height: `${height}`,
    prove: false,
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "abci_query", params });
  const headers = { "Content-Type": "application/json" };
  const answer = await httpRequest(
    new URL(url),
    { method: "POST", headers, body, maxAnswerBytes: MAX_ANSWER_BYTES },
    { signal, timeoutMs: ANSWER_TIMEOUT_MS },
  );
  const parsed = answerSchema.safeParse(parseJson(answer.body));
  if (!parsed.success) {
    const text = `${url} does not answer abci_query as a node's consensus RPC does.`;
    throw new CliError("CLIENT_FAILED", text);
  }
  const { result, error } = parsed.data;
  const refusal = error === undefined ? result?.response.log : (error.data ?? error.message);
  if (error !== undefined || result === undefined || result.response.code !== 0) {
    throw new CliError("CLIENT_FAILED", `The node refused ${path}: ${refusal ?? "no reason"}`);
  }
  return Buffer.from(result.response.value ?? "", "base64");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // Refused by the caller with everything else that is no answer of a node.
  }
}
