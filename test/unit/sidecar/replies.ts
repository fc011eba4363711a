/** Shapes that tests expect of Rosetta replies; a field that is missing fails its expectation. */

export interface ReplyCurrency {
  readonly symbol: string;
  readonly decimals: number;
  readonly metadata?: {
    readonly contractAddress?: string;
    readonly validator?: string;
    readonly claim?: string;
  };
}

export interface ReplyOperation {
  readonly operation_identifier: { readonly index: number };
  readonly related_operations?: readonly { readonly index: number }[];
  readonly type: string;
  readonly status?: string;
  readonly account: { readonly address: string };
  readonly amount?: {
    readonly value: string;
    readonly currency: ReplyCurrency;
  };
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface ReplyIdentifier {
  readonly index: number;
  readonly hash: string;
}

export interface ReplyTransaction {
  readonly transaction_identifier: { readonly hash: string };
  readonly operations: readonly ReplyOperation[];
  readonly metadata: Readonly<Record<string, string>>;
}

export interface ReplyBlock {
  readonly block_identifier: ReplyIdentifier;
  readonly parent_block_identifier: ReplyIdentifier;
  readonly timestamp: number;
  readonly metadata: { readonly quarantined?: readonly string[] };
  readonly transactions: readonly ReplyTransaction[];
}

export interface ReplyError {
  readonly code: number;
  readonly message: string;
  readonly retriable: boolean;
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface ReplyAllow {
  readonly operation_statuses: readonly { readonly status: string; readonly successful: boolean }[];
  readonly operation_types: readonly string[];
  readonly errors: readonly ReplyError[];
  readonly call_methods: readonly string[];
  readonly balance_exemptions: readonly unknown[];
  readonly timestamp_start_index?: number;
}

export interface ReplyPayload {
  readonly account_identifier: { readonly address: string };
  readonly hex_bytes: string;
  readonly signature_type: string;
}

/** Every field that some reply has; which ones are there is for the test to expect. */
export interface Reply extends ReplyError {
  readonly allow: ReplyAllow;
  readonly version: {
    readonly rosetta_version: string;
    readonly node_version: string;
    readonly metadata: Readonly<Record<string, unknown>>;
  };
  readonly block: ReplyBlock;
  readonly transaction: ReplyTransaction;
  readonly block_identifier: ReplyIdentifier;
  readonly balances: readonly { readonly value: string; readonly currency: ReplyCurrency }[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, unknown>>;
  readonly suggested_fee: readonly { readonly value: string }[];
  readonly operations: readonly ReplyOperation[];
  readonly account_identifier: { readonly address: string };
  readonly account_identifier_signers: readonly unknown[];
  readonly unsigned_transaction: string;
  readonly signed_transaction: string;
  readonly payloads: readonly [ReplyPayload];
  readonly transaction_identifier: { readonly hash: string };
}
