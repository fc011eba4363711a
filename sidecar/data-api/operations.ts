/** Pure: a journaled block to Rosetta's `Block`. Every unit that moved appears exactly once. */
import type { Address } from "../../chain/address.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import type { Hash32 } from "../../chain/hex.js";
import { type Operation, operationsOf } from "../../chain/operations.js";
import type { JournaledBlock, JournaledTransaction } from "../../rpc-client/journal-codec.js";
import { SidecarError } from "../errors.js";
import { accountIdentifier, type BlockIdentifier, tokenAmount } from "../identifiers.js";
import { memoOfData } from "../memo.js";

/** Rosetta's `Operation` of a mined transaction. */
export interface RosettaOperation {
  readonly operation_identifier: { readonly index: number };
  readonly related_operations: readonly { readonly index: number }[] | undefined;
  readonly type: string;
  readonly status: string;
  readonly account: { readonly address: string };
  readonly amount: ReturnType<typeof tokenAmount>;
  readonly metadata: Readonly<Record<string, string>> | undefined;
}

/** Rosetta's `Transaction`. */
export interface RosettaTransaction {
  readonly transaction_identifier: { readonly hash: Hash32 };
  readonly operations: readonly RosettaOperation[];
  readonly metadata?: Readonly<Record<string, string | number>>;
}

/** Rosetta's `Block`. */
export interface RosettaBlock {
  readonly block_identifier: BlockIdentifier;
  readonly parent_block_identifier: BlockIdentifier;
  readonly timestamp: number;
  readonly metadata: Readonly<Record<string, string>>;
  /** Last: the reply is written in this order, with the transactions at the end. */
  readonly transactions: readonly RosettaTransaction[];
}

/** Calldata shown per transaction; the node has the rest. Keeps big deployments out of blocks. */
const MAX_SHOWN_INPUT_BYTES = 1_024;

/**
 * The block with its transactions in order and, if anything happened outside of them, one
 * block-level transaction whose hash is the block's. Genesis is its own parent.
 * @throws JOURNAL_INCONSISTENT when the changes do not add up to minted - burned
 */
export function toRosettaBlock(block: JournaledBlock): RosettaBlock {
  assertConserved(block);
  const identifier = { index: block.height, hash: block.hash };
  const parent = { index: block.height - 1, hash: block.parentHash };
  const transactions = block.transactions.map(toTransaction);
  if (block.blockChanges.length > 0) {
    transactions.push({
      transaction_identifier: { hash: block.hash },
      operations: toOperations(block.blockChanges),
    });
  }
  return {
    block_identifier: identifier,
    parent_block_identifier: block.height === 0 ? identifier : parent,
    timestamp: block.timestampMs,
    metadata: {
      minted: block.mintedAtoken.toString(),
      burned: block.burnedAtoken.toString(),
    },
    transactions,
  };
}

/** Sum of all effective sides = change of the total supply; else an operation is missing. */
function assertConserved(block: JournaledBlock): void {
  let sumAtoken = sumOf(block.blockChanges);
  for (const { changes } of block.transactions) sumAtoken += sumOf(changes);
  if (sumAtoken !== block.mintedAtoken - block.burnedAtoken) {
    throw new SidecarError("JOURNAL_INCONSISTENT", { index: block.height, hash: block.hash });
  }
}

/** Pairs cancel, so only one-sided changes count. */
function sumOf(changes: readonly BalanceChange[]): bigint {
  let sumAtoken = 0n;
  for (const { effective, from, to, amountAtoken } of changes) {
    if (!effective || (from === undefined) === (to === undefined)) continue;
    sumAtoken += from === undefined ? amountAtoken : -amountAtoken;
  }
  return sumAtoken;
}

function toTransaction(transaction: JournaledTransaction): RosettaTransaction {
  return {
    transaction_identifier: { hash: transaction.hash },
    operations: toOperations(transaction.changes),
    metadata: transactionMetadata(transaction),
  };
}

function transactionMetadata(transaction: JournaledTransaction): Record<string, string | number> {
  const metadata: Record<string, string | number> = {
    status: transaction.status === 1 ? "SUCCESS" : "FAILURE",
    nonce: transaction.nonce.toString(),
    gas_used: transaction.gasUsed.toString(),
    gas_price: transaction.gasPriceAtoken.toString(),
  };
  if (transaction.contractAddress !== undefined) {
    metadata["contract_address"] = addressText(transaction.contractAddress);
  }
  const { input } = transaction;
  if (input === "0x") return metadata;
  const memo = transaction.to === undefined ? undefined : memoOfData(input);
  if (memo !== undefined) return { ...metadata, memo };
  const sizeBytes = (input.length - 2) / 2;
  return {
    ...metadata,
    input: input.slice(0, 2 + 2 * MAX_SHOWN_INPUT_BYTES),
    input_size_bytes: sizeBytes,
  };
}

function toOperations(changes: readonly BalanceChange[]): RosettaOperation[] {
  return operationsOf(changes).map(toOperation);
}

/** Fields that are undefined vanish when the block is serialised. */
function toOperation(operation: Operation): RosettaOperation {
  const { relatedIndex } = operation;
  return {
    operation_identifier: { index: operation.index },
    related_operations: relatedIndex === undefined ? undefined : [{ index: relatedIndex }],
    type: operation.type,
    status: operation.status,
    account: accountIdentifier(operation.address),
    amount: tokenAmount(operation.amountAtoken),
    metadata: operationMetadata(operation.change),
  };
}

/** Trace path of inner calls and the error of what was undone; nothing for plain transfers. */
function operationMetadata(change: BalanceChange): Record<string, string> | undefined {
  const isInner = change.tracePath !== undefined && change.tracePath !== "";
  if (!isInner && change.error === undefined) return undefined;
  return {
    ...(isInner && change.tracePath !== undefined ? { trace_path: change.tracePath } : {}),
    ...(change.error === undefined ? {} : { error: change.error }),
  };
}

function addressText(address: Address): string {
  return accountIdentifier(address).address;
}
