/** Pure: a journaled block to Rosetta's `Block`. Every unit that moved appears exactly once. */
import type { Address } from "../../chain/address.js";
import { type BalanceChange, forEachDelta } from "../../chain/balance-change.js";
import type { PlacedClaimMove } from "../../chain/staking/claims.js";
import type { Hash32 } from "../../chain/hex.js";
import { type Operation, operationsOf } from "../../chain/operations.js";
import type { Atoken } from "../../chain/units.js";
import type {
  JournaledBlock,
  JournaledCosmos,
  JournaledTransaction,
} from "../../rpc-client/journal-codec.js";
import { SidecarError } from "./errors.js";
import {
  accountIdentifier,
  type Amount,
  type BlockIdentifier,
  currencyAmount,
  tokenAmount,
} from "./identifiers.js";
import { type AccountIdentifier, claimAccount, claimAmount } from "./sub-accounts.js";
import { forEachSide, type TokenMove } from "./token-operations.js";
import { memoOfData } from "./memo.js";
import type { Token } from "./token-registry.js";

/** Rosetta's `Operation` of a mined transaction. */
export interface RosettaOperation {
  readonly operation_identifier: { readonly index: number };
  readonly related_operations: readonly { readonly index: number }[] | undefined;
  readonly type: string;
  readonly status: string;
  readonly account: AccountIdentifier;
  readonly amount: Amount;
  readonly metadata: Readonly<Record<string, string>> | undefined;
}

/** Rosetta's `Transaction`. */
export interface RosettaTransaction {
  readonly transaction_identifier: { readonly hash: Hash32 };
  readonly operations: readonly RosettaOperation[];
  readonly metadata?: Readonly<Record<string, string | number>>;
}

/** What a block's metadata shows: its other hash, and the checks that it passed. */
export interface BlockMetadata {
  /** Of the header that validators signed; absent for genesis and in what was indexed without it. */
  readonly consensus_block_hash: Hash32 | undefined;
  readonly minted: string;
  readonly burned: string;
  /** Sum of all native operations: minted - burned. */
  readonly operations_sum: string;
  /** Addresses that hold another balance of coins or tokens after the block than before. */
  readonly accounts_changed: number;
  /** Contracts of registered tokens whose operations this block leaves out; absent if none. */
  readonly quarantined: readonly string[] | undefined;
}

/** Rosetta's `Block`. */
export interface RosettaBlock {
  readonly block_identifier: BlockIdentifier;
  readonly parent_block_identifier: BlockIdentifier;
  readonly timestamp: number;
  readonly metadata: BlockMetadata;
  /** Last: the reply is written in this order, with the transactions at the end. */
  readonly transactions: readonly RosettaTransaction[];
}

/** Calldata shown per transaction; the node has the rest. Keeps big deployments out of blocks. */
const MAX_SHOWN_INPUT_BYTES = 1_024;

/** The movements of tokens that a block tells. */
export interface BlockTokens {
  /** Movements of each transaction; told after its native operations. */
  readonly moves: readonly (readonly TokenMove[])[];
  /** Contracts whose operations are left out of this block. */
  readonly leftOut: readonly Address[];
}

/**
 * The block with its transactions in order and, if anything happened outside of them, one
 * block-level transaction whose hash is the block's. Genesis is its own parent. What happened to
 * claims comes last in each, so that no other operation's index depends on it.
 * @throws JOURNAL_INCONSISTENT when the changes do not add up to minted - burned; BLOCK_PRUNED where
 *   the node cannot tell any more what happened to claims
 */
export function toRosettaBlock(block: JournaledBlock, tokens: BlockTokens): RosettaBlock {
  const sumAtoken = conservedSum(block);
  const identifier = { index: block.height, hash: block.hash };
  const parent = { index: block.height - 1, hash: block.parentHash };
  const claims = claimsByPlace(block);
  const transactions = block.transactions.map((transaction, position) =>
    toTransaction(transaction, tokens.moves[position] ?? [], claims.get(position) ?? []),
  );
  const blockClaims = claims.get(undefined) ?? [];
  if (block.blockChanges.length > 0 || blockClaims.length > 0) {
    const operations = toOperations(block.blockChanges);
    appendClaims(operations, blockClaims);
    transactions.push({ transaction_identifier: { hash: block.hash }, operations });
  }
  const quarantined = tokens.leftOut.map(addressText);
  return {
    block_identifier: identifier,
    parent_block_identifier: block.height === 0 ? identifier : parent,
    timestamp: block.timestampMs,
    metadata: {
      consensus_block_hash: block.consensusBlockHash,
      minted: block.mintedAtoken.toString(),
      burned: block.burnedAtoken.toString(),
      operations_sum: sumAtoken.toString(),
      accounts_changed: countChangedAccounts(block, tokens.moves),
      quarantined: quarantined.length === 0 ? undefined : quarantined,
    },
    transactions,
  };
}

/** Sum of all effective sides = change of the total supply; else an operation is missing. */
function conservedSum(block: JournaledBlock): bigint {
  let sumAtoken = sumOf(block.blockChanges);
  for (const { changes } of block.transactions) sumAtoken += sumOf(changes);
  if (sumAtoken !== block.mintedAtoken - block.burnedAtoken) {
    throw new SidecarError("JOURNAL_INCONSISTENT", { index: block.height, hash: block.hash });
  }
  return sumAtoken;
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

/** Distinct accounts whose sum of at least one currency is not zero. */
function countChangedAccounts(block: JournaledBlock, moves: BlockTokens["moves"]): number {
  const native = new Map<Address, bigint>();
  const add = (address: Address, deltaAtoken: Atoken) =>
    void native.set(address, (native.get(address) ?? 0n) + deltaAtoken);
  for (const { changes } of block.transactions) {
    for (const change of changes) forEachDelta(change, add);
  }
  for (const change of block.blockChanges) forEachDelta(change, add);
  const sums = new Map<Token, Map<Address, bigint>>();
  for (const move of moves.flat()) {
    const ofToken = sums.get(move.token) ?? new Map<Address, bigint>();
    sums.set(move.token, ofToken);
    forEachSide(move, (account, delta) => {
      ofToken.set(account, (ofToken.get(account) ?? 0n) + delta);
    });
  }
  const changed = new Set<Address>();
  for (const ofCurrency of [native, ...sums.values()]) {
    for (const [address, delta] of ofCurrency) if (delta !== 0n) changed.add(address);
  }
  return changed.size;
}

/** Changes of claims by the place of their transaction; undefined for the block's own. */
function claimsByPlace({
  claims,
  height,
  hash,
}: JournaledBlock): ReadonlyMap<number | undefined, readonly PlacedClaimMove[]> {
  if (claims === "pruned") {
    const reason = "the state before the block, which tells its changes of claims";
    throw new SidecarError("BLOCK_PRUNED", { index: height, hash, reason });
  }
  const byPlace = new Map<number | undefined, PlacedClaimMove[]>();
  for (const move of claims) {
    const known = byPlace.get(move.transactionIndex);
    if (known === undefined) byPlace.set(move.transactionIndex, [move]);
    else known.push(move);
  }
  return byPlace;
}

function toTransaction(
  transaction: JournaledTransaction,
  moves: readonly TokenMove[],
  claims: readonly PlacedClaimMove[],
): RosettaTransaction {
  const operations = toOperations(transaction.changes);
  for (const move of moves) appendMove(operations, move);
  appendClaims(operations, claims);
  return {
    transaction_identifier: { hash: transaction.hash },
    operations,
    metadata: transactionMetadata(transaction),
  };
}

/** Adds the sides of a token's movement; its transaction succeeded, or there were no logs. */
function appendMove(operations: RosettaOperation[], move: TokenMove): void {
  const payerIndex = move.from === undefined ? undefined : operations.length;
  forEachSide(move, (account, units) => {
    const index = operations.length;
    const isRelated = payerIndex !== undefined && payerIndex !== index;
    operations.push({
      operation_identifier: { index },
      related_operations: isRelated ? [{ index: payerIndex }] : undefined,
      type: move.type,
      status: "SUCCESS",
      account: accountIdentifier(account),
      amount: currencyAmount(units, move.token.currency),
      metadata: undefined,
    });
  });
}

/** Adds what happened to claims; events of what was undone do not exist, so all of it succeeded. */
function appendClaims(operations: RosettaOperation[], moves: readonly PlacedClaimMove[]): void {
  const first = operations.length;
  for (const { reason, claim, delta, relatedIndex, details } of moves) {
    operations.push({
      operation_identifier: { index: operations.length },
      related_operations:
        relatedIndex === undefined ? undefined : [{ index: first + relatedIndex }],
      type: reason,
      status: "SUCCESS",
      account: claimAccount(claim),
      amount: claimAmount(claim, delta),
      metadata: details,
    });
  }
}

function transactionMetadata(transaction: JournaledTransaction): Record<string, string | number> {
  if (transaction.cosmos !== undefined) return cosmosMetadata(transaction, transaction.cosmos);
  const metadata: Record<string, string | number> = {
    status: transaction.status === 1 ? "SUCCESS" : "FAILURE",
    nonce: transaction.nonce.toString(),
    gas_used: transaction.gasUsed.toString(),
    gas_price: transaction.gasPriceAtoken.toString(),
  };
  // Receipts name the address that it would have had, too.
  if (transaction.contractAddress !== undefined && transaction.status === 1) {
    metadata["contract_address"] = addressText(transaction.contractAddress);
  }
  const { input, inputSizeBytes } = transaction;
  if (input === "0x") return metadata;
  const isWhole = input.length === 2 + 2 * inputSizeBytes;
  const memo = transaction.to === undefined || !isWhole ? undefined : memoOfData(input);
  if (memo !== undefined) return { ...metadata, memo };
  return {
    ...metadata,
    input: input.slice(0, 2 + 2 * MAX_SHOWN_INPUT_BYTES),
    input_size_bytes: inputSizeBytes,
  };
}

function cosmosMetadata(
  { status, nonce, gasUsed }: JournaledTransaction,
  { feeAtoken, memo, messages }: JournaledCosmos,
): Record<string, string | number> {
  return {
    status: status === 1 ? "SUCCESS" : "FAILURE",
    nonce: nonce.toString(),
    gas_used: gasUsed.toString(),
    fee: feeAtoken.toString(),
    messages: messages.join(","),
    ...(memo === "" ? {} : { memo }),
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
