/** Transactions between consensus (SDK Tx bytes, D20) and execution. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Block } from "../../chain/block.js";
import { ChainError } from "../../chain/errors.js";
import {
  type CosmosTransaction,
  decodeCosmosTransaction,
} from "../../chain/cosmos/cosmos-transaction.js";
import { inDataOrder } from "../../chain/cosmos/cosmos-result.js";
import { encodeSdkTransaction } from "../../chain/consensus/sdk-transaction.js";
import {
  decodeSdkTransaction,
  type SdkTransaction,
  wrapsEthereum,
} from "../../chain/consensus/sdk-transaction-decode.js";
import { allAtOnce, mapInSteps, type Steps } from "../../chain/steps/steps.js";
import { blockInvalid } from "./block-error.js";

/** Bytes of a block's transactions in `data.txs`. */
export function encodeBlockTransactions(block: Block): Uint8Array[] {
  return allAtOnce(encodeTransactionSteps(block));
}

/** The same in steps. */
export function* encodeTransactionSteps(block: Block): Steps<Uint8Array[]> {
  const evm = yield* mapInSteps(block.transactions, ({ tx, from }) =>
    encodeSdkTransaction(tx, from),
  );
  const cosmos = (block.cosmos ?? []).map(({ tx, index }) => ({ index, raw: tx.raw }));
  return inDataOrder(evm, cosmos).map((one) => ("raw" in one ? one.raw : one));
}

/** Transactions that are decoded before other work gets its turn: a few milliseconds. */
const DECODED_PER_TURN = 256;

/** All transactions of a proposal, in order. Throws BLOCK_INVALID. */
export async function decodeAll(
  transactions: readonly Uint8Array[],
): Promise<(SdkTransaction | CosmosTransaction)[]> {
  const decoded: (SdkTransaction | CosmosTransaction)[] = [];
  for (const bytes of transactions) {
    decoded.push(decodeBlockTransaction(bytes));
    if (decoded.length % DECODED_PER_TURN === 0) await nextTurn();
  }
  return decoded;
}

/** The SDK Tx around an EVM transaction names its message; every other one is a Cosmos one. */
function decodeBlockTransaction(bytes: Uint8Array): SdkTransaction | CosmosTransaction {
  try {
    return wrapsEthereum(bytes) ? decodeSdkTransaction(bytes) : decodeCosmosTransaction(bytes);
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    throw blockInvalid(`a transaction cannot be read: ${error.code}`);
  }
}
