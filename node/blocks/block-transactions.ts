/** Transactions between consensus (SDK Tx bytes, D20) and execution. */
import type { BlockTransaction } from "../../chain/block.js";
import { ChainError } from "../../chain/errors.js";
import {
  type CosmosTransaction,
  decodeCosmosTransaction,
} from "../../chain/cosmos/cosmos-transaction.js";
import { inDataOrder, type MinedCosmosTransaction } from "../../chain/cosmos/cosmos-result.js";
import { encodeSdkTransaction } from "../../chain/consensus/sdk-transaction.js";
import {
  decodeSdkTransaction,
  type SdkTransaction,
  wrapsEthereum,
} from "../../chain/consensus/sdk-transaction-decode.js";
import { allAtOnce, mapInSteps, type Steps } from "../../chain/steps/steps.js";
import { Slices } from "../../runtime/process/slices.js";
import { blockInvalid } from "./block-error.js";

/** What is encoded of a block: of Cosmos transactions nothing has to be decoded. */
interface SentTransactions {
  readonly transactions: readonly BlockTransaction[];
  readonly cosmos?: readonly (Pick<MinedCosmosTransaction, "index"> & {
    readonly tx: Pick<CosmosTransaction, "raw">;
  })[];
}

/** Bytes of a block's transactions in `data.txs`. */
export function encodeBlockTransactions(block: SentTransactions): Uint8Array[] {
  return allAtOnce(encodeTransactionSteps(block));
}

/** The same in steps. */
export function* encodeTransactionSteps(block: SentTransactions): Steps<Uint8Array[]> {
  const evm = yield* mapInSteps(block.transactions, ({ tx, from }) =>
    encodeSdkTransaction(tx, from),
  );
  const cosmos = (block.cosmos ?? []).map(({ tx, index }) => ({ index, raw: tx.raw }));
  return inDataOrder(evm, cosmos).map((one) => ("raw" in one ? one.raw : one));
}

/** All transactions of a proposal, in order. Throws BLOCK_INVALID. */
export async function decodeAll(
  transactions: readonly Uint8Array[],
): Promise<(SdkTransaction | CosmosTransaction)[]> {
  const slices = new Slices();
  const decoded: (SdkTransaction | CosmosTransaction)[] = [];
  for (const bytes of transactions) {
    decoded.push(decodeBlockTransaction(bytes));
    const turn = slices.pause();
    if (turn !== undefined) await turn;
  }
  return decoded;
}

/** The SDK Tx around an EVM transaction names its message; every other one is a Cosmos one. */
function decodeBlockTransaction(bytes: Uint8Array): SdkTransaction | CosmosTransaction {
  try {
    if (wrapsEthereum(bytes)) return decodeSdkTransaction(bytes);
    return decodeCosmosTransaction(bytes, { isTaken: true });
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    throw blockInvalid(`a transaction cannot be read: ${error.code}`);
  }
}
