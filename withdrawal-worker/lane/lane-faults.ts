/** Faults of a lane's round: which of them pass, and which say that another worker may do better. */
import { LedgerError } from "../../ledger/errors.js";
import { LeaseLostError } from "../../ledger/wallets/wallet-lease.js";
import { NodeFault, RpcError } from "../../rpc-client/errors.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import { WorkerError } from "../errors.js";

/** What a round ends with whose lease went to another worker. */
export function leaseLost(): LeaseLostError {
  return new LeaseLostError("LEASE_LOST", "another worker has taken this wallet over");
}

/** Whether this worker's policy cannot be used. */
export function isPolicyFault(error: unknown): error is WorkerError {
  return error instanceof WorkerError && error.code === "POLICY_UNREADABLE";
}

/** Whether the node could not be asked, or refused to answer. */
function isNodeFault(error: unknown): error is NodeFault | RpcError {
  return error instanceof NodeFault || error instanceof RpcError;
}

/** Whether it shows too little of the chain. */
function isNodeBehind(error: unknown): error is WorkerError | LedgerError {
  const isOurs = error instanceof WorkerError || error instanceof LedgerError;
  return isOurs && error.code === "NODE_BEHIND";
}

/**
 * Whether the node could not be asked about requests and other wallets, or shows too little of the chain to
 * say: no nonce is given by that, and nothing ends. What has its nonce is signed and sent on.
 */
export function stopsNewAlone(
  error: unknown,
): error is NodeFault | RpcError | WorkerError | LedgerError {
  return isNodeFault(error) || isNodeBehind(error);
}

/** Faults that pass: the node or the database cannot be asked, or says what cannot be used. */
export function isPassing(error: unknown): boolean {
  if (isNodeFault(error) || isNodeBehind(error)) return true;
  if (error instanceof WorkerError) {
    return ["WRONG_NODE", "NODE_BROKEN", "POLICY_UNREADABLE"].includes(error.code);
  }
  // It was closed in the middle of a round: from the next one on the guard says so.
  if (error instanceof LedgerError && error.code === "RECOVERY") return true;
  return error instanceof SqlError && error.retriable;
}
