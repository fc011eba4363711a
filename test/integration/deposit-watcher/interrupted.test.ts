/** One statement of a block's commit is cancelled, or its session ends, or its answer is lost. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { openIncident } from "../../../ledger/incidents.js";
import { INTERRUPTIONS, InterruptedSql } from "../../helpers/faults/interrupted-sql.js";
import { createRandom } from "../../helpers/random.js";
import { WatcherBench } from "../../helpers/services/watcher.js";
import { until } from "../../helpers/until.js";

/** Statements and commits from a block's arrival to the next round. */
const PLACES = Number(process.env["INTERRUPTED_PLACES"] ?? 30);

/** Of them so many, drawn for each kind: each fault is rested from for half a second. */
const DRAWN = Number(process.env["INTERRUPTED_DRAWN"] ?? 4);

let bench: WatcherBench;
beforeEach(async () => {
  bench = await WatcherBench.open();
});
afterEach(() => bench.close());

it.each(INTERRUPTIONS)("each deposit is credited once: %s", async (kind) => {
  const seed = Number(process.env["CAUSEWAY_TEST_SEED"] ?? Date.now() % 1_000_000);
  console.log(`interrupted blocks (${kind}): seed ${seed} (CAUSEWAY_TEST_SEED)`);
  const random = createRandom(seed);
  const { address } = await bench.register("alice");
  const { owner } = bench.ledger;
  const database = new InterruptedSql(bench.ledger.database);
  const running = bench.start(database);
  for (let turn = 0; turn < DRAWN; turn += 1) {
    const place = 1 + (DRAWN === PLACES ? turn : random.integer(PLACES));
    bench.pay([address, 7n]);
    bench.chain.mine();
    database.interrupt(kind, place);
    const { head } = bench.chain;
    await until(
      async () =>
        running.faults.length > 0 ||
        (database.hasHappened && (await readCursor(owner)).height >= head),
      { timeoutMs: 20_000, what: `the block is booked around statement ${place}` },
    );
    expect({ place, faults: running.faults }).toEqual({ place, faults: [] });
  }
  await running.stop();
  expect(await openIncident(owner)).toBeUndefined();
  const credited = `SELECT data ->> 'depositId' AS id, count(*)::integer AS times FROM event
                     WHERE type = 'deposit.credited' GROUP BY 1`;
  const told = await owner.query<{ id: string; times: number }>(credited);
  expect(told.filter(({ times }) => times !== 1)).toEqual([]);
  expect(told).toHaveLength(DRAWN);
  expect(await bench.accountAtoken("liability:customer:alice")).toBe(-7n * BigInt(DRAWN));
});
