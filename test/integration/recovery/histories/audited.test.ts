/**
 * Random histories as in `mixed.test.ts`, with an audit behind each step: at every block that anything is booked
 * in, nobody is owed less than nothing, whatever was lost, restored and decided since.
 */
import { afterEach, expect, it } from "@jest/globals";
import { readLiabilities } from "../../../../ledger/books/liabilities.js";
import { readCursor } from "../../../../ledger/watch/watch-cursor.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { createRandom } from "../../../helpers/random.js";
import { History, parseWithout } from "./history.js";
import { HouseOfWallets } from "./house-of-wallets.js";

/** As in `mixed.test.ts`, with variables of its own. */
const SEED = Number(process.env["CAUSEWAY_AUDITED_SEED"] ?? 72001);
const RUNS = Number(process.env["CAUSEWAY_AUDITED_RUNS"] ?? 1);
const STEPS = Number(process.env["CAUSEWAY_AUDITED_STEPS"] ?? 19);
const WITHOUT = parseWithout(process.env["CAUSEWAY_AUDITED_WITHOUT"] ?? "adjust,switch,price");

let house: HouseOfWallets | undefined;
afterEach(() => house?.close());

/** Reads what is owed at each block that an entry counts from, and right below it. */
async function audit(database: SqlDatabase): Promise<void> {
  const { height: last } = await readCursor(database);
  const rows = await database.query<{ height: number }>(
    `SELECT DISTINCT height::integer FROM (
       SELECT unnest(ARRAY[effective_height - 1, effective_height]) AS height FROM journal_entry
       UNION SELECT to_height + 1 FROM chain_rewind UNION SELECT $1) AS known
      WHERE height BETWEEN 0 AND $1 ORDER BY height`,
    [last],
  );
  for (const { height } of rows) await readLiabilities(database, { height });
}

it.each(Array.from({ length: RUNS }, (_, run) => SEED + run))(
  "owes nobody less than nothing at any block, with seed %i",
  async (seed) => {
    house = await HouseOfWallets.open();
    const history = new History(house, createRandom(seed), WITHOUT);
    try {
      await history.begin();
      for (let step = 0; step < STEPS; step += 1) {
        await history.step();
        await audit(house.desk.database);
      }
      await history.settle();
      await audit(house.desk.database);
    } catch (error) {
      console.log(`seed ${seed}:\n${history.said.join("\n")}`);
      throw error;
    }
    // Rounds end with faults where something was done to them: some ten in twenty steps at most were seen.
    expect(house.faultCount).toBeLessThan(2 * STEPS);
  },
);
