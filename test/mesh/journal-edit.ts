/** Plants a fault in a stopped node's store: other changes in the balance journal of a block. */
import type { BalanceChange } from "../../chain/balance-change.js";
import { allAtOnce } from "../../chain/steps/steps.js";
import { blockRecordSteps } from "../../node/store/blocks/block-records.js";
import { BlockStore } from "../../node/store/blocks/block-store.js";
import { openDatabase } from "../../node/store/database.js";
import { StoreBase } from "../../node/store/store-base.js";

/** Rewrites the journal of one block; throws when no change of it became another. */
export async function changeStoredJournal(
  folder: string,
  height: number,
  edit: (change: BalanceChange) => BalanceChange,
): Promise<void> {
  const database = await openDatabase(folder);
  try {
    const blocks = new BlockStore(database, await StoreBase.open(database));
    const committed = blocks.block(height);
    const { journal } = committed;
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
    const edited = { ...committed, journal: { ...journal, transactions } };
    const writes = allAtOnce(blockRecordSteps(edited, blocks.outline(height).starts));
    await database.write(writes, { durable: true });
  } finally {
    await database.close();
  }
}
