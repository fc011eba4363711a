/**
 * What consensus drives: build a block from the pool, and commit a decided one. The order here is
 * the promise "publish after durable": nothing outside sees a block before its atomic write.
 */
import type { Address } from "../../chain/address.js";
import type { Logger } from "../../runtime/logger.js";
import { failpoint } from "../../runtime/failpoint.js";
import type { CommittedView } from "../committed-view.js";
import type { EventBus } from "../event-bus.js";
import { BlockExecution, type ExecutorOptions } from "../execution/block-executor.js";
import type { Mempool } from "../mempool/mempool.js";
import type { TrieCache } from "../state/trie-cache.js";
import { commitBlock, type ExecutedBlock } from "../store/block-commit.js";
import type { BlockStore } from "../store/block-store.js";
import type { Database } from "../store/database.js";
import type { PoolStore } from "../store/pool-store.js";
import type { StateStore } from "../store/state-store.js";

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
  readonly archive: boolean;
  readonly view: CommittedView;
  readonly bus: EventBus;
  readonly pool: Mempool;
  readonly poolStore: PoolStore;
  readonly executor: ExecutorOptions;
  readonly coinbase: Address;
  readonly log: Logger;
}

/** The chain as consensus sees it. */
export interface BlockApplication {
  /** Builds the next block on the present head from the pool's executable transactions. */
  build(timeMs: number): Promise<ExecutedBlock>;
  /** Makes a decided block durable, then publishes it. */
  commit(executed: ExecutedBlock): Promise<void>;
}

/**
 * Connects pool, execution and store.
 * `build` throws BALANCE_JOURNAL_MISMATCH or SUPPLY_MISMATCH, `commit` STORE_WRITE_FAILED.
 */
export function createBlockApplication(parts: ApplicationParts): BlockApplication {
  return {
    build: (timeMs) => buildBlock(parts, timeMs),
    commit: (executed) => commitAndPublish(parts, executed),
  };
}

async function buildBlock(parts: ApplicationParts, timeMs: number): Promise<ExecutedBlock> {
  failpoint("node.before-block-execution");
  const parent = parts.view.head();
  const parentSupply = parts.blocks.supply(parent.height);
  if (parentSupply === undefined) throw new RangeError("the parent's supply is missing");
  const { coinbase } = parts;
  const start = { parent, parentSupply, timeMs, coinbase };
  const execution = new BlockExecution(parts.executor, start);
  const selection = parts.pool.takeForBlock({
    ...parts.executor.params,
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

async function commitAndPublish(parts: ApplicationParts, executed: ExecutedBlock): Promise<void> {
  const { block } = executed.committed;
  failpoint("node.before-block-write");
  await commitBlock(parts, executed);
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
