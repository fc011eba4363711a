/** Names of the methods of /call; apart from them, because the offline server lists them too. */

/** Methods of /call as /network/options lists them. */
export const CALL_METHODS = [
  "eth_call",
  "eth_getTransactionReceipt",
  "eth_getProof",
  "debug_traceTransaction",
  "address_convert",
  "token_status",
  "block_accounts",
  "block_transactions",
] as const;

/** A method of /call. */
export type CallMethod = (typeof CALL_METHODS)[number];
