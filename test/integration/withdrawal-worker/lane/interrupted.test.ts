/** One statement of a payment's way is cancelled, or its session ends, or its answer is lost: paid once. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import { findWithdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { retry } from "../../../../runtime/process/task.js";
import { SqlError } from "../../../../runtime/sql/sql-errors.js";
import { createLaneGuard } from "../../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../../withdrawal-worker/lane/lane-ledger.js";
import type { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { INTERRUPTIONS, InterruptedSql } from "../../../helpers/faults/interrupted-sql.js";
import { createRandom } from "../../../helpers/random.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { House, TOKEN, WALLET } from "../../../helpers/exchange/house.js";

/** Statements and commits from a request to its end: some 105 of a payment, 80 of a cancelled one. */
const PLACES = Number(process.env["INTERRUPTED_PLACES"] ?? 105);

/** Of them so many, drawn for each kind: all of them take a minute. */
const DRAWN = Number(process.env["INTERRUPTED_DRAWN"] ?? 8);

/** Rounds after which a payment that has not ended is called stuck. */
const MAX_ROUNDS = 40;

let house: House;
beforeEach(async () => {
  house = await House.withAlice(10_000n * TOKEN);
});
afterEach(() => house.close());

/** A round; a fault has to be one that a lane waits out: a busy machine brings some of its own. */
async function round(lane: Lane): Promise<void> {
  await lane.runRound(house.signal).catch((error: unknown) => {
    expect(error).toMatchObject({ retriable: true });
  });
}

/** A round after two seconds, and a block. */
async function pass(lane: Lane): Promise<void> {
  house.clock.ms += 2_000;
  await round(lane);
  house.chain.mine();
}

it.each(INTERRUPTIONS)("a payment is made once, a cancelled one never: %s", async (kind) => {
  const seed = Number(process.env["CAUSEWAY_TEST_SEED"] ?? Date.now() % 1_000_000);
  console.log(`interrupted payments (${kind}): seed ${seed} (CAUSEWAY_TEST_SEED)`);
  const random = createRandom(seed);
  const { owner } = house.ledger;
  const database = new InterruptedSql(house.database);
  const lane = house.laneWith({
    ledger: createLaneLedger(database),
    guard: createLaneGuard({ database, wallet: WALLET, log: silentLog }),
  });
  await round(lane);
  let settled = 0n;
  for (let turn = 0; turn < DRAWN; turn += 1) {
    // A session that ended is found to be gone by whoever takes it next.
    const { id, to } = await retry(() => house.acceptTo(), {
      signal: house.signal,
      attempts: 10,
      minDelayMs: 1,
      maxDelayMs: 50,
      isRetriable: (error) => error instanceof SqlError && error.retriable,
    });
    const isCancelled = turn % 2 === 1;
    const statusOf = async () => (await findWithdrawal(owner, id))?.status;
    if (isCancelled) {
      house.chain.unmined.add(to);
      for (let tries = 0; tries < MAX_ROUNDS && (await statusOf()) !== "broadcast"; tries += 1) {
        await round(lane);
      }
      await cancelWithdrawal(owner, id, "not wanted any more");
    }
    const place = 1 + (DRAWN === PLACES ? turn : random.integer(PLACES));
    database.interrupt(kind, place);
    const end = isCancelled ? "cancelled" : "settled";
    for (let rounds = 0; rounds < MAX_ROUNDS && (await statusOf()) !== end; rounds += 1) {
      await pass(lane);
    }
    const paid = house.chain.balances.get(to) ?? 0n;
    expect({ place, status: await statusOf(), paid }).toEqual({
      place,
      status: end,
      paid: isCancelled ? 0n : TOKEN,
    });
    if (!isCancelled) settled += TOKEN;
  }
  await pass(lane);
  const available = 10_000n * TOKEN - settled;
  const balances = `SELECT available_units, held_units FROM customer_balance`;
  expect(await owner.query(balances)).toEqual([
    { available_units: available.toString(), held_units: "0" },
  ]);
  expect(await owner.query(`SELECT 1 FROM signing_freeze WHERE frozen`)).toEqual([]);
  const twice = `SELECT data ->> 'withdrawalId', type FROM event GROUP BY 1, 2 HAVING count(*) > 1`;
  expect(await owner.query(twice)).toEqual([]);
});
