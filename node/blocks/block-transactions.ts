/** Transactions between consensus (SDK Tx bytes, D20) and execution (raw EVM transactions). */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Block, BlockTransaction } from "../../chain/block.js";
import { ChainError } from "../../chain/errors.js";
import { encodeSdkTransaction } from "../../chain/consensus/sdk-transaction.js";
import {
  decodeSdkTransaction,
  type SdkTransaction,
} from "../../chain/consensus/sdk-transaction-decode.js";
import { blockInvalid } from "./block-error.js";

/** Bytes of a block's transactions in `data.txs`. */
export function encodeBlockTransactions(block: Block): Uint8Array[] {
  return block.transactions.map(({ tx, from }: BlockTransaction) => encodeSdkTransaction(tx, from));
}

/** Transactions that are decoded before other work gets its turn: a few milliseconds. */
const DECODED_PER_TURN = 256;

/** All transactions of a proposal, in order. Throws BLOCK_INVALID. */
export async function decodeAll(transactions: readonly Uint8Array[]): Promise<SdkTransaction[]> {
  const decoded: SdkTransaction[] = [];
  for (const bytes of transactions) {
    decoded.push(decodeBlockTransaction(bytes));
    if (decoded.length % DECODED_PER_TURN === 0) await nextTurn();
  }
  return decoded;
}

function decodeBlockTransaction(bytes: Uint8Array): SdkTransaction {
  try {
    return decodeSdkTransaction(bytes);
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    throw blockInvalid(`a transaction cannot be read: ${error.code}`);
  }
}
