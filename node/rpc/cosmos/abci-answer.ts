/**
 * Queries as SDK nodes serve them over `abci_query`: protobuf in, protobuf out, by the path of the
 * gRPC method. CosmJS reads balances, supply and accounts this way and no other.
 */
import { absentModuleText } from "../../../chain/cosmos/absent-modules.js";
import { errorMessage } from "../../../chain/errors.js";
import type { Height } from "../../../chain/hex.js";
import { type Asker, readInTurn } from "../../../runtime/turns/resting-lane.js";
import { answerBytes } from "./answers.js";
import { faultOf, type QueryFault } from "./errors.js";
import { type QueryRegistry, readRequest } from "./registry.js";

/** What a query is answered with. */
export interface AbciAnswer {
  /** 0, or one of the SDK's root codes. */
  readonly code: number;
  readonly log: string;
  readonly codespace: string;
  readonly value: Uint8Array;
  /** The height that the answer is true for; 0 of a refusal. */
  readonly height: Height;
}

/** Codes of the SDK's root codespace (types/errors). */
const UNKNOWN_REQUEST = 6;
/** A query that cannot be answered as it was asked. */
export const INVALID_REQUEST = 18;
const KEY_NOT_FOUND = 22;
const NOT_FOUND = 38;

/** What is submitted is no query: consensus asks an application nothing that changes it. */
const BROADCAST_PATH = "/cosmos.tx.v1beta1.Service/BroadcastTx";

/** gRPC's names of codes, as its library prints them. */
const NAMES: Readonly<Record<QueryFault["code"], string>> = {
  CANCELLED: "Canceled",
  UNKNOWN: "Unknown",
  INVALID_ARGUMENT: "InvalidArgument",
  DEADLINE_EXCEEDED: "DeadlineExceeded",
  NOT_FOUND: "NotFound",
  RESOURCE_EXHAUSTED: "ResourceExhausted",
  FAILED_PRECONDITION: "FailedPrecondition",
  UNIMPLEMENTED: "Unimplemented",
  INTERNAL: "Internal",
  UNAVAILABLE: "Unavailable",
};

/** A query as it comes. */
interface AbciQuery {
  readonly path: string;
  readonly data: Uint8Array;
  readonly height: Height;
}

/**
 * Answers a query as of a height. What is wrong with it is an answer with a code, and so are a query that
 * takes too long and one too many at once.
 * @throws faults of ours
 */
export async function abciAnswer(
  queries: QueryRegistry,
  query: AbciQuery,
  asker: Asker,
): Promise<AbciAnswer> {
  try {
    return await queries.bounded("abci_query", asker, (limited) =>
      nestedAnswer(queries, query, limited),
    );
  } catch (error) {
    return refusedAnswer(queries, query, error);
  }
}

/** The same for a query inside of another one, which is bounded as a whole. */
export async function nestedAnswer(
  queries: QueryRegistry,
  query: AbciQuery,
  asker: Asker,
): Promise<AbciAnswer> {
  const { path, data, height } = query;
  if (path === BROADCAST_PATH) {
    return queryFailure(INVALID_REQUEST, "can't route a broadcast tx message: invalid request");
  }
  const served = queries.find(path);
  if (served === undefined) {
    const text = path === "" ? "no query path provided" : `unknown query path: ${path}`;
    const absent = absentModuleText(path);
    const reason = absent === undefined ? text : `${text}: ${absent}`;
    return queryFailure(UNKNOWN_REQUEST, `${reason}: unknown request`);
  }
  try {
    const message = await readInTurn(data.length, asker, () => readRequest(served, data));
    const { answer, height: told } = await served.run(message, { height, ...asker });
    const value = await answerBytes(served.output, answer, asker.signal);
    return { code: 0, log: "", codespace: "", value, height: told };
  } catch (error) {
    return refusedAnswer(queries, query, error);
  }
}

/** What was thrown as an answer; throws a fault of ours again. */
function refusedAnswer(queries: QueryRegistry, { height }: AbciQuery, error: unknown): AbciAnswer {
  const fault = faultOf(error);
  if (fault === undefined) throw error;
  return failureOf(fault, height, queries.latestHeight());
}

function failureOf(fault: QueryFault, height: Height, latest: Height): AbciAnswer {
  if (isPruned(fault)) {
    const text = `failed to load state at height ${height}; version does not exist`;
    return queryFailure(NOT_FOUND, `${text} (latest height: ${latest}): not found`);
  }
  const text = statusText(fault);
  switch (fault.code) {
    case "NOT_FOUND":
      return queryFailure(KEY_NOT_FOUND, `${text}: key not found`);
    case "INVALID_ARGUMENT":
    case "FAILED_PRECONDITION":
      return queryFailure(INVALID_REQUEST, `${text}: invalid request`);
    default:
      return queryFailure(UNKNOWN_REQUEST, `${text}: unknown request`);
  }
}

/** A refusal as Go's gRPC prints it. */
export function statusText(fault: QueryFault): string {
  return `rpc error: code = ${NAMES[fault.code]} desc = ${errorMessage(fault)}`;
}

function isPruned({ cause }: QueryFault): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "HISTORY_PRUNED";
}

/** An answer that refuses, with a code of the SDK's root codespace. */
export function queryFailure(code: number, log: string): AbciAnswer {
  return { code, log, codespace: "sdk", value: new Uint8Array(0), height: 0 };
}
