/** One consensus RPC server that the light client asks: bounded in time and bytes, parsed at once. */
import { z } from "zod";
import type { ConsensusHeader } from "../../../chain/consensus/consensus-header.js";
import type { LightBlock } from "../../../chain/consensus/light.js";
import type { Validator, ValidatorSet } from "../../../chain/consensus/validator-set.js";
import { errorMessage } from "../../../chain/errors.js";
import type { Height } from "../../../chain/hex.js";
import {
  type BlockExtras,
  HEADERS_PER_PAGE,
  parseBlockExtras,
  parseHeaders,
  parseSignedHeader,
  parseValidatorsPage,
  VALIDATORS_PER_PAGE,
  validatorSetOf,
} from "./light-json.js";
import { limitedSignal } from "../../../runtime/process/task.js";
import { serverUrl } from "../../settings/state-sync-config.js";
import { StateSyncError } from "../state-sync-error.js";

/**
 * A source of headers. Every method throws SERVER_UNAVAILABLE (no answer, or it lacks the height),
 * SERVER_ANSWER_INVALID, or the signal's reason.
 */
export interface LightProvider {
  /** Host and port, for people. */
  readonly name: string;
  lightBlock(height: Height, signal: AbortSignal): Promise<LightBlock>;
  validators(height: Height, signal: AbortSignal): Promise<ValidatorSet>;
  blockExtras(height: Height, signal: AbortSignal): Promise<BlockExtras>;
  /** Headers of `from` down to `to`, at most 20; all of them, in that order. */
  headers(
    range: { readonly from: Height; readonly to: Height },
    signal: AbortSignal,
  ): Promise<readonly ConsensusHeader[]>;
}

/** Time for one answer of a server on a slow line. */
const ANSWER_TIMEOUT_MS = 15_000;

/** A commit or a page of validators of the largest sets stays below this. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** The largest block in base64, with its commit. */
const MAX_BLOCK_ANSWER_BYTES = 40 * 1024 * 1024;

const reply = z.object({
  result: z.unknown().optional(),
  error: z.object({ message: z.string(), data: z.unknown().optional() }).optional(),
});

/**
 * A server by its address as operators write it.
 * @param address `host:port`, `tcp://host:port`, `http://host:port` or `https://host`
 */
export function rpcProvider(address: string): LightProvider {
  const url = new URL(serverUrl(address));
  const server = { url: url.href, name: url.host };
  return {
    name: url.host,
    async lightBlock(height, signal) {
      const [signed, validators] = await Promise.all([
        ask(server, { method: "commit", params: at(height) }, parseSignedHeader, signal),
        allValidators(server, height, signal),
      ]);
      if (signed.header.height !== height) throw invalidAnswer(server.name, "another height");
      return { ...signed, validators };
    },
    validators: (height, signal) => allValidators(server, height, signal),
    async blockExtras(height, signal) {
      const call = { method: "block", params: at(height), maxBytes: MAX_BLOCK_ANSWER_BYTES };
      return ask(server, call, parseBlockExtras, signal);
    },
    async headers({ from, to }, signal) {
      const params = { minHeight: to.toString(), maxHeight: from.toString() };
      const found = await ask(server, { method: "blockchain", params }, parseHeaders, signal);
      const count = Math.min(HEADERS_PER_PAGE, from - to + 1);
      const top = found[0]?.height;
      if (top === undefined) throw unavailable(server.name, `no headers from ${from} to ${to}`);
      const isGapless = found.every(({ height }, index) => height === top - index);
      if (!isGapless || top > from) throw invalidAnswer(server.name, "other headers than asked");
      const isWhole = top === from && found.length >= count;
      if (!isWhole) throw unavailable(server.name, `not all headers from ${from} to ${to}`);
      return found.slice(0, count);
    },
  };
}

function at(height: Height): Record<string, string> {
  return { height: height.toString() };
}

interface Server {
  readonly url: string;
  readonly name: string;
}

async function allValidators(
  server: Server,
  height: Height,
  signal: AbortSignal,
): Promise<ValidatorSet> {
  const validators: Validator[] = [];
  for (let page = 1; ; page++) {
    const params = {
      ...at(height),
      page: page.toString(),
      per_page: VALIDATORS_PER_PAGE.toString(),
    };
    const found = await ask(server, { method: "validators", params }, parseValidatorsPage, signal);
    if (found.height !== height) throw invalidAnswer(server.name, "another height");
    validators.push(...found.validators);
    if (validators.length >= found.total) break;
    if (found.validators.length === 0) throw invalidAnswer(server.name, "an empty page");
  }
  try {
    return validatorSetOf(validators);
  } catch (cause) {
    throw invalidAnswer(server.name, errorMessage(cause), cause);
  }
}

interface Call {
  readonly method: string;
  readonly params: Readonly<Record<string, string>>;
  readonly maxBytes?: number;
}

async function ask<T>(
  server: Server,
  call: Call,
  parse: (json: unknown) => T,
  signal: AbortSignal,
): Promise<T> {
  const { method, params, maxBytes = MAX_ANSWER_BYTES } = call;
  const limit = limitedSignal([signal], ANSWER_TIMEOUT_MS);
  const posting = post(server, { method, params, maxBytes }, limit);
  const { text, status, isOk } = await posting.catch((cause: unknown) => {
    signal.throwIfAborted();
    throw cause instanceof StateSyncError
      ? cause
      : unavailable(server.name, "it does not answer", cause);
  });
  try {
    const { result, error } = reply.parse(JSON.parse(text));
    if (error !== undefined) {
      throw unavailable(server.name, `${method}: ${error.message} ${showData(error.data)}`.trim());
    }
    return parse(result);
  } catch (cause) {
    if (cause instanceof StateSyncError) throw cause;
    // The page of a proxy whose server is busy or starts again: not what the server says.
    if (!isOk) throw unavailable(server.name, `${method}: status ${status}`, cause);
    throw invalidAnswer(server.name, `${method} is not what it should be`, cause);
  }
}

/** An answer as it came. */
interface Answer {
  readonly text: string;
  /** Of HTTP. CometBFT's own faults have one of failure too, and are JSON all the same. */
  readonly status: number;
  /** Whether the status is one of success. */
  readonly isOk: boolean;
}

async function post(
  { url, name }: Server,
  { method, params, maxBytes }: Required<Call>,
  signal: AbortSignal,
): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    redirect: "error",
    signal,
  });
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of response.body ?? []) {
    sizeBytes += chunk.length;
    // Leaving the loop ends the connection.
    if (sizeBytes > maxBytes) throw invalidAnswer(name, `${method} is too large`);
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  return { text, status: response.status, isOk: response.ok };
}

/** A server's own words are bounded before they go to a log. */
function showData(data: unknown): string {
  return typeof data === "string" ? data.slice(0, 200) : "";
}

function unavailable(server: string, reason: string, cause?: unknown): StateSyncError {
  return new StateSyncError("SERVER_UNAVAILABLE", `server ${server}: ${reason}`, {
    retriable: true,
    details: { server },
    cause,
  });
}

function invalidAnswer(server: string, reason: string, cause?: unknown): StateSyncError {
  return new StateSyncError("SERVER_ANSWER_INVALID", `server ${server}: ${reason}`, {
    details: { server },
    cause,
  });
}
