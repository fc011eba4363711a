/**
 * Why a deposit is what it is: the operation on the chain, the block it stands in, the balance that
 * it changed, and the entries in the books. What the chain says is asked anew, not remembered.
 */
import { AppError, present } from "../chain/errors.js";
import { entriesOfDeposit, type PostedEntry } from "../ledger/deposits/deposit-evidence.js";
import type { StoredDeposit } from "../ledger/deposits/deposit-queries.js";
import type { DataOperation } from "../rpc-client/data-api-client.js";
import type { EvmClient } from "../rpc-client/evm-client.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";
import type { BlockSource } from "./block-reader.js";

/** Where evidence comes from. */
export interface EvidenceParts {
  readonly database: SqlDatabase;
  readonly node: Pick<EvmClient, "getBlockHeader" | "getBalances">;
  readonly source: BlockSource;
}

/** What the chain says now about a deposit. */
export interface ChainEvidence {
  /** The block of that height as the node has it; its hash must be the booked one. */
  readonly blockHash: string;
  readonly parentHash: string;
  readonly timestampSeconds: number;
  /** Undefined where the Data API has no such operation (any more). */
  readonly operation: DataOperation | undefined;
  /** Of the address, before and after the block, and what its operations there come to. */
  readonly balanceBeforeAtoken: bigint;
  readonly balanceAfterAtoken: bigint;
  readonly operationsAtoken: bigint;
  /** True when hash, operation and balances all say what the books say. */
  readonly agrees: boolean;
}

/** Books and chain side by side; the chain's part may be missing, and says why. */
export interface DepositEvidence {
  readonly entries: readonly PostedEntry[];
  readonly chain: ChainEvidence | undefined;
  readonly chainFault: { readonly code: string; readonly message: string } | undefined;
}

/** Collects both sides. Throws SqlError; a node that does not answer is part of the evidence. */
export async function collectEvidence(
  parts: EvidenceParts,
  deposit: StoredDeposit,
  options: { readonly signal: AbortSignal },
): Promise<DepositEvidence> {
  const entries = await entriesOfDeposit(parts.database, deposit.id);
  try {
    const chain = await askChain(parts, deposit, options);
    return { entries, chain, chainFault: undefined };
  } catch (error) {
    options.signal.throwIfAborted();
    if (!(error instanceof AppError)) throw error;
    const { code, message } = error;
    return { entries, chain: undefined, chainFault: { code, message } };
  }
}

async function askChain(
  { node, source }: EvidenceParts,
  deposit: StoredDeposit,
  options: { readonly signal: AbortSignal },
): Promise<ChainEvidence> {
  const { address, height, txIndex, opIndex } = deposit;
  const before = { address, at: Math.max(0, height - 1) };
  const [header, block, balances] = await Promise.all([
    node.getBlockHeader(height, options),
    source.block(height, options),
    node.getBalances([before, { address, at: height }], options),
  ]);
  const transactions = block?.transactions((one) => one === address) ?? [];
  const transaction = transactions.find(({ hash, index }) => {
    return index === txIndex && hash === deposit.txHash;
  });
  const operation = transaction?.operations.find(({ index }) => index === opIndex);
  const operationsAtoken = transactions
    .flatMap(({ operations }) => operations)
    .filter((one) => one.address === address && one.isNative && one.status === "SUCCESS")
    .reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
  const { hash, parentHash, timestampSeconds } = present(header, "the deposit's block");
  const balanceBeforeAtoken = height === 0 ? 0n : present(balances[0], "balance before");
  const balanceAfterAtoken = present(balances[1], "balance after");
  return {
    blockHash: hash,
    parentHash,
    timestampSeconds,
    operation,
    balanceBeforeAtoken,
    balanceAfterAtoken,
    operationsAtoken,
    agrees:
      hash === deposit.blockHash &&
      block?.hash === hash &&
      operation?.address === address &&
      operation.amountAtoken === deposit.amountUnits &&
      balanceAfterAtoken - balanceBeforeAtoken === operationsAtoken,
  };
}
