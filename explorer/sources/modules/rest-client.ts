/**
 * GETs of the node's REST interface (1317), in the form of the SDK's grpc-gateway: what is not there is
 * undefined, and a chain without these modules says so once.
 */
import { AppError } from "../../../chain/errors.js";
import { type AnswerObject, readObject } from "../../../rpc-client/answer-fields.js";
import { routeOf } from "../../../runtime/http/outgoing/route-url.js";
import { badRequest, PageError } from "../../../web/errors.js";
import { getText, type TextAnswer } from "../json-get.js";

/**
 * NOT_SERVED: this chain, or this node, has no such module; EXHAUSTED: the question is too large to be
 * answered now.
 */
export type ModuleFaultCode = "NOT_SERVED" | "EXHAUSTED";

/** An answer that is none, for a reason that pages tell. */
export class ModuleFault extends AppError<ModuleFaultCode> {}

/** How the interface is asked. */
export interface RestOptions {
  /** Base URL. */
  readonly url: string;
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

/** Parameters of a question; undefined ones are left out. */
export type RestQuery = Readonly<Record<string, string | number | boolean | undefined>>;

/** Asks one node. */
export class RestClient {
  constructor(private readonly options: RestOptions) {}

  /**
   * The answer; undefined for what the node does not know.
   * @throws UNAVAILABLE, BAD_REQUEST for a place in a list that is none, NOT_SERVED, EXHAUSTED
   */
  async get(
    path: string,
    query: RestQuery,
    signal: AbortSignal,
  ): Promise<AnswerObject | undefined> {
    const url = routeOf(this.options.url, path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    let answer: TextAnswer;
    try {
      const { timeoutMs, maxBytes } = this.options;
      answer = await getText(url, { timeoutMs, maxBytes, signal });
    } catch (cause) {
      signal.throwIfAborted();
      throw unavailable(cause);
    }
    switch (answer.status) {
      case 200:
        return objectOf(answer.text);
      case 404:
        // A path that is no route at all is another server, or an older node.
        if (!/"code"/.test(answer.text)) throw new ModuleFault("NOT_SERVED", "no such route");
        return undefined;
      case 400:
        throw badRequest("the node refuses the question");
      case 429:
        throw new ModuleFault("EXHAUSTED", "the node does not answer so much");
      case 405:
      case 415:
      case 501:
        throw new ModuleFault("NOT_SERVED", "the chain does not have this module");
      default:
        throw unavailable(new RangeError(`HTTP ${answer.status}`));
    }
  }
}

function objectOf(text: string): AnswerObject {
  try {
    return readObject(JSON.parse(text), "answer");
  } catch (cause) {
    throw unavailable(cause);
  }
}

function unavailable(cause: unknown): PageError {
  const message = "the node's REST interface does not answer";
  return new PageError("UNAVAILABLE", message, { retriable: true, cause });
}
