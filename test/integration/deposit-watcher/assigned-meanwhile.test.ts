/** A person says whose an address is while the watcher books blocks: what it books from then on is theirs. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { UNASSIGNED } from "../../../ledger/journal/accounts.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { until } from "../../helpers/until.js";
import { TokenBench } from "../tokens/token-bench.js";

let bench: TokenBench;

beforeAll(async () => {
  bench = await TokenBench.open();
});
afterAll(() => bench.close());

it("leaves nothing in suspense that was read before and booked after it", async () => {
  await bench.watch([]);
  await bench.caughtUp();
  const address = await bench.register(UNASSIGNED);
  await bench.stopWatching();
  for (let n = 1n; n <= 4n; n += 1n) await bench.mine([{ to: address, value: n }]);
  await bench.mine([]);
  await bench.mine([]);
  // The last blocks come when the person has decided; a run of the first is booked before.
  let release = () => {};
  const decided = new Promise<void>((resolve) => (release = resolve));
  const { source } = bench;
  const read = source.block.bind(source);
  source.block = async (height, options) => {
    if (height > 3) await decided;
    return read(height, options);
  };
  await bench.watch([]);
  await until(async () => (await readCursor(bench.database)).height === 3, {
    timeoutMs: 30_000,
    what: "the first blocks are booked",
  });
  const terms = {
    action: "assign-address",
    address,
    customerId: "ann",
    withDeposits: true,
  } as const;
  await bench.decide(bench.ledger.owner, terms, "the seed's other records name her");
  release();
  await bench.caughtUp();
  const rows = await bench.database.query(
    `SELECT customer_id, status, amount_units::text AS units FROM deposit ORDER BY seq`,
  );
  expect(rows).toEqual(
    ["1", "2", "3", "4"].map((units) => ({ customer_id: "ann", status: "credited", units })),
  );
  expect((await bench.reconcile()).clean).toBe(true);
});
