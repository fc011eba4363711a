/** Numbers with which nodes refuse requests of JSON-RPC, as their clients read them. */

/** By what they mean. Sources: JSON-RPC 2.0, EIP-1474, go-ethereum. */
export const RPC_CODES = {
  /** A call that reverted, as geth has it. */
  reverted: 3,
  /** What the node has deleted: the method is there. */
  pruned: 4444,
  /** Of most refusals; what they mean is in their text. */
  serverError: -32000,
  /** It took longer than the node allows, as geth has it. */
  timedOut: -32002,
  /** An answer that is larger than what it may be; this node's own. */
  answerTooLarge: -32003,
  /** What the node has no room for now. */
  limitExceeded: -32005,
  /** A method that the node does not have. */
  methodNotFound: -32601,
  /** Arguments that it does not take. */
  invalidParams: -32602,
} as const;

/** Whether a number of a refusal says that a limit of the node was hit, and nothing about what was asked. */
export function isBusyCode(rpcCode: unknown): boolean {
  return rpcCode === RPC_CODES.limitExceeded || rpcCode === RPC_CODES.timedOut;
}
