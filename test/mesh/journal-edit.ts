/** Plants a fault in a stopped node's store: other changes in the balance journal of a block. */
import type { BalanceChange } from "../../chain/balance-change.js";
import { heightBytes } from "../../chain/height-bytes.js";
import { encodeJournal } from "../../node/store/block-codec.js";
import { BlockStore } from "../../node/store/block-store.js";
import { openDatabase, storeKey } from "../../node/store/database.js";
import { StoreBase } from "../../node/store/store-base.js";

/** Rewrites the journal of one block; throws when no change of it became another. */
export async function changeStoredJournal(
  folder: string,
  height: number,
  edit: (change: BalanceChange) => BalanceChange,
): Promise<void> {
  const database = await openDatabase(folder);
  try {
    const { journal } = new BlockStore(database, await StoreBase.open(database)).block(height);
    let edits = 0;
    const transactions = journal.transactions.map((transaction) => ({
      ...transaction,
      changes: transaction.changes.map((change) => {
        const next = edit(change);
        if (next !== change) edits += 1;
        return next;
      }),
    }));
    if (edits === 0) throw new Error(`nothing was changed in the journal of block ${height}`);
    const value = encodeJournal({ ...journal, transactions });
    const key = storeKey("journal", heightBytes(height));
    await database.write([{ key, value }], { durable: true });
  } finally {
    await database.close();
  }
}
