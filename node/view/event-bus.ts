/** What the node tells its servers after the fact: committed blocks and admitted transactions. */
import type { BlockJournal } from "../../chain/balance-change.js";
import type { Address } from "../../chain/address.js";
import type { AnyTransaction } from "../../chain/cosmos/cosmos-transaction.js";
import type { Block } from "../../chain/block.js";
import type { Receipt } from "../../chain/receipt.js";

/** A block with everything that became durable in the same atomic write. */
export interface CommittedBlock {
  readonly block: Block;
  /** One per EVM transaction, in order. */
  readonly receipts: readonly Receipt[];
  readonly journal: BlockJournal;
}

/** A transaction that became executable in the pool, after its journal write. */
export interface PendingTransaction {
  readonly tx: AnyTransaction;
  readonly from: Address;
}

/** Events and their payloads. */
export interface NodeEvents {
  /** Fired once per height, in order, only after the atomic write is durable. */
  readonly block: CommittedBlock;
  readonly pendingTransactions: readonly PendingTransaction[];
  /** The node stopped producing blocks; the reason is shown by /ready and metrics. */
  readonly halted: { readonly reason: string };
}

/** Typed, synchronous fan-out; a listener that throws is reported and does not stop the others. */
export class EventBus {
  private readonly listeners = new Map<keyof NodeEvents, Set<(payload: never) => void>>();

  constructor(private readonly onListenerError: (error: unknown) => void) {}

  /** Subscribes and returns the function that ends the subscription. */
  on<Name extends keyof NodeEvents>(
    name: Name,
    listener: (payload: NodeEvents[Name]) => void,
  ): () => void {
    const set = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, set);
    set.add(listener);
    return () => {
      set.delete(listener);
    };
  }

  /** Calls every listener in the order of subscription. */
  emit<Name extends keyof NodeEvents>(name: Name, payload: NodeEvents[Name]): void {
    for (const listener of this.listeners.get(name) ?? []) {
      try {
        (listener as (payload: NodeEvents[Name]) => void)(payload);
      } catch (error) {
        this.onListenerError(error);
      }
    }
  }
}

/** Where a mined transaction stands. */
export interface TransactionLocation {
  readonly height: number;
  /** Position in the block, 0-based. */
  readonly index: number;
}
