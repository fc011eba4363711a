/**
 * What consensus drives: build a block from the pool, execute a proposed one, and commit a decided
 * one. The order here is the promise "publish after durable": nothing outside sees a block before
 * its atomic write.
 */
import type { Address } from "../../chain/address.js";
import type { BlockTransaction } from "../../chain/block.js";
import { sha256 } from "../../chain/crypto.js";
import { bytesToHash32, type Hash32 } from "../../chain/hex.js";
import type { Logger } from "../../runtime/logger.js";
import { failpoint } from "../../runtime/failpoint.js";
import type { CommittedView } from "../committed-view.js";
import type { EventBus } from "../event-bus.js";
import { BlockExecution, type ExecutorOptions } from "../execution/block-executor.js";
import { checkTransaction } from "../mempool/admission.js";
import type { Mempool } from "../mempool/mempool.js";
import type { SenderRecovery } from "../mempool/sender-recovery.js";
import type { TrieCache } from "../state/trie-cache.js";
import { commitBlock, type ExecutedBlock } from "../store/block-commit.js";
import type { BlockStore } from "../store/block-store.js";
import type { Database, StoreWrite } from "../store/database.js";
import type { PoolStore } from "../store/pool-store.js";
import type { StateStore } from "../store/state-store.js";
import type { StoreBase } from "../store/store-base.js";
import { decodeAll } from "./block-transactions.js";
import { blockInvalid } from "./consensus-error.js";

/** Named crash points of the node, for the fault tests. */
export const NODE_FAILPOINTS = [
  "node.before-block-execution",
  "node.before-block-write",
  "node.after-block-write",
  "node.after-block-publish",
] as const;

/** Parts that the application joins. */
export interface ApplicationParts {
  readonly database: Database;
  readonly blocks: BlockStore;
  readonly state: StateStore;
  readonly tries: TrieCache;
  readonly base: StoreBase;
  readonly archive: boolean;
  readonly view: CommittedView;
  readonly bus: EventBus;
  readonly pool: Mempool;
  readonly poolStore: PoolStore;
  readonly executor: ExecutorOptions;
  /** Recovers the senders that the pool does not know. */
  readonly recovery: SenderRecovery;
  readonly log: Logger;
}

/** What the consensus header says about the block that is executed. */
export interface BlockPlace {
  /** Block time, Unix milliseconds. */
  readonly timeMs: number;
  /** The proposer. */
  readonly coinbase: Address;
  /** Of a proposal, whose transactions were held against it. */
  readonly dataHash?: Hash32;
}

/** What a new block may hold. */
export interface BlockRoom {
  /** For the SDK transactions. */
  readonly maxBytes: number;
  /** At most the chain's limit. */
  readonly maxGas: bigint;
}

/** The chain as consensus sees it; calls must not overlap. */
export interface BlockApplication {
  /**
   * Builds the next block on the present head from the pool's executable transactions.
   */
  build(place: BlockPlace, room: BlockRoom): Promise<ExecutedBlock>;
  /**
   * Executes a proposed block on the present head.
   * @param transactions SDK transactions as the proposal has them
   * @throws BLOCK_INVALID when one of them cannot be in the block
   */
  execute(place: BlockPlace, transactions: readonly Uint8Array[]): Promise<ExecutedBlock>;
  /** Makes a decided block durable, with `writes` in the same write, then publishes it. */
  commit(executed: ExecutedBlock, writes: readonly StoreWrite[]): Promise<void>;
}

/**
 * Connects pool, execution and store. `build` and `execute` throw BALANCE_JOURNAL_MISMATCH or
 * SUPPLY_MISMATCH, `commit` STORE_WRITE_FAILED.
 */
export function createBlockApplication(parts: ApplicationParts): BlockApplication {
  return {
    build: (place, room) => buildBlock(parts, place, room),
    execute: (place, transactions) => executeProposal(parts, place, transactions),
    commit: (executed, writes) => commitAndPublish(parts, executed, writes),
  };
}

function startBlock(parts: ApplicationParts, place: BlockPlace): BlockExecution {
  const parent = parts.view.head();
  const parentSupply = parts.blocks.supply(parent.height);
  if (parentSupply === undefined) throw new RangeError("the parent's supply is missing");
  return new BlockExecution(parts.executor, { parent, parentSupply, ...place });
}

/** The rules of a block's room (D21), as the pool's selection keeps them. */
async function executeProposal(
  parts: ApplicationParts,
  place: BlockPlace,
  transactions: readonly Uint8Array[],
): Promise<ExecutedBlock> {
  const { params } = parts.executor;
  const execution = startBlock(parts, place);
  let [gasLeft, callGasLeft] = [params.maxGas, params.maxCallGas];
  for (const transaction of await recoverAll(parts, transactions)) {
    const { gasLimit, hash } = transaction.tx;
    const isCall = execution.entersCode(transaction.tx);
    if (gasLimit > gasLeft || (isCall && gasLimit > callGasLeft)) {
      throw blockInvalid(`transaction ${hash} does not fit`);
    }
    const outcome = await execution.add(transaction);
    if (!outcome.included) {
      throw blockInvalid(`transaction ${hash} cannot be executed: ${outcome.reason}`);
    }
    gasLeft -= outcome.receipt.gasUsed;
    if (isCall) callGasLeft -= outcome.receipt.gasUsed;
  }
  return execution.seal();
}

/**
 * A proposal's transactions with their senders. What the pool holds under the hash of the very
 * same bytes was decoded, checked and recovered when it came in, by rules no milder than these.
 */
async function recoverAll(
  parts: ApplicationParts,
  transactions: readonly Uint8Array[],
): Promise<BlockTransaction[]> {
  // Taken once: the pool may forget one while others are recovered.
  const known = transactions.map((bytes) => {
    return parts.pool.getBySdkHash(bytesToHash32(sha256(bytes)));
  });
  const unknown = transactions.filter((_, index) => known[index] === undefined);
  const recovered = (await recoverUnknown(parts, unknown)).values();
  return known.map((transaction) => {
    const one = transaction ?? recovered.next().value;
    if (one === undefined) throw new RangeError("a transaction was lost");
    return one;
  });
}

async function recoverUnknown(
  { executor, recovery }: ApplicationParts,
  transactions: readonly Uint8Array[],
): Promise<BlockTransaction[]> {
  if (transactions.length === 0) return [];
  const rules = {
    ...executor.params,
    chainId: executor.chainId,
    // The floor is each node's own; D21 binds all: no transaction names more than this.
    minGasPriceAtoken: 0n,
    maxGas: executor.params.maxCallGas,
    isPrecompile: () => false,
  };
  const claimed = await decodeAll(transactions);
  for (const { tx } of claimed) {
    const refused = checkTransaction(tx, rules);
    if (refused !== undefined) throw blockInvalid(`transaction ${tx.hash}: ${refused.code}`);
  }
  const senders = await recovery.recover(claimed.map(({ tx }) => tx));
  return claimed.map(({ tx, from }, index) => {
    if (senders[index] === from) return { tx, from };
    throw blockInvalid(`transaction ${tx.hash} has another sender`);
  });
}

async function buildBlock(
  parts: ApplicationParts,
  place: BlockPlace,
  { maxBytes, maxGas }: BlockRoom,
): Promise<ExecutedBlock> {
  failpoint("node.before-block-execution");
  const execution = startBlock(parts, place);
  const { params } = parts.executor;
  const selection = parts.pool.takeForBlock({
    ...params,
    maxGas,
    maxCallGas: maxGas < params.maxCallGas ? maxGas : params.maxCallGas,
    maxBytes,
    entersCode: (tx) => execution.entersCode(tx),
  });
  for (let next = selection.next(); next !== undefined; next = selection.next()) {
    const outcome = await execution.add(next);
    if (outcome.included) {
      selection.executed(outcome.receipt.gasUsed);
      continue;
    }
    const { hash } = next.tx;
    selection.skipSender(next.from);
    if (outcome.reason === "execution fault") {
      parts.log.error({ hash, err: outcome.cause }, "transaction cannot be executed, dropped");
      parts.pool.drop(hash, "the transaction cannot be executed");
    } else {
      parts.log.debug({ hash, reason: outcome.reason }, "transaction left out of the block");
    }
  }
  return execution.seal();
}

async function commitAndPublish(
  parts: ApplicationParts,
  executed: ExecutedBlock,
  writes: readonly StoreWrite[],
): Promise<void> {
  const { block } = executed.committed;
  failpoint("node.before-block-write");
  await commitBlock(parts, executed, { writes });
  failpoint("node.after-block-write");
  parts.state.publish(executed.changes);
  parts.tries.apply(executed.trieWrites);
  parts.blocks.remember(executed.committed);
  const { height } = block.header;
  parts.view.moveHead({ height, hash: block.hash, timeMs: block.timeMs });
  parts.pool.onBlockCommitted({
    transactions: block.transactions.map(({ tx, from }) => ({
      hash: tx.hash,
      from,
      nonce: tx.nonce,
    })),
    touched: executed.changes.accounts.keys(),
  });
  parts.bus.emit("block", executed.committed);
  await parts.poolStore.mined(block.transactions.map(({ tx }) => tx.hash));
  failpoint("node.after-block-publish");
}
