/**
 * A proposal's transactions with their senders. What the pool holds under the hash of the very
 * same bytes was decoded, checked and recovered when it came in, by rules no milder than these.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AnyBlockTransaction } from "../../../chain/block.js";
import {
  type SdkTransaction,
  wrapsEthereum,
} from "../../../chain/consensus/sdk-transaction-decode.js";
import { anteGas, type CosmosLimits, senderOf } from "../../../chain/cosmos/ante.js";
import type { CosmosTransaction } from "../../../chain/cosmos/cosmos-transaction.js";
import { sha256Hex } from "../../../chain/hashes.js";
import type { Hash32 } from "../../../chain/hex.js";
import { mapInSteps } from "../../../chain/steps/steps.js";
import {
  staticFault,
  type TransactionLimits,
  ZERO_BYTE_GAS,
} from "../../../chain/transaction-rules.js";
import { Slices } from "../../../runtime/process/slices.js";
import { cosmosFault } from "./cosmos-admission.js";
import { blockInvalid } from "../../blocks/block-error.js";
import type { ProposedTransactions } from "../../blocks/block-pool.js";
import { decodeAll } from "../../blocks/block-transactions.js";
import { type ChainParams, transactionLimitsOf } from "../../settings/genesis.js";
import type { SenderRecovery } from "../recovery/sender-recovery.js";

/** What the senders are found with. */
export interface ProposedTransactionsParts {
  readonly chainId: bigint;
  readonly cosmosChainId: string;
  readonly params: ChainParams;
  readonly pool: { getBySdkHash(hash: Hash32): AnyBlockTransaction | undefined };
  /** Recovers the senders that the pool does not know. */
  readonly recovery: SenderRecovery;
}

/** Reads proposals with the pool's help. */
export function createProposedTransactions(parts: ProposedTransactionsParts): ProposedTransactions {
  return { read: (transactions) => readAll(parts, transactions) };
}

async function readAll(
  parts: ProposedTransactionsParts,
  transactions: readonly Uint8Array[],
): Promise<AnyBlockTransaction[]> {
  // Taken once: the pool may forget one while others are recovered.
  const known = await new Slices().run(
    mapInSteps(transactions, (bytes) => {
      return parts.pool.getBySdkHash(sha256Hex(bytes));
    }),
  );
  const unknown = transactions.filter((_, index) => known[index] === undefined);
  const recovered = (await recoverUnknown(parts, unknown)).values();
  return known.map((transaction) => {
    const one = transaction ?? recovered.next().value;
    if (one === undefined) throw new RangeError("a transaction was lost");
    return one;
  });
}

function isCosmosTransaction(one: SdkTransaction | CosmosTransaction): one is CosmosTransaction {
  return "messages" in one;
}

/** Verification takes a tenth of a millisecond: others run in between. */
async function verified(tx: CosmosTransaction, limits: CosmosLimits): Promise<AnyBlockTransaction> {
  const fault = cosmosFault(tx, limits);
  if (fault !== undefined) throw blockInvalid(`transaction ${tx.hash}: ${fault.log}`);
  await nextTurn();
  return { tx, from: senderOf(tx) };
}

/** Bytes of an EVM transaction beside calldata and access list, with the message around it; some 400. */
const ENVELOPE_BYTES = 4_096n;

/**
 * What no gas limit pays for is not decoded first: a proposal may be a single transaction of 16 MiB, which
 * would stop the thread for many seconds.
 * @throws BLOCK_INVALID
 */
function refuseOverlong(bytes: Uint8Array, { maxTransactionGas }: TransactionLimits): void {
  const isPayable = wrapsEthereum(bytes)
    ? BigInt(bytes.length) <= ENVELOPE_BYTES + maxTransactionGas / BigInt(ZERO_BYTE_GAS)
    : anteGas({ raw: bytes }) <= maxTransactionGas;
  if (!isPayable) throw blockInvalid("a transaction is longer than any gas limit pays for");
}

async function recoverUnknown(
  { chainId, cosmosChainId, params, recovery }: ProposedTransactionsParts,
  transactions: readonly Uint8Array[],
): Promise<AnyBlockTransaction[]> {
  if (transactions.length === 0) return [];
  const limits = transactionLimitsOf(chainId, params);
  for (const bytes of transactions) refuseOverlong(bytes, limits);
  const claimed = await decodeAll(transactions);
  const evm = claimed.filter((one): one is SdkTransaction => !isCosmosTransaction(one));
  // Execution asks again; here it spares the recovery of what cannot be in a block.
  for (const { tx } of evm) {
    const fault = staticFault(tx, limits);
    if (fault !== undefined) throw blockInvalid(`transaction ${tx.hash}: ${fault.code}`);
  }
  const senders = (await recovery.recover(evm.map(({ tx }) => tx))).values();
  const proposed: AnyBlockTransaction[] = [];
  for (const one of claimed) {
    if (isCosmosTransaction(one)) {
      proposed.push(await verified(one, { ...limits, cosmosChainId }));
      continue;
    }
    const { tx, from } = one;
    if (senders.next().value !== from) {
      throw blockInvalid(`transaction ${tx.hash} has another sender`);
    }
    proposed.push({ tx, from });
  }
  return proposed;
}
