/** Faults of talking to a node: what the wire did, and what the node answered. */
import { AppError } from "../chain/errors.js";
import { cleanForeignText } from "../chain/evm/foreign-text.js";
import { RPC_CODES } from "../chain/evm/rpc-codes.js";
import type { Height } from "../chain/hex.js";

/**
 * Codes of transport faults. All but BAD_ANSWER and ANSWER_TOO_LARGE are retriable; none says
 * anything about what the node did with the request.
 */
export type NodeFaultCode =
  | "NODE_UNREACHABLE"
  | "NODE_TIMEOUT"
  | "NODE_HTTP_STATUS"
  | "BAD_ANSWER"
  | "ANSWER_TOO_LARGE";

/**
 * The node could not be asked, or its answer cannot be believed. `details.host` names it, never
 * with credentials. BAD_ANSWER means that a reply broke its own protocol.
 */
export class NodeFault extends AppError<NodeFaultCode> {}

/** What a JSON-RPC error object said. */
export interface RpcErrorDetails {
  /** JSON-RPC number, for example -32000, or 3 for a revert. */
  readonly rpcCode: number;
  readonly method: string;
  /** The error's `data`, for a revert the returned bytes as hex. */
  readonly data?: unknown;
}

/** Characters of a node's text that are kept: contracts choose what it quotes. */
export const MAX_NODE_TEXT_CHARACTERS = 1_024;

/** The node understood the request and refused it: an answer, not a fault of the wire. */
export class RpcError extends AppError<"RPC_ERROR"> {
  /** The node's own text, cleaned; clients of this chain match geth's wording. */
  readonly nodeMessage: string;

  constructor(
    text: string,
    readonly rpc: RpcErrorDetails,
  ) {
    const nodeMessage = cleanForeignText(text, MAX_NODE_TEXT_CHARACTERS);
    super("RPC_ERROR", `${rpc.method}: ${nodeMessage}`, { details: { ...rpc } });
    this.nodeMessage = nodeMessage;
  }
}

/** Whether a node did not take the arguments of a call: of another version, it may know fewer. */
export function areParamsInvalid(error: unknown): boolean {
  return error instanceof RpcError && error.rpc.rpcCode === RPC_CODES.invalidParams;
}

/** Whether a node refused because it does not have the method at all. */
export function isMethodMissing(error: unknown): error is RpcError {
  return error instanceof RpcError && error.rpc.rpcCode === RPC_CODES.methodNotFound;
}

/** Whether a node refused because its whole answer is larger than what it sends. */
export function isAnswerTooLarge(error: unknown): boolean {
  return error instanceof RpcError && error.rpc.rpcCode === RPC_CODES.answerTooLarge;
}

/** What to connect in the place of a node that has deleted what is needed; proofs are another matter. */
export const WHOLE_NODE =
  'a node that keeps all blocks and states (app.toml: pruning = "default" or "nothing", ' +
  "min-retain-blocks = 0)";

/** Whether a node refused because it has deleted what was asked for. */
export function isPruned(error: unknown): error is RpcError {
  return error instanceof RpcError && error.rpc.rpcCode === RPC_CODES.pruned;
}

/**
 * Whether a node refused because it does not have the block whose state was asked for. The number is
 * looked at, too: a revert has another one, and its text is the contract's to choose.
 */
export function isHeaderMissing(error: unknown): error is RpcError {
  if (!(error instanceof RpcError) || error.rpc.rpcCode !== RPC_CODES.serverError) return false;
  return /header (for hash )?not found/i.test(error.nodeMessage);
}

/**
 * Whether a node did not tell because it does not have a block that others have: it is behind, by some blocks
 * in most cases, and will have it.
 */
export function isBehind(error: unknown): boolean {
  return (
    isHeaderMissing(error) || (error instanceof NodeFault && error.details["isBehind"] === true)
  );
}

/** What a node answered that does not have a block yet which it has to have. */
export function lacksBlock(height: Height): NodeFault {
  const message = `unexpected answer: no block ${height} yet`;
  return new NodeFault("BAD_ANSWER", message, { details: { height, isBehind: true } });
}

/** Whether a message was not executed at all because its sender has too few coins that are free. */
export function lacksFunds({ rpc, nodeMessage }: RpcError): boolean {
  return rpc.rpcCode === RPC_CODES.serverError && /insufficient funds/i.test(nodeMessage);
}

/** Numbers that say so whatever the text: this node's, and that of providers who call a range invalid. */
const TOO_MUCH: ReadonlySet<number> = new Set([RPC_CODES.invalidParams, RPC_CODES.answerTooLarge]);

/** Numbers that say it with some texts only: of a busy node, and of any fault. */
const MAYBE_TOO_MUCH: ReadonlySet<number> = new Set([
  RPC_CODES.limitExceeded,
  RPC_CODES.serverError,
]);

/**
 * Texts that say it: "query returned more than 10000 results", "block range greater than 2000 max". A busy
 * node ("too many large answers are asked for at once", "request rate exceeded") says nothing of sizes.
 */
const TELLS_TOO_MUCH = /\b(results|range|size|response too large|too many logs)\b/i;

/**
 * Whether a node may answer all other questions: it could be asked, and did not tell of this one. One that
 * cannot be asked, or has no room for now, is better left alone.
 */
export function isOfOneQuestion(error: unknown): boolean {
  if (error instanceof RpcError) return error.rpc.rpcCode !== RPC_CODES.limitExceeded;
  return error instanceof NodeFault && !error.retriable;
}

/** Whether it may be answered where less is asked for. */
export function isTooMuch(error: unknown): boolean {
  if (error instanceof NodeFault) return error.code === "ANSWER_TOO_LARGE";
  if (!(error instanceof RpcError)) return false;
  const { rpcCode } = error.rpc;
  if (TOO_MUCH.has(rpcCode)) return true;
  return MAYBE_TOO_MUCH.has(rpcCode) && TELLS_TOO_MUCH.test(error.nodeMessage);
}

/** Whether a smaller question may be answered: a busy node still has room for small answers. */
export function isTooMuchAtOnce(error: unknown): boolean {
  if (isTooMuch(error)) return true;
  return error instanceof RpcError && error.rpc.rpcCode === RPC_CODES.limitExceeded;
}

/** The Data API refused a request; `details.rosettaCode` is its listed number. */
export class DataApiError extends AppError<"DATA_API_ERROR"> {}

/** Shorthand for the fault that makes every parser of answers fail. */
export function badAnswer(what: string, cause?: unknown): NodeFault {
  return new NodeFault("BAD_ANSWER", `unexpected answer: ${what}`, { cause });
}
