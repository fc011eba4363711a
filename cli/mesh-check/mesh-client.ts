/** A Data API as mesh-check asks it: replies are left as they came, because they are on trial. */
import {
  type AnswerObject,
  readBoolean,
  readCount,
  readList,
  readObject,
  readOptional,
  readString,
} from "../../rpc-client/answer-fields.js";
import { badAnswer, DataApiError, NodeFault } from "../../rpc-client/errors.js";
import { createHttpPoster } from "../../rpc-client/http-post.js";
import { retry } from "../../runtime/process/task.js";
import type { BlockId } from "./block-check.js";
import type { CurrencyIdentity, Identity } from "./identity.js";
import { createLimiter } from "./limiter.js";

/** A block as a request names it: by index, by hash, or by both. */
export interface BlockName {
  readonly index?: number;
  readonly hash?: string;
}

/** Balances as they were answered. */
export interface BalanceAnswer {
  readonly block: BlockId;
  readonly balances: readonly unknown[];
}

/**
 * The server on trial. All throw DataApiError when it refuses, NodeFault when it cannot be asked or
 * believed; what may pass is tried again first.
 */
export interface MeshClient {
  status(): Promise<AnswerObject>;
  options(): Promise<AnswerObject>;
  /** The block with its `other_transactions` fetched and put behind the others. */
  block(index: number): Promise<AnswerObject>;
  balance(
    account: Identity,
    currencies: readonly CurrencyIdentity[],
    block: BlockName,
  ): Promise<BalanceAnswer>;
  /** `result` of a method of /call. */
  call(method: string, parameters: AnswerObject): Promise<unknown>;
  close(): void;
}

/** Settings of a client. */
export interface MeshClientOptions {
  readonly url: string;
  /** Requests under way at once. */
  readonly concurrency: number;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 60_000;

/** A full block with all its operations. */
const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;

/** Tries of a request that may pass later, over about ten seconds. */
const ATTEMPTS = 6;

/** Connects, and asks which network the server is for. */
export async function connectMesh(options: MeshClientOptions): Promise<MeshClient> {
  const { signal } = options;
  const poster = createHttpPoster({
    url: options.url,
    timeoutMs: TIMEOUT_MS,
    maxResponseBytes: MAX_RESPONSE_BYTES,
  });
  const limit = createLimiter(options.concurrency);
  const once = async (path: string, body: string): Promise<AnswerObject> => {
    const reply = await poster.post(body, { signal, path });
    if (reply.status !== 200 && reply.status !== 500) {
      const message = `${poster.host}${path} answered HTTP ${reply.status}`;
      throw new NodeFault("NODE_HTTP_STATUS", message, { retriable: reply.status > 500 });
    }
    const answer = readObject(parseJson(reply.body), "answer");
    if (reply.status === 500) throw refusal(answer, path);
    return answer;
  };
  const post = (path: string, fields: AnswerObject): Promise<AnswerObject> =>
    limit(() =>
      retry(() => once(path, JSON.stringify(fields)), {
        signal,
        attempts: ATTEMPTS,
        minDelayMs: 200,
        maxDelayMs: 5_000,
      }),
    );
  const lists = await post("/network/list", { metadata: {} });
  const [network] = readList(lists["network_identifiers"], "network_identifiers");
  if (network === undefined) throw badAnswer("the server lists no network");
  const call = (path: string, fields: AnswerObject = {}) =>
    post(path, { network_identifier: network, ...fields });
  const transaction = async (block: unknown, id: unknown): Promise<unknown> => {
    const fields = { block_identifier: block, transaction_identifier: id };
    return (await call("/block/transaction", fields))["transaction"];
  };
  return {
    status: () => call("/network/status"),
    options: () => call("/network/options"),
    async block(index) {
      const answer = await call("/block", { block_identifier: { index } });
      const block = readObject(answer["block"], "block");
      const others = readOptional(answer["other_transactions"], "other_transactions", readList);
      if (others === undefined || others.length === 0) return block;
      const further = await Promise.all(
        others.map((id) => transaction(block["block_identifier"], id)),
      );
      const first = readList(block["transactions"], "transactions");
      return { ...block, transactions: [...first, ...further] };
    },
    async balance(account, currencies, block) {
      const answer = await call("/account/balance", {
        account_identifier: account.value,
        block_identifier: block,
        currencies: currencies.map(({ value }) => value),
      });
      const id = readObject(answer["block_identifier"], "block_identifier");
      return {
        block: {
          index: readCount(id["index"], "block_identifier.index"),
          hash: readString(id["hash"], "block_identifier.hash"),
        },
        balances: readList(answer["balances"], "balances"),
      };
    },
    call: async (method, parameters) => (await call("/call", { method, parameters }))["result"],
    close: () => poster.close(),
  };
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (cause) {
    throw badAnswer("the body is not JSON", cause);
  }
}

function refusal(answer: AnswerObject, path: string): DataApiError {
  const rosettaCode = readCount(answer["code"], "error code");
  const text = readString(answer["message"], "error message");
  return new DataApiError("DATA_API_ERROR", `${path}: ${text}`, {
    retriable: readBoolean(answer["retriable"], "retriable"),
    details: { rosettaCode },
  });
}
