/** Strikes in which a standby that has every commit takes over from the exchange's PostgreSQL. */
import { pause } from "../helpers/faults/bench.js";
import type { LabExchange } from "../helpers/faults/lab/lab-exchange.js";
import { untilClosed } from "./operator.js";

/** Longest time for which commits wait for the standby before the primary dies. */
const MAX_SYNCHRONOUS_MS = 1_500;

/** Longest time for which the processes look at a stale primary once they have closed it. */
const MAX_STALE_MS = 2_000;

/** Under work: the primary dies, the standby goes on where it was. */
export async function failOver(lab: LabExchange): Promise<void> {
  await lab.postgres?.follow({ isSynchronous: true });
  // What was under way is done by now: a base copy takes its time.
  const working = lab.work();
  await pause(lab.random.integer(MAX_SYNCHRONOUS_MS));
  await lab.failOver();
  await working;
}

/**
 * The former primary comes back where the processes look for the database, knows nothing of what
 * was told since, and is closed; then they reach the right one again, and go on by themselves.
 */
export async function meetStalePrimary(lab: LabExchange): Promise<void> {
  const { postgres, customers, random } = lab;
  if (postgres === undefined) throw new Error("no PostgreSQL of its own");
  await lab.heal();
  await postgres.follow({ isSynchronous: true });
  if (random.integer(2) === 0) await lab.work();
  await lab.failOver();
  await lab.work();
  await customers.settled();
  lab.leadDatabaseTo(await postgres.reviveFormer());
  await untilClosed(lab);
  await pause(random.integer(MAX_STALE_MS));
  lab.leadDatabaseTo(postgres.port);
  await postgres.killFormer();
}
