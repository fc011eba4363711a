/** The Data API (Rosetta) as the deposit watcher reads it: blocks with their operations. */
import { cleanForeignText } from "../../chain/evm/foreign-text.js";
import type { Hash32, Height } from "../../chain/hex.js";
import {
  type AnswerObject,
  readBoolean,
  readCount,
  readObject,
  readOptional,
  readString,
} from "../answer-fields.js";
import { badAnswer, DataApiError, MAX_NODE_TEXT_CHARACTERS, NodeFault } from "../errors.js";
import { createHttpPoster } from "../http-post.js";
import type { RpcOptions } from "../json-rpc.js";
import { parseAccountBlocks } from "./block-accounts.js";
import { parseBlockReply } from "./block-reply.js";
import { type DataBlock, parseIdentifier, parseJson } from "./data-block.js";
import { type SendCall, TransactionFetch } from "./transaction-fetch.js";

/** What the Data API says about the chain. */
export interface DataNetworkStatus {
  readonly height: Height;
  readonly hash: Hash32;
  readonly timestampMs: number;
  readonly genesisHash: Hash32;
  readonly synced: boolean;
}

/** Reads of one network. All throw NodeFault and DataApiError. */
export interface DataApiClient {
  networkStatus(options: RpcOptions): Promise<DataNetworkStatus>;
  /** Undefined when the Data API does not have the block, for example not yet. */
  block(height: Height, options: RpcOptions): Promise<DataBlock | undefined>;
  /**
   * Blocks of a range from its first on, as many as one answer holds: they come with the accounts that
   * they name, and ask for the transactions that concern the reader. Not offered by every Data API.
   * @param range at most 64 heights, both ends included
   */
  accountBlocks(
    range: { readonly from: Height; readonly to: Height },
    options: RpcOptions,
  ): Promise<readonly DataBlock[]>;
  /** Ends its connections. */
  close(): void;
}

/** Settings of a client. */
export interface DataApiClientOptions {
  /** Base URL, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  /** `network_identifier` of every request. */
  readonly network: { readonly blockchain: string; readonly network: string };
  /** Time for one exchange; default 10 s. */
  readonly timeoutMs?: number;
  /** Longest reply; default 128 MiB, a full block with all its operations. */
  readonly maxResponseBytes?: number;
}

/** Listed error numbers that mean "this block is not there": unknown, or above the tip. */
export const BLOCK_MISSING_NUMBERS: ReadonlySet<number> = new Set([201, 202]);

/**
 * Listed error numbers that say how the server stands and nothing of what it was asked: its node is of
 * another chain, contradicts the index, refuses, has deleted a block that the index needs or keeps a
 * journal that does not add up, or the disk is full. The same question can be answered once somebody has
 * seen to it.
 */
export const SERVER_STATE_NUMBERS: ReadonlySet<number> = new Set([105, 106, 107, 110, 204, 209]);

/** Listed error number for what the server does not have ready, and its node not any more. */
const DELETED_NUMBER = 204;

/** Whether a refusal says how the server stands: the same question may be answered later. */
export function isOfServer(error: unknown): error is DataApiError {
  if (!(error instanceof DataApiError)) return false;
  return error.retriable || SERVER_STATE_NUMBERS.has(numberOf(error));
}

/** Whether a refusal says that the node behind the server has deleted what the answer is made of. */
export function isDeletedThere(error: unknown): error is DataApiError {
  return error instanceof DataApiError && numberOf(error) === DELETED_NUMBER;
}

const DEFAULT_TIMEOUT_MS = 10_000;

/** Enough to keep a server busy; each more would only be one more to look after. */
const MAX_CONNECTIONS = 16;
const DEFAULT_MAX_RESPONSE_BYTES = 128 * 1024 * 1024;

/** Opens no connection before the first call. Throws TypeError on a malformed URL. */
export function createDataApiClient(options: DataApiClientOptions): DataApiClient {
  const poster = createHttpPoster({
    url: options.url,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxResponseBytes: options.maxResponseBytes ?? DEFAULT_MAX_RESPONSE_BYTES,
    maxConnections: MAX_CONNECTIONS,
  });
  const call = async (path: string, fields: AnswerObject, signal: AbortSignal) => {
    const body = JSON.stringify({ network_identifier: options.network, ...fields });
    const reply = await poster.post(body, { signal, path });
    if (reply.status === 500) {
      throw parseError(readObject(parseJson(reply.body.toString("utf8")), "answer"), path);
    }
    if (reply.status === 200) return reply.body;
    throw new NodeFault("NODE_HTTP_STATUS", `${poster.host} answered HTTP ${reply.status}`, {
      retriable: true,
      details: { host: poster.host, status: reply.status },
    });
  };
  const send: SendCall = (method, parameters, { signal }) =>
    call("/call", { method, parameters }, signal);
  const fetch = new TransactionFetch(send);
  return {
    async networkStatus({ signal }) {
      const body = await call("/network/status", {}, signal);
      return parseStatus(readObject(parseJson(body.toString("utf8")), "answer"));
    },
    async block(height, { signal }) {
      try {
        const block = parseBlockReply(
          await call("/block", { block_identifier: { index: height } }, signal),
        );
        if (block !== undefined && block.height !== height) throw badAnswer("another block");
        return block;
      } catch (error) {
        if (isBlockMissing(error)) return undefined;
        throw error;
      }
    },
    async accountBlocks(range, { signal }) {
      const parameters = { from_index: range.from, to_index: range.to };
      const body = await send("block_accounts", parameters, { signal });
      return parseAccountBlocks(body, range, fetch);
    },
    close: () => poster.close(),
  };
}

/** Whether a refusal means that the block is not there. */
export function isBlockMissing(error: unknown): error is DataApiError {
  return error instanceof DataApiError && BLOCK_MISSING_NUMBERS.has(numberOf(error));
}

function numberOf({ details }: DataApiError): number {
  return Number(details["rosettaCode"]);
}

function parseError(answer: AnswerObject, path: string): DataApiError {
  const rosettaCode = readCount(answer["code"], "error code");
  const message = readString(answer["message"], "error message");
  const text = cleanForeignText(message, MAX_NODE_TEXT_CHARACTERS);
  return new DataApiError("DATA_API_ERROR", `${path}: ${text}`, {
    retriable: readBoolean(answer["retriable"], "retriable"),
    details: { rosettaCode, ...readOptional(answer["details"], "details", readObject) },
  });
}

function parseStatus(answer: AnswerObject): DataNetworkStatus {
  const current = parseIdentifier(answer["current_block_identifier"], "current_block_identifier");
  const genesis = parseIdentifier(answer["genesis_block_identifier"], "genesis_block_identifier");
  const sync = readOptional(answer["sync_status"], "sync_status", readObject);
  return {
    ...current,
    timestampMs: readCount(answer["current_block_timestamp"], "current_block_timestamp"),
    genesisHash: genesis.hash,
    synced: sync === undefined || readOptional(sync["synced"], "synced", readBoolean) !== false,
  };
}
